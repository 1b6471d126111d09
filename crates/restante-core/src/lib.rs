//! The delivery backlog as pure functions and pure machines.
//!
//! No clock, no entropy, no I/O, no threads, no async: whatever differs from run to run comes in as a value. The crate
//! answers two questions:
//!
//! 1. *What does this command commit, given what was read?* ([`Command::plan`]; see [`plan`])
//! 2. *What is to be done next, given what just came back?* ([`machine::Worker`], [`machine::Sending`] and
//!    [`machine::Transact`]; see [`machine`])
//!
//! A driver executes the [`machine::Io`] it is handed and returns the [`machine::Reply`]; it decides nothing. The
//! simulator runs the same machines.

pub mod atoms;
mod config;
mod effect;
pub mod keys;
pub mod machine;
pub mod plan;
pub mod record;

pub use config::{Config, ConfigError};
pub use effect::{CircuitChange, Effect, Observation};
pub use plan::{Command, Env, Outcome, Plan, Rejection, Stop, Subject, View};
