//! What the judges of trees in persistent memory have in common: the events that they hear,
//! episodes with power cuts ([`episode`]), and the words of the medium beside those of the mirror
//! (`words`).
//!
//! **The medium.** A judge keeps, for each version of each word of its mirror, what the engine
//! stores for it. After one event in eight, and at each end, all that a crash may then leave in any
//! word, evicted early or torn apart from its line, must be among that: not one random outcome, but
//! every one. Recordings are cut at any request, several times, by a power cut or because the
//! process is killed. A store is recovered from each, its recovery judged in the same way, cut
//! again, and all keys are read.

pub mod episode;
pub(super) mod words;

use std::fmt;

use treering_engine::PmOptions;
use treering_engine::device::PmImage;
use treering_engine::pm_events::Event;

use super::refused;

/// The content of the medium after an end.
#[derive(Clone)]
pub struct Found(pub(super) PmImage);

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// A recorded event of a client, of the tree, or of the medium.
#[derive(Clone, Debug)]
pub enum Heard {
    /// The store is opened with these options.
    Opens(Box<PmOptions>),
    /// The client calls a get of a key.
    Get(u8),
    /// The client's get returned this.
    Got(Option<u64>),
    /// The client calls a put of a key and value, or a delete.
    Write(u8, Option<u64>),
    /// The client's write returned.
    Done,
    /// A call failed.
    Failed(String),
    /// An event of the tree.
    Tree(Box<Event>),
    /// The power failed, and this is what remained.
    Crashed(Found),
    /// The process ended, and this is what the next one reads.
    Killed(Found),
}

impl Heard {
    /// The kind of the event.
    #[must_use]
    pub fn kind(&self) -> String {
        let text = match self {
            Heard::Tree(event) => match &**event {
                Event::Lodge(event) => format!("{event:?}"),
                event => format!("{event:?}"),
            },
            other => format!("{other:?}"),
        };
        let name = text.split([' ', '(', '{']).next();
        name.unwrap_or_default().to_owned()
    }
}

/// An event that the mirror does not allow.
pub type Refusal<Action> = refused::Refusal<Heard, Action>;

/// The number of clients of an episode, if the numbers alternate.
pub(super) fn clients_in_turns(episode: u64) -> u8 {
    if episode % 3 == 2 { 2 } else { 1 }
}
