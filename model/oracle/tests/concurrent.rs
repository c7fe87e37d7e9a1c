//! Concurrent runs: our engine passes and is exercised; engines with a fault each are caught, and
//! each fault is called what it is.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use treering_engine::{Error, Kv, Lsn, Result, Visitor};
use treering_oracle::concurrent::{Finding, Plan, Report, RunError, run};
use treering_oracle::engines::{BTree, Geometry};
use treering_oracle::history::{History, Outcome};
use treering_oracle::linear::{self, Kind};
use treering_oracle::{Disk, DiskKind, Engine, Limits, Promise};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Every 50th get finds what the key held before.
    OldValue,
    /// Every 50th put does nothing.
    LosesPuts,
    /// Every 50th delete does nothing.
    LosesDeletes,
    /// Every 50th scan leaves its second row out.
    ScanSkips,
    /// Every 50th scan delivers its first row twice.
    ScanRepeats,
    /// Every 50th scan goes on after the visitor broke off.
    ScanGoesOn,
    /// Every 50th value is of two halves.
    TornValue,
    /// Call 500 never returns.
    Hangs,
    /// Call 500 panics.
    Panics,
    /// Call 500 is answered with an error.
    Fails,
    /// Background work is answered with an error.
    PumpFails,
    /// What the first of all syncs should have made durable is there; nothing later.
    ForgetsOnReopen,
}

/// A map in memory, kept in a file by `sync`.
struct Toy {
    fault: Fault,
    file: PathBuf,
    map: RwLock<Map>,
    before: Mutex<Map>,
    count: AtomicU64,
    calls: AtomicU64,
    saved: AtomicU64,
}

impl Toy {
    /// Whether `fault` shows this time.
    fn shows(&self, fault: Fault) -> bool {
        self.fault == fault && self.count.fetch_add(1, Ordering::SeqCst) % 50 == 49
    }

    fn call(&self) -> Result<()> {
        if self.calls.fetch_add(1, Ordering::SeqCst) != 500 {
            return Ok(());
        }
        match self.fault {
            Fault::Hangs => loop {
                std::thread::park();
            },
            Fault::Panics => panic!("call 500 is too much"),
            Fault::Fails => Err(failure()),
            _ => Ok(()),
        }
    }
}

fn failure() -> Error {
    Error::Foreign {
        engine: "toy",
        why: "had enough".into(),
    }
}

impl Kv for Toy {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.call()?;
        value.clear();
        let mut found = self.map.read().unwrap().get(key).cloned();
        if self.shows(Fault::OldValue)
            && let Some(old) = self.before.lock().unwrap().get(key)
        {
            found = Some(old.clone());
        }
        if self.shows(Fault::TornValue)
            && let Some(bytes) = &mut found
            && let Some(last) = bytes.get_mut(8..).and_then(<[u8]>::last_mut)
        {
            *last ^= 1;
        }
        value.extend_from_slice(found.as_deref().unwrap_or_default());
        Ok(found.is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        self.call()?;
        if !self.shows(Fault::LosesPuts) {
            let old = self.map.write().unwrap().insert(key.into(), value.into());
            if let Some(old) = old {
                self.before.lock().unwrap().insert(key.into(), old);
            }
        }
        Ok(Lsn(self.calls.load(Ordering::SeqCst)))
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        self.call()?;
        if !self.shows(Fault::LosesDeletes) {
            self.map.write().unwrap().remove(key);
        }
        Ok(Lsn(0))
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        self.call()?;
        let map = self.map.read().unwrap();
        let mut rows: Vec<(&Vec<u8>, &Vec<u8>)> = map.range(from.to_vec()..).collect();
        if rows.len() > 2 && self.shows(Fault::ScanSkips) {
            rows.remove(1);
        }
        if rows.len() > 2 && self.shows(Fault::ScanRepeats) {
            rows.insert(1, rows[0]);
        }
        let goes_on = self.shows(Fault::ScanGoesOn);
        let mut extra = 0;
        for (key, value) in rows {
            let broke = visit(key, value) == ControlFlow::Break(());
            extra += u32::from(broke);
            if broke && (!goes_on || extra == 2) {
                break;
            }
        }
        Ok(())
    }

    fn sync(&self, _: Lsn) -> Result<()> {
        let map = self.map.read().unwrap();
        let first = self.saved.fetch_add(1, Ordering::SeqCst) == 0;
        if first || self.fault != Fault::ForgetsOnReopen {
            let bytes = serde_json::to_vec(&map.iter().collect::<Vec<_>>()).unwrap();
            std::fs::write(&self.file, bytes).unwrap();
        }
        Ok(())
    }

    fn pump_due(&self) -> Result<bool> {
        match self.fault {
            Fault::PumpFails => Err(failure()),
            _ => Ok(false),
        }
    }
}

impl Engine for Fault {
    fn name(&self) -> String {
        format!("toy: {self:?}")
    }

    fn disk(&self) -> DiskKind {
        DiskKind::Folder
    }

    fn promise(&self) -> Promise {
        Promise::OnSync
    }

    fn limits(&self) -> Limits {
        Limits {
            max_key: 40,
            max_record: 100,
            empty_key: true,
        }
    }

    fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>> {
        let Disk::Folder(folder) = disk else {
            return Err(failure());
        };
        let file = folder.join("map.json");
        let map: Vec<(Vec<u8>, Vec<u8>)> = match std::fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap(),
            Err(_) => Vec::new(),
        };
        Ok(Arc::new(Toy {
            fault: *self,
            file,
            map: RwLock::new(map.into_iter().collect()),
            before: Mutex::default(),
            count: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            saved: AtomicU64::new(0),
        }))
    }
}

