//! What reached the drive: every write with its bytes, flush, discard, name and mark, in order.
//!
//! | module | contents |
//! |---|---|
//! | [`event`] | what is recorded |

pub mod event;
mod sink;

pub use event::{Event, Extent, NodeId, NodeKind};
pub use sink::{InMemory, Nowhere, Sink, Stopped};
