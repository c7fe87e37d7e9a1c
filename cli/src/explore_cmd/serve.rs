//! Serves one page on localhost.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::failure::Failure;

/// The longest time in which a request must come and its answer be taken.
const PATIENCE: Duration = Duration::from_secs(10);

/// Listens on an address.
pub(super) fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).map_err(|e| Failure::usage(format!("--address {address}: {e}")))
}

/// Answers each request for `/` with the page, until the process ends.
pub(super) fn serve(listener: &TcpListener, page: &str) {
    std::thread::scope(|scope| {
        for stream in listener.incoming().flatten() {
            // A browser opens connections in advance, and may leave them unused.
            scope.spawn(move || {
                // A browser that has gone away gets no answer.
                let _ = answer(stream, page);
            });
        }
    });
}

fn answer(mut stream: TcpStream, page: &str) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match path {
        "/" | "/index.html" => ("200 OK", page),
        _ => ("404 Not Found", "not found\n"),
    };
    // In one piece: a reader of the first bytes sees the whole status.
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes())
}
