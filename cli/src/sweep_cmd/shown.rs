//! What a study makes of its results: tables and pictures for its page, and claims.
//!
//! ```toml
//! [[table]]
//! name = "threshold"                  # the mark in the page
//! part = "threshold"                  # the rows: of this part, or of these
//! where = { page = "8KiB" }           # and with these values
//! rows = ["trace", "threshold"]       # the parameters that name a row
//! columns = "clients"                 # a parameter whose values are columns; optional
//! figures = [{ name = "WA", of = "wa.csd.stored.total", digits = 1 }]
//!                                     # base = {…} shows growth from that point, and per = "…"
//!                                     # divides it by the growth of another figure
//! [[table.paper]]                     # what the paper has there
//! figure = "WA"
//! where = { trace = "128 B" }
//! is = "8 (§1)"
//!
//! [[chart]]
//! name = "bminus-threshold"           # the file, without .svg
//! x = { of = "threshold", name = "T in bytes", scale = "log" }    # a parameter
//! y = { of = "wa.csd.stored.total", name = "WA" }
//! curves = ["trace"]                  # or bars = ["tree"], in groups named by x.of
//!
//! [[claim]]
//! name = "far below"                  # of = {…} over = {…}, along = "…", or neither
//! says = "B⁻-tree writes far less than the baseline"
//! paper = "88 % less (§1)"
//! figure = "wa.csd.stored.total"
//! of = { tree = "bminus" }
//! over = { tree = "btree+cow" }
//! is = "< 0.3"
//! differs = "why"                     # then it must not hold
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;

use super::points::{self, TRACE};

/// One value or a list, as they would be typed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum Values {
    One(Word),
    Some(Vec<Word>),
}

/// A value.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum Word {
    Text(String),
    Whole(i64),
    Real(f64),
    Switch(bool),
}

impl Word {
    fn text(&self) -> String {
        match self {
            Word::Text(text) => text.clone(),
            Word::Whole(number) => number.to_string(),
            Word::Real(number) => number.to_string(),
            Word::Switch(on) => on.to_string(),
        }
    }
}

impl Values {
    pub(super) fn texts(&self) -> Vec<String> {
        match self {
            Values::One(word) => vec![word.text()],
            Values::Some(words) => words.iter().map(Word::text).collect(),
        }
    }
}

/// Values by parameter.
pub(super) type Where = BTreeMap<String, Values>;

/// A figure of reports, and how it is shown.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figure {
    pub(super) name: String,
    /// A path in the report, or an expression of some.
    pub(super) of: String,
    /// Digits after the point.
    pub(super) digits: Option<usize>,
    /// `%` or a unit of bytes, by which the value is divided; other words are only shown.
    pub(super) unit: Option<String>,
    /// The point with the same trace from which the figure counts: its growth is shown.
    pub(super) base: Option<Where>,
    /// A figure by whose growth from `base` that growth is divided.
    pub(super) per: Option<String>,
}

/// What a paper has in a cell.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InPaper {
    /// The name of the figure.
    pub(super) figure: String,
    #[serde(default, rename = "where")]
    pub(super) of: Where,
    pub(super) is: Word,
}

impl InPaper {
    pub(super) fn text(&self) -> String {
        self.is.text()
    }
}

/// A table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableOf {
    pub(super) name: String,
    pub(super) part: Option<Values>,
    #[serde(default, rename = "where")]
    pub(super) of: Where,
    pub(super) rows: Vec<String>,
    pub(super) columns: Option<String>,
    pub(super) figures: Vec<Figure>,
    #[serde(default)]
    pub(super) paper: Vec<InPaper>,
}

/// An axis of a chart.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AxisOf {
    /// The parameter, or the figure.
    pub(super) of: String,
    pub(super) name: String,
    /// `linear` or `log`.
    #[serde(default)]
    pub(super) scale: ScaleOf,
    pub(super) unit: Option<String>,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ScaleOf {
    #[default]
    Linear,
    Log,
}

/// A curve of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PaperCurve {
    pub(super) name: String,
    pub(super) points: Vec<[f64; 2]>,
}

/// A picture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChartOf {
    pub(super) name: String,
    pub(super) part: Option<Values>,
    #[serde(default, rename = "where")]
    pub(super) of: Where,
    pub(super) x: AxisOf,
    pub(super) y: AxisOf,
    /// Parameters whose values name a curve.
    pub(super) curves: Option<Vec<String>>,
    /// Parameters whose values name a bar of each group.
    pub(super) bars: Option<Vec<String>>,
    /// Curves of the paper.
    #[serde(default)]
    pub(super) paper: Vec<PaperCurve>,
}

