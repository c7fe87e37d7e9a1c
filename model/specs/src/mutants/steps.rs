//! Compares state graphs without keeping them.
//!
//! A model is visited with one property, which is always true and prints each step:
//!
//! ```text
//!   StepsProp == [][PrintT(<<"step~", vars, vars'>>)]_vars
//! ```
//!
//! Two protocols with the same set of printed steps have the same states and the same steps, apart
//! from steps that change nothing; which action makes a step does not matter. A set is compared by
//! the 128-bit hashes of its steps. That costs about as much as a check; to judge each step by both
//! protocols (`[][Next /\ Other]_vars`) would cost ten times as much.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_128;

use super::scope::Scope;

/// The module that has the property, and extends the wrapper of a spec.
pub(super) const MODULE: &str = "MutantSteps";

/// How a printed step begins.
const MARK: &str = "<<\"step~\", ";

/// The text of [`MODULE`].
pub(super) fn module(scope: &Scope) -> String {
    let (spec, variables) = (&scope.spec, &scope.variables);
    format!(
        "---- MODULE {MODULE} ----\nEXTENDS MC{spec}, TLC\n\
         StepsProp == [][PrintT({MARK}{variables}, ({variables})'>>)]_{variables}\n====\n"
    )
}

/// A configuration that checks nothing, with the property.
pub(super) fn config(text: &str) -> String {
    format!("{text}\nPROPERTIES StepsProp\n")
}

/// The steps that a check has printed so far.
#[derive(Debug, Default)]
pub(super) struct Steps(HashSet<u128>);

impl Steps {
    /// Notes a line of the output. Returns whether it was a step.
    pub(super) fn note(&mut self, line: &[u8]) -> bool {
        let step = line.strip_prefix(MARK.as_bytes());
        if let Some(step) = step {
            self.0.insert(xxh3_128(step));
        }
        step.is_some()
    }

    pub(super) fn graph(&self) -> Graph {
        let sum = self
            .0
            .iter()
            .fold(0, |sum: u128, hash| sum.wrapping_add(*hash));
        Graph {
            steps: self.0.len(),
            sum,
        }
    }
}

/// Stands for the set of a protocol's steps in a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Graph {
    steps: usize,
    /// The sum of their hashes.
    sum: u128,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(lines: &[&str]) -> Graph {
        let mut steps = Steps::default();
        for line in lines {
            steps.note(line.as_bytes());
        }
        steps.graph()
    }

    #[test]
    fn neither_order_nor_repetition_of_steps_counts() {
        let (a, b) = ("<<\"step~\", <<1>>, <<2>>>>", "<<\"step~\", <<2>>, <<1>>>>");
        assert_eq!(graph(&[a, b]), graph(&[b, a, "2 states generated", b]));
        assert_ne!(graph(&[a, b]), graph(&[a]));
        assert_ne!(graph(&[a]), graph(&[b]));
        assert!(!Steps::default().note(b"State 1: <<\"step~\", "));
    }
}
