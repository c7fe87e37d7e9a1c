//! Hit ratios of caches with other replacement policies, to compare the engine's clock with
//! ([`super::cache`]).
//!
//! A policy is a file of this folder and a line of `POLICIES`. Predictions, their JSON and the
//! reports take it from there.

mod lru;

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::cache::PageClass;

/// The hit ratio that a policy gives a cache with this many frames.
type HitRatio = fn(&[PageClass], f64) -> f64;

/// All policies by name.
const POLICIES: &[(&str, HitRatio)] = &[("lru", lru::hit_ratio)];

/// Predicted share of page accesses that hit a cache of equal size that consists of frames only, by
/// policy. In JSON each is a field `POLICY_hit_ratio`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtherPolicies(BTreeMap<&'static str, f64>);

impl OtherPolicies {
    /// Predicts all policies.
    pub(super) fn predict(classes: &[PageClass], frames: f64) -> OtherPolicies {
        let each = POLICIES.iter();
        OtherPolicies(
            each.map(|(name, of)| (*name, of(classes, frames)))
                .collect(),
        )
    }

    /// Name and hit ratio of each.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.0.iter().map(|(name, ratio)| (*name, *ratio))
    }
}

impl Serialize for OtherPolicies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, ratio) in self.iter() {
            map.serialize_entry(&format!("{name}_hit_ratio"), &ratio)?;
        }
        map.end()
    }
}
