//! Whole state graphs of mirrors and of TLC, compared state by state and edge by edge.
//!
//! Equal counts are not enough. A mirror whose group flush advanced by one record, instead of to
//! any record, would have the same states and thousands of edges fewer. Edges are compared as a set
//! of (state, action, state). This takes O(states + edges) time, 16 bytes a state and 12 bytes an
//! edge. A state's text is computed again when a difference is reported.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};
use stateright::Expectation;
use xxhash_rust::xxh3::xxh3_128;

use crate::value::{ParseError, parse_state, state_text};
use crate::{Mirror, Value};

/// A state graph in normal form: two graphs are equal if and only if their states, initial states
/// and labelled edges are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Hashes of the states' texts, sorted.
    pub states: Vec<u128>,
    /// Initial states, by their index in `states`, sorted.
    pub initial: Vec<u32>,
    /// Action names, sorted.
    pub labels: Vec<String>,
    /// From, label, to: indices into the tables above, sorted and distinct.
    pub edges: Vec<(u32, u16, u32)>,
}

/// A graph while it is read. States are in the order in which they were found.
#[derive(Default)]
struct Builder {
    states: Vec<u128>,
    initial: Vec<u32>,
    labels: Vec<String>,
    edges: Vec<(u32, u16, u32)>,
}

impl Builder {
    fn label(&mut self, name: &str) -> u16 {
        let place = self.labels.iter().position(|known| known == name);
        place.unwrap_or_else(|| {
            self.labels.push(name.to_owned());
            self.labels.len() - 1
        }) as u16
    }

    fn finish(self) -> Graph {
        let rank = |order: &[usize]| {
            let mut ranks = vec![0u32; order.len()];
            for (rank, place) in order.iter().enumerate() {
                ranks[*place] = rank as u32;
            }
            ranks
        };
        let mut order: Vec<usize> = (0..self.states.len()).collect();
        order.sort_unstable_by_key(|place| self.states[*place]);
        let state_ranks = rank(&order);
        let mut label_order: Vec<usize> = (0..self.labels.len()).collect();
        label_order.sort_unstable_by_key(|place| &self.labels[*place]);
        let label_ranks = rank(&label_order);

        let mut edges: Vec<_> = (self.edges.iter())
            .map(|(from, label, to)| {
                (
                    state_ranks[*from as usize],
                    label_ranks[usize::from(*label)] as u16,
                    state_ranks[*to as usize],
                )
            })
            .collect();
        edges.sort_unstable();
        edges.dedup();
        let mut initial: Vec<_> = (self.initial.iter())
            .map(|place| state_ranks[*place as usize])
            .collect();
        initial.sort_unstable();
        Graph {
            states: order.iter().map(|place| self.states[*place]).collect(),
            initial,
            labels: (label_order.iter())
                .map(|place| self.labels[*place].clone())
                .collect(),
            edges,
        }
    }
}

pub(crate) fn hash(variables: &[(impl AsRef<str>, Value)]) -> u128 {
    xxh3_128(state_text(variables).as_bytes())
}

/// Explores every state and every edge of a mirror, breadth first.
///
/// ```
/// use treering_specs::graph::{explore, missing};
/// use treering_specs::mirror::durable_map::DurableMap;
/// use treering_specs::{Config, Mirror};
///
/// let specs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/contract");
/// let config = Config::read(format!("{specs}/MCDurableMap_smoke.cfg").as_ref()).unwrap();
/// let graph = explore(&DurableMap::from_config(&config).unwrap());
/// assert!(graph.states.len() > 1_000 && graph.edges.len() > graph.states.len());
/// assert_eq!(missing(&graph, &graph), None);
/// ```
///
pub fn explore<M: Mirror>(model: &M) -> Graph {
    let mut builder = Builder::default();
    let mut places: FxHashMap<M::State, u32> = FxHashMap::default();
    let mut pending = VecDeque::new();
    let mut actions = Vec::new();
    let visit = |state: M::State,
                 builder: &mut Builder,
                 places: &mut FxHashMap<M::State, u32>,
                 pending: &mut VecDeque<(u32, M::State)>| {
        *places.entry(state).or_insert_with_key(|state| {
            let place = builder.states.len() as u32;
            builder.states.push(hash(&model.variables(state)));
            pending.push_back((place, state.clone()));
            place
        })
    };
    for state in model.init_states() {
        let place = visit(state, &mut builder, &mut places, &mut pending);
        builder.initial.push(place);
    }
    while let Some((from, state)) = pending.pop_front() {
        model.actions(&state, &mut actions);
        for action in actions.drain(..) {
            let label = M::label(&action);
            let Some(next) = model.next_state(&state, action) else {
                continue;
            };
            if !model.within_boundary(&next) {
                continue;
            }
            let label = builder.label(label);
            let to = visit(next, &mut builder, &mut places, &mut pending);
            builder.edges.push((from, label, to));
        }
    }
    builder.finish()
}

