//! The requests of a device that simulates crashes: as it records them, and by kind.

use super::image::Block;
use crate::types::{IoClass, Lba};

/// A recorded request: one that changed data or ordered changes.
#[derive(Clone, Debug)]
pub enum Request {
    /// A write.
    Write {
        /// First block.
        lba: Lba,
        /// The blocks written.
        blocks: Vec<Block>,
        /// What the write was for.
        class: IoClass,
        /// Whether the write failed, with none, half or all of its blocks written.
        failed: bool,
    },
    /// A trim.
    Trim {
        /// First block.
        lba: Lba,
        /// Number of blocks.
        blocks: u64,
    },
    /// A flush.
    Flush {
        /// Whether the flush failed.
        failed: bool,
    },
}

/// A kind of request, for counting requests and injecting failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// A write of any class.
    Write,
    /// A write of one class.
    WriteOf(IoClass),
    /// A flush.
    Flush,
    /// A read.
    Read,
    /// A trim.
    Trim,
}

impl RequestKind {
    /// All kinds.
    pub const ALL: [RequestKind; 7] = [
        RequestKind::Write,
        RequestKind::WriteOf(IoClass::Log),
        RequestKind::WriteOf(IoClass::Page),
        RequestKind::WriteOf(IoClass::Extra),
        RequestKind::Flush,
        RequestKind::Read,
        RequestKind::Trim,
    ];

    /// Returns the kind's name in programs and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RequestKind::Write => "write",
            RequestKind::WriteOf(IoClass::Log) => "log-write",
            RequestKind::WriteOf(IoClass::Page) => "page-write",
            RequestKind::WriteOf(IoClass::Extra) => "extra-write",
            RequestKind::Flush => "flush",
            RequestKind::Read => "read",
            RequestKind::Trim => "trim",
        }
    }

    /// Whether this kind includes what is asked for.
    pub(super) fn holds(self, asked: RequestKind) -> bool {
        let any_write = self == RequestKind::Write;
        self == asked || any_write && matches!(asked, RequestKind::WriteOf(_))
    }
}

/// Counts of requests of one kind, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests that succeeded.
    pub done: u64,
    /// Requests that failed because of an injected failure.
    pub failed: u64,
    /// Requests that failed because the medium was full.
    pub without_room: u64,
    /// Requests that failed because the power was off.
    pub in_the_dark: u64,
}
