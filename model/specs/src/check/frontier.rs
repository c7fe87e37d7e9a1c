//! The frontier of a visit: the states of the level that is visited, and those of the next.
//!
//! A large model has millions of states in a level, of some hundred bytes each. So they are kept in
//! parts of a few hundred states, and a part is in one of three forms:
//!
//! ```text
//!   plain     the states themselves                    while they take up to half of the budget
//!   packed    column by column, in bits, compressed    while all parts fit into the budget
//!   stored    the same bytes in a temporary file       what is beyond the budget
//! ```
//!
//! The form decides where states are, and nothing else: parts are visited in the order in which
//! they are made, whatever their form.
//!
//! A level has a file of its own, without a name, which is freed with its last part. What comes
//! back from it is compared with a checksum, so that a failing disk is an error and no verdict.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bitcode::{DecodeOwned, Encode};
use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};
use xxhash_rust::xxh3::xxh3_64;

/// Memory for the frontier where nothing else is said: that of the largest models, packed.
pub const MEMORY: u64 = 1 << 30;

/// Why states of the frontier are lost.
#[derive(Debug, thiserror::Error)]
pub enum FrontierError {
    /// A temporary file cannot be made, written or read.
    #[error(
        "cannot keep states in a temporary file in {}: {}; \
         expected room there, in another folder that TMPDIR names, or in memory (--memory)",
        std::env::temp_dir().display(), .0
    )]
    File(#[from] io::Error),
    /// A temporary file does not hold what was written to it.
    #[error(
        "states in a temporary file in {} are damaged: expected the bytes that were written there; \
         another folder can be named by TMPDIR",
        std::env::temp_dir().display()
    )]
    Damaged,
}

/// How much memory the parts of all levels may have, and where the rest goes.
pub(super) struct Budget {
    /// In bytes.
    memory: u64,
    /// What plain and packed parts have of it.
    used: AtomicU64,
    /// Makes a file for a level.
    file: fn() -> io::Result<File>,
}

impl Budget {
    pub(super) fn new(memory: u64) -> Self {
        Self::with_files(memory, tempfile::tempfile)
    }

    /// A budget with another kind of file, for tests.
    pub(super) fn with_files(memory: u64, file: fn() -> io::Result<File>) -> Self {
        Self {
            memory,
            used: AtomicU64::new(0),
            file,
        }
    }

    /// Takes memory, if with that no more than `most` is used. Threads that ask at the same time
    /// may exceed it by a part each.
    fn take(&self, bytes: usize, most: u64) -> bool {
        let fits = self.used.load(Ordering::Relaxed) + bytes as u64 <= most;
        if fits {
            self.used.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        fits
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}

/// Some states of a level.
pub(super) enum Part<S> {
    Plain(Vec<S>),
    /// `columns` is the length of the columns before compression.
    Packed {
        packed: Vec<u8>,
        columns: usize,
    },
    Stored {
        stored: Stored,
        columns: usize,
    },
}

/// The memory of plain states. What a state has on the heap is not counted, but taken as seven times
/// the state itself, which is more than a state of `RedoLog` has there.
fn plain_bytes<S>(states: &Vec<S>) -> usize {
    let heap = if std::mem::needs_drop::<S>() { 8 } else { 1 };
    states.capacity() * size_of::<S>() * heap
}

/// Where the bytes of a packed part are.
pub(super) struct Stored {
    file: Arc<File>,
    at: u64,
    len: usize,
    checksum: u64,
}

impl Stored {
    fn read(&self) -> Result<Vec<u8>, FrontierError> {
        let mut bytes = vec![0; self.len];
        self.file.read_exact_at(&mut bytes, self.at)?;
        match xxh3_64(&bytes) == self.checksum {
            true => Ok(bytes),
            false => Err(FrontierError::Damaged),
        }
    }
}

/// The temporary file of a level, and its length. It is made when it is first needed.
#[derive(Default)]
pub(super) struct Shelf(Mutex<Option<(Arc<File>, u64)>>);

impl Shelf {
    fn store(&self, bytes: &[u8], budget: &Budget) -> Result<Stored, FrontierError> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, end) = match &mut *made {
            Some(made) => made,
            none => none.insert((Arc::new((budget.file)()?), 0)),
        };
        let (file, at) = (Arc::clone(file), *end);
        *end += bytes.len() as u64;
        drop(made);
        file.write_all_at(bytes, at)?;
        Ok(Stored {
            file,
            at,
            len: bytes.len(),
            checksum: xxh3_64(bytes),
        })
    }
}

/// Makes parts of states, and states of parts, for one thread.
pub(super) struct Packer<'a> {
    budget: &'a Budget,
    /// These are kept, since making them anew for each part takes time.
    columns: bitcode::Buffer,
    bytes: Vec<u8>,
}

impl<'a> Packer<'a> {
    pub(super) fn new(budget: &'a Budget) -> Self {
        Self {
            budget,
            columns: bitcode::Buffer::new(),
            bytes: Vec::new(),
        }
    }

    /// Makes a part.
    pub(super) fn pack<S: Encode>(
        &mut self,
        states: Vec<S>,
        shelf: &Shelf,
    ) -> Result<Part<S>, FrontierError> {
        let budget = self.budget;
        if budget.take(plain_bytes(&states), budget.memory / 2) {
            return Ok(Part::Plain(states));
        }
        let columns = self.columns.encode(&states);
        self.bytes.resize(get_maximum_output_size(columns.len()), 0);
        // invariant: no output is longer than its maximum.
        let len = compress_into(columns, &mut self.bytes).expect("too little room for LZ4");
        let packed = &self.bytes[..len];
        let columns = columns.len();
        if budget.take(len, budget.memory) {
            let packed = packed.to_vec();
            return Ok(Part::Packed { packed, columns });
        }
        let stored = shelf.store(packed, budget)?;
        Ok(Part::Stored { stored, columns })
    }

    /// The states of a part.
    pub(super) fn unpack<S: DecodeOwned>(
        &mut self,
        part: Part<S>,
    ) -> Result<Vec<S>, FrontierError> {
        match part {
            Part::Plain(states) => {
                self.budget.give_back(plain_bytes(&states));
                Ok(states)
            }
            Part::Packed { packed, columns } => {
                self.budget.give_back(packed.len());
                self.decode(&packed, columns)
            }
            Part::Stored { stored, columns } => {
                let packed = stored.read()?;
                self.decode(&packed, columns)
            }
        }
    }

    fn decode<S: DecodeOwned>(
        &mut self,
        packed: &[u8],
        columns: usize,
    ) -> Result<Vec<S>, FrontierError> {
        self.bytes.resize(columns, 0);
        let len = decompress_into(packed, &mut self.bytes).map_err(|_| FrontierError::Damaged)?;
        let states = self.columns.decode(&self.bytes[..len]);
        states.map_err(|_| FrontierError::Damaged)
    }
}
