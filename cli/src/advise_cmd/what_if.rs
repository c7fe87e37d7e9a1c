//! What would change the answer: the best design for other sizes of the cache.
//!
//! Only leading designs are predicted again: the advised one, and the best of each other tree and page
//! store.

use std::collections::BTreeSet;

use serde::Serialize;

use super::predict::Predictor;
use super::search::Found;
use super::space::Space;
use super::words::design;
use crate::failure::Failure;

/// Shares of the data set.
const CACHES: [&str; 4] = ["1%", "4%", "15%", "50%"];
/// Most designs that are predicted again.
const DESIGNS: usize = 3;

/// The best design for a size of the cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Change {
    /// The size.
    pub(super) cache: &'static str,
    /// The design, in words.
    pub(super) best: String,
    /// Its predicted value.
    pub(super) value: f64,
    /// How much worse the advised design is there, as a share of that.
    pub(super) advised_behind: f64,
}

/// The answers for other sizes.
#[derive(Clone, Debug, Default)]
pub(super) struct WhatIf(pub(super) Vec<Change>);

impl WhatIf {
    /// Predicts leading designs with other sizes of the cache; nothing if the size was given as a
    /// list, or the tree has none.
    ///
    /// # Errors
    /// If a signal stops it.
    pub(super) fn look(
        found: &Found,
        space: &Space,
        by: &mut Predictor,
    ) -> Result<WhatIf, Failure> {
        let best = found.best();
        let has_cache = best.is_some_and(|at| {
            let options = &found.candidates[at].predicted["options"];
            options["cache"].is_number()
        });
        let (Some(best), true, false) = (best, has_cache, space.is_list("cache")) else {
            return Ok(WhatIf::default());
        };
        let mut seen = BTreeSet::new();
        let mut designs: Vec<usize> = std::iter::once(best).chain(found.ranked()).collect();
        designs.retain(|at| {
            let point = &found.candidates[*at].point;
            let of = |flag| point.get(flag).unwrap_or_default().to_owned();
            seen.insert(["device", "tree", "store"].map(of))
        });
        designs.truncate(DESIGNS);
        let mut changes = Vec::new();
        for cache in CACHES {
            let mut at_size = Found::new(found.goal, Vec::new());
            let points = designs
                .iter()
                .map(|at| found.candidates[*at].point.with("cache", cache));
            at_size.predict(points.collect(), by)?;
            let ranked = at_size.ranked();
            let Some(first) = ranked.first().map(|at| &at_size.candidates[*at]) else {
                continue;
            };
            let advised = found.candidates[best].point.with("cache", cache);
            let advised = at_size.candidates.iter().find(|c| c.point == advised);
            let value = at_size.predicted(first).unwrap_or_default();
            let behind = advised.and_then(|c| at_size.predicted(c));
            changes.push(Change {
                cache,
                best: design(&first.point, &["cache"]),
                value,
                advised_behind: behind.map_or(0.0, |other| found.goal.behind(other, value)),
            });
        }
        Ok(WhatIf(changes))
    }
}
