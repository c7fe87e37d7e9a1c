//! What the registry and the checks need to know of a tree in persistent memory. Each tree says it
//! beside its options.

use crate::error::Result;
use crate::options::param::{self, Param};

/// The options of one tree.
pub(crate) trait PmPart: Default + 'static {
    /// The tree's name in specs, on the command line and in reports.
    const NAME: &'static str;
    /// What it is, in one line.
    const ABOUT: &'static str;
    /// Where it comes from.
    const SOURCE: &'static str;
    /// Its parameters.
    const PARAMS: &'static [Param<Self>];

    /// Number of its logs.
    fn logs(&self) -> usize {
        1
    }

    /// Slots of its buffer nodes; 0 if it has none.
    fn batch(&self) -> usize {
        0
    }

    /// Refuses options that cannot work, by name.
    fn check(&self, chunk_bytes: u64) -> Result<()> {
        let _ = chunk_bytes;
        Ok(())
    }
}

/// A parameter as documentation shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The tree or part that has it.
    pub of: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its default as text.
    pub default: String,
    /// What it is.
    pub about: &'static str,
}

/// [`PmPart`] as a trait object.
pub(crate) trait AnyPart {
    fn name(&self) -> &'static str;
    fn about(&self) -> &'static str;
    fn source(&self) -> &'static str;
    fn logs(&self) -> usize;
    fn batch(&self) -> usize;
    fn check(&self, chunk_bytes: u64) -> Result<()>;
    /// Sets a parameter from text. The error says what was expected.
    fn set(&mut self, name: &str, value: &str) -> std::result::Result<(), String>;
    /// The parameters that are not at their defaults, as `name=value`.
    fn differing(&self) -> Vec<String>;
    /// All parameters, for documentation.
    fn shown(&self) -> Vec<Shown>;
}

impl<T: PmPart> AnyPart for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn about(&self) -> &'static str {
        T::ABOUT
    }

    fn source(&self) -> &'static str {
        T::SOURCE
    }

    fn logs(&self) -> usize {
        PmPart::logs(self)
    }

    fn batch(&self) -> usize {
        PmPart::batch(self)
    }

    fn check(&self, chunk_bytes: u64) -> Result<()> {
        PmPart::check(self, chunk_bytes)
    }

    fn set(&mut self, name: &str, value: &str) -> std::result::Result<(), String> {
        param::set(T::PARAMS, self, name, value)
    }

    fn differing(&self) -> Vec<String> {
        param::differing(T::PARAMS, self, &T::default())
    }

    fn shown(&self) -> Vec<Shown> {
        shown(T::NAME, T::PARAMS)
    }
}

/// The parameters of a part, for documentation.
pub(crate) fn shown<T: Default>(of: &'static str, params: &'static [Param<T>]) -> Vec<Shown> {
    let default = T::default();
    let shown = params.iter().map(|param| Shown {
        of,
        name: param.name,
        default: (param.get)(&default),
        about: param.about,
    });
    shown.collect()
}
