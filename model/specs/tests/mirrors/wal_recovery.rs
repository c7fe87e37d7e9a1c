//! WalRecovery: the results that its configurations must have.

use super::Expected;

pub(crate) const EXPECTED: Expected = Expected {
    spec: "WalRecovery",
    folder: "wal_recovery",
    bugs: &[
        ("acks-before-flush", "AckInv", 5),
        ("acks-what-came-later", "DurableInv", 8),
        ("checkpoint-skips-flush", "RedoStartInv", 10),
        ("clean-without-write", "CleanInv", 7),
        ("dirtied-moves", "RedoStartInv", 14),
        ("evicts-dirty", "MemoryInv", 5),
        ("keeps-epoch", "PrefixInv", 19),
        ("overruns-log", "DurableInv", 13),
        ("page-before-log", "WalRuleInv", 5),
        ("published_free-reads", "ReadsLastInv", 7),
        ("published_no-epoch", "PrefixInv", 19),
        ("published_no-wal-rule", "PrefixInv", 8),
        ("published_trusts-what-it-reads", "PrefixInv", 18),
        ("reads-past-hole", "PrefixInv", 8),
        ("recovery-skips-flush", "StableInv", 13),
        ("redo-starts-late", "RedoStartInv", 12),
        ("replays-old-lap", "PrefixInv", 18),
        ("retries-failed-flush", "DurableInv", 7),
        ("skips-quiesce", "RedoStartInv", 6),
        ("stops-before-last", "KeptInv", 7),
        ("stops-redo-early", "StableInv", 11),
        ("truncates-early", "LogKeptInv", 9),
        ("trusts-what-it-reads", "StableInv", 9),
    ],
    holds: &[
        ("mutation", 26_068),
        ("published_redo-always", 26_128),
        ("reads-wait", 10_968),
    ],
    bounded: "MayCrash",
};
