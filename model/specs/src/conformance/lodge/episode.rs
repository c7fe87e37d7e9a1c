//! Episodes of a LodgeTree.

use treering_engine::device::PmImage;
use treering_engine::pm_events::{Event, lodge::LodgeEvent};
use treering_engine::{LodgeOptions, PmOptions, PmTreeKind};

use super::judge::Judge;
use super::words::LEAF;
use crate::conformance::persistent::episode;
use crate::conformance::persistent::words::{CHUNK, Layout};
use treering_oracle::random::Random;

/// Chunks of the medium.
pub(super) const CHUNKS: u8 = 16;

/// Everything that an episode depends on, except for the order of its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episode {
    /// The number of clients, each with a thread if there are several.
    pub clients: u8,
    /// The number of keys.
    pub keys: u8,
    /// Slots of a node, which lives may have fewer of.
    pub slots: u8,
    /// The most leaves of a flush.
    pub t_node: u8,
    /// The most keys of a leaf that is not split.
    pub t_split: u8,
    /// Entries of a log.
    pub log_entries: u8,
    /// The seed of all choices.
    pub seed: u64,
}

impl Episode {
    /// Derives an episode from a seed.
    #[must_use]
    pub fn new(clients: u8, seed: u64) -> Self {
        let mut rng = Random::new(seed);
        // Leaves and nodes that are small, so that they are often split, or as large as there are.
        let (t_split, slots) = if rng.one_in(3) {
            (22 + rng.below(6), 20 + rng.below(10))
        } else {
            (5 + rng.below(6), 5 + rng.below(8))
        };
        Self {
            clients,
            keys: 16 + rng.below(41) as u8,
            slots: slots as u8,
            t_node: 1 + rng.below(3) as u8,
            t_split: t_split as u8,
            log_entries: 6 + rng.below(3) as u8,
            seed: rng.word(),
        }
    }
}

impl episode::Episode for Episode {
    type Judge = Judge;

    const BYTES: u64 = Layout::new(CHUNKS, LEAF).bytes();

    fn clients(&self) -> u8 {
        self.clients
    }

    fn keys(&self) -> u8 {
        self.keys
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn options(&self, life: u64) -> PmOptions {
        // With fewer slots than in the life before, recovery has to flush.
        let slots = match life % 3 {
            0 => 4 + (life >> 8) % (u64::from(self.slots) - 3),
            _ => self.slots.into(),
        };
        PmOptions {
            tree: PmTreeKind::Lodge(LodgeOptions {
                slots: slots as usize,
                t_node: self.t_node.into(),
                t_split: self.t_split.into(),
                log_entries: self.log_entries.into(),
                logs: 2,
                ..LodgeOptions::default()
            }),
            chunk_bytes: CHUNK,
            ..PmOptions::default()
        }
    }

    fn judge(&self, image: &PmImage) -> Judge {
        Judge::new(self, image)
    }

    fn opens(event: &Event) -> bool {
        matches!(event, Event::Lodge(LodgeEvent::Recovered))
    }
}
