//! [`Builder`]: everything that can be set, checked before anything is sent.

use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;
use reqwest::{Client, redirect, retry};
use restante_signing::Signer;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;
use thiserror::Error;

use crate::guard::Guard;
use crate::resolve::GuardedResolver;
use crate::sender::Settings;
use crate::{HttpSender, Resolver, SystemResolver};

/// Headers that belong to the connection, to the signature, or to settings of their own.
const RESERVED: [&str; 15] = [
    "connection",
    "content-digest",
    "content-length",
    "content-type",
    "date",
    "digest",
    "expect",
    "host",
    "keep-alive",
    "signature",
    "signature-input",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Builds an [`HttpSender`]. Each method says what holds without it.
pub struct Builder {
    guard: Guard,
    signer: Option<Arc<dyn Signer>>,
    unsigned_allowed: bool,
    resolver: Arc<dyn Resolver>,
    user_agent: String,
    content_type: String,
    idempotency_header: Option<String>,
    headers: Vec<(String, String)>,
    roots_pem: Vec<u8>,
    connect_timeout: Duration,
    total_timeout: Duration,
    response_bytes_max: u64,
    drain_time_max: Duration,
    idle_connections_max: usize,
    idle_time_max: Duration,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            guard: Guard::default(),
            signer: None,
            unsigned_allowed: false,
            resolver: Arc::new(SystemResolver),
            user_agent: concat!("restante/", env!("CARGO_PKG_VERSION")).to_owned(),
            content_type: "application/activity+json".to_owned(),
            idempotency_header: Some("idempotency-key".to_owned()),
            headers: Vec::new(),
            roots_pem: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            total_timeout: Duration::from_secs(60),
            response_bytes_max: 64 * 1024,
            drain_time_max: Duration::from_secs(1),
            idle_connections_max: 4,
            idle_time_max: Duration::from_secs(60),
        }
    }
}

impl Builder {
    /// Who signs. At first nobody.
    #[must_use]
    pub fn signer(mut self, signer: Arc<dyn Signer>) -> Self {
        self.signer = Some(signer);
        self
    }

    /// Whether an entry without a signing reference is sent, unsigned. At first it is not. An entry *with* one is never sent
    /// unsigned.
    #[must_use]
    pub fn allow_unsigned(mut self, allow: bool) -> Self {
        self.unsigned_allowed = allow;
        self
    }

    /// Whether `http` is sent to as well as `https`. At first it is not.
    #[must_use]
    pub fn allow_http(mut self, allow: bool) -> Self {
        self.guard.http_allowed = allow;
        self
    }

    /// Whether addresses that are not public are connected to. At first they are not. For tests, and where every inbox is
    /// trusted.
    #[must_use]
    pub fn allow_private_addresses(mut self, allow: bool) -> Self {
        self.guard.private_allowed = allow;
        self
    }

    /// Opens one network that is not public. At first there is none.
    #[must_use]
    pub fn allow_network(mut self, network: IpNet) -> Self {
        self.guard.networks_allowed.push(network);
        self
    }

