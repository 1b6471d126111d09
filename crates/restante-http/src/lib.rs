//! Sends one delivery over HTTP, and says what is certain of it. The contract in seven sentences:
//!
//! 1. [`HttpSender`] is a [`tower_service::Service`] from a [`Post`](restante_core::machine::Post) to a
//!    [`PostResult`](restante_core::machine::PostResult); it has no error, whatever happens is a result.
//! 2. One call is one attempt: no redirect is followed, nothing is repeated, dropping the future ends it.
//! 3. [`NotSent`](restante_core::machine::NotSent) means that nothing reached the destination, for certain; whatever is not
//!    certain is [`Unknown`](restante_core::machine::PostResult::Unknown). A status that arrived is the answer, whatever becomes
//!    of the body behind it.
//! 4. Everything ends by the attempt's `timeout_ms`, signing, resolving and connecting included.
//! 5. A connection is made only to a public address, unless the builder opens more. Names are judged by the addresses they resolve
//!    to, and the connection goes to those very addresses.
//! 6. An entry with a signing reference is sent signed or not at all; one without is sent only if the builder says so.
//! 7. Every attempt of one entry carries the same `Idempotency-Key`: a receiver can tell a repetition.
//!
//! | what happened | result |
//! |---|---|
//! | an answer, of any status (1xx aside) | `Status`, with its Retry-After in milliseconds |
//! | no usable URL, not https, an address that is not for the public | `NotSent(Refused)` |
//! | no key, no signer, another version's reference, no time left to sign | `NotSent(Unsigned)` |
//! | the name does not resolve, or has no address | `NotSent(Dns)` |
//! | no connection, or not within the connect timeout | `NotSent(Connect)` |
//! | the TLS handshake failed | `NotSent(Tls)` |
//! | the time was over; the connection broke before the status | `Unknown` |
//!
//! *Architecture invariant:* nothing here decides what becomes of a delivery; the verdict is
//! [`classify`](restante_core::machine::classify)'s. Events of `tracing` name the entry, its token and the host; no path, no
//! payload, no header.
//!
//! *API boundary:* [`HttpSender`] and its [`Builder`]; [`Resolver`] for whoever resolves names in another way.
//!
//! ```
//! use restante_core::atoms::{Bytes, EntryId, Fence, Sealed, SendId};
//! use restante_core::machine::{ExecutionKey, LocalTime, NotSent, Post, PostResult};
//! use restante_http::HttpSender;
//! use tower_service::Service;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let mut sender = HttpSender::builder().allow_unsigned(true).user_agent("ada/1.0 (+https://social.example)").build()?;
//! let entry = EntryId { send: SendId::from_bytes([7; 16]), index: 0 };
//! let post = Post {
//!     entry,
//!     fence: Fence::new(1),
//!     inbox: "https://169.254.169.254/latest/meta-data".into(),
//!     destination: "https://169.254.169.254".into(),
//!     payload: Bytes::from(b"{}".to_vec()),
//!     signing: Sealed::default(),
//!     post_by: LocalTime::from_ms(0),
//!     timeout_ms: 10_000,
//!     execution_key: ExecutionKey::Entry(entry),
//! };
//! assert_eq!(sender.call(post).await?, PostResult::NotSent(NotSent::Refused));
//! # Ok(())
//! # })
//! # }
//! ```

mod builder;
mod guard;
mod outcome;
mod resolve;
mod retry_after;
mod sender;

pub use builder::{BuildError, Builder};
pub use ipnet::IpNet;
pub use resolve::{Addresses, Resolver, SystemResolver};
pub use sender::HttpSender;
