//! From a name to the addresses that a connection may be made to: whoever resolves, the guard has the last word.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;

use crate::guard::Guard;

/// The addresses of a name, on their way.
pub type Addresses<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Resolves names. What it answers is filtered by the sender's rules about addresses before anything connects.
pub trait Resolver: Send + Sync {
    /// All addresses of `host`; an empty answer is one, and nothing is sent.
    ///
    /// # Errors
    /// Whatever kept the name from being resolved: nothing is sent, and the delivery is tried again later.
    fn resolve<'a>(&'a self, host: &'a str) -> Addresses<'a>;
}

/// The system's resolver (`getaddrinfo`), on tokio's threads for blocking work. A lookup that is given up stays on its thread
/// until the system answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Addresses<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|found| found.ip()).collect()) })
    }
}

/// Why there is no address to connect to. It travels through the client's errors and is found there again.
#[derive(Debug, Error)]
pub(crate) enum LookupError {
    #[error("the name does not resolve: {0}")]
    Unresolved(io::Error),
    #[error("the name has no address")]
    Empty,
    #[error("the name leads to no address that may be sent to, among {count} as {first}")]
    Refused { first: IpAddr, count: usize },
}

/// What the client asks.
pub(crate) struct GuardedResolver {
    pub(crate) inner: Arc<dyn Resolver>,
    pub(crate) guard: Arc<Guard>,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (inner, guard) = (self.inner.clone(), self.guard.clone());
        Box::pin(async move {
            let found = inner.resolve(name.as_str()).await.map_err(LookupError::Unresolved)?;
            let first = *found.first().ok_or(LookupError::Empty)?;
            let count = found.len();
            // The connection goes to one of these very addresses: a name that answers otherwise the next time gains nothing.
            let allowed: Vec<_> = found.into_iter().filter(|address| guard.allows(*address)).collect();
            if allowed.is_empty() {
                return Err(LookupError::Refused { first, count }.into());
            }
            Ok(Box::new(allowed.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}
