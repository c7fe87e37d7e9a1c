//! Episodes of a CCL-BTree, and of the tree without buffers, whose leaves are the same.

use treering_engine::device::PmImage;
use treering_engine::pm_events::Event;
use treering_engine::{CclOptions, PmOptions, PmTreeKind};

use super::judge::Judge;
use super::words::LEAF;
use crate::conformance::persistent::episode;
use crate::conformance::persistent::words::{CHUNK, Layout};
use treering_oracle::random::Random;

/// Chunks of the medium.
const CHUNKS: u8 = 13;

/// Everything that an episode depends on, except for the order of its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episode {
    /// The number of clients, each with a thread if there are several.
    pub clients: u8,
    /// The number of keys.
    pub keys: u8,
    /// Slots of a buffer node. 0: the tree without buffers and log.
    pub batch: u8,
    /// The number of logs.
    pub logs: u8,
    /// The seed of all choices.
    pub seed: u64,
}

impl Episode {
    /// Derives an episode from a seed.
    #[must_use]
    pub fn new(clients: u8, seed: u64) -> Self {
        let mut rng = Random::new(seed);
        Self {
            clients,
            keys: 16 + rng.below(41) as u8,
            batch: 1 + rng.below(4) as u8,
            logs: 1 + rng.below(2) as u8,
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

    fn options(&self, _life: u64) -> PmOptions {
        let tree = match self.batch {
            0 => PmTreeKind::PmTree,
            batch => PmTreeKind::Ccl(CclOptions {
                batch: batch.into(),
                logs: self.logs.into(),
                ..CclOptions::default()
            }),
        };
        PmOptions {
            tree,
            chunk_bytes: CHUNK,
            ..PmOptions::default()
        }
    }

    fn judge(&self, image: &PmImage) -> Judge {
        Judge::new(self.clients, self.keys, self.batch.into(), CHUNKS, image)
    }

    fn opens(event: &Event) -> bool {
        *event == Event::FloorRaised
    }
}
