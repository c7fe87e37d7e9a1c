//! The interface through which the registry and the checks see a tree in persistent memory. Each
//! tree implements it beside its options.

use super::facts::PmFacts;
use crate::error::Result;
use crate::options::param::{self, Param};

/// The options of one tree, together with its description.
pub(crate) trait PmPart: Default + 'static {
    /// The tree's name in specs, on the command line and in reports.
    const NAME: &'static str;
    /// A description in one line.
    const ABOUT: &'static str;
    /// The paper that it comes from.
    const SOURCE: &'static str;
    /// The parameters.
    const PARAMS: &'static [Param<Self>];

    /// Returns what the rest of the project asks of the tree.
    fn facts(&self) -> PmFacts;

    /// Returns an error that names the first option that cannot work.
    fn check(&self, chunk_bytes: u64) -> Result<()> {
        let _ = chunk_bytes;
        Ok(())
    }
}

/// A parameter as the documentation shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The tree or part that has it.
    pub of: &'static str,
    /// The parameter's name.
    pub name: &'static str,
    /// The default as text.
    pub default: String,
    /// The description.
    pub about: &'static str,
}

/// [`PmPart`] as a trait object.
pub(crate) trait AnyPart {
    fn name(&self) -> &'static str;
    fn about(&self) -> &'static str;
    fn source(&self) -> &'static str;
    fn facts(&self) -> PmFacts;
    fn check(&self, chunk_bytes: u64) -> Result<()>;
    /// Sets a parameter from text. The error says what was expected.
    fn set(&mut self, name: &str, value: &str) -> std::result::Result<(), String>;
    /// Returns the parameters that differ from their defaults, as `name=value`.
    fn differing(&self) -> Vec<String>;
    /// Returns all parameters, for the documentation.
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

    fn facts(&self) -> PmFacts {
        PmPart::facts(self)
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

/// Returns the parameters of a part, for the documentation.
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
