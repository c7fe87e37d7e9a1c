//! Checks that a command serves until it is stopped.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Starts it on a free port (those in the examples may be in use), which `flag`, `--address` or
/// `--port`, sets, checks that it answers, and stops it by SIGTERM. It must then exit with status
/// 143.
pub(crate) fn serves(folder: &Path, command: &str, flag: &str) -> Result<(), String> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let value = match flag {
        "--port" => address.port().to_string(),
        _ => address.to_string(),
    };
    let mut words: Vec<&str> = command.split_whitespace().skip(1).collect();
    if let Some(at) = words.iter().position(|word| *word == flag) {
        words.drain(at..at + 2);
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_treering"))
        .args(words)
        .args([flag, &value])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let answer = answer(address, || {
        child.try_wait().is_ok_and(|ended| ended.is_none())
    });
    let pid = child.id().to_string();
    let _ = Command::new("kill").args(["-s", "TERM", &pid]).status();
    let output = child.wait_with_output().expect("an end");
    match (answer, output.status.code()) {
        (Some(answer), Some(143)) if answer.contains("200 OK") => Ok(()),
        (answer, status) => Err(format!(
            "{command}\nexpected 200 OK and status 143, found {answer:?} and {status:?}\n{}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// The first line of its answer; waits up to a minute.
fn answer(address: SocketAddr, mut is_alive: impl FnMut() -> bool) -> Option<String> {
    let began = Instant::now();
    while is_alive() && began.elapsed() < Duration::from_secs(60) {
        if let Ok(mut stream) = TcpStream::connect(address) {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            let _ =
                stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            let mut head = [0; 64];
            let read = stream.read(&mut head).unwrap_or_default();
            return Some(String::from_utf8_lossy(&head[..read]).into_owned());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    None
}
