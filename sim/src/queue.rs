//! The event queue of virtual time.
//!
//! It is a binary heap of `(time, sequence number)`. Events at the same instant leave in the order
//! in which they came, so a run depends only on its inputs. A heap without sequence numbers would
//! order ties by its internal shape.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::clock::VirtualNanos;

/// One event in the heap, ordered by time, then by arrival. The payload is not compared.
#[derive(Clone, Debug)]
struct Entry<T> {
    at: VirtualNanos,
    sequence: u64,
    event: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    /// Reversed, because the standard heap returns its greatest element and we want the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

/// Events ordered by virtual time, first come first served within an instant.
///
/// ```
/// use treering_sim::clock::VirtualNanos;
/// use treering_sim::queue::EventQueue;
///
/// let mut events = EventQueue::with_capacity(3);
/// events.push(VirtualNanos(20), "late");
/// events.push(VirtualNanos(10), "first");
/// events.push(VirtualNanos(10), "second");
/// assert_eq!(events.next_at(), Some(VirtualNanos(10)));
/// assert_eq!(events.pop(), Some((VirtualNanos(10), "first")));
/// assert_eq!(events.pop(), Some((VirtualNanos(10), "second")));
/// assert_eq!(events.pop(), Some((VirtualNanos(20), "late")));
/// ```
#[derive(Clone, Debug)]
pub struct EventQueue<T> {
    heap: BinaryHeap<Entry<T>>,
    next_sequence: u64,
}

impl<T> EventQueue<T> {
    /// Creates an empty queue with space for `capacity` events.
    pub fn with_capacity(capacity: usize) -> Self {
        EventQueue {
            heap: BinaryHeap::with_capacity(capacity),
            next_sequence: 0,
        }
    }

    /// Schedules `event` at `at`.
    pub fn push(&mut self, at: VirtualNanos, event: T) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.heap.push(Entry {
            at,
            sequence,
            event,
        });
    }

    /// Removes and returns the earliest event.
    pub fn pop(&mut self) -> Option<(VirtualNanos, T)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }

    /// Time of the earliest event.
    pub fn next_at(&self) -> Option<VirtualNanos> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Number of waiting events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no event is waiting.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_leave_by_time_and_within_an_instant_by_arrival(times in prop::collection::vec(0u64..8, 0..200)) {
            let mut queue = EventQueue::default();
            for (arrival, &at) in times.iter().enumerate() {
                queue.push(VirtualNanos(at), arrival);
            }
            let mut expected: Vec<_> = times.iter().copied().enumerate().map(|(i, at)| (VirtualNanos(at), i)).collect();
            expected.sort();
            let found: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn looking_at_the_next_event_does_not_take_it() {
        let mut queue = EventQueue::with_capacity(2);
        queue.push(VirtualNanos(9), 'b');
        queue.push(VirtualNanos(4), 'a');
        assert_eq!(queue.next_at(), Some(VirtualNanos(4)));
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.pop(), Some((VirtualNanos(4), 'a')));
        assert!(!queue.is_empty());
    }
}
