//! Bugs that show when room is scarce, at a close, or under unusual options.

use treering_oracle::finding::Check;

use crate::mutations::recipe::{
    COW, COW_IN_FILE, IN_PLACE, IN_PLACE_CRAMPED, LARGE_PAGES_IN_FILE, LONG_FLUSH, Mode, Mutation,
    mutation,
};

pub(super) const ROOM_AND_OPTIONS: &[Mutation] = &[
    mutation(
        "full-without-merge",
        "leaves emptied by deletes leak",
        Check::Room,
        Mode::Differential,
        IN_PLACE_CRAMPED,
    ),
    mutation(
        "leaves-take-every-slot",
        "a full store does not open",
        Check::Reference,
        Mode::Differential,
        IN_PLACE_CRAMPED,
    ),
    mutation(
        "enospc-acknowledges",
        "D5, no space left",
        Check::InjectedFailure,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "enospc-poisons",
        "no space left, permanently",
        Check::Error,
        Mode::Differential,
        COW,
    ),
    mutation(
        "read-only-writes",
        "a reader writes",
        Check::Reference,
        Mode::Differential,
        COW,
    ),
    mutation(
        "frame-awaited-under-latch",
        "L1, more threads than frames",
        Check::Progress,
        Mode::Concurrent,
        COW,
    ),
    mutation(
        "looks-ahead-a-mebibyte",
        "D11, the end of the log",
        Check::Damage,
        Mode::Damage,
        LONG_FLUSH,
    ),
    mutation(
        "drop-forgets-log",
        "a store that is dropped",
        Check::Reference,
        Mode::Differential,
        "btree:in-place/closes",
    ),
    mutation(
        "high-water-too-low",
        "pages without names",
        Check::Reference,
        Mode::Differential,
        "btree:cow-logged",
    ),
    mutation(
        "flush-reaches-nobody",
        "D5, a flush without fdatasync",
        Check::Crash,
        Mode::Crash,
        COW_IN_FILE,
    ),
    mutation(
        "short-write-is-whole",
        "a short write",
        Check::Error,
        Mode::Differential,
        LARGE_PAGES_IN_FILE,
    ),
    mutation(
        "punch-after-rewrite",
        "a hole over newer data",
        Check::Error,
        Mode::Differential,
        COW_IN_FILE,
    ),
    mutation(
        "interval-is-long",
        "an interval far too long",
        Check::Crash,
        Mode::Crash,
        "btree:in-place/grouped",
    ),
    mutation(
        "lodge-split-leaks",
        "leaked space",
        Check::Room,
        Mode::Differential,
        "lodge:small",
    ),
];
