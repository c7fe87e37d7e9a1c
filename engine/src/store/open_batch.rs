//! The state of the batch that is being written: what readers see of it, and what is left of one
//! that could not be completed. See [`super::batch`] for how batches are written.

use std::ops::ControlFlow;

use crate::batch::Batch;
use crate::kv::Visitor;
use crate::mutation;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Closed, Gate, Mutex, Pass, RwLock};

/// The batches of a store.
#[derive(Default)]
pub(crate) struct Batches {
    /// Writers pass it; a batch closes it.
    gate: Gate,
    /// Of `shown`, so that readers need no lock: odd while changes are shown.
    version: AtomicU64,
    shown: RwLock<Shown>,
    /// The batch that could not be completed. Changed only while the gate is closed.
    unfinished: Mutex<Option<Unfinished>>,
    is_unfinished: AtomicBool,
}

#[derive(Default)]
struct Shown {
    version: u64,
    changes: Option<Arc<Batch>>,
}

/// A batch whose intent is complete.
pub(super) struct Unfinished {
    /// Values are as leaves store them: long ones are pointers.
    pub(super) changes: Arc<Batch>,
    /// The number of changes made.
    pub(super) made: usize,
    /// Bytes of the newest intent.
    pub(super) intent_bytes: u64,
    /// Whether a delete left some leaf sparse.
    pub(super) sparse: bool,
}

impl Unfinished {
    pub(super) fn new(changes: Batch) -> Unfinished {
        Unfinished {
            changes: Arc::new(changes),
            made: 0,
            intent_bytes: 0,
            sparse: false,
        }
    }
}

impl Batches {
    /// Waits until no batch is being written, and keeps any from beginning. Returns `None` if a
    /// batch must be completed first.
    pub(super) fn pass(&self) -> Option<Pass<'_>> {
        let pass = self.gate.pass();
        let blocked = self.is_unfinished.load(Ordering::Acquire);
        (!blocked || mutation::on("unfinished-batch-forgotten")).then_some(pass)
    }

    /// Waits until nobody writes, and keeps everybody from writing.
    pub(super) fn close(&self) -> Closed<'_> {
        self.gate.close()
    }

    /// Returns the version of what is shown: odd while there are changes. A reader that finds the
    /// same version before and after has read nothing that a batch changed meanwhile.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Takes the batch that could not be completed, if there is one. The gate must be closed.
    pub(super) fn take_unfinished(&self) -> Option<Unfinished> {
        self.unfinished.lock().take()
    }

    /// Keeps a batch that could not be completed. The gate must be closed.
    pub(super) fn keep_unfinished(&self, batch: Unfinished) {
        *self.unfinished.lock() = Some(batch);
        self.is_unfinished.store(true, Ordering::Release);
    }

    /// Notes that no batch waits to be completed. The gate must be closed.
    pub(super) fn all_finished(&self) {
        self.is_unfinished.store(false, Ordering::Release);
    }

    /// Shows changes to readers, or hides those that are shown.
    pub(super) fn show(&self, changes: Option<Arc<Batch>>) {
        if mutation::on("batch-shown-piecemeal") {
            return;
        }
        let mut shown = self.shown.write();
        shown.version += 1;
        shown.changes = changes;
        self.version.store(shown.version, Ordering::Release);
    }

    /// Returns the changes that are shown.
    pub(super) fn shown(&self) -> Option<Arc<Batch>> {
        if self.version.load(Ordering::Acquire).is_multiple_of(2) {
            return None;
        }
        self.shown.read().changes.clone()
    }

    /// What the changes shown under `version` do to `key`. `None` if they do nothing to it, or if
    /// the version is another one by now.
    pub(super) fn shown_for(&self, version: u64, key: &[u8]) -> Option<Option<Vec<u8>>> {
        let shown = self.shown.read();
        let changes = shown.changes.as_ref()?;
        let change = changes.change(key).filter(|_| shown.version == version)?;
        Some(change.map(<[u8]>::to_vec))
    }
}

/// Records of the tree merged with the changes of a batch, in the order of a scan.
pub(super) struct Merged<'v, 'a, I: Iterator> {
    changes: std::iter::Peekable<I>,
    visit: &'v mut Visitor<'a>,
    stopped: bool,
}

impl<'v, 'a, 'c, I> Merged<'v, 'a, I>
where
    I: Iterator<Item = (&'c [u8], Option<&'c [u8]>)>,
{
    pub(super) fn new(changes: I, visit: &'v mut Visitor<'a>) -> Self {
        Merged {
            changes: changes.peekable(),
            visit,
            stopped: false,
        }
    }

    /// Visits the next record of the tree, and before it the changes that come before it.
    pub(super) fn take(
        &mut self,
        key: &[u8],
        value: &[u8],
        is_before: impl Fn(&[u8], &[u8]) -> bool,
    ) -> ControlFlow<()> {
        while let Some((changed, new)) = self.changes.next_if(|(k, _)| is_before(k, key)) {
            self.visit(changed, new)?;
        }
        match self.changes.next_if(|(changed, _)| *changed == key) {
            Some((_, new)) => self.visit(key, new),
            None => self.visit(key, Some(value)),
        }
    }

    /// Visits the changes that come after the last record.
    pub(super) fn end(&mut self) {
        while !self.stopped
            && let Some((key, new)) = self.changes.next()
        {
            let _ = self.visit(key, new);
        }
    }

    fn visit(&mut self, key: &[u8], value: Option<&[u8]>) -> ControlFlow<()> {
        let Some(value) = value else {
            return ControlFlow::Continue(());
        };
        let flow = (self.visit)(key, value);
        self.stopped = flow.is_break();
        flow
    }
}
