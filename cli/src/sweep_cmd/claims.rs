//! The claims of a study, held against what was measured.

use serde::Serialize;

use super::found::{self, Found};
use super::shown::ClaimOf;

/// What a claim says of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Condition {
    Below(f64),
    AtMost(f64),
    Above(f64),
    AtLeast(f64),
    Between(f64, f64),
    /// From one value to the next, and by this share in all.
    Falls(f64),
    Rises(f64),
    /// No value is further from the first than this share.
    Flat(f64),
}

impl Condition {
    /// The condition of a claim.
    ///
    /// # Errors
    /// If it is none, or not of this kind of claim.
    pub(super) fn of(claim: &ClaimOf) -> Result<Condition, String> {
        let by = claim.by.unwrap_or(0.0);
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let is = claim.is.trim();
        let found = match (claim.along.is_some(), is) {
            (true, "falls") => Some(Condition::Falls(by)),
            (true, "rises") => Some(Condition::Rises(by)),
            (true, "flat") => Some(Condition::Flat(by)),
            (true, _) => None,
            (false, is) => {
                let after = |sign: &str| is.strip_prefix(sign).and_then(number);
                let between = || {
                    let (low, high) = is.split_once(" to ")?;
                    Some(Condition::Between(number(low)?, number(high)?))
                };
                (after("<= ").map(Condition::AtMost))
                    .or_else(|| after(">= ").map(Condition::AtLeast))
                    .or_else(|| after("< ").map(Condition::Below))
                    .or_else(|| after("> ").map(Condition::Above))
                    .or_else(between)
            }
        };
        found.ok_or_else(|| match claim.along {
            Some(_) => format!("is: expected falls, rises or flat, found {is}"),
            None => format!("is: expected `< X`, `<= X`, `> X`, `>= X` or `X to Y`, found {is}"),
        })
    }

    fn holds_of(self, value: f64) -> bool {
        if !value.is_finite() {
            return false;
        }
        match self {
            Condition::Below(limit) => value < limit,
            Condition::AtMost(limit) => value <= limit,
            Condition::Above(limit) => value > limit,
            Condition::AtLeast(limit) => value >= limit,
            Condition::Between(low, high) => (low..=high).contains(&value),
            Condition::Falls(_) | Condition::Rises(_) | Condition::Flat(_) => false,
        }
    }

    fn holds_along(self, values: &[f64]) -> bool {
        let (Some(first), Some(last)) = (values.first(), values.last()) else {
            return false;
        };
        let mut steps = values.windows(2);
        match self {
            Condition::Falls(by) => {
                steps.all(|step| step[1] < step[0]) && *last <= first * (1.0 - by)
            }
            Condition::Rises(by) => {
                steps.all(|step| step[1] > step[0]) && *last >= first * (1.0 + by)
            }
            Condition::Flat(by) => values.iter().all(|v| (v / first - 1.0).abs() <= by),
            _ => false,
        }
    }
}

/// What came of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    Holds,
    /// It does not hold, and the study says why.
    Differs,
    /// It does not hold, and the study does not know.
    Fails,
    /// It holds, but the study says that it differs.
    NoLongerDiffers,
    /// The points that it needs were not run.
    NotJudged,
}

/// A claim, judged.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Judged {
    pub(super) name: String,
    pub(super) says: String,
    pub(super) paper: String,
    /// The ratios or values, in words.
    pub(super) measured: String,
    pub(super) verdict: Verdict,
    /// Why they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) differs: Option<String>,
}

impl Judged {
    /// A claim that the study has to be changed for.
    pub(super) fn is_wrong(&self) -> bool {
        matches!(self.verdict, Verdict::Fails | Verdict::NoLongerDiffers)
    }

    pub(super) fn verdict_in_words(&self) -> &'static str {
        match self.verdict {
            Verdict::Holds => "holds",
            Verdict::Differs => "differs",
            Verdict::Fails => "does not hold",
            Verdict::NoLongerDiffers => "holds, but is listed as differing",
            Verdict::NotJudged => "not judged",
        }
    }
}

