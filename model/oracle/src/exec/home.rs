//! What the stores of one adapter's engine share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use treering_engine::Error;

use super::claims::Claims;
use super::command::Command;
use super::error::ExecError;
use super::process::Process;

/// What all stores of an engine share: idle processes, and how the protocol was broken.
pub(super) struct Home {
    command: Command,
    pub(super) claims: Claims,
    /// The engine's name, which is leaked once, as errors want it.
    pub(super) name: &'static str,
    idle: Mutex<Vec<Process>>,
    broken: Mutex<Option<ExecError>>,
}

impl Home {
    /// Starts the program and hears what it has and claims.
    pub(super) fn start(command: Command) -> Result<Home, ExecError> {
        let process = command.start()?;
        let claims = process.claims().clone();
        Ok(Home {
            command,
            name: String::leak(format!("exec:{}", claims.name)),
            claims,
            idle: Mutex::new(vec![process]),
            broken: Mutex::default(),
        })
    }

    /// How the adapter broke the protocol first, or why it could not be started again.
    pub(super) fn broken(&self) -> Option<ExecError> {
        let broken = self.broken.lock();
        broken.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An idle process, or a new one.
    pub(super) fn process(&self) -> Result<Process, ExecError> {
        let idle = self.lock().pop();
        match idle.filter(|process| !process.is_over()) {
            Some(process) => Ok(process),
            None => {
                let process = self.command.start()?;
                match *process.claims() == self.claims {
                    true => Ok(process),
                    false => Err(process.broken("the same claims at each start", "other claims")),
                }
            }
        }
    }

    /// Keeps a process that has no store open.
    pub(super) fn put_by(&self, process: Process) {
        if !process.is_over() {
            self.lock().push(process);
        }
    }

    /// The oracle's form of an error. Notes it if the adapter broke the protocol.
    pub(super) fn told(&self, error: ExecError) -> Error {
        let why = match &error {
            ExecError::Answered { why, .. } => why.clone(),
            other => other.to_string(),
        };
        if error.is_broken() || matches!(error, ExecError::Start { .. }) {
            let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
            broken.get_or_insert(error);
        }
        Error::Foreign {
            engine: self.name,
            why,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Process>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
