//! Reads a damaged store.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use treering_engine::device::Image;
use treering_engine::{Error, Kv, Lsn};

use super::state::State;
use super::store::{Built, Medium, Version, key};
use crate::finding::{Check, Finding};
use crate::{Engine, Write, panics};

/// The number of keys that are written after the damage, besides existing keys.
const LATER: u64 = 40;
const LATER_VALUE: [u8; 90] = [0x5a; 90];
/// A scan with more rows than this is running in circles.
const MOST_ROWS: usize = 100_000;

/// The result of one case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    /// An error reported the damage.
    pub(super) told: bool,
    /// Records of the log's last flush were missing.
    pub(super) cut_short: bool,
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn wrong(what: &str, expected: impl Into<String>, found: impl Into<String>) -> Finding {
    Finding {
        check: Check::Damage,
        operation: None,
        what: what.into(),
        expected: expected.into(),
        found: found.into(),
    }
}

/// Checks that an error reports damage. An error that says something else is a finding.
pub(super) fn tells(what: &str, e: &Error) -> Result<(), Finding> {
    match e {
        Error::Damaged { .. }
        | Error::MissingPage { .. }
        | Error::NotAStore { .. }
        | Error::PmDamaged { .. } => Ok(()),
        other => Err(wrong(
            what,
            "an error that reports damage",
            other.to_string(),
        )),
    }
}

/// Whether a key may have this content.
fn permits(versions: &[Version], cut_at: Option<Lsn>, found: Option<&[u8]>) -> bool {
    let is = |value: &Option<Vec<u8>>| value.as_deref() == found;
    let (_, last) = versions.last().expect("a key has a version");
    // If the next version is missing, the previous one is current. Before the first one the key was
    // absent.
    let missing = |lsn: Lsn| cut_at.is_some_and(|cut| lsn > cut);
    is(last)
        || versions
            .windows(2)
            .any(|pair| missing(pair[1].0) && is(&pair[0].1))
        || (missing(versions[0].0) && found.is_none())
}

/// Reads a store and checks the content of each key.
pub(super) struct Reader<'a> {
    pub(super) keys: &'a BTreeMap<Vec<u8>, Vec<Version>>,
    /// The log position from which records may be missing.
    pub(super) cut_at: Option<Lsn>,
    pub(super) judged: Judged,
    /// Keys that were written after the damage.
    pub(super) except: Later,
}

/// Keys that were written after the damage.
pub(super) type Later = BTreeSet<Vec<u8>>;

impl Reader<'_> {
    fn key(&mut self, what: &str, key: &[u8], found: Option<&[u8]>) -> Result<(), Finding> {
        if self.except.contains(key) {
            return Ok(());
        }
        let Some(versions) = self.keys.get(key) else {
            return match found {
                None => Ok(()),
                Some(_) => Err(wrong(what, "no such key", format!("key {key:02x?}"))),
            };
        };
        if permits(versions, self.cut_at, found) {
            let (_, last) = versions.last().expect("a key has a version");
            self.judged.cut_short |= last.as_deref() != found;
            return Ok(());
        }
        let short = |value: Option<&[u8]>| match value {
            None => "nothing".to_owned(),
            Some(v) => format!("{} bytes, {:02x?}", v.len(), &v[..v.len().min(8)]),
        };
        let (_, last) = versions.last().expect("a key has a version");
        let found = short(found);
        Err(wrong(
            what,
            format!("{} for key {key:02x?}", short(last.as_deref())),
            found,
        ))
    }

    /// Writes more, and checkpoints.
    fn work(&mut self, engine: &dyn Engine, store: &dyn Kv) -> Result<(), Finding> {
        self.except = all_later(self.keys);
        let mut outcomes: Vec<_> = (self.except.iter())
            .map(|key| store.put(key, &LATER_VALUE).map(drop))
            .collect();
        outcomes.push(store.sync(Lsn(u64::MAX)));
        outcomes.push(store.checkpoint().map(drop));
        let mut told = self.judged.told;
        for outcome in outcomes {
            match outcome {
                Ok(()) => {}
                Err(Error::Full { .. }) if engine.may_refuse(&Write::Put) => {}
                // The store refuses writes because of the damage that it reported before.
                Err(Error::Poisoned { .. }) if told => {}
                Err(e) => {
                    tells("write", &e)?;
                    told = true;
                }
            }
        }
        self.judged.told = told;
        Ok(())
    }

    /// Reads every key with a get.
    pub(super) fn gets(&mut self, store: &dyn Kv) -> Result<(), Finding> {
        let mut value = Vec::new();
        for key in self.keys.keys() {
            if self.except.contains(key) {
                continue;
            }
            match store.get(key, &mut value) {
                Ok(there) => self.key("get", key, there.then_some(&value))?,
                Err(e) => {
                    tells("get", &e)?;
                    self.judged.told = true;
                }
            }
        }
        Ok(())
    }

    /// Scans everything, up and down. Rows before an error count.
    pub(super) fn scans(&mut self, store: &dyn Kv) -> Result<(), Finding> {
        for (what, back) in [("scan", false), ("scan downwards", true)] {
            let mut rows = Rows::new();
            let mut seen = 0;
            let mut visit = |key: &[u8], value: &[u8]| {
                rows.insert(key.to_vec(), value.to_vec());
                seen += 1;
                match seen {
                    MOST_ROWS => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            };
            let outcome = if back {
                store.scan_back(None, &mut visit)
            } else {
                store.scan(b"", &mut visit)
            };
            if seen == MOST_ROWS {
                return Err(wrong(what, "an end", format!("{seen} rows, and more")));
            }
            for (key, value) in &rows {
                self.key(what, key, Some(value))?;
            }
            match outcome {
                Ok(()) => {
                    for key in self.keys.keys().filter(|key| !rows.contains_key(*key)) {
                        self.key(what, key, None)?;
                    }
                }
                Err(e) => {
                    tells(what, &e)?;
                    self.judged.told = true;
                }
            }
        }
        Ok(())
    }
}