/// The names of all actions that a mirror ever takes.
pub fn labels<M: Mirror>(model: &M) -> BTreeSet<&'static str> {
    let mut seen: FxHashSet<M::State> = model.init_states().into_iter().collect();
    let mut pending: Vec<M::State> = seen.iter().cloned().collect();
    let (mut labels, mut actions) = (BTreeSet::new(), Vec::new());
    while let Some(state) = pending.pop() {
        model.actions(&state, &mut actions);
        for action in actions.drain(..) {
            let label = M::label(&action);
            let next = model.next_state(&state, action);
            if let Some(next) = next.filter(|next| model.within_boundary(next)) {
                labels.insert(label);
                if seen.insert(next.clone()) {
                    pending.push(next);
                }
            }
        }
    }
    labels
}

/// A dump of TLC's state graph that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A line that is neither a node, nor an edge, nor layout.
    #[error("{}, line {line}: expected {expected}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// What the line should hold.
        expected: &'static str,
    },
    /// A state whose text is not TLA+.
    #[error("{}, line {line}: {source}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The cause.
        source: ParseError,
    },
}

/// Reads the state graph that TLC writes with `-dump dot,actionlabels`.
///
/// # Errors
/// The file cannot be read, or is not such a dump.
pub fn read_dump(path: &Path) -> Result<Graph, DumpError> {
    let mut builder = Builder::default();
    // TLC names its nodes by their fingerprints.
    let mut places: FxHashMap<i64, u32> = FxHashMap::default();
    let mut edges = Vec::new();
    each_line(path, |line| {
        match line {
            DumpLine::Node { id, text, initial } => {
                let place = builder.states.len() as u32;
                if places.insert(id, place).is_none() {
                    builder.states.push(hash(&parse_state(&text)?));
                    if initial {
                        builder.initial.push(place);
                    }
                }
            }
            DumpLine::Edge { from, label, to } => edges.push((from, builder.label(label), to)),
        }
        Ok(())
    })?;
    for (from, label, to) in edges {
        let place = |id| {
            places.get(&id).copied().ok_or(DumpError::Line {
                path: path.to_owned(),
                line: 0,
                expected: "a node for each end of each edge",
            })
        };
        builder.edges.push((place(from)?, label, place(to)?));
    }
    Ok(builder.finish())
}

enum DumpLine<'a> {
    Node {
        id: i64,
        text: String,
        initial: bool,
    },
    Edge {
        from: i64,
        label: &'a str,
        to: i64,
    },
}

fn each_line(
    path: &Path,
    mut each: impl FnMut(DumpLine<'_>) -> Result<(), ParseError>,
) -> Result<(), DumpError> {
    let io = |source| DumpError::Io {
        path: path.to_owned(),
        source,
    };
    let reader = BufReader::with_capacity(1 << 20, File::open(path).map_err(io)?);
    for (number, line) in (1..).zip(reader.lines()) {
        let line = line.map_err(io)?;
        // Layout lines start differently.
        if !line.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            continue;
        }
        let parsed = dump_line(&line).ok_or(DumpError::Line {
            path: path.to_owned(),
            line: number,
            expected: "`id [label=\"…\"]` or `id -> id [label=\"…\",…]`",
        })?;
        each(parsed).map_err(|source| DumpError::State {
            path: path.to_owned(),
            line: number,
            source,
        })?;
    }
    Ok(())
}

fn dump_line(line: &str) -> Option<DumpLine<'_>> {
    let (head, rest) = line.split_once(" [label=\"")?;
    if let Some((from, to)) = head.split_once(" -> ") {
        return Some(DumpLine::Edge {
            from: from.parse().ok()?,
            label: rest.split_once('"')?.0,
            to: to.parse().ok()?,
        });
    }
    let (text, attributes) = unescape(rest)?;
    Some(DumpLine::Node {
        id: head.parse().ok()?,
        text,
        initial: attributes.contains("style = filled"),
    })
}

