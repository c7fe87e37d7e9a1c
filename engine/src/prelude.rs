//! What a program that uses a store needs: `use treering_engine::prelude::*`.

pub use crate::batch::Batch;
pub use crate::kv::Kv;
pub use crate::options::{Durability, Options};
pub use crate::range::{KvRange, Row};
pub use crate::spec::TreeSpec;
pub use crate::store::Store;
