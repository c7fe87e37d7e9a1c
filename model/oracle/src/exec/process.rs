//! A running adapter: requests go to its standard input, answers come from its standard output.
//!
//! ```text
//! post ──▶ buffer ──▶ stdin │ adapter │ stdout ──▶ reader ──▶ answers ──▶ wait
//!                              stderr ──▶ passed on, line by line
//!                      watchdog: kills it if no answer comes in time
//! ```
//!
//! Any number of requests may be posted before an answer is awaited: that is what makes a pipe
//! fast. Requests carry numbers, so several threads can each wait for their own. An adapter answers
//! in the order of requests, unless it claims otherwise.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command as Spawn, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::claims::{Claims, Has};
use super::command::Command;
use super::error::ExecError;
use super::wire::{Answer, Kind, Line, Request};
use crate::patience::{FairClock, Patience};

/// Requests are written when this many bytes have gathered, or when an answer is awaited.
const BUFFER: usize = 32 << 10;

/// How long a process may take to end after its input has ended, before it is killed.
const FAREWELL: Duration = Duration::from_secs(2);

/// The most of a line that a message shows.
const SHOWN: usize = 120;

/// A request without an answer.
struct Waiting {
    id: u64,
    kind: Kind,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    answers: HashMap<u64, Answer>,
    /// Lines of its output.
    lines: u64,
    /// How often a request was posted to an idle adapter, or answered.
    progress: u64,
    /// Why no more answers come.
    end: Option<ExecError>,
    /// Whether the oracle has killed it.
    killed: bool,
    /// Whether the process has ended and been waited for.
    reaped: bool,
    /// Its last line on standard error.
    said: String,
}

/// A damaged store may have values without end.
const LONGEST_LINE: usize = 256 << 20;

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Whether it may answer in any order.
    concurrent: AtomicBool,
    /// Its name in messages: that of the program, until it has introduced itself.
    name: Mutex<String>,
    group: Pid,
}

struct Writer {
    stdin: Option<ChildStdin>,
    buffer: Vec<u8>,
    last: u64,
    /// The process is killed when this many more requests have been written.
    kill_in: Option<u64>,
}

