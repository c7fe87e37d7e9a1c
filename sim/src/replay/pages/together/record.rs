//! A store whose calls, and what they ask of the drive, go to a tape.

use std::cell::Cell;
use std::ops::Range as Span;
use std::sync::Arc;

use parking_lot::Mutex;
use treering_engine::device::{Access, BlockDevice, BlockRead, BlockWrite, DeviceError};
use treering_engine::{BLOCK_SIZE, IoClass, Kv, Lba, Lsn, Options, RingUse, Stats, Store, Task};
use treering_traces::OpKind;

use super::super::backend::{self, Hosted};
use super::tape::{Begun, Call, Entry, Interval, Range, Tape};
use crate::clock::VirtualClock;
use crate::drive::SimDrive;
use crate::replay::error::Failure;
use crate::replay::virtual_time::{Counted, Fed, Feed, OfTrace};

/// A drive whose requests go to a tape when they have succeeded.
struct Tapped {
    drive: Arc<dyn SimDrive>,
    tape: Arc<Mutex<Tape>>,
}

fn range(lba: Lba, bytes: usize, class: IoClass) -> Range {
    Range {
        lba: lba.0,
        blocks: (bytes / BLOCK_SIZE) as u32,
        class,
    }
}

impl Tapped {
    fn written(&self, ranges: &[Range]) {
        let mut tape = self.tape.lock();
        for range in ranges {
            tape.entries.push(Entry::Write(*range));
            let blocks = range.blocks as usize;
            self.drive
                .payloads(Lba(range.lba), blocks, &mut tape.payloads);
        }
    }
}

/// Whether two of the ranges share a block.
fn overlap(ranges: &[Range]) -> bool {
    let mut spans: Vec<(u64, u64)> = ranges
        .iter()
        .map(|range| (range.lba, range.lba + u64::from(range.blocks)))
        .collect();
    spans.sort_unstable();
    spans.windows(2).any(|pair| pair[1].0 < pair[0].1)
}

impl BlockDevice for Tapped {
    fn capacity_blocks(&self) -> u64 {
        self.drive.capacity_blocks()
    }

    fn access(&self) -> Access {
        self.drive.access()
    }

    fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        let range = range(lba, buf.len(), class);
        self.drive.read(lba, buf, class)?;
        self.tape.lock().entries.push(Entry::Read(range));
        Ok(())
    }

    fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
        self.drive.write(lba, bytes, class)?;
        self.written(&[range(lba, bytes.len(), class)]);
        Ok(())
    }

    fn write_batch(&self, writes: &[BlockWrite<'_>]) -> Result<(), DeviceError> {
        self.drive.write_batch(writes)?;
        let ranges: Vec<Range> = writes
            .iter()
            .map(|write| range(write.lba, write.bytes.len(), write.class))
            .collect();
        {
            let mut tape = self.tape.lock();
            tape.is_torn |= overlap(&ranges);
            tape.entries.push(Entry::Writes(ranges.len() as u32));
        }
        self.written(&ranges);
        Ok(())
    }

    fn read_batch(&self, reads: &mut [BlockRead<'_>]) -> Result<(), DeviceError> {
        self.drive.read_batch(reads)?;
        let mut tape = self.tape.lock();
        tape.entries.push(Entry::Reads(reads.len() as u32));
        let ranges = reads
            .iter()
            .map(|read| Entry::Read(range(read.lba, read.buf.len(), read.class)));
        tape.entries.extend(ranges);
        Ok(())
    }

    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        self.drive.trim(lba, blocks)?;
        let mut tape = self.tape.lock();
        match u32::try_from(blocks) {
            Ok(blocks) => tape.entries.push(Entry::Trim(Range {
                lba: lba.0,
                blocks,
                class: IoClass::Page,
            })),
            // 16 TiB at once.
            Err(_) => tape.is_torn = true,
        }
        Ok(())
    }

    fn reclaim(&self, keep: Span<Lba>) {
        self.drive.reclaim(keep);
    }

    fn extend_to(&self, blocks: u64) -> bool {
        self.drive.extend_to(blocks)
    }

    fn durable_blocks(&self) -> u64 {
        self.drive.durable_blocks()
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.drive.flush()?;
        self.tape.lock().entries.push(Entry::Flush);
        Ok(())
    }
}

