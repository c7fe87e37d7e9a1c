//! Parses the output of the checkers.
//!
//! TLC and `tla-mc` print nearly the same: a verdict, a behaviour state by state, and counts.

use crate::graph::Step;
use crate::value::parse_state;

/// The contents of a checker\'s output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Whether it says that no error was found.
    pub holds: bool,
    /// The violated property. Empty if the checker does not name it.
    pub violated: Option<String>,
    /// Why there is no verdict.
    pub error: Option<String>,
    /// Distinct states.
    pub distinct: Option<u64>,
    /// States that random walks visited.
    pub walked: Option<u64>,
    /// The depth of the search, in states.
    pub depth: Option<u64>,
    /// The behaviour that it prints.
    pub steps: Vec<Step>,
    /// For an infinite behaviour, the number (from 1) of the state to which the last one returns;
    /// its own number if it stutters.
    pub back_to: Option<usize>,
    /// With coverage: actions that were never taken, and lines in them that were never reached.
    pub never_taken: Vec<String>,
    /// With coverage: actions that were taken.
    pub taken: Vec<String>,
}

/// Parses the output of either checker.
pub fn read(text: &str) -> Findings {
    let mut findings = Findings::default();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("State ") || line.starts_with("Back to state ") {
            let mut body = String::new();
            while let Some(line) = lines.next_if(|line| !line.trim().is_empty()) {
                body.push_str(line);
                body.push('\n');
            }
            state(&mut findings, line, &body);
        } else if let Some(said) = line.strip_prefix("Error: ") {
            error(&mut findings, said);
        } else if line.contains("No error has been found") {
            findings.holds = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            // The last count is the final one.
            findings.distinct = number_before(line, " distinct states found").or(findings.distinct);
            findings.depth = number_after(line, "Depth ").or(findings.depth);
        } else if let Some(rest) = line.strip_prefix("Progress: ") {
            findings.walked = number_before(rest, " states checked").or(findings.walked);
        } else if line.starts_with("The depth of the complete state graph") {
            findings.depth = number_after(line, " is ");
        } else if line.starts_with("The coverage statistics at ") {
            (findings.never_taken, findings.taken) = coverage(text, line);
        }
    }
    if !findings.holds && findings.violated.is_none() && findings.error.is_none() {
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        findings.error = Some(last.unwrap_or("it printed nothing").to_owned());
    }
    findings
}

fn state(findings: &mut Findings, head: &str, body: &str) {
    if let Some(back) = number_after(head, "Back to state ") {
        findings.back_to = Some(back as usize);
        return;
    }
    if head.ends_with("Stuttering") {
        findings.back_to = Some(findings.steps.len());
        return;
    }
    let action = head.split_once('<').map(|(_, rest)| rest);
    let action = action.and_then(|rest| rest.split([' ', '>']).next());
    // A state that cannot be parsed still counts as one.
    findings.steps.push(Step {
        action: action.filter(|name| *name != "Initial").map(str::to_owned),
        state: parse_state(body).unwrap_or_default(),
    });
}

fn error(findings: &mut Findings, said: &str) {
    let named = |before: &str| {
        let rest = said.strip_prefix(before)?;
        Some(rest.split_once(" is violated")?.0.to_owned())
    };
    let violated = named("Invariant ")
        .or_else(|| named("Action property "))
        .or_else(|| named("Property "))
        .or_else(|| (said.starts_with("Temporal properties were violated")).then(String::new))
        .or_else(|| {
            said.starts_with("Deadlock reached")
                .then(|| "deadlock".into())
        });
    match violated {
        Some(property) if findings.violated.is_none() => findings.violated = Some(property),
        Some(_) => {}
        // Other messages, such as "The behavior up to this point is:", come after the verdict.
        None if findings.violated.is_none() && findings.error.is_none() => {
            findings.error = Some(said.to_owned());
        }
        None => {}
    }
}

fn number_before(line: &str, what: &str) -> Option<u64> {
    let before = line.split_once(what)?.0;
    let number = before.rsplit([' ', ':']).next()?;
    number.replace(',', "").parse().ok()
}

fn number_after(line: &str, what: &str) -> Option<u64> {
    let after = line.split_once(what)?.1;
    let end = after
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(after.len());
    after[..end].parse().ok()
}

