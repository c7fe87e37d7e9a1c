//! The table: each seeded bug with its recipe.

mod batches;
mod mini_pages;
mod page_versions;
mod persistent_memory;
mod room_and_options;
mod trees;

use super::recipe::Mutation;

/// The areas, one file each.
const AREAS: [&[Mutation]; 6] = [
    trees::TREES,
    batches::BATCHES,
    mini_pages::MINI_PAGES,
    page_versions::PAGE_VERSIONS,
    persistent_memory::PERSISTENT_MEMORY,
    room_and_options::ROOM_AND_OPTIONS,
];

const fn count() -> usize {
    let (mut n, mut area) = (0, 0);
    while area < AREAS.len() {
        n += AREAS[area].len();
        area += 1;
    }
    n
}

/// Concatenates the areas: a constant cannot be collected.
const fn all() -> [Mutation; count()] {
    let mut all = [AREAS[0][0]; count()];
    let (mut n, mut area) = (0, 0);
    while area < AREAS.len() {
        let mut at = 0;
        while at < AREAS[area].len() {
            all[n] = AREAS[area][at];
            n += 1;
            at += 1;
        }
        area += 1;
    }
    all
}

/// Every seeded bug that these modes can catch. The others in `treering_engine::MUTATIONS` are
/// caught by the tests named there, mostly loom tests.
pub const TABLE: &[Mutation] = &all();
