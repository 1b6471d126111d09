//! Restante as one program: `restante serve` runs a worker with an HTTP API on the loopback interface, and every other command
//! does one thing to a store and says by its exit code what came of it.
//!
//! The library is here so that tests and documentation reach the parts; the program is [`cli::main`].
//!
//! | module | what |
//! |---|---|
//! | [`cli`] | the commands, one file each |
//! | [`api`] | the HTTP API: [`api::Operation`] lists it, `openapi.json` describes it |
//! | [`settings`] | the configuration file |
//! | [`store`], [`site`] | from a store URL to a backlog |
//! | [`fault`] | what is answered when something cannot be done: code, HTTP status and exit code in one table |
//! | [`views`] | what is shown, in JSON |
//!
//! *Architecture invariant:* nothing here decides about a delivery, and nothing secret (token, private key, payload) can be
//! printed. Every answer that is no success is a [`Fault`].
//!
//! *API boundary:* the command line, its [`Exit`] codes, and the HTTP API; not this library.

pub mod api;
pub mod cli;
mod exit;
pub mod fault;
mod operate;
pub mod settings;
pub mod site;
pub mod store;
mod token;
pub mod views;

pub use exit::Exit;
pub use fault::Fault;
pub use token::{TOKEN_VARIABLE, Token};
