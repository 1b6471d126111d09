//! Attempts over real sockets on 127.0.0.1, to receivers that do what a test wants of them.

mod answers;
mod events;
mod guard;
mod limits;
mod receiver;
mod signed;
mod tls;
// The verifier that the signatures are tested with: one piece of code installs and starts it for both crates.
#[path = "../../../restante-signing/tests/all/verifier.rs"]
mod verifier;