    /// Who resolves names. At first the [system](SystemResolver).
    #[must_use]
    pub fn resolver(mut self, resolver: Arc<dyn Resolver>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Trusts the certificates of this PEM text as roots, beside those of the system.
    #[must_use]
    pub fn tls_roots_pem(mut self, pem: &[u8]) -> Self {
        self.roots_pem.extend_from_slice(pem);
        self.roots_pem.push(b'\n');
        self
    }

    /// The `User-Agent`. At first `restante/` and the version; say whom to turn to.
    #[must_use]
    pub fn user_agent(mut self, value: &str) -> Self {
        value.clone_into(&mut self.user_agent);
        self
    }

    /// The `Content-Type`. At first `application/activity+json`.
    #[must_use]
    pub fn content_type(mut self, value: &str) -> Self {
        value.clone_into(&mut self.content_type);
        self
    }

    /// The header that carries the entry's id: the same in every attempt, so that a receiver can tell a repetition. At first
    /// `Idempotency-Key`; `None` leaves it out.
    #[must_use]
    pub fn idempotency_header(mut self, name: Option<&str>) -> Self {
        self.idempotency_header = name.map(str::to_owned);
        self
    }

    /// One more header of every request, to every destination.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// How long resolving, connecting and the TLS handshake may take together. At first 10 s. What takes longer was not sent, for
    /// certain.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// How long an attempt may take, with everything. At first 60 s. The limit that the attempt itself carries holds as well.
    #[must_use]
    pub fn total_timeout(mut self, limit: Duration) -> Self {
        self.total_timeout = limit;
        self
    }

    /// How many bytes of an answer's body are read, for the sake of the connection, before it is closed instead. At first 64 KiB.
    #[must_use]
    pub fn response_bytes_max(mut self, max: u64) -> Self {
        self.response_bytes_max = max;
        self
    }

    /// How long an answer's body is waited for, for the sake of the connection, before it is closed instead. At first 1 s.
    #[must_use]
    pub fn drain_time_max(mut self, max: Duration) -> Self {
        self.drain_time_max = max;
        self
    }

    /// How many idle connections are kept for each scheme, host and port. At first 4; 0 keeps none.
    #[must_use]
    pub fn idle_connections_max(mut self, max: usize) -> Self {
        self.idle_connections_max = max;
        self
    }

    /// How long an idle connection is kept. At first 60 s.
    #[must_use]
    pub fn idle_time_max(mut self, max: Duration) -> Self {
        self.idle_time_max = max;
        self
    }

    /// The sender.
    ///
    /// # Errors
    /// [`BuildError`], which says what to change.
    pub fn build(self) -> Result<HttpSender, BuildError> {
        if self.signer.is_none() && !self.unsigned_allowed {
            return Err(BuildError::NothingCanBeSent);
        }
        if self.connect_timeout.is_zero() || self.connect_timeout >= self.total_timeout {
            return Err(BuildError::Timeouts { connect: self.connect_timeout, total: self.total_timeout });
        }
        let idempotency_header = self.idempotency_header.as_deref().map(name).transpose()?;
        let headers = self.request_headers(idempotency_header.as_ref())?;
        let tls = self.tls()?;
        let guard = Arc::new(self.guard);
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(Arc::new(GuardedResolver { inner: self.resolver, guard: guard.clone() }))
            // A redirected POST is another request than the one that was signed, to a place that the backlog does not know.
            .redirect(redirect::Policy::none())
            // A proxy would connect to whatever it is told, past the guard.
            .no_proxy()
            // One call is one attempt: repeating is the backlog's.
            .retry(retry::never())
            .referer(false)
            .connect_timeout(self.connect_timeout)
            .pool_max_idle_per_host(self.idle_connections_max)
            .pool_idle_timeout(self.idle_time_max)
            .tcp_nodelay(true)
            .build()
            .map_err(|error| BuildError::Client(error.to_string()))?;
        Ok(HttpSender(Arc::new(Settings {
            client,
            guard,
            signer: self.signer,
            unsigned_allowed: self.unsigned_allowed,
            headers,
            idempotency_header,
            total_timeout: self.total_timeout,
            response_bytes_max: self.response_bytes_max,
            drain_time_max: self.drain_time_max,
        })))
    }

    fn request_headers(&self, idempotency_header: Option<&HeaderName>) -> Result<HeaderMap, BuildError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, value("user-agent", &self.user_agent)?);
        headers.insert(header::CONTENT_TYPE, value("content-type", &self.content_type)?);
        for (given, text) in &self.headers {
            let name = name(given)?;
            if headers.contains_key(&name) || Some(&name) == idempotency_header {
                return Err(BuildError::ReservedHeader { name: given.clone() });
            }
            headers.append(name, value(given, text)?);
        }
        Ok(headers)
    }

    fn tls(&self) -> Result<ClientConfig, BuildError> {
        let told = |error: &dyn std::fmt::Display| BuildError::Tls(error.to_string());
        let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.roots_pem).collect();
        let provider = Arc::new(ring::default_provider());
        let verifier = Verifier::new_with_extra_roots(roots.map_err(|error| told(&error))?, provider.clone());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| told(&error))?
            .dangerous() // its word for "a verifier of one's own": this one is the system's
            .with_custom_certificate_verifier(Arc::new(verifier.map_err(|error| told(&error))?))
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(tls)
    }
}

fn name(text: &str) -> Result<HeaderName, BuildError> {
    let name = HeaderName::try_from(text).map_err(|_| BuildError::Header { name: text.to_owned() })?;
    if RESERVED.contains(&name.as_str()) {
        return Err(BuildError::ReservedHeader { name: text.to_owned() });
    }
    Ok(name)
}

fn value(name: &str, text: &str) -> Result<HeaderValue, BuildError> {
    HeaderValue::from_str(text).map_err(|_| BuildError::Header { name: name.to_owned() })
}

/// Why there is no sender.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum BuildError {
    /// Neither signed nor unsigned requests could be sent.
    #[error("the sender has no signer and must not send unsigned: give it a signer, or allow unsigned requests")]
    NothingCanBeSent,
    /// The time limits contradict each other.
    #[error(
        "connecting may take {connect:?} and everything {total:?}: the first must be more than nothing and less than the second"
    )]
    Timeouts {
        /// For connecting.
        connect: Duration,
        /// For everything.
        total: Duration,
    },
    /// A header cannot be written.
    #[error("the header {name:?} or its value cannot be written: visible ASCII, and no line ends")]
    Header {
        /// Its name.
        name: String,
    },
    /// A header is not the caller's to set here.
    #[error("the header {name} is set by the connection, by the signature or by a setting of its own")]
    ReservedHeader {
        /// Its name.
        name: String,
    },
    /// The roots of trust cannot be loaded.
    #[error("the roots of trust cannot be used ({0}): install the system's certificates, or correct the PEM text")]
    Tls(String),
    /// The client itself.
    #[error("the HTTP client cannot be built: {0}")]
    Client(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(builder: Builder) -> BuildError {
        builder.build().map(|_| ()).expect_err("no sender")
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        let open = || HttpSender::builder().allow_unsigned(true);
        assert_eq!(refused(HttpSender::builder()), BuildError::NothingCanBeSent);
        assert!(matches!(refused(open().connect_timeout(Duration::from_secs(60))), BuildError::Timeouts { .. }));
        assert!(matches!(refused(open().connect_timeout(Duration::ZERO)), BuildError::Timeouts { .. }));
        assert!(matches!(refused(open().user_agent("a\nb")), BuildError::Header { .. }));
        assert!(matches!(refused(open().header("a b", "c")), BuildError::Header { .. }));
        for reserved in ["Host", "Signature", "Date", "User-Agent", "Content-Length", "Idempotency-Key"] {
            assert!(matches!(refused(open().header(reserved, "x")), BuildError::ReservedHeader { .. }), "{reserved}");
        }
        assert!(matches!(refused(open().idempotency_header(Some("date"))), BuildError::ReservedHeader { .. }));
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----";
        assert!(matches!(refused(open().tls_roots_pem(broken)), BuildError::Tls(_)));
    }
}
