//! The words of the command line.

use std::hash::{DefaultHasher, Hash, Hasher};

use treering_sim::predict::{Effort, Method, Model};

/// What is compared at each pair of trace and design.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// So many points, chosen by the seed.
    Points(usize),
    /// 12 cache sizes.
    Curves,
    /// The first half predicts the second.
    Prefix,
}

/// One half of the pairs of trace and design.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    Build,
    Held,
}

pub(crate) struct Choice {
    pub(crate) what: What,
    pub(crate) quick: bool,
    pub(crate) half: Option<Half>,
    pub(crate) only: Vec<String>,
    pub(crate) method: Method,
    pub(crate) records: u64,
    pub(crate) seed: u64,
    /// Whether runs end with a checkpoint that leaves no change in memory.
    pub(crate) drain: bool,
    pub(crate) rows: Option<String>,
}

impl Choice {
    pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Choice, String> {
        let mut choice = Choice {
            what: What::Points(1),
            quick: false,
            half: None,
            only: Vec::new(),
            method: Method::default(),
            records: 60_000,
            seed: 1,
            drain: false,
            rows: None,
        };
        for word in words {
            let number = |value: &str| {
                let bad = |_| format!("{word}: expected a number");
                value.parse::<u64>().map_err(bad)
            };
            match word.split_once('=').unwrap_or((&word, "")) {
                ("points", "all") => choice.what = What::Points(usize::MAX),
                ("points", n) => choice.what = What::Points(number(n)?.max(1) as usize),
                ("curves", "") => choice.what = What::Curves,
                ("prefix", "") => choice.what = What::Prefix,
                ("quick", "") => {
                    (choice.quick, choice.records, choice.drain) = (true, 20_000, true);
                }
                ("drain", "") => choice.drain = true,
                ("half", "build") => choice.half = Some(Half::Build),
                ("half", "held") => choice.half = Some(Half::Held),
                ("only", words) => choice.only = words.split(',').map(str::to_owned).collect(),
                ("effort", "fast") => choice.method.effort = Effort::Fast,
                ("effort", "full") => choice.method.effort = Effort::Full,
                ("model", "independent") => choice.method.model = Model::Independent,
                ("model", "played") => choice.method.model = Model::Played,
                ("records", n) => choice.records = number(n)?.max(1000),
                ("seed", n) => choice.seed = number(n)?,
                ("rows", file) if !file.is_empty() => choice.rows = Some(file.to_owned()),
                _ => {
                    return Err(format!(
                        "{word}: expected a word of the table in its source"
                    ));
                }
            }
        }
        Ok(choice)
    }

    /// A number that depends on the seed and on `names`, for choices.
    pub(crate) fn draw(&self, names: &[&str]) -> u64 {
        // The default hasher has fixed keys.
        let mut hasher = DefaultHasher::new();
        (self.seed, names).hash(&mut hasher);
        hasher.finish()
    }

    /// Whether a pair of trace and design is in the half that is asked for. Which pairs are in
    /// which half does not depend on the seed.
    pub(crate) fn has(&self, trace: &str, design: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        (trace, design).hash(&mut hasher);
        let half = match hasher.finish() & 1 {
            0 => Half::Build,
            _ => Half::Held,
        };
        self.half.is_none_or(|asked| asked == half)
    }
}