fn try_out(fault: Fault) -> Report {
    let plan = Plan {
        clients: 3,
        calls: 6_000,
        histories: 2,
        patience: Duration::from_millis(700),
        ..Plan::default()
    };
    run(&fault, &plan).unwrap()
}

fn findings_of(fault: Fault) -> Vec<&'static str> {
    let report = try_out(fault);
    let Some(wrong) = &report.wrong else {
        return Vec::new();
    };
    for finding in &wrong.findings {
        assert!(!finding.to_string().is_empty());
    }
    wrong.findings.iter().map(Finding::name).collect()
}

#[test]
fn an_engine_without_a_fault_passes() {
    let report = try_out(Fault::None);
    assert!(report.wrong.is_none(), "{:?}", report.wrong);
    assert_eq!((report.histories, report.unjudged_keys), (2, 0));
    let exercised = report.exercised(&Fault::None);
    assert!(report.calls > 10_000 && report.accesses > report.calls && exercised);
}

#[test]
fn wrong_answers_are_violations_named_by_kind() {
    use Fault as F;
    for (fault, kinds) in [
        (
            F::OldValue,
            &[Kind::StaleRead, Kind::LostUpdate, Kind::CameBack][..],
        ),
        (
            F::LosesPuts,
            &[Kind::LostUpdate, Kind::ScanMisses, Kind::CameBack],
        ),
        (F::LosesDeletes, &[Kind::CameBack]),
        (F::ScanSkips, &[Kind::ScanMisses]),
        (F::ScanRepeats, &[Kind::ScanRepeats]),
        (F::ScanGoesOn, &[Kind::ScanWentOn]),
        (F::TornValue, &[Kind::NeverWritten]),
        (
            F::ForgetsOnReopen,
            &[
                Kind::StaleRead,
                Kind::CameBack,
                Kind::ScanMisses,
                Kind::LostUpdate,
            ],
        ),
    ] {
        let report = try_out(fault);
        let wrong = report.wrong.expect("a fault is caught");
        let [Finding::Violation(violation)] = wrong.findings.as_slice() else {
            panic!("{fault:?}: {:?}", wrong.findings);
        };
        // Where other calls overlap, a wrong answer may be no plainer than that no order explains
        // it.
        let overlap = violation.kind == Kind::NoOrder && violation.calls.len() > 2;
        let named = kinds.contains(&violation.kind);
        assert!(named || overlap, "{fault:?}: {violation}");
        assert!(violation.calls.len() <= 6, "{fault:?}: {violation}");
        // The artefact says the same.
        let mut saved = Vec::new();
        wrong.history.save(&mut saved).unwrap();
        let loaded = History::load("saved", &mut &saved[..]).unwrap();
        let again = *linear::check(&loaded).unwrap_err();
        assert_eq!(again.to_string(), violation.to_string());
    }
}

#[test]
fn errors_and_panics_are_distinguished_from_violations() {
    assert_eq!(findings_of(Fault::Fails), ["failed"]);
    assert_eq!(findings_of(Fault::PumpFails), ["failed"]);
    assert_eq!(findings_of(Fault::Panics), ["panicked"]);
}

#[test]
fn a_hang_is_detected_and_the_hanging_call_is_named() {
    let wrong = try_out(Fault::Hangs).wrong.expect("a hang is found");
    let [Finding::NoProgress { stuck, .. }] = wrong.findings.as_slice() else {
        panic!("{:?}", wrong.findings);
    };
    assert!(
        stuck.iter().any(|who| who.contains("never returned")),
        "{stuck:?}"
    );
    let pending = |call: &&treering_oracle::history::Call| call.outcome == Outcome::Pending;
    assert_eq!(wrong.history.calls().iter().filter(pending).count(), 1);
}

#[test]
fn runs_that_cannot_start_return_an_error() {
    let plan = Plan {
        clients: 0,
        ..Plan::default()
    };
    assert!(matches!(run(&Fault::None, &plan), Err(RunError::Plan(_))));
    // A tiny device is too small for these pages.
    let spec = treering_engine::TreeSpec::Pages(treering_engine::PageTree {
        page_size: 1 << 17,
        ..treering_engine::PageTree::btree()
    });
    let engine = BTree::of(&spec, Geometry::Tiny).expect("a tree of pages");
    let error = run(&engine, &Plan::default()).unwrap_err();
    assert!(error.to_string().contains("does not open"), "{error}");
}

fn ours(geometry: Geometry, clients: u32, calls: u64) {
    for name in BTree::SMALL_PAGES {
        let engine = BTree::named(name, geometry).unwrap();
        let plan = Plan {
            clients,
            calls,
            // Two of each of the first four shapes, of which one is cut off.
            histories: 8,
            vary: false,
            ..Plan::default()
        };
        let report = run(&engine, &plan).unwrap();
        if let Some(wrong) = &report.wrong {
            let findings: Vec<String> = wrong.findings.iter().map(Finding::to_string).collect();
            panic!(
                "{name}, {} keys:\n{}",
                wrong.shape.name(),
                findings.join("\n")
            );
        }
        assert!(report.exercised(&engine) && report.unjudged_keys == 0);
        assert_eq!(report.cuts, 4);
        assert!(report.evictions > 0 && report.checkpoints > 3, "{report:?}");
    }
}

#[test]
fn our_engine_passes_with_a_small_cache() {
    ours(Geometry::Small, 4, 12_000);
}

/// With so few frames the hand of write-back comes round to pages that it has picked and not yet
/// written; it once evicted them.
#[test]
fn our_engine_passes_with_more_clients_than_frames() {
    ours(Geometry::Tiny, 8, 12_000);
}
