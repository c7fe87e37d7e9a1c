//! Mirrors with room for a real engine: the source of the bounded mirrors, compiled again with
//! larger sizes.
//!
//! A bounded mirror has small numbers and short arrays, because a checker copies and hashes
//! millions of its states. The recordings of an engine need more of everything, but the same
//! protocol. So the modules below are compiled twice. The bounded form is compared with TLC, state by
//! state and edge by edge; the form here, with the sizes of the files beside it (`*_room.rs`),
//! judges the engine's events.

use super::{Discards, Mirror, bounded, count, listed, model, named, properties, subset};

#[allow(clippy::duplicate_mod)] // On purpose, as the story says.
#[path = "circular_buffer/mod.rs"]
pub mod circular_buffer;
mod circular_buffer_room;
#[allow(clippy::duplicate_mod)] // On purpose, as the story says.
#[path = "copy_on_write/mod.rs"]
pub mod copy_on_write;
mod copy_on_write_room;
#[allow(clippy::duplicate_mod)] // On purpose, as the story says.
#[path = "index_snapshot/mod.rs"]
pub mod index_snapshot;
mod index_snapshot_room;
#[allow(clippy::duplicate_mod)] // On purpose, as the story says.
#[path = "leaf_buffering/mod.rs"]
pub mod leaf_buffering;
mod leaf_buffering_room;
#[allow(clippy::duplicate_mod)] // On purpose, as the story says.
#[path = "leaf_layout/mod.rs"]
pub mod leaf_layout;
mod leaf_layout_room;
#[allow(clippy::duplicate_mod)] // On purpose, as the story says.
#[path = "mini_page/mod.rs"]
pub mod mini_page;
mod mini_page_room;
#[allow(clippy::duplicate_mod)] // On purpose, as the story says.
#[path = "page_shadowing/mod.rs"]
pub mod page_shadowing;
mod page_shadowing_room;
#[allow(clippy::duplicate_mod)] // On purpose, as the story says.
#[path = "surrogate_buffer/mod.rs"]
pub mod surrogate_buffer;
mod surrogate_buffer_room;
#[allow(clippy::duplicate_mod)] // On purpose, as the story says.
#[path = "wal_recovery/mod.rs"]
pub mod wal_recovery;
mod wal_recovery_room;