/// A process that speaks the protocol.
///
/// ```no_run
/// use treering_oracle::exec::{Answer, Command, Request};
///
/// let process = Command::parse("python3 my_adapter.py").unwrap().start().unwrap();
/// assert_eq!(process.call(&Request::Open("/tmp/store")), Ok(Answer::Done));
/// // Two requests, written before an answer is read.
/// let put = process.post(&Request::Put { key: b"a", value: b"1", tx: None });
/// let get = process.post(&Request::Get { key: b"a", tx: None });
/// assert_eq!(process.wait(put), Ok(Answer::Done));
/// assert_eq!(process.wait(get), Ok(Answer::Value(Some(b"1".to_vec()))));
/// process.kill(); // as `kill -9` does
/// ```
pub struct Process {
    shared: Arc<Shared>,
    writer: Mutex<Writer>,
    claims: Claims,
    command: Command,
    threads: Vec<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Process {
    /// Starts the program, in a process group of its own, and hears its claims.
    pub(super) fn start(command: &Command) -> Result<Process, ExecError> {
        let program = command.words[0].clone();
        let failed = |why: std::io::Error| ExecError::Start {
            program: program.clone(),
            why: why.to_string(),
        };
        let mut spawn = Spawn::new(&program);
        spawn.args(&command.words[1..]);
        spawn.envs(command.variables.iter().map(|(name, value)| (name, value)));
        spawn.stdin(Stdio::piped()).stdout(Stdio::piped());
        spawn.stderr(Stdio::piped()).process_group(0);
        let mut child = spawn.spawn().map_err(failed)?;
        let group = Pid::from_child(&child);
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            concurrent: AtomicBool::new(false),
            name: Mutex::new(program.clone()),
            group,
        });
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stderr = child.stderr.take();
        let thread = |name: &str, body: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.into()).spawn(body)
        };
        let (to_hear, to_read) = (Arc::clone(&shared), Arc::clone(&shared));
        let (to_watch, timeout) = (Arc::clone(&shared), command.timeout);
        let heard = thread("exec stderr", Box::new(move || to_hear.hear(stderr)));
        let heard = heard.map_err(failed)?;
        let mut threads = vec![
            thread(
                "exec answers",
                Box::new(move || to_read.read(stdout, child, heard)),
            )
            .map_err(failed)?,
        ];
        let watchdog = thread("exec watchdog", Box::new(move || to_watch.watch(timeout)));
        threads.push(watchdog.map_err(failed)?);
        let mut process = Process {
            shared,
            writer: Mutex::new(Writer {
                stdin,
                buffer: Vec::with_capacity(2 * BUFFER),
                last: 0,
                kill_in: None,
            }),
            claims: Claims::unknown(),
            command: command.clone(),
            threads,
        };
        match process.call(&Request::Hello)? {
            Answer::Claims(claims) => {
                let concurrent = claims.has(Has::Concurrent);
                (process.shared.concurrent).store(concurrent, Ordering::Relaxed);
                lock(&process.shared.name).clone_from(&claims.name);
                process.claims = *claims;
            }
            other => return Err(process.unexpected("claims", &other)),
        }
        Ok(process)
    }

    /// What it has and claims.
    #[must_use]
    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    /// Another process of the same command.
    ///
    /// # Errors
    /// As [`Command::start`].
    pub fn again(&self) -> Result<Process, ExecError> {
        self.command.start()
    }

    /// Posts a request, which is written with the next ones at the latest when an answer is
    /// awaited. Returns its number.
    pub fn post(&self, request: &Request<'_>) -> u64 {
        let mut writer = lock(&self.writer);
        writer.last += 1;
        let id = writer.last;
        if !matches!(request, Request::Crash) {
            let mut state = lock(&self.shared.state);
            if state.waiting.is_empty() {
                state.progress += 1;
            }
            let kind = request.kind();
            state.waiting.push_back(Waiting { id, kind });
        }
        request.write(id, &mut writer.buffer);
        let fatal = match &mut writer.kill_in {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        };
        if fatal || writer.buffer.len() >= BUFFER {
            self.write(&mut writer);
        }
        if fatal {
            // So that it is hit before, within and after the request.
            let moment = Duration::from_micros(id % 7 * id % 5 * 40);
            if !moment.is_zero() {
                std::thread::sleep(moment);
            }
            drop(writer);
            self.kill();
        }
        id
    }

    fn write(&self, writer: &mut Writer) {
        let Writer { stdin, buffer, .. } = writer;
        if let Some(stdin) = stdin {
            // If the process has ended, the reader says why.
            let _ = stdin.write_all(buffer).and_then(|()| stdin.flush());
        }
        buffer.clear();
    }

    /// Waits for the answer to the request with this number.
    ///
    /// # Errors
    /// No answer comes, or the protocol was broken.
    pub fn wait(&self, id: u64) -> Result<Answer, ExecError> {
        self.write(&mut lock(&self.writer));
        let mut state = lock(&self.shared.state);
        loop {
            if let Some(answer) = state.answers.remove(&id) {
                return Ok(answer);
            }
            if let Some(end) = &state.end {
                return Err(end.clone());
            }
            let waited = self.shared.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Posts a request and waits for its answer.
    ///
    /// # Errors
    /// As [`Process::wait`].
    pub fn call(&self, request: &Request<'_>) -> Result<Answer, ExecError> {
        self.wait(self.post(request))
    }

    /// As [`Process::call`], for a request whose answer holds nothing: an error of the adapter is an
    /// error.
    ///
    /// # Errors
    /// As [`Process::wait`], or the adapter's own.
    pub fn done(&self, request: &Request<'_>) -> Result<(), ExecError> {
        self.is_done(self.call(request)?)
    }

    pub(super) fn is_done(&self, answer: Answer) -> Result<(), ExecError> {
        match answer {
            Answer::Done => Ok(()),
            Answer::Error(refusal, why) => Err(ExecError::Answered {
                name: self.name(),
                refusal,
                why,
            }),
            other => Err(self.unexpected("an answer without a result", &other)),
        }
    }

    pub(super) fn unexpected(&self, expected: &str, found: &Answer) -> ExecError {
        let found = match found {
            Answer::Error(_, why) => format!("the error: {why}"),
            other => format!("{other:?}"),
        };
        self.broken(expected, &found)
    }

    /// That the last line of the adapter is not what was expected.
    pub(super) fn broken(&self, expected: &str, found: &str) -> ExecError {
        let line = lock(&self.shared.state).lines;
        self.shared.broken(line, expected, found)
    }

    /// The number of the last request.
    pub(super) fn last(&self) -> u64 {
        lock(&self.writer).last
    }

    fn name(&self) -> String {
        lock(&self.shared.name).clone()
    }

    /// Kills the process, and all processes that it has started, as `kill -9` does. Returns when
    /// the process is gone.
    pub fn kill(&self) {
        lock(&self.shared.state).killed = true;
        self.shared.slay();
        self.await_end(FAREWELL);
    }

    /// Kills the process as soon as `requests` more requests have been posted and the next one has
    /// been written.
    pub fn kill_in(&self, requests: u64) {
        lock(&self.writer).kill_in = Some(requests);
    }

    /// Asks the process to end at once (`crash`), and waits until it has.
    ///
    /// # Errors
    /// It does not end.
    pub fn crash(&self) -> Result<(), ExecError> {
        lock(&self.shared.state).killed = true;
        self.post(&Request::Crash);
        self.write(&mut lock(&self.writer));
        if self.await_end(FAREWELL) {
            return match &lock(&self.shared.state).end {
                Some(broken @ ExecError::Broken { .. }) => Err(broken.clone()),
                _ => Ok(()),
            };
        }
        self.shared.slay();
        let expected = "the end of the process, without an answer, after `crash`";
        Err(self.broken(expected, "a process that goes on"))
    }

    /// Whether the process has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        lock(&self.shared.state).end.is_some()
    }

    /// Whether the oracle has killed it.
    #[must_use]
    pub fn was_killed(&self) -> bool {
        lock(&self.shared.state).killed
    }

    /// Waits until the process is gone; whether it is.
    fn await_end(&self, most: Duration) -> bool {
        let state = lock(&self.shared.state);
        let waits = |state: &mut State| !state.reaped;
        let waited = (self.shared.changed).wait_timeout_while(state, most, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.reaped
    }
}

impl Drop for Process {
    /// Ends its input, upon which the process should end.
    fn drop(&mut self) {
        lock(&self.writer).stdin = None;
        if !self.await_end(FAREWELL) {
            lock(&self.shared.state).killed = true;
            self.shared.slay();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The folder as a request names it.
pub(super) fn path_of(folder: &Path) -> Result<String, ExecError> {
    let text = folder.to_str().unwrap_or_default();
    let dense = |c: char| !c.is_control() && c != '"' && c != '\\';
    if text.is_empty() || !text.chars().all(dense) {
        let found = folder.display();
        return Err(ExecError::Command(format!(
            "a folder for stores whose path needs escapes in JSON: {found} (set TMPDIR)"
        )));
    }
    Ok(text.to_owned())
}

impl Shared {
    fn slay(&self) {
        // A process that has been waited for must not be killed: its number may be another's.
        if !lock(&self.state).reaped {
            let _ = kill_process_group(self.group, Signal::KILL);
        }
    }

    fn broken(&self, line: u64, expected: &str, found: &str) -> ExecError {
        let shown: String = found.trim_end().chars().take(SHOWN).collect();
        let more = if shown.len() < found.trim_end().len() {
            " …"
        } else {
            ""
        };
        ExecError::Broken {
            name: lock(&self.name).clone(),
            line,
            expected: expected.to_owned(),
            found: format!("{shown}{more}"),
        }
    }

    /// Passes its standard error on, and keeps the last line.
    fn hear(&self, stderr: Option<std::process::ChildStderr>) {
        let Some(stderr) = stderr else { return };
        let mut lines = BufReader::new(stderr);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            if text.is_empty() {
                continue;
            }
            // Nothing can be reported if stderr is gone.
            let _ = writeln!(std::io::stderr(), "{}: {text}", lock(&self.name));
            lock(&self.state).said = text;
        }
    }

    /// Reads answers until its output ends, then waits for the process.
    fn read(
        &self,
        stdout: Option<std::process::ChildStdout>,
        mut child: Child,
        heard: JoinHandle<()>,
    ) {
        if let Some(mut stdout) = stdout {
            let mut bytes = vec![0; 64 << 10];
            let mut rest: Vec<u8> = Vec::new();
            while let Ok(n @ 1..) = stdout.read(&mut bytes) {
                // What came before has no end of a line.
                let end = bytes[..n].iter().rposition(|byte| *byte == b'\n');
                let end = end.map(|end| rest.len() + end);
                rest.extend_from_slice(&bytes[..n]);
                let taken = match end {
                    None if rest.len() > LONGEST_LINE => Err(self.too_long(&rest)),
                    None => continue,
                    Some(end) => self.take(&rest[..end]),
                };
                if let Err(end) = taken {
                    lock(&self.state).end.get_or_insert(end);
                    self.changed.notify_all();
                    let _ = kill_process_group(self.group, Signal::KILL);
                    break;
                }
                rest.drain(..=end.unwrap_or(0));
            }
        }
        let status = gone(&mut child, self.group);
        // Its last words belong into the message.
        let _ = heard.join();
        let mut state = lock(&self.state);
        if state.end.is_none() {
            state.end = Some(self.death(&state, status));
        }
        state.reaped = true;
        drop(state);
        self.changed.notify_all();
    }

    fn too_long(&self, line: &[u8]) -> ExecError {
        let number = lock(&self.state).lines + 1;
        let expected = format!("a line of at most {} MiB", LONGEST_LINE >> 20);
        self.broken(number, &expected, &String::from_utf8_lossy(&line[..80]))
    }

    fn death(&self, state: &State, status: Option<ExitStatus>) -> ExecError {
        if state.killed {
            return ExecError::Killed;
        }
        ExecError::Died {
            name: lock(&self.name).clone(),
            request: first(state),
            status: status.map_or_else(|| "no status".into(), |status| status.to_string()),
            said: match state.said.as_str() {
                "" => String::new(),
                said => format!("; it said: {said}"),
            },
        }
    }

    /// Takes complete lines.
    fn take(&self, lines: &[u8]) -> Result<(), ExecError> {
        let mut state = lock(&self.state);
        for line in lines.split(|byte| *byte == b'\n') {
            state.lines += 1;
            let number = state.lines;
            let shown = String::from_utf8_lossy(line);
            let broken = |expected: &str| self.broken(number, expected, &shown);
            let text = std::str::from_utf8(line).map_err(|_| broken("text in UTF-8"))?;
            let read = Line::read(text).map_err(|expected| broken(&expected))?;
            let concurrent = self.concurrent.load(Ordering::Relaxed);
            let place = state
                .waiting
                .iter()
                .position(|waiting| waiting.id == read.id);
            let place = match place {
                Some(0) => 0,
                Some(place) if concurrent => place,
                Some(_) => {
                    let expected = format!(
                        "the answer to {} (only an adapter that claims \"concurrent\" may answer \
                         in another order)",
                        first(&state)
                    );
                    return Err(broken(&expected));
                }
                None => {
                    let expected = match state.killed {
                        true => "the end of the process, without an answer, after `crash`".into(),
                        false => format!(
                            "an answer to a request that has none yet, such as {}",
                            first(&state)
                        ),
                    };
                    return Err(broken(&expected));
                }
            };
            let Some(waiting) = state.waiting.remove(place) else {
                continue;
            };
            let of = |what| {
                format!(
                    "{what} in the answer to request {} ({})",
                    waiting.id,
                    waiting.kind.name()
                )
            };
            let answer = read.answer(waiting.kind, text);
            let answer = answer.map_err(|expected| broken(&of(expected)))?;
            state.answers.insert(waiting.id, answer);
        }
        state.progress += 1;
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Kills the process if no answer comes in time.
    fn watch(&self, timeout: Duration) {
        let tick = (timeout / 8).clamp(Duration::from_millis(5), Duration::from_millis(250));
        let process = self.group.as_raw_pid().unsigned_abs();
        let mut patience = Patience::new(FairClock::with(&[process]), 0);
        let mut state = lock(&self.state);
        while !state.reaped {
            let late = patience.without(state.progress) > timeout;
            if !state.waiting.is_empty() && late && state.end.is_none() {
                state.end = Some(ExecError::Silent {
                    name: lock(&self.name).clone(),
                    request: first(&state),
                    after: timeout,
                    line: state.lines + 1,
                });
                drop(state);
                self.slay();
                self.changed.notify_all();
                state = lock(&self.state);
            }
            let waited = self
                .changed
                .wait_timeout_while(state, tick, |state| !state.reaped);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The oldest request without an answer.
fn first(state: &State) -> String {
    match state.waiting.front() {
        Some(waiting) => format!("request {} ({})", waiting.id, waiting.kind.name()),
        None => "the next request".into(),
    }
}

/// Waits for a process whose output has ended; it should be gone at once. What it has started and
/// left behind is killed.
fn gone(child: &mut Child, group: Pid) -> Option<ExitStatus> {
    let began = Instant::now();
    let ended = || {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(Pid::from_child(child)), how), Ok(None))
    };
    while !ended() && began.elapsed() < FAREWELL / 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // Its number is not another's before it has been waited for.
    let _ = kill_process_group(group, Signal::KILL);
    child.wait().ok()
}
