//! A shortest way through a graph, with its steps. [`crate::graph`] has the states only.

use std::collections::VecDeque;
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// A way: the step from each node, and the node where it ends.
pub(super) type Way<N, A> = (Vec<(N, A)>, N);

/// The shortest way from `first` to a wanted node. `next` lists the steps from a node.
pub(super) fn shortest<N: Clone + Eq + Hash, A: Copy>(
    first: N,
    mut next: impl FnMut(&N, &mut Vec<(A, N)>),
    wanted: impl Fn(&N) -> bool,
) -> Option<Way<N, A>> {
    // How each node was reached first.
    let mut came: FxHashMap<N, Option<(N, A)>> = FxHashMap::default();
    let mut pending = VecDeque::from([first.clone()]);
    came.insert(first, None);
    let mut steps = Vec::new();
    while let Some(at) = pending.pop_front() {
        next(&at, &mut steps);
        for (action, to) in steps.drain(..) {
            if came.contains_key(&to) {
                continue;
            }
            came.insert(to.clone(), Some((at.clone(), action)));
            if !wanted(&to) {
                pending.push_back(to);
                continue;
            }
            let mut way = Vec::new();
            let mut back = to.clone();
            while let Some(Some((from, action))) = came.get(&back).cloned() {
                back = from.clone();
                way.push((from, action));
            }
            way.reverse();
            return Some((way, to));
        }
    }
    None
}
