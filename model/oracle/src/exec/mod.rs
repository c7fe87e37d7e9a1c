//! Engines in any language: a program that speaks JSON lines on its standard input and output.
//!
//! ```text
//! oracle ── {"id":7,"op":"put","key":"61","value":"00ff"} ──▶ your adapter ──▶ your engine
//!        ◀── {"id":7} ───────────────────────────────────────
//! ```
//!
//! `docs/EXEC.md` is the protocol, on one page. [`Exec`] is an [`Engine`](crate::Engine), so every
//! mode that judges engines which keep their own files judges it; [`Process`] alone drives an
//! adapter for other purposes.
//!
//! | module | what it is for |
//! |---|---|
//! | [`Command`], [`Process`] | start an adapter, post requests, wait for answers, kill it |
//! | [`Request`], [`Answer`], [`Claims`] | what goes over the pipe |
//! | [`Exec`] | the adapter's engine, as the oracle judges engines |
//! | [`transactions`], [`isolation`] | open transactions, and what they may see |
//! | [`so`] | the same engines as shared libraries, without a pipe |
//! | [`serve`] | the other side: an engine of this process as an adapter |
//! | [`kit`] | does an adapter keep to the protocol? |

mod ahead;
mod claims;
mod command;
mod engine;
mod error;
mod home;
pub mod isolation;
pub mod kit;
mod process;
pub mod serve;
pub mod so;
mod store;
pub mod transactions;
mod wire;

pub use claims::{Claims, Consistency, Durable, Has, Isolation, PROTOCOL};
pub use command::Command;
pub use engine::Exec;
pub use error::ExecError;
pub use process::Process;
pub use wire::{Answer, Kind, Record, Refusal, Request};
