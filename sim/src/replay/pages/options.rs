//! The options of a tree of pages in a report.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use treering_engine::{BLOCK_SIZE, Options, Promote, ResetRule, TablePersist, TreeKind};

use crate::replay::config::{Acknowledge, ReplayConfig};
use crate::replay::frame::named;
use crate::replay::target::AskedDrive;

/// The options in force that only trees of pages have, by flag name.
pub(super) fn options(
    config: &ReplayConfig,
    (engine, device_blocks): (&Options, u64),
    asked: Option<&AskedDrive<'_>>,
) -> BTreeMap<String, Value> {
    let flash = asked.and_then(|asked| asked.profile.flash());
    let precondition = asked.map(|asked| format!("{:?}", asked.precondition).to_lowercase());
    let table = engine.store.table().map(|table| match table {
        TablePersist::EachFlush => "each-flush",
        TablePersist::Checkpoint => "checkpoint",
    });
    let threshold = engine.mod_log.map_or(0, |rule| rule.threshold);
    let segment = engine.mod_log.map(|rule| rule.segment);
    let reset = engine.mod_log.map(|rule| match rule.reset {
        ResetRule::AtThreshold => "at-threshold",
        ResetRule::AboveThreshold => "above-threshold",
    });
    let durability = match config.acknowledge {
        Acknowledge::Deferred => "deferred".to_string(),
        Acknowledge::Commit => "commit".to_string(),
        Acknowledge::Interval(every) => format!("interval:{}ns", every.0),
    };
    let (copy_on_access, promote, relog, growth, spare, max_mini_page) = match engine.tree {
        TreeKind::BTree => (
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
        ),
        TreeKind::Bf(bf) => (
            json!(bf.copy_on_access_percent),
            match bf.promote {
                Promote::Adaptive => json!("auto"),
                Promote::Percent(percent) => json!(percent),
            },
            json!(bf.relog_percent),
            json!(bf.growth_percent),
            json!(bf.spare_percent),
            json!(bf.max_mini_page_percent),
        ),
    };
    named([
        ("store", json!(engine.store.name())),
        ("table", json!(table)),
        ("log", json!(engine.log_packing.name())),
        ("threshold", json!(threshold)),
        ("segment", json!(segment)),
        ("reset", json!(reset)),
        ("layout", json!(engine.leaf_layouts().name())),
        ("contention-split", json!(engine.contention_split.is_some())),
        ("page", json!(engine.page_size)),
        ("cache", json!(engine.cache_bytes)),
        ("copy-on-access", copy_on_access),
        ("promote", promote),
        ("relog", relog),
        ("growth", growth),
        ("spare", spare),
        ("max-mini-page", max_mini_page),
        ("durability", json!(durability)),
        ("log-size", json!(engine.log_bytes)),
        ("log-buffer", json!(engine.log_buffer_bytes)),
        ("checkpoint-every", json!(engine.checkpoint_log_bytes)),
        ("write-batch", json!(engine.write_batch_pages)),
        ("precondition", json!(precondition)),
        ("capacity", json!(device_blocks * BLOCK_SIZE as u64)),
        ("fill", json!(config.fill)),
        ("op", json!(flash.map(|flash| flash.over_provisioning))),
        ("gc", json!(flash.map(|flash| &flash.gc))),
    ])
}
