//! [`HttpSender`]: one call, one attempt.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use reqwest::{Client, Request, Response};
use restante_core::machine::{NotSent, Post, PostResult};
use restante_signing::{Outgoing, Signer};
use tokio::time::{Instant, timeout_at};
use tower_service::Service;
use tracing::{debug, warn};
use url::Url;

use crate::Builder;
use crate::guard::Guard;
use crate::outcome;
use crate::retry_after::retry_after_ms;

/// Sends deliveries over HTTP. Cheap to clone: clones share connections. See the [crate documentation](crate).
#[derive(Clone)]
pub struct HttpSender(pub(crate) Arc<Settings>);

/// What a sender was built with.
pub(crate) struct Settings {
    pub(crate) client: Client,
    pub(crate) guard: Arc<Guard>,
    pub(crate) signer: Option<Arc<dyn Signer>>,
    pub(crate) unsigned_allowed: bool,
    pub(crate) headers: HeaderMap,
    pub(crate) idempotency_header: Option<HeaderName>,
    pub(crate) total_timeout: Duration,
    pub(crate) response_bytes_max: u64,
    pub(crate) drain_time_max: Duration,
}

impl HttpSender {
    /// A builder with the default settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Makes one attempt. Dropping the future ends it: the request is not written any further and its connection is closed.
    pub async fn send(&self, post: Post) -> PostResult {
        let began = Instant::now();
        let limit = self.0.total_timeout.min(Duration::from_millis(post.timeout_ms));
        // A limit beyond what the clock can say is none.
        let deadline = began.checked_add(limit).unwrap_or_else(|| began + Duration::from_secs(86_400 * 365));
        let result = self.0.attempt(&post, deadline).await;
        let elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        debug!(entry = %post.entry, fence = post.fence.get(), host = %host_of(&post), ?result, elapsed_ms, "attempted");
        result
    }
}

impl Settings {
    async fn attempt(&self, post: &Post, deadline: Instant) -> PostResult {
        let url = match self.guard.target(&post.inbox) {
            Ok(url) => url,
            Err(why) => return not_sent(post, NotSent::Refused, &why),
        };
        let headers = match timeout_at(deadline, self.headers(post, &url)).await {
            Ok(Ok(headers)) => headers,
            Ok(Err(why)) => return not_sent(post, NotSent::Unsigned, &why),
            Err(_) => return not_sent(post, NotSent::Unsigned, &"the time for the request was over before it was signed"),
        };
        let mut request = Request::new(Method::POST, url);
        *request.headers_mut() = headers;
        *request.body_mut() = Some(post.payload.as_slice().to_vec().into());
        let response = match timeout_at(deadline, self.client.execute(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(failure)) => {
                let result = outcome::of_failure(&failure);
                let why = outcome::told(failure);
                debug!(entry = %post.entry, fence = post.fence.get(), host = %host_of(post), why, "no answer");
                return result;
            }
            // Whether it was still connecting is not known here. (A connection that is too slow has its own, shorter limit.)
            Err(_) => return PostResult::Unknown,
        };
        let retry_after_ms = retry_after_ms(response.headers(), SystemTime::now());
        let result = PostResult::Status { code: response.status().as_u16(), retry_after_ms };
        // The status is the answer. The rest is read only so that the connection can be used again, and cannot change it.
        let drain_by = deadline.min(Instant::now() + self.drain_time_max);
        let _ = timeout_at(drain_by, self.drain(response)).await;
        result
    }

    /// All headers of the request, signed as its entry asks.
    async fn headers(&self, post: &Post, url: &Url) -> Result<HeaderMap, Box<dyn std::error::Error + Send + Sync>> {
        let mut headers = self.headers.clone();
        if let Some(name) = &self.idempotency_header {
            headers.insert(name.clone(), HeaderValue::from_str(&post.entry.to_string())?);
        }
        if post.signing.expose().is_empty() {
            if self.unsigned_allowed {
                return Ok(headers);
            }
            return Err("its entry has no signing reference, and unsigned requests are not allowed".into());
        }
        let signer = self.signer.as_ref().ok_or("its entry has a signing reference, and the sender no signer")?;
        let request =
            Outgoing { method: &Method::POST, url, headers: &headers, body: post.payload.as_slice(), at: SystemTime::now() };
        let signed = signer.sign(request, &post.signing).await?;
        // Each replaces what is there under its name.
        headers.extend(signed);
        Ok(headers)
    }

    /// Reads the body as far as it is worth it.
    async fn drain(&self, mut response: Response) {
        let mut left = self.response_bytes_max;
        while let Ok(Some(chunk)) = response.chunk().await {
            match left.checked_sub(chunk.len() as u64) {
                Some(rest) => left = rest,
                // Dropping the response closes the connection, or resets the stream.
                None => return,
            }
        }
    }
}

fn not_sent(post: &Post, why: NotSent, told: &dyn fmt::Display) -> PostResult {
    warn!(entry = %post.entry, fence = post.fence.get(), host = %host_of(post), why = %told, "not sent: {why:?}");
    PostResult::NotSent(why)
}

/// Host and port: all of a URL that a log needs to know.
fn host_of(post: &Post) -> String {
    let url = Url::parse(&post.inbox).ok();
    let host = url.as_ref().and_then(|url| Some((url.host_str()?, url.port())));
    host.map_or_else(|| "?".to_owned(), |(host, port)| port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

impl Service<Post> for HttpSender {
    type Response = PostResult;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<PostResult, Infallible>> + Send>>;

    /// Always ready: how many attempts are made at once is for the caller to limit.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, post: Post) -> Self::Future {
        let sender = self.clone();
        Box::pin(async move { Ok(sender.send(post).await) })
    }
}

impl fmt::Debug for HttpSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSender")
            .field("guard", &self.0.guard)
            .field("signs", &self.0.signer.is_some())
            .finish_non_exhaustive()
    }
}