/// Actions that were never taken and lines of others that were never reached, and the actions that
/// were taken, in the coverage report that starts at `head`.
fn coverage(text: &str, head: &str) -> (Vec<String>, Vec<String>) {
    let (mut never, mut taken) = (Vec::new(), Vec::new());
    let mut action = String::new();
    let report = text.split_once(head).map_or("", |(_, after)| after);
    for line in report
        .lines()
        .take_while(|line| !line.starts_with("End of"))
    {
        let Some((place, count)) = line.rsplit_once(": ").or_else(|| line.rsplit_once(">: "))
        else {
            continue;
        };
        if let Some(rest) = place.strip_prefix('<') {
            action = rest.split(' ').next().unwrap_or_default().to_owned();
            match count.ends_with(":0") {
                true if action != "Init" => never.push(action.clone()),
                true => {}
                false => taken.push(action.clone()),
            }
        } else if count == "0" && !action.is_empty() && !never.contains(&action) {
            let place = place.trim_start_matches([' ', '|']);
            let line = place.split(',').next().unwrap_or(place);
            let module = place.rsplit(' ').next().unwrap_or_default();
            let found = format!("{action}, {line} of module {module}");
            if !never.contains(&found) {
                never.push(found);
            }
        }
    }
    (never, taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passing_verdict_has_state_counts() {
        let tlc = "Progress(14) at X: 214,760 states generated, 28,623 distinct states found (1 ds/min), 7,278 states left on queue.\n\
            Model checking completed. No error has been found.\n443685 states generated, 44016 distinct states found, 0 states left on queue.\n\
            The depth of the complete state graph search is 23.\n";
        let found = read(tlc);
        assert!(found.holds && found.violated.is_none() && found.error.is_none());
        assert_eq!((found.distinct, found.depth), (Some(44016), Some(23)));
        let tla_mc = "Model checking completed. No error has been found.\n5345 states generated, 734 distinct states found. Depth 14. Checked in 0.1s";
        let found = read(tla_mc);
        assert_eq!((found.distinct, found.depth), (Some(734), Some(14)));
    }

    #[test]
    fn a_violation_has_its_property_and_its_trace() {
        let text = "Error: Invariant AckInv is violated.\nError: The behavior up to this point is:\nState 1: <Initial predicate>\n/\\ x = 1\n\n\
            State 2: <Call line 9, col 1 to line 9, col 35 of module M>\n/\\ x = <<2,\n  3>>\n\n3 states generated, 2 distinct states found, 0 states left on queue.\n";
        let found = read(text);
        assert_eq!(found.violated.as_deref(), Some("AckInv"));
        assert_eq!(found.error, None);
        assert_eq!(found.steps.len(), 2);
        assert_eq!(found.steps[1].action.as_deref(), Some("Call"));
        assert_eq!(found.steps[1].state[0].1.to_string(), "<<2, 3>>");
    }

    #[test]
    fn a_liveness_counterexample_names_its_loop_state() {
        let text = "Error: Temporal properties were violated.\n\nError: The following behavior constitutes a counter-example:\n\n\
            State 1: <Initial predicate>\nx = 1\n\nState 2: <A line 1>\nx = 2\n\nBack to state 1: <B line 2>\n\n";
        let found = read(text);
        assert_eq!(
            (found.violated.as_deref(), found.back_to),
            (Some(""), Some(1))
        );
        let found = read(&text.replace("Back to state 1: <B line 2>", "State 3: Stuttering"));
        assert_eq!((found.steps.len(), found.back_to), (2, Some(2)));
    }

    #[test]
    fn a_tool_error_is_neither_pass_nor_violation() {
        let found = read("Error: Parsing or semantic analysis failed.\n");
        assert_eq!(
            found.error.as_deref(),
            Some("Parsing or semantic analysis failed.")
        );
        assert!(read("").error.is_some());
    }

    #[test]
    fn actions_never_taken_are_named() {
        let text = "The coverage statistics at now\n<Init line 1, col 1 to line 1, col 4 of module M>: 1:1\n<A line 2, col 1 to line 2, col 3 of module M>: 0:0\n  \
            line 3, col 1 to line 3, col 5 of module M: 0\n<B line 5, col 1 to line 5, col 3 of module M>: 2:5\n  line 6, col 1 to line 6, col 4 of module M: 5\n  \
            |line 7, col 1 to line 7, col 4 of module M: 0\nEnd of statistics.\n";
        assert_eq!(read(text).never_taken, ["A", "B, line 7 of module M"]);
        assert_eq!(read(text).taken, ["Init", "B"]);
    }
}
