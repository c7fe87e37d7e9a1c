//! Mirrors with room for a real engine: the same source as the bounded ones, compiled again with
//! larger numbers.
//!
//! A bounded mirror keeps its states small, for a checker copies and hashes millions of them, and
//! that is why its numbers are bytes and its arrays short. What an engine does in an episode needs
//! more of everything, but not another protocol: so there is one source, `wal_recovery/`,
//! `circular_buffer/`, `mini_page/` or `page_shadowing/`, whose bounded form is compared with TLC
//! state by state and edge by edge, and the judge of the engine's events is that very source with
//! other sizes (`wal_recovery_room`, `circular_buffer_room`, `mini_page_room`,
//! `page_shadowing_room`).

use super::{Condition, Mirror, bounded, count, listed, named, properties, subset};

#[allow(clippy::duplicate_mod)] // On purpose, as the story says.
#[path = "circular_buffer/mod.rs"]
pub mod circular_buffer;
mod circular_buffer_room;
#[allow(clippy::duplicate_mod)] // On purpose, as the story says.
#[path = "mini_page/mod.rs"]
pub mod mini_page;
mod mini_page_room;
#[allow(clippy::duplicate_mod)] // On purpose, as the story says.
#[path = "page_shadowing/mod.rs"]
pub mod page_shadowing;
mod page_shadowing_room;
#[allow(clippy::duplicate_mod)] // On purpose, as the story says.
#[path = "wal_recovery/mod.rs"]
pub mod wal_recovery;
mod wal_recovery_room;
