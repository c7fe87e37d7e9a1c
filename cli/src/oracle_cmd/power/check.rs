//! What a store may hold after a power cut: the content after some step, not before the last that
//! was durable and not behind the last that was begun.

use std::path::{Path, PathBuf};

use treering_oracle::exec::{Answer, Command, ExecError, Process, Request};

use super::steps::{Content, Steps};
use crate::failure::Failure;

/// The folder that the adapter's command is relative to.
pub(super) const HERE: &str = "TREERING_HERE";
/// Records of a scan.
const ROWS: u64 = 1000;

/// Opens the store in `$TREERING_DIR` and compares it. Returns what is wrong, in two lines: what
/// kind of failure it is, and where.
pub(super) fn check(command: &Command, steps: &Path) -> Result<Option<String>, Failure> {
    let variable = |name: &str| {
        let value = std::env::var_os(name).map(PathBuf::from);
        value.ok_or_else(|| Failure::usage(format!("${name}: expected a path, found none")))
    };
    let (dir, acks) = (variable("TREERING_DIR")?, variable("TREERING_ACKS")?);
    // The adapter's command is relative to the folder of whoever began.
    if let Some(here) = std::env::var_os(HERE) {
        let gone = std::env::set_current_dir(&here);
        gone.map_err(|e| Failure::file(&here.display().to_string(), &e))?;
    }
    let acks = std::fs::read_to_string(&acks);
    let acks = acks.map_err(|e| Failure::file("the acknowledgements", &e))?;
    let contents = Steps::read(steps)?.contents();
    // Steps that are durable, and steps that were begun.
    let last = |word: &str| {
        let mut lines = acks.lines().rev();
        let found = lines.find_map(|line| line.strip_prefix(word)?.trim().parse::<usize>().ok());
        found.map_or(0, |step| step + 1)
    };
    let (durable, begun) = (last("durable "), last("try ").min(contents.len() - 1));
    let found = match read(command, &dir) {
        Ok(found) => found,
        Err(ExecError::Start { program, why }) => {
            return Err(Failure::cannot_run(format!("{program}: {why}")));
        }
        Err(error) => return Ok(Some(format!("the store does not open or answer\n{error}"))),
    };
    let may_be = &contents[durable.min(begun)..=begun];
    if may_be.contains(&found) {
        return Ok(None);
    }
    let early = contents[..durable]
        .iter()
        .rposition(|content| *content == found);
    if let Some(step) = early {
        return Ok(Some(format!(
            "acknowledged writes are lost\nthe store is as after {step} steps; {durable} were durable"
        )));
    }
    let late = contents[begun + 1..]
        .iter()
        .position(|content| *content == found);
    if late.is_some() {
        return Ok(Some("the store has what was not written yet".into()));
    }
    Ok(Some(format!(
        "the store is as after no step\n{}",
        difference(&found, may_be, &contents)
    )))
}

/// The first key that is as in none of the contents that may be, or that there is no such key.
fn difference(found: &Content, may_be: &[Content], all: &[Content]) -> String {
    let shown = |key: &[u8]| key.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let keys = may_be.iter().flat_map(Content::keys).chain(found.keys());
    let mut keys: Vec<&Vec<u8>> = keys.collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let now = found.get(key);
        if may_be.iter().any(|content| content.get(key) == now) {
            continue;
        }
        let before = all.iter().any(|content| content.get(key) == now);
        let what = match (now, before) {
            (None, _) => "is gone",
            (Some(_), true) => "has an older or later value",
            (Some(_), false) => "has a value that was never written",
        };
        return format!("key {} {what}", shown(key));
    }
    "each key is as it was at some time, but not at the same".into()
}

/// All records of a store, which must also be found one by one, and take another write.
fn read(command: &Command, dir: &Path) -> Result<Content, ExecError> {
    let process = command.start()?;
    let dir = dir.display().to_string();
    process.done(&Request::Open(&dir))?;
    let content = scan(&process)?;
    for (key, value) in &content {
        let got = process.call(&Request::Get { key, tx: None })?;
        if got != Answer::Value(Some(value.clone())) {
            return Ok(Content::from([(
                key.clone(),
                b"a scan and a get differ".to_vec(),
            )]));
        }
    }
    // A store that opens and cannot be written to has not recovered.
    let key: &[u8] = b"t";
    let (value, tx) = (b"after the cut".as_slice(), None);
    process.done(&Request::Put { key, value, tx })?;
    if process.call(&Request::Get { key, tx })? != Answer::Value(Some(value.to_vec())) {
        return Ok(Content::from([(
            key.to_vec(),
            b"what was just written is gone".to_vec(),
        )]));
    }
    process.done(&Request::Close)?;
    Ok(content)
}

fn scan(process: &Process) -> Result<Content, ExecError> {
    let mut content = Content::new();
    let mut from = Vec::new();
    loop {
        let request = Request::Scan {
            from: &from,
            limit: ROWS,
            tx: None,
        };
        let Answer::Rows(rows) = process.call(&request)? else {
            return Ok(content);
        };
        let Some((last, _)) = rows.last() else {
            return Ok(content);
        };
        // The next key in the order of bytes.
        from = [&last[..], &[0]].concat();
        let more = rows.len() as u64 == ROWS;
        content.extend(rows);
        if !more {
            return Ok(content);
        }
    }
}