/// A claim of a paper, and how it is measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaimOf {
    pub(super) name: String,
    pub(super) says: String,
    /// What the paper has, and where.
    pub(super) paper: String,
    pub(super) part: Option<Values>,
    #[serde(default, rename = "where")]
    pub(super) within: Where,
    pub(super) figure: String,
    pub(super) of: Option<Where>,
    pub(super) over: Option<Where>,
    pub(super) along: Option<String>,
    /// Parameters in which two points that are compared may differ, too.
    #[serde(default)]
    pub(super) ignoring: Vec<String>,
    /// A condition: `< 0.3`, `>= 2`, `0.9 to 1.1`; with `along`, `falls`, `rises` or `flat`.
    pub(super) is: String,
    /// `along`: the least change from the first to the last, or the most of `flat`, as a share.
    pub(super) by: Option<f64>,
    pub(super) unit: Option<String>,
    /// Why measurement and paper differ. Then the claim must not hold.
    pub(super) differs: Option<String>,
    /// Whether the small version can show it.
    #[serde(default = "yes")]
    pub(super) small: bool,
}

fn yes() -> bool {
    true
}

/// What is made of the results.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Shown {
    #[serde(default, rename = "table")]
    pub(super) tables: Vec<TableOf>,
    #[serde(default, rename = "chart")]
    pub(super) charts: Vec<ChartOf>,
    #[serde(default, rename = "claim")]
    pub(super) claims: Vec<ClaimOf>,
}

impl Shown {
    /// Reads the sections of a study that are about results; an error has its place.
    pub(super) fn read(text: &str) -> Result<Shown, (Range<usize>, String)> {
        let shown: Shown = toml::from_str(text)
            .map_err(|e| (e.span().unwrap_or_default(), e.message().to_owned()))?;
        shown.check().map_err(|(name, why)| {
            let at = text.find(&format!("\"{name}\"")).unwrap_or_default();
            (at..at, format!("{name}: {why}"))
        })?;
        Ok(shown)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.charts.is_empty() && self.claims.is_empty()
    }

    fn check(&self) -> Result<(), (&str, String)> {
        for table in &self.tables {
            let named = table
                .rows
                .iter()
                .chain(&table.columns)
                .chain(table.of.keys());
            let paper = table.paper.iter().flat_map(|paper| paper.of.keys());
            parameters(named.chain(paper)).map_err(|why| (table.name.as_str(), why))?;
            if let Some(figure) = table
                .figures
                .iter()
                .find(|f| f.per.is_some() && f.base.is_none())
            {
                return Err((
                    &table.name,
                    format!("{}: expected base with per", figure.name),
                ));
            }
            let unknown = (table.paper.iter())
                .find(|paper| table.figures.iter().all(|f| f.name != paper.figure));
            if let Some(paper) = unknown {
                let why = format!("{}: expected the name of one of its figures", paper.figure);
                return Err((&table.name, why));
            }
        }
        for chart in &self.charts {
            let series = chart.curves.iter().chain(&chart.bars).flatten();
            let named = series.chain(chart.of.keys()).chain([&chart.x.of]);
            parameters(named).map_err(|why| (chart.name.as_str(), why))?;
            if chart.curves.is_some() == chart.bars.is_some() {
                return Err((&chart.name, "expected either curves or bars".into()));
            }
        }
        for claim in &self.claims {
            let sides = claim.of.iter().chain(&claim.over).flat_map(|of| of.keys());
            let named = sides.chain(claim.within.keys()).chain(&claim.along);
            parameters(named.chain(&claim.ignoring)).map_err(|why| (claim.name.as_str(), why))?;
            if claim.of.is_some() != claim.over.is_some()
                || (claim.of.is_some() && claim.along.is_some())
            {
                let why = "expected both of and over, or along, or none of them";
                return Err((&claim.name, why.into()));
            }
            super::claims::Condition::of(claim).map_err(|why| (claim.name.as_str(), why))?;
        }
        Ok(())
    }
}

/// Checks that all of these are parameters.
fn parameters<'a>(mut names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let is_known = |name: &String| {
        let flags = points::flags();
        name == TRACE || flags.iter().any(|(flag, _)| flag == name)
    };
    match names.find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => Err(format!(
            "{name}: expected trace, or a flag of `treering replay`"
        )),
    }
}