/// Reads a quoted label up to its closing quote. Returns the label and the rest of the text.
fn unescape(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::with_capacity(quoted.len());
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((text, &quoted[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => text.push('\n'),
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
    None
}

/// The first state or edge of a graph that another graph does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A state (its hash).
    State(u128),
    /// An initial state.
    Initial(u128),
    /// An edge: from, action, to.
    Edge(u128, String, u128),
}

/// Finds a state or edge of `one` that `other` does not have. Compares edges only if `other` has
/// all states.
pub fn missing(one: &Graph, other: &Graph) -> Option<Difference> {
    let has = |state: u128| other.states.binary_search(&state).ok();
    if let Some(state) = one.states.iter().find(|state| has(**state).is_none()) {
        return Some(Difference::State(*state));
    }
    let place = |at: u32| has(one.states[at as usize]).map(|p| p as u32);
    let missing_initial = one
        .initial
        .iter()
        .find(|at| place(**at).is_none_or(|p| other.initial.binary_search(&p).is_err()));
    if let Some(at) = missing_initial {
        return Some(Difference::Initial(one.states[*at as usize]));
    }
    let known = |(from, label, to): &(u32, u16, u32)| {
        let label = (other.labels).binary_search(&one.labels[usize::from(*label)]);
        let edge = (|| Some((place(*from)?, label.ok()? as u16, place(*to)?)))();
        edge.is_some_and(|edge| other.edges.binary_search(&edge).is_ok())
    };
    let (from, label, to) = one.edges.iter().find(|edge| !known(edge))?;
    Some(Difference::Edge(
        one.states[*from as usize],
        one.labels[usize::from(*label)].clone(),
        one.states[*to as usize],
    ))
}

/// The text of a mirror's state with this hash.
pub(crate) fn mirror_text<M: Mirror>(model: &M, wanted: u128) -> Option<String> {
    let mut found = None;
    search(model, |state| {
        let variables = model.variables(state);
        let hit = hash(&variables) == wanted;
        if hit {
            found = Some(state_text(&variables));
        }
        hit.then_some("found")
    });
    found
}

/// The text of a dump's state with this hash.
pub fn dump_text(path: &Path, wanted: u128) -> Option<String> {
    let mut found = None;
    each_line(path, |line| {
        if let DumpLine::Node { text, .. } = line
            && found.is_none()
        {
            let variables = parse_state(&text)?;
            found = (hash(&variables) == wanted).then(|| state_text(&variables));
        }
        Ok(())
    })
    .ok()?;
    found
}

/// A step of a counterexample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The action that led to this state. `None` for an initial state.
    pub action: Option<String>,
    /// The state: its variables, sorted by name.
    pub state: Vec<(String, Value)>,
}

/// A shortest behaviour that ends in a violation of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The property that the last state violates.
    pub property: String,
    /// The states, from an initial one to the violation.
    pub steps: Vec<Step>,
}

/// Finds a shortest behaviour to a state that violates an invariant of the mirror. Invariants are
/// tried in the order of the configuration, as TLC does.
pub fn counterexample<M: Mirror>(model: &M) -> Option<Counterexample> {
    let properties: Vec<_> = (model.properties().into_iter())
        .filter(|p| p.expectation == Expectation::Always)
        .collect();
    search(model, |state| {
        let violated = properties.iter().find(|p| !(p.condition)(model, state));
        violated.map(|p| p.name)
    })
}

/// Replays a behaviour on a mirror, to a state that must violate the invariant `property`.
///
/// ```
/// use treering_specs::graph::{counterexample, walk};
/// use treering_specs::mirror::durable_map::DurableMap;
/// use treering_specs::{Config, Mirror};
///
/// let model = |name: &str| {
///     let specs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/contract");
///     let path = format!("{specs}/MCDurableMap_{name}.cfg");
///     DurableMap::from_config(&Config::read(path.as_ref()).unwrap()).unwrap()
/// };
/// let buggy = model("call-when-down");
/// let found = counterexample(&buggy).unwrap();
/// assert_eq!(walk(&buggy, &found.steps, &found.property), Ok(()));
/// // Without the bug the mirror does not take these steps.
/// assert!(walk(&model("smoke"), &found.steps, &found.property).is_err());
/// ```
///
/// # Errors
/// The first step that the mirror does not take, or that `property` holds in the last state.
pub fn walk<M: Mirror>(model: &M, steps: &[Step], property: &str) -> Result<(), String> {
    let is = |state: &M::State, step: &Step| hash(&model.variables(state)) == hash(&step.state);
    let mut at: Option<M::State> = None;
    let mut actions = Vec::new();
    for (number, step) in (1..).zip(steps) {
        let label = step.action.as_deref().unwrap_or_default();
        let candidates: Vec<M::State> = match &at {
            None => model.init_states(),
            Some(state) => {
                model.actions(state, &mut actions);
                (actions.drain(..).filter(|action| M::label(action) == label))
                    .filter_map(|action| model.next_state(state, action))
                    .collect()
            }
        };
        at = candidates.into_iter().find(|state| is(state, step));
        if at.is_none() {
            return Err(format!("step {number}: no {label} leads to this state"));
        }
    }
    let last = at.ok_or("expected one step or more")?;
    let properties = model.properties();
    let named = properties.iter().find(|p| p.name == property);
    match named.map(|p| (p.condition)(model, &last)) {
        Some(false) => Ok(()),
        Some(true) => Err(format!("{property} holds in the last state")),
        None => Err(format!(
            "{property} is not an invariant of the configuration"
        )),
    }
}

