//! One table from the result of a POST to the verdict of its settle, and to what it says of its destination.
//!
//! | result | verdict | its circuit |
//! |---|---|---|
//! | 2xx | delivered | reached |
//! | a configured permanent code (404, 410) | dropped, permanent | reached, also if it is a 5xx |
//! | 429 with Retry-After | retry after that, the destination is paced | reached |
//! | 503 with Retry-After | retry after that, the destination is paced | failed |
//! | every other 5xx | retry after backoff | failed |
//! | every other status (redirects are not followed) | retry after backoff | reached |
//! | not sent (name, connection, TLS) | retry after backoff | failed |
//! | not sent (refused: the URL or its addresses are none to send to) | retry after backoff: names and rules change | nothing |
//! | not sent (unsigned: its key is missing, or cannot be read) | retry after backoff: keys can be put back | nothing |
//! | unknown (timeout, reset, lost answer) | retry after backoff; it may arrive twice | failed |

use restante_core_derive::VisitAtoms;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::plan::{Reach, Verdict};
use crate::record::{DropReason, WaitReason};

/// How an attempt to deliver ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
#[serde(rename_all = "kebab-case")]
pub enum PostResult {
    /// The destination answered.
    Status {
        /// HTTP status code.
        code: u16,
        /// Its Retry-After in milliseconds, 0 when that lies in the past.
        retry_after_ms: Option<u64>,
    },
    /// Nothing reached the destination, for certain.
    NotSent(NotSent),
    /// It may have reached the destination.
    Unknown,
}

/// Why nothing reached the destination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
#[serde(rename_all = "kebab-case")]
pub enum NotSent {
    /// The name did not resolve.
    Dns,
    /// No connection.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// The sender does not send there: no usable URL, or an address that is not for the public.
    Refused,
    /// The request could not be signed as its entry asks, and is never sent unsigned instead.
    Unsigned,
}

/// The verdict on a result.
pub fn classify(config: &Config, result: PostResult) -> Verdict {
    match result {
        PostResult::Status { code: 200..=299, .. } => Verdict::Delivered,
        PostResult::Status { code, .. } if config.permanent_codes.contains(&code) => Verdict::Drop(DropReason::Permanent(code)),
        PostResult::Status { code: 429 | 503, retry_after_ms: Some(pause_ms) } => {
            Verdict::Retry { wait: WaitReason::RateLimited, retry_after_ms: Some(pause_ms) }
        }
        PostResult::Status { .. } | PostResult::NotSent(_) => Verdict::Retry { wait: WaitReason::Backoff, retry_after_ms: None },
        PostResult::Unknown => Verdict::Retry { wait: WaitReason::Unknown, retry_after_ms: None },
    }
}

/// What a result says of its destination.
pub fn reach(config: &Config, result: PostResult) -> Reach {
    match result {
        PostResult::Status { code, .. } if config.permanent_codes.contains(&code) => Reach::Reached,
        PostResult::Status { code: 500.., .. } => Reach::Failed,
        PostResult::Status { .. } => Reach::Reached,
        PostResult::NotSent(NotSent::Dns | NotSent::Connect | NotSent::Tls) | PostResult::Unknown => Reach::Failed,
        PostResult::NotSent(NotSent::Refused | NotSent::Unsigned) => Reach::Untried,
    }
}
