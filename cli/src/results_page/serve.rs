//! `treering serve`: the page of a sweep's folder, on this machine only.
//!
//! | path | what |
//! |---|---|
//! | `/` | the page of the table as it is now |
//! | `/results.csv`, `/results.parquet` | the table |
//! | `/runs/HASH.json`, `/predictions/HASH.json` | the report of a run |
//!
//! Nothing else is served: a path is one of these, letter by letter.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::html;
use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::figures::{self, Kind};
use crate::output;

/// The longest time in which a request must come and its answer be taken.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest request that is read.
const LONGEST: u64 = 16 << 10;

/// Serves until a signal ends the process.
pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    // What is no result is refused before a browser asks.
    page(&args.folder)?;
    let address = (Ipv4Addr::LOCALHOST, args.port);
    let listener = TcpListener::bind(address)
        .map_err(|e| Failure::usage(format!("--port {}: {e}", args.port)))?;
    let port = listener.local_addr().map_or(args.port, |at| at.port());
    output::say(format!("http://127.0.0.1:{port}/\n").as_bytes())?;
    std::thread::scope(|scope| {
        for stream in listener.incoming().flatten() {
            // A browser opens connections in advance, and may leave them unused.
            scope.spawn(|| {
                // A browser that has gone away gets no answer.
                let _ = answer(stream, &args.folder);
            });
        }
    });
    Ok(())
}

/// The page of the table in the folder.
fn page(folder: &Path) -> Result<String, Failure> {
    let path = folder.join("results.csv");
    let name = path.display().to_string();
    let bad = |why: String| Failure::usage(format!("{name}: {why}"));
    let text = std::fs::read(&path).map_err(|e| Failure::file(&name, &e))?;
    let mut reader = csv::Reader::from_reader(text.as_slice());
    let columns: Vec<String> = match reader.headers() {
        Ok(headers) => headers.iter().map(str::to_owned).collect(),
        Err(e) => return Err(bad(format!("expected a table in UTF-8: {e}"))),
    };
    let Some(run) = columns.iter().position(|column| column == "run") else {
        return Err(bad(
            "expected the table of `treering sweep`, with a column run".into(),
        ));
    };
    let kinds = figures::all();
    let kind = |column: &String| {
        let found = kinds.iter().find(|(path, _)| path == column);
        found.map_or(Kind::Text, |(_, kind)| *kind)
    };
    let kinds: Vec<Kind> = columns.iter().map(kind).collect();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| bad(format!("expected rows as long as the first: {e}")))?;
        let cells = record
            .iter()
            .zip(&kinds)
            .map(|(cell, kind)| value(cell, *kind));
        rows.push(cells.collect());
    }
    Ok(html(&columns, &columns[..run], &rows, Some("/")))
}

fn value(cell: &str, kind: Kind) -> Value {
    let number = || serde_json::from_str::<serde_json::Number>(cell).ok();
    match (cell, kind) {
        ("", _) => Value::Null,
        (_, Kind::Text) => cell.into(),
        (_, Kind::Count | Kind::Real) => number().map_or(cell.into(), Value::Number),
    }
}

/// The file behind a path, and its type.
fn file(folder: &Path, path: &str) -> Option<(PathBuf, &'static str)> {
    match path {
        "/results.csv" => return Some((folder.join("results.csv"), "text/csv; charset=utf-8")),
        "/results.parquet" => {
            let kind = "application/vnd.apache.parquet";
            return Some((folder.join("results.parquet"), kind));
        }
        _ => {}
    }
    let (kind, name) = path.strip_prefix('/')?.split_once('/')?;
    let hash = name.strip_suffix(".json")?;
    let is_hash = hash.len() == 32 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    let is_ours = is_hash && matches!(kind, "runs" | "predictions");
    is_ours.then(|| (folder.join(kind).join(name), "application/json"))
}

fn answer(mut stream: TcpStream, folder: &Path) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let asked = std::io::Read::take(stream.try_clone()?, LONGEST);
    let mut lines = BufReader::new(asked).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    let mut host = String::new();
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("host")
        {
            host = value.trim().to_owned();
        }
    }
    let (status, kind, body) = match () {
        () if !is_local(&host) => failed("403 Forbidden", "expected a request to localhost"),
        () => found(folder, &request),
    };
    // In one piece: a reader of the first bytes sees the whole status.
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend(body);
    stream.write_all(&answer)
}

/// Whether a request was made to this machine by its own name. A page elsewhere may name a host
/// that leads here.
fn is_local(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "localhost" | "127.0.0.1")
}

type Answer = (&'static str, &'static str, Vec<u8>);

fn failed(status: &'static str, why: &str) -> Answer {
    (
        status,
        "text/plain; charset=utf-8",
        format!("{why}\n").into_bytes(),
    )
}

fn found(folder: &Path, request: &str) -> Answer {
    let mut words = request.split(' ');
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    if method != "GET" {
        return failed("405 Method Not Allowed", "expected GET");
    }
    if matches!(path, "/" | "/index.html") {
        return match page(folder) {
            Ok(page) => ("200 OK", "text/html; charset=utf-8", page.into_bytes()),
            Err(failure) => failed("500 Internal Server Error", &failure.message),
        };
    }
    let read = file(folder, path).and_then(|(path, kind)| Some((std::fs::read(path).ok()?, kind)));
    match read {
        Some((body, kind)) => ("200 OK", kind, body),
        None => failed("404 Not Found", "not found"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_the_results_is_found() {
        let folder = Path::new("d");
        let hash = "0123456789abcdef0123456789abcdef";
        let place = |path: &str| file(folder, path).map(|(place, _)| place);
        let run = format!("/runs/{hash}.json");
        assert_eq!(place(&run), Some(folder.join(format!("runs/{hash}.json"))));
        assert_eq!(place("/results.csv"), Some(folder.join("results.csv")));
        for path in [
            "/../secret",
            "/runs/../../secret.json",
            "/runs/.lock",
            "//etc/passwd",
            "/costs.csv",
            "/runs/0123456789abcdef0123456789abcde..json",
            "/statistics/0123456789abcdef0123456789abcdef.json",
        ] {
            assert_eq!(place(path), None, "{path}");
        }
    }

    #[test]
    fn only_requests_to_this_machine_are_answered() {
        assert!(is_local("localhost:3000") && is_local("127.0.0.1"));
        assert!(!is_local("example.org:3000") && !is_local(""));
    }
}