/// How a damaged store is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    /// Whether it is in a real file.
    pub(super) in_file: bool,
    /// Whether it is written to and checkpointed before it is read.
    pub(super) writes_first: bool,
}

/// Opens the damaged store and reads everything. If no error was reported, writes and reads more.
/// With `writes_first`, the other way round.
pub(super) fn judge(
    engine: &dyn Engine,
    built: &Built,
    harmed: Image,
    cut_at: Option<Lsn>,
    usage: Use,
) -> Result<Judged, Finding> {
    let listed = engine.damage(&Medium::holding(harmed.clone(), built.inert).disk());
    let listed = match listed {
        Ok(damage) => !damage.is_empty(),
        Err(e) => tells("verify", &e).map(|()| true)?,
    };
    let medium = if usage.in_file {
        Medium::in_file(&harmed, built.inert).map_err(|e| no_file(&e))?
    } else {
        Medium::holding(harmed, built.inert)
    };
    let mut reader = Reader {
        keys: &built.keys,
        cut_at,
        judged: Judged::default(),
        except: Later::new(),
    };
    let store = match engine.open(&medium.disk()) {
        Ok(store) => store,
        Err(e) => {
            tells("open", &e)?;
            reader.judged.told = true;
            return listed_too(built.state, listed, reader.judged);
        }
    };
    if usage.writes_first {
        reader.work(engine, &*store)?;
    }
    reader.gets(&*store)?;
    reader.scans(&*store)?;
    if !reader.judged.told {
        // A log that was cut short stays so: the missing records must not come back.
        let cut_at = cut_at.filter(|_| reader.judged.cut_short);
        on(engine, built, &medium, &*store, cut_at, reader.judged)?;
    }
    listed_too(built.state, listed, reader.judged)
}

fn no_file(e: &dyn std::error::Error) -> Finding {
    Finding {
        check: Check::Error,
        operation: None,
        what: "put the store into a temporary file".into(),
        expected: "no error".into(),
        found: e.to_string(),
    }
}

/// For a closed store, the engine's structure check must find what a reader finds.
fn listed_too(state: State, listed: bool, judged: Judged) -> Result<Judged, Finding> {
    if judged.told && !listed && state == State::AtRest {
        return Err(wrong(
            "verify",
            "the damage that a reader gets an error for",
            "nothing",
        ));
    }
    Ok(judged)
}

/// Writes more, cuts the power, and reads everything.
fn on(
    engine: &dyn Engine,
    built: &Built,
    medium: &Medium,
    store: &dyn Kv,
    cut_at: Option<Lsn>,
    judged: Judged,
) -> Result<(), Finding> {
    let later = match write_on(store, &built.keys) {
        Ok(later) => later,
        Err(Error::Full { .. }) if engine.may_refuse(&Write::Put) => return Ok(()),
        // A write may need data that a read did not need.
        Err(e) => return tells("write on", &e),
    };
    let left = medium.image().map_err(|e| no_file(&e))?;
    let cut = Medium::holding(left, built.inert);
    let store = match engine.open(&cut.disk()) {
        Ok(store) => store,
        Err(e) => return tells("open again", &e),
    };
    read_on(&*store, &later)?;
    let mut again = Reader {
        keys: &built.keys,
        cut_at,
        judged,
        except: later,
    };
    again.gets(&*store)
}

fn later(n: u64) -> Vec<u8> {
    [b"~".as_slice(), &key(n)].concat()
}

fn all_later(keys: &BTreeMap<Vec<u8>, Vec<Version>>) -> Later {
    let old = keys.keys().step_by(3).cloned();
    (0..LATER).map(later).chain(old).collect()
}

/// Writes new keys and every third of the existing ones, so that writes touch pages that recovery
/// has made from damaged ones. Returns the keys.
pub(super) fn write_on(
    store: &dyn Kv,
    keys: &BTreeMap<Vec<u8>, Vec<Version>>,
) -> treering_engine::Result<Later> {
    let all = all_later(keys);
    for key in &all {
        store.put(key, &LATER_VALUE)?;
    }
    store.sync(Lsn(u64::MAX))?;
    Ok(all)
}

/// Reads those keys after another power cut.
pub(super) fn read_on(store: &dyn Kv, later: &Later) -> Result<(), Finding> {
    let mut found = Vec::new();
    for key in later {
        match store.get(key, &mut found) {
            Ok(true) if found == LATER_VALUE => {}
            Ok(_) => {
                let expected = "the value that was synced after the damage";
                return Err(wrong(
                    "get after another power cut",
                    expected,
                    "something else",
                ));
            }
            Err(e) => tells("get after another power cut", &e)?,
        }
    }
    Ok(())
}

/// Runs a check, and turns a panic into a finding.
pub(super) fn caught(judge: impl FnOnce() -> Result<Judged, Finding>) -> Result<Judged, Finding> {
    panics::catch(judge).map_err(|said| Finding {
        check: Check::Panic,
        operation: None,
        what: "open it and read".into(),
        expected: "an answer or an error".into(),
        found: said,
    })?
}
