//! Damage after a crash: a byte of a block of pages changes on the medium that a crash has left. A
//! read that needs the block must fail with a typed error. Any other read must return what the
//! crash may have left. Damaged data must never be used.
//!
//! Only blocks are damaged of which the engine says that damage can be told from what a crash may
//! leave ([`Engine::guarded`]).

use rand::RngExt;
use rand::rngs::SmallRng;
use treering_engine::device::Block;
use treering_engine::{BLOCK_SIZE, Error, Lba};

use crate::Engine;
use crate::finding::{Check, Finding};
use crate::medium::{Image, Medium};
use crate::program::{Damage, KeyNo, Program};
use crate::reference::{Content, Reference, Written};

/// Picks a byte to damage on what a crash has left, if there is one.
pub(super) fn pick(engine: &dyn Engine, image: &Image, rng: &mut SmallRng) -> Option<Damage> {
    let guarded = engine.guarded(&Medium::holding(image.clone()).disk());
    if guarded.is_empty() {
        return None;
    }
    Some(Damage {
        block: guarded[rng.random_range(0..guarded.len())].0,
        byte: rng.random_range(0..BLOCK_SIZE as u64),
    })
}

/// The image with one bit of that byte flipped. Unchanged if there is no such byte.
fn damaged(image: Image, damage: Damage) -> Image {
    let Image::Blocks(mut blocks) = image else {
        return image;
    };
    if damage.block < blocks.blocks() && damage.byte < BLOCK_SIZE as u64 {
        let mut bytes = vec![0; BLOCK_SIZE];
        blocks.read(Lba(damage.block), &mut bytes);
        bytes[damage.byte as usize] ^= 1 << (damage.byte % 8);
        blocks.set(Lba(damage.block), Some(Block::new(&bytes)));
    }
    Image::Blocks(blocks)
}

/// Opens a damaged store and reads all of it. Returns whether an error reported the damage.
pub(super) fn judge(
    engine: &dyn Engine,
    program: &Program,
    image: Image,
    damage: Damage,
    permitted: &Reference,
) -> Result<bool, Finding> {
    let wrong = |expected: String, found: String| Finding {
        check: Check::Damage,
        operation: None,
        what: format!(
            "read a store with byte {} of block {} damaged",
            damage.byte, damage.block
        ),
        expected,
        found,
    };
    let medium = Medium::holding(damaged(image, damage));
    let told = |e: Error| match e {
        Error::Damaged { .. } | Error::MissingPage { .. } => Ok(true),
        other => Err(wrong(
            "an error that reports damage, or no error".into(),
            other.to_string(),
        )),
    };
    let store = match engine.open(&medium.disk()) {
        Ok(store) => store,
        Err(e) => return told(e),
    };
    let mut unknown = Vec::new();
    let mut found: Vec<Content> = vec![None; program.keys.len()];
    let mut value = Vec::new();
    for (key, content) in (0..).map(KeyNo).zip(&mut found) {
        match store.get(program.key(key), &mut value) {
            Ok(false) => {}
            Ok(true) => match Written::decode(&value) {
                Some(written) => *content = Some(written),
                None => {
                    let found = format!("{} bytes that were never written", value.len());
                    return Err(wrong("a value that was written".into(), found));
                }
            },
            Err(e) => {
                told(e)?;
                unknown.push(key);
            }
        }
    }
    let permitted = permitted.without(&unknown);
    if permitted.permits(&found) {
        return Ok(!unknown.is_empty());
    }
    let (expected, found) = permitted.explain(program, &found, 4);
    Err(wrong(expected, found))
}
