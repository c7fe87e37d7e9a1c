//! Any engine, by an adapter that speaks `treering.exec/1`.
//!
//! The adapter opens the store, which must recover. A scan and single reads must agree, and the
//! store must take another write.

use std::path::Path;

use treering_drive::cuts::Quick;
use treering_oracle::exec::{Answer, Command, ExecError, Process, Request};

use super::engine::{HERE, Trouble};
use crate::acks::{Acks, Content};
use crate::failure::Failure;

/// The value that shows whether a store takes writes; nobody else writes it.
const PROBE: &[u8] = b"after the cut";
/// States that an adapter opens before it is started anew, in case it keeps something of each.
const STATES: u32 = 1000;
/// Records of a scan.
const ROWS: u64 = 1000;

/// Starts the adapter once. Returns its name.
pub(super) fn name(command: &Command) -> Result<String, Failure> {
    let process = command.start().map_err(|error| Failure::from(&error))?;
    Ok(format!("adapter {}", process.claims().name))
}

/// All records of a store.
pub(super) fn content(
    command: &Command,
    dir: &Path,
    store: Option<&Path>,
) -> Result<Content, Trouble> {
    // The adapter's command is relative to the folder of whoever began.
    if let Some(here) = std::env::var_os(HERE) {
        let gone = std::env::set_current_dir(&here);
        gone.map_err(|e| Failure::file(&here.display().to_string(), &e))?;
    }
    let store = store.map_or_else(|| dir.to_path_buf(), |store| dir.join(store));
    let process = command.start().map_err(Unread::from);
    let content = process.and_then(|process| read(&process, &store.display().to_string()));
    content.map_err(|trouble| match trouble {
        Unread::Exec(ExecError::Start { program, why }) => {
            Failure::cannot_run(format!("{program}: {why}")).into()
        }
        Unread::Exec(error) => {
            let told = format!("the store does not open or answer\n{error}");
            Trouble::State(super::tool::without(dir, &told))
        }
        Unread::Differs(what) => Trouble::State(what),
    })
}

/// An adapter that stays for many states.
pub(super) struct Staying {
    command: Command,
    process: Option<Process>,
    /// States it has opened.
    states: u32,
}

impl Staying {
    pub(super) fn new(command: Command) -> Staying {
        Staying {
            command,
            process: None,
            states: 0,
        }
    }

    fn content(&mut self, store: &Path) -> Result<Content, Unread> {
        if self.process.is_none() {
            self.process = Some(self.command.start()?);
            self.states = 0;
        }
        let Some(process) = &self.process else {
            return Ok(Content::new());
        };
        self.states += 1;
        read(process, &store.display().to_string())
    }
}

impl Quick for Staying {
    fn is_good(&mut self, dir: &Path, acks: &[u8]) -> bool {
        let Ok(acks) = Acks::read(&String::from_utf8_lossy(acks)) else {
            return false;
        };
        let store = acks.store.as_ref().map(|store| dir.join(store));
        let content = self.content(store.as_deref().unwrap_or(dir));
        let good = content.is_ok_and(|content| acks.judge(&content).is_none());
        if !good || self.states >= STATES {
            self.forget();
        }
        good
    }

    fn forget(&mut self) {
        self.process = None;
    }
}

enum Unread {
    Exec(ExecError),
    Differs(String),
}

impl From<ExecError> for Unread {
    fn from(error: ExecError) -> Unread {
        Unread::Exec(error)
    }
}

fn read(process: &Process, store: &str) -> Result<Content, Unread> {
    process.done(&Request::Open(store))?;
    let mut content = scan(process)?;
    for (key, value) in &content {
        let got = process.call(&Request::Get { key, tx: None })?;
        if got != Answer::Value(Some(value.clone())) {
            let differs = "a scan and a get differ\nafter the store was opened";
            return Err(Unread::Differs(differs.into()));
        }
    }
    // An earlier check may have written, if the power was cut during it.
    content.retain(|_, value| value != PROBE);
    // A store that opens and cannot be written to has not recovered.
    let keys = (b't'..=u8::MAX).map(|byte| [byte]);
    let mut free = keys.filter(|key| !content.contains_key(&key[..]));
    let key = free.next().unwrap_or([b't']);
    let (key, value, tx) = (&key[..], PROBE, None);
    process.done(&Request::Put { key, value, tx })?;
    if process.call(&Request::Get { key, tx })? != Answer::Value(Some(value.to_vec())) {
        return Err(Unread::Differs(
            "what was written after the cut is gone".into(),
        ));
    }
    process.done(&Request::Close)?;
    Ok(content)
}

fn scan(process: &Process) -> Result<Content, Unread> {
    let mut content = Content::new();
    let mut from = Vec::new();
    loop {
        let request = Request::Scan {
            from: &from,
            limit: ROWS,
            tx: None,
        };
        let rows = process.rows(&request, ROWS)?;
        let more = rows.len() as u64 == ROWS;
        for (key, value) in rows {
            // A damaged tree may lead in a circle, and then a scan would never end.
            if key < from {
                return Err(Unread::Differs("a scan is not in the order of keys".into()));
            }
            // The next key in the order of bytes.
            from = [&key[..], &[0]].concat();
            content.insert(key, value);
        }
        if !more {
            return Ok(content);
        }
    }
}
