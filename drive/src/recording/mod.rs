//! What reached the drive: every write with its bytes, flush, discard, name and mark, in order.
//!
//! ```text
//! faces ──▶ Sink ──▶ Recorder ──▶ file ──▶ Reader ──▶ events, and the ids of their pieces
//!                                  └─────▶ Pieces ──▶ the bytes of pieces
//! ```
//!
//! Writes are cut into pieces at multiples of 4096 bytes of their file. Equal pieces are stored
//! once. Events and pieces lie in separate chunks, so that whoever needs no bytes skips them.
//! `docs/RECORDING.md` has the format.
//!
//! | module | contents |
//! |---|---|
//! | [`event`] | what is recorded |
//! | [`names`] | which path a node has after some events |

mod chunk;
mod codec;
mod equal;
pub mod event;
mod filling;
mod header;
mod input;
pub mod names;
mod pieces;
mod reader;
mod recorder;
mod sink;
mod stream;
mod varint;

pub use codec::{PIECE, PieceId, Recorded, pieces_of};
pub use event::{Event, Extent, MOUNTED, NodeId, NodeKind};
pub use header::{Contents, Header, Summary, WATCHED};
pub use names::Names;
pub use pieces::Pieces;
pub use reader::{Reader, Truncated};
pub use recorder::{LINGER_NS, Recorder};
pub use sink::{InMemory, Nowhere, Sink, Stopped};