/// Judges a claim by all results; `small` if they are of the small version.
pub(super) fn judge(claim: &ClaimOf, all: &[Found<'_>], small: bool) -> Judged {
    let condition = Condition::of(claim).ok();
    let condition = condition.filter(|_| claim.small || !small);
    let (holds, measured) = match condition {
        None => (None, String::new()),
        Some(condition) => match (&claim.along, &claim.of, &claim.over) {
            (Some(along), ..) => moves(claim, along, condition, all),
            (None, Some(_), Some(_)) => ratios(claim, condition, all),
            _ => values(claim, condition, all),
        },
    };
    Judged {
        name: claim.name.clone(),
        says: claim.says.clone(),
        paper: claim.paper.clone(),
        measured,
        verdict: match (holds, &claim.differs) {
            (None, _) => Verdict::NotJudged,
            (Some(true), None) => Verdict::Holds,
            (Some(false), Some(_)) => Verdict::Differs,
            (Some(false), None) => Verdict::Fails,
            (Some(true), Some(_)) => Verdict::NoLongerDiffers,
        },
        differs: claim.differs.clone(),
    }
}

/// Whether it holds, if there was something to judge, and what was measured.
type Outcome = (Option<bool>, String);

fn said(claim: &ClaimOf, value: f64) -> String {
    found::number(value, None, claim.unit.as_deref())
}

/// The least and the greatest of some values, in words.
fn range(claim: &ClaimOf, values: &[f64]) -> String {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    if finite().count() < values.len() {
        // A claim never holds of what was divided by 0.
        return "divided by 0".into();
    }
    let least = finite().fold(f64::INFINITY, f64::min);
    let most = finite().fold(f64::NEG_INFINITY, f64::max);
    let (least, most) = (said(claim, least), said(claim, most));
    match least == most {
        true => least,
        false => format!("{least} to {most}"),
    }
}

fn each(claim: &ClaimOf, condition: Condition, values: &[f64]) -> Outcome {
    match values {
        [] => (None, String::new()),
        values => (
            Some(values.iter().all(|value| condition.holds_of(*value))),
            range(claim, values),
        ),
    }
}

fn values(claim: &ClaimOf, condition: Condition, all: &[Found<'_>]) -> Outcome {
    let some = found::select(all, claim.part.as_ref(), &[&claim.within]);
    let values: Vec<f64> = some.iter().filter_map(|f| f.value(&claim.figure)).collect();
    each(claim, condition, &values)
}

/// Compares each point of one side with each of the other that is alike in all else.
fn ratios(claim: &ClaimOf, condition: Condition, all: &[Found<'_>]) -> Outcome {
    let (Some(of), Some(over)) = (&claim.of, &claim.over) else {
        return (None, String::new());
    };
    let side = |it| found::select(all, claim.part.as_ref(), &[&claim.within, it]);
    let may_differ = of.keys().chain(over.keys()).chain(&claim.ignoring);
    let may_differ: Vec<&str> = may_differ.map(String::as_str).collect();
    let others = side(over);
    let mut ratios = Vec::new();
    for one in side(of) {
        let alike = |other: &&&Found| rest(other, &may_differ) == rest(one, &may_differ);
        for other in others.iter().filter(alike) {
            let pair = one.value(&claim.figure).zip(other.value(&claim.figure));
            ratios.extend(pair.map(|(one, other)| one / other));
        }
    }
    each(claim, condition, &ratios)
}

/// Follows the figure along a parameter, where all else is alike.
fn moves(claim: &ClaimOf, along: &str, condition: Condition, all: &[Found<'_>]) -> Outcome {
    let some = found::select(all, claim.part.as_ref(), &[&claim.within]);
    let mut may_differ = vec![along];
    may_differ.extend(claim.ignoring.iter().map(String::as_str));
    let groups = found::distinct(some.iter().map(|f| rest(f, &may_differ)));
    let (mut holds, mut words) = (Vec::new(), Vec::new());
    for group in groups {
        let members = some.iter().filter(|f| rest(f, &may_differ) == group);
        let value = |f: &&&Found| {
            let at = f.point.get(along)?;
            Some((found::numeric(at), f.value(&claim.figure)?))
        };
        let mut points: Vec<(Option<f64>, f64)> = members.filter_map(|f| value(&f)).collect();
        if points.len() < 2 {
            continue;
        }
        if points.iter().all(|(at, _)| at.is_some()) {
            points.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(std::cmp::Ordering::Equal));
        }
        let values: Vec<f64> = points.into_iter().map(|(_, value)| value).collect();
        holds.push(condition.holds_along(&values));
        let steps: Vec<String> = values.iter().map(|value| said(claim, *value)).collect();
        words.push(steps.join(", "));
    }
    match holds.is_empty() {
        true => (None, String::new()),
        false => (Some(holds.iter().all(|holds| *holds)), words.join("; ")),
    }
}

/// The parameters of a point without some.
fn rest<'a>(found: &Found<'a>, without: &[&str]) -> Vec<(&'a str, &'a str)> {
    let trace = ("trace", found.point.trace.as_str());
    let settings = found.point.settings().chain([trace]);
    settings
        .filter(|(name, _)| !without.contains(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep_cmd::points::Point;
    use serde_json::json;

    fn claim(text: &str) -> ClaimOf {
        let head = "name = \"n\"\nsays = \"s\"\npaper = \"p\"\nfigure = \"wa\"\n";
        toml::from_str(&format!("{head}{text}")).expect("a claim")
    }

    /// What a claim comes to over WA of two trees with three thresholds.
    fn verdict(text: &str) -> (Verdict, String) {
        let reports: Vec<_> = [8.0, 6.0, 5.0, 40.0, 30.0, 30.0]
            .map(|wa| json!({ "wa": wa }))
            .into();
        let mut points = Vec::new();
        for tree in ["bminus", "btree"] {
            for threshold in ["512", "1KiB", "2KiB"] {
                let mut point = Point::of("t");
                point.set("tree", tree);
                point.set("threshold", threshold);
                points.push(point);
            }
        }
        let found = points.iter().zip(&reports).map(|(point, report)| Found {
            part: "",
            point,
            report: Some(report),
        });
        let all: Vec<Found> = found.collect();
        let judged = judge(&claim(text), &all, false);
        (judged.verdict, judged.measured)
    }

    #[test]
    fn a_claim_holds_only_if_every_pair_or_step_does() {
        let sides = "of = { tree = \"bminus\" }\nover = { tree = \"btree\" }\n";
        let of = |is: &str| verdict(&format!("{sides}is = \"{is}\""));
        assert_eq!(of("<= 0.2"), (Verdict::Holds, "0.167 to 0.200".into()));
        assert_eq!(of("< 0.2").0, Verdict::Fails);
        assert_eq!(of("0.15 to 0.25").0, Verdict::Holds);
        assert_eq!(of("> 0.1666").0, Verdict::Holds);
        assert_eq!(of(">= 0.17").0, Verdict::Fails);
        // Each with both others.
        let sides = "of = { threshold = \"512\" }\nover = { threshold = [\"1KiB\", \"2KiB\"] }\n";
        let below = verdict(&format!("{sides}is = \"> 1.3\""));
        assert_eq!(below, (Verdict::Holds, "1.33 to 1.60".into()));
        let along = |tree: &str, is: &str| {
            verdict(&format!(
                "along = \"threshold\"\nwhere = {{ tree = \"{tree}\" }}\n{is}"
            ))
        };
        let fell = (Verdict::Holds, "8.00, 6.00, 5.00".to_owned());
        assert_eq!(along("bminus", "is = \"falls\"\nby = 0.3"), fell);
        assert_eq!(
            along("bminus", "is = \"falls\"\nby = 0.4").0,
            Verdict::Fails
        );
        assert_eq!(along("btree", "is = \"falls\"").0, Verdict::Fails);
        assert_eq!(along("btree", "is = \"flat\"\nby = 0.25").0, Verdict::Holds);
        assert_eq!(along("btree", "is = \"flat\"\nby = 0.2").0, Verdict::Fails);
        assert_eq!(along("bminus", "is = \"rises\"").0, Verdict::Fails);
    }

    #[test]
    fn a_claim_that_is_listed_as_differing_must_differ() {
        let differs = "where = { tree = \"btree\" }\ndiffers = \"why\"\n";
        let of = |is: &str| verdict(&format!("{differs}is = \"{is}\"")).0;
        assert_eq!(of("< 10"), Verdict::Differs);
        assert_eq!(of("> 10"), Verdict::NoLongerDiffers);
        let zero = "figure = \"wa / 0\"\nis = \"> 0\"";
        let head = "name = \"n\"\nsays = \"s\"\npaper = \"p\"\n";
        let zero: ClaimOf = toml::from_str(&format!("{head}{zero}")).expect("a claim");
        assert_eq!(
            each(&zero, Condition::Above(0.0), &[f64::INFINITY]).0,
            Some(false)
        );
        let none = "where = { tree = \"bf\" }\nis = \"< 10\"";
        assert_eq!(verdict(none).0, Verdict::NotJudged);
    }
}