/// A step of a behaviour, to `state`.
pub(crate) fn step<M: Mirror>(model: &M, action: Option<&str>, state: &M::State) -> Step {
    let mut state: Vec<_> = (model.variables(state).into_iter())
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    state.sort();
    let action = action.map(str::to_owned);
    Step { action, state }
}

/// Searches breadth first until `verdict` returns something. Each state is judged once, when it is
/// first found.
fn search<M: Mirror>(
    model: &M,
    mut verdict: impl FnMut(&M::State) -> Option<&'static str>,
) -> Option<Counterexample> {
    let mut places: FxHashMap<M::State, ()> = FxHashMap::default();
    // Each state, the index of its predecessor, and the action between them.
    let mut order: Vec<(M::State, u32, &'static str)> = Vec::new();
    let mut see = |state: M::State, before: u32, action, order: &mut Vec<_>| {
        if places.insert(state.clone(), ()).is_some() {
            return None;
        }
        let found = verdict(&state);
        order.push((state, before, action));
        found
    };
    let mut found = None;
    for state in model.init_states() {
        found = found.or(see(state, u32::MAX, "", &mut order));
    }
    let mut actions = Vec::new();
    let mut at = 0;
    while found.is_none() && at < order.len() {
        let state = order[at].0.clone();
        model.actions(&state, &mut actions);
        for action in actions.drain(..) {
            let label = M::label(&action);
            let next = model.next_state(&state, action);
            let Some(next) = next.filter(|next| model.within_boundary(next)) else {
                continue;
            };
            if let Some(property) = see(next, at as u32, label, &mut order) {
                found = Some(property);
                break;
            }
        }
        at += 1;
    }
    let property = found?.to_owned();
    let mut steps = Vec::new();
    let mut place = order.len() - 1;
    while let Some((state, before, action)) = order.get(place) {
        let action = (!action.is_empty()).then_some(*action);
        steps.push(step(model, action, state));
        place = *before as usize;
    }
    steps.reverse();
    Some(Counterexample { property, steps })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "strict digraph DiskGraph {\nnodesep=0.35;\nsubgraph cluster_graph {\ncolor=\"white\";\n\
        -8 [label=\"/\\\\ x = <<\\\"a\\\",\\n  1>>\\n/\\\\ y = 1\",style = filled]\n\
        -8 -> 5 [label=\"Go\",color=\"black\",fontcolor=\"black\"];\n5 [label=\"/\\\\ y = 2\\n/\\\\ x = <<>>\"];\n\
        5 -> 5 [label=\"Stay\",color=\"black\",fontcolor=\"black\"];\n-8 -> 5 [label=\"Go\",color=\"black\",fontcolor=\"black\"];\n\
        {rank = same; -8;}\n}\n}";

    fn read(text: &str) -> Result<Graph, DumpError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.dot");
        std::fs::write(&path, text).unwrap();
        read_dump(&path)
    }

    #[test]
    fn a_dump_is_read_and_edges_count_once() {
        let graph = read(DUMP).unwrap();
        assert_eq!((graph.states.len(), graph.initial.len()), (2, 1));
        assert_eq!(graph.labels, ["Go", "Stay"]);
        assert_eq!(graph.edges.len(), 2);
        assert_eq!(missing(&graph, &graph), None);
    }

    #[test]
    fn a_lost_edge_and_a_lost_state_are_differences() {
        let graph = read(DUMP).unwrap();
        let mut lost = graph.clone();
        lost.edges.pop();
        assert_eq!(missing(&lost, &graph), None);
        assert!(matches!(
            missing(&graph, &lost),
            Some(Difference::Edge(_, label, _)) if label == "Go" || label == "Stay"
        ));
        let fewer = read(&DUMP.replace("y = 2", "y = 3")).unwrap();
        assert!(matches!(
            missing(&graph, &fewer),
            Some(Difference::State(_))
        ));
    }

    #[test]
    fn a_damaged_dump_is_refused_with_its_line() {
        let message = |text: &str| read(text).unwrap_err().to_string();
        assert!(message("1 [label=\"x = 1").contains("line 1"));
        assert!(message("1 [label=\"x = \"];").contains("line 1"));
        assert!(message("a\n1 -> 2 [label=\"Go\"];").contains("a node for each end"));
    }
}
