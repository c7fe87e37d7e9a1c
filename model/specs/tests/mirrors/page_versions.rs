//! PageVersions: the results that its configurations must have.

use treering_specs::Value;

use super::Expected;

pub(crate) const EXPECTED: Expected = Expected {
    spec: "PageVersions",
    folder: "page_shadowing",
    bugs: &[
        ("believes-the-future", "NeverOldInv", 11),
        ("bound-for-exact", "NeverToldWithoutRotInv", 6),
        ("forgets-exactness", "VersionInv", 2),
        ("forgets-version", "NeverOldInv", 7),
        ("judges-end-late", "NeverOldInv", 22),
        ("published_any-image-will-do", "NeverOldInv", 15),
        ("published_believes-lost-writes", "NeverOldInv", 12),
        ("published_log-block-unseen", "NeverOldInv", 13),
        ("snapshots-late", "SnapshotInv", 12),
    ],
    holds: &[
        ("smoke", 10_736),
        ("slots", 20_156),
        ("log-block", 26_311),
        ("two-pages", 16_723),
        ("log-end", 43_349),
        ("mutation", 4_856),
    ],
    bounded: "MayRot",
};

#[test]
fn an_unknown_kind_of_damage_is_refused() {
    let unknown = Value::set([Value::str("molten")]);
    EXPECTED.refuses_constant("Becomes", unknown, "molten");
}