/// The store.
pub(super) struct Recorded {
    store: Store,
    tape: Arc<Mutex<Tape>>,
    clock: Arc<VirtualClock>,
    interval: Cell<Interval>,
    /// The store's count of intervals that it has begun.
    begun: Cell<u64>,
}

impl Recorded {
    /// A new store on `drive`.
    pub(super) fn open(
        drive: &Arc<dyn SimDrive>,
        (engine, clock): (&Options, &Arc<VirtualClock>),
        tape: &Arc<Mutex<Tape>>,
    ) -> Result<Recorded, Failure> {
        let device = Arc::new(Tapped {
            drive: Arc::clone(drive),
            tape: Arc::clone(tape),
        });
        let store = backend::open(device, Arc::clone(clock), engine)?;
        let recorded = Recorded {
            begun: Cell::new(store.intervals_begun()),
            store,
            tape: Arc::clone(tape),
            clock: Arc::clone(clock),
            interval: Cell::new(Interval::of(engine)),
        };
        recorded.note(Call::Opened);
        Ok(recorded)
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    fn note(&self, call: Call) {
        self.tape.lock().entries.push(Entry::End(call));
    }

    fn is_over(&self) -> bool {
        self.interval.get().is_over(self.clock.virtual_now().0)
    }

    /// What the clock had to do with the call that ends now.
    fn begun(&self, over: Option<bool>) -> Begun {
        let count = self.store.intervals_begun();
        let anew = self.begun.replace(count) != count;
        if anew {
            let mut interval = self.interval.get();
            interval.begin(self.clock.virtual_now().0);
            self.interval.set(interval);
        }
        Begun { over, anew }
    }
}

impl Counted for Recorded {
    fn stats(&self) -> Stats {
        Kv::stats(&self.store)
    }
}

impl Hosted for Recorded {
    fn due(&self) -> Result<Option<Task>, Failure> {
        let over = self.is_over();
        let task = self.store.due();
        self.note(Call::Due(task, self.begun(Some(over))));
        Ok(task)
    }

    fn pump(&self, task: Task) -> Result<(), Failure> {
        self.store.pump(task)?;
        self.note(Call::Pumped(task, self.begun(None)));
        Ok(())
    }

    fn drain(&self) -> Result<(), Failure> {
        self.store.drain()?;
        self.note(Call::Drained(self.begun(None)));
        Ok(())
    }

    fn ring_use(&self) -> Option<RingUse> {
        self.store.ring_use()
    }
}

/// The operations of a trace, which go to the tape, too.
pub(super) struct Noted<'a> {
    pub(super) trace: OfTrace<'a>,
    pub(super) kind: OpKind,
}

impl Feed<Recorded> for Noted<'_> {
    fn next(&mut self, store: &Recorded) -> Result<Fed, Failure> {
        let fed = self.trace.next(store.store())?;
        if let Fed::Op(kind, _) = fed {
            self.kind = kind;
        }
        store.note(Call::Fed(fed));
        Ok(fed)
    }

    fn number(&self) -> u64 {
        Feed::<Store>::number(&self.trace)
    }

    fn operate(&mut self, store: &Recorded) -> Result<Option<Lsn>, Failure> {
        // Only writes look whether the interval is over.
        let writes = matches!(self.kind, OpKind::Put | OpKind::Delete);
        let over = writes.then(|| store.is_over());
        let lsn = self.trace.operate(store.store())?;
        store.note(Call::Operated {
            waits: lsn.is_some_and(|lsn| lsn.0 > 0),
            begun: store.begun(over),
        });
        Ok(lsn)
    }
}
