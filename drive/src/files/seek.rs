//! `SEEK_DATA` and `SEEK_HOLE`, which only the kernel and the drive together can answer.
//!
//! The drive knows which blocks are there; the kernel may have dirty pages over holes and behind
//! the end that the drive knows. It passes the question on without writing them, and a copying
//! program that believes in such a hole loses data. So if anyone has the file open for writing, the
//! kernel is asked to write and drop its pages first. It does so with writes that other threads
//! must serve, so the question waits in a thread of its own.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};

use fuser::{INodeNo, Notifier, ReplyLseek};

use super::content::Whence;
use super::state::Shared;
use crate::recording::NodeId;

/// A question of the kernel.
#[derive(Debug)]
pub(super) struct Seek {
    pub(super) node: NodeId,
    pub(super) offset: u64,
    pub(super) whence: Whence,
    pub(super) reply: ReplyLseek,
}

/// Answers questions until nobody can ask any more.
pub(super) fn serve(questions: &Receiver<Seek>, shared: &Shared, kernel: &Arc<OnceLock<Notifier>>) {
    for Seek {
        node,
        offset,
        whence,
        reply,
    } in questions.iter()
    {
        let writers = shared
            .state
            .read()
            .node(node)
            .map_or(0, |found| found.writers);
        if writers > 0
            && let Some(kernel) = kernel.get()
        {
            // An error says that the kernel has nothing of it.
            let _ = kernel.inval_inode(INodeNo(node.0), 0, 0);
        }
        match shared.state.read().seek(node, offset, whence) {
            // Files are smaller than 2^63.
            Ok(found) => reply.offset(found.cast_signed()),
            Err(error) => reply.error(error),
        }
    }
}
