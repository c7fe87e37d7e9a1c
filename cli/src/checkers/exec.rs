//! Any engine, by an adapter that speaks `treering.exec/1`.
//!
//! The adapter opens the store, which must recover. A scan and single reads must agree, and the
//! store must take another write.

use std::path::Path;

use treering_oracle::exec::{Answer, Command, ExecError, Process, Request};

use super::engine::{HERE, Trouble};
use crate::acks::Content;
use crate::failure::Failure;

/// The value that shows whether a store takes writes; nobody else writes it.
const PROBE: &[u8] = b"after the cut";
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
    read(command, &store.display().to_string()).map_err(|trouble| match trouble {
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

enum Unread {
    Exec(ExecError),
    Differs(String),
}

impl From<ExecError> for Unread {
    fn from(error: ExecError) -> Unread {
        Unread::Exec(error)
    }
}

fn read(command: &Command, store: &str) -> Result<Content, Unread> {
    let process = command.start()?;
    process.done(&Request::Open(store))?;
    let mut content = scan(&process)?;
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
