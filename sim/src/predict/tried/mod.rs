//! The range of runs on which the predictors were tested, and a check whether a run is within it.
//!
//! A prediction is trusted only as far as it was tested. [`TRIED`] lists each grid on which
//! predictions are compared with measurements, and its bounds. [`untried`] names every quantity of
//! a case that is outside the bounds, and reports always mark such predictions. To widen the
//! bounds, first widen the grid: tests check that a grid's cells are within its bounds and that
//! values just outside are named.

mod case;
mod grids;
mod quantity;

use serde::Serialize;

pub use case::Case;
pub use grids::{Bound, Decides, Family, TRIED, Tried};
pub(super) use grids::{FEW_DELETES, FEW_RUNS, LITTLE_GROWTH};
pub use quantity::Quantity;

/// A quantity of a case outside the range in which predictions were tested.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Untried {
    /// Name of the quantity.
    pub what: String,
    /// Its value; `null` if the whole combination was never tested.
    pub found: Option<f64>,
    /// Smallest tested value; `null` without a bound.
    pub low: Option<f64>,
    /// Largest tested value; `null` without a bound.
    pub high: Option<f64>,
    /// The predictions that are uncertain because of it.
    pub decides: Decides,
    /// The command that runs the grid; `null` if there is none.
    pub by: Option<&'static str>,
    /// A sentence for readers.
    pub sentence: String,
}

/// Lists the quantities of a case that are outside the tested range.
#[must_use]
pub fn untried(case: &Case) -> Vec<Untried> {
    let Some(tried) = TRIED.iter().find(|tried| Some(tried.family) == case.family) else {
        return vec![Untried {
            what: case.combination.clone(),
            found: None,
            low: None,
            high: None,
            decides: Decides::All,
            by: None,
            sentence: format!(
                "{}: predictions were never tested for this combination",
                case.combination
            ),
        }];
    };
    let outside = tried.all_bounds().filter_map(|bound| {
        let found = case.of(bound.quantity)?;
        // A run matches a configured share only approximately.
        let inside = found >= 0.99 * bound.low && found <= 1.01 * bound.high;
        (!inside).then(|| bound.untried(found, tried.by))
    });
    let mut outside: Vec<Untried> = outside.collect();
    // A quantity that makes all predictions uncertain includes garbage collection.
    let doubted: Vec<String> = (outside.iter())
        .filter(|u| u.decides == Decides::All)
        .map(|u| u.what.clone())
        .collect();
    outside.retain(|u| u.decides == Decides::All || !doubted.contains(&u.what));
    outside
}

impl Bound {
    fn untried(&self, found: f64, by: &'static str) -> Untried {
        let q = self.quantity;
        let range = match (self.low, self.high) {
            (low, high) if low == high => q.show(low),
            (low, high) if high.is_infinite() => format!("{} or more", q.show(low)),
            (low, high) if low <= 0.0 => format!("at most {}", q.show(high)),
            (low, high) => format!("{} to {}", q.show(low), q.show(high)),
        };
        let finite = |n: f64| n.is_finite().then_some(n);
        Untried {
            what: q.name().into(),
            found: finite(found),
            low: finite(self.low),
            high: finite(self.high),
            decides: self.decides,
            by: Some(by),
            sentence: format!("{} {}, tested with {range}", q.name(), q.show(found)),
        }
    }
}

#[cfg(test)]
mod tests;
