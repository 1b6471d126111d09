//! An old queue beside the backlog: working off what is in it, and putting into it what a closed intake refuses.
//!
//! What the queue holds is opaque here: whoever executes a [`LegacyIo`] takes the messages apart and keeps their receipts. The
//! machines decide what becomes of a message, and when it may leave the old queue: delivered, given up by the old policy,
//! expanded, or owned by the backlog.

mod hand_over;
mod listener;
mod work;

pub use hand_over::{HandOver, HandOverError, HandOverStep};
pub use listener::{LegacyRunReport, LegacyStep, Listener, WorkId};
pub use work::LegacyEnd;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Io, PostResult, Reply};
use crate::atoms::{Bytes, Sealed, SendId};
use crate::keys::stable_hash;
use crate::plan::{Accept, Recipient, request_digest};

/// What becomes of an old message whose destination is held.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LegacyMode {
    /// It stays in the old queue, and is received again later.
    Drain,
    /// The backlog takes it over, before it leaves the old queue.
    AdoptOnHold,
}

/// The retry policy of the old path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OldPolicy {
    /// Delay after the first failure, in milliseconds; doubles with every failure, times a jitter in [1, 2).
    pub initial_ms: u64,
    /// Longest delay, jitter included, in milliseconds.
    pub max_ms: u64,
    /// How many failures are followed by another attempt: 10 means 11 attempts in all.
    pub retries_max: u32,
}

impl Default for OldPolicy {
    fn default() -> Self {
        Self { initial_ms: 1_000, max_ms: 12 * 3_600_000, retries_max: 10 }
    }
}

impl OldPolicy {
    /// Delay before the next attempt when `failure_count` attempts failed before this one did too; `None` after the last.
    /// A Retry-After overrides the delay, and not the end. Saturates.
    pub fn delay_ms(&self, failure_count: u32, retry_after_ms: Option<u64>, entropy: u64) -> Option<u64> {
        if failure_count >= self.retries_max {
            return None;
        }
        let base = u128::from(self.initial_ms) << failure_count.min(63);
        let jittered = base + ((base.min(u64::MAX.into()) * u128::from(entropy)) >> 64);
        let own_ms = u64::try_from(jittered).unwrap_or(u64::MAX).min(self.max_ms);
        Some(retry_after_ms.unwrap_or(own_ms))
    }
}

/// Settings of a listener.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LegacySettings {
    /// What becomes of a message whose destination is held.
    pub mode: LegacyMode,
    /// How many messages are under way at most; at least 1.
    pub concurrency: usize,
    /// How long a received message is kept from other listeners, in milliseconds. More than an attempt takes
    /// (`request_timeout_ms`), its margin (`lease_margin_ms`), and what comes before it.
    pub visible_ms: u64,
    /// How long to wait before an empty or unavailable queue is asked again, in milliseconds.
    pub poll_ms: u64,
    /// The retry policy of the old path.
    pub policy: OldPolicy,
}

impl LegacySettings {
    /// Settings with the documented defaults: ten messages at a time, a minute each, every five seconds.
    pub fn new(mode: LegacyMode) -> Self {
        Self { mode, concurrency: 10, visible_ms: 60_000, poll_ms: 5_000, policy: OldPolicy::default() }
    }
}

/// A delivery of the old queue.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OldDelivery {
    /// The id that the old side gave it; stays the same however often it is tried.
    pub id: Arc<str>,
    /// Where it goes.
    pub to: Recipient,
    /// Its order key, without what the old path appends to it.
    pub order_key: Option<Arc<str>>,
    /// Attempts that did not deliver it.
    pub failure_count: u32,
    /// What is POSTed.
    pub payload: Bytes,
}

impl OldDelivery {
    /// The idempotency key under which the backlog adopts it: the same whenever it is received, another one for whatever differs
    /// in id, inbox, payload or order key.
    pub fn idempotency_key(&self) -> Arc<str> {
        let digest =
            request_digest(Accept::digest_payload(&self.payload), self.order_key.as_deref(), std::slice::from_ref(&self.to));
        let id = stable_hash(&[self.id.as_bytes()]);
        format!("legacy/{id:016x}{digest:016x}").into()
    }
}

/// What a message of the old queue is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum OldMessage {
    /// A delivery to one inbox.
    Delivery(Box<OldDelivery>),
    /// A send to many inboxes, to be expanded into deliveries of the same queue.
    Fanout,
    /// None of ours, or unreadable: for the caller's own handler.
    Other,
}

/// Something to execute for one message, or for the listener. Each is answered by a [`LegacyReply`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LegacyIo {
    /// An operation of the backlog's store, or a wait; answered by [`LegacyReply::Store`].
    Store(Io),
    /// Receive one message and keep it from others for `visible_ms`; answered by [`LegacyReply::Received`].
    Receive {
        /// Milliseconds.
        visible_ms: u64,
    },
    /// One attempt on the old path; answered by [`LegacyReply::Attempted`].
    Attempt {
        /// How long it may take.
        timeout_ms: u64,
    },
    /// Let the caller's own handler have it; answered by [`LegacyReply::Other`].
    Other,
    /// Seal the message's keys for the backlog's sender; answered by [`LegacyReply::Sealed`].
    Seal,
    /// Enqueue the deliveries of the fanout, all or none, under ids that follow from it; answered by [`LegacyReply::Queue`].
    Expand,
    /// Take the message off the old queue; answered by [`LegacyReply::Queue`].
    Complete,
    /// Put the message back; answered by [`LegacyReply::Queue`].
    PutBack {
        /// When it may be received again, in milliseconds from now.
        delay_ms: u64,
        /// The number of failed attempts that it says from now on; `None` leaves it as it is.
        failure_count: Option<u32>,
    },
}

/// What came back.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LegacyReply {
    /// Of the store, or the end of a wait.
    Store(Reply),
    /// A message, with an id that no send has had, for its adoption; `None` if there is none now.
    Received(Result<Option<(OldMessage, SendId)>, QueueFailure>),
    /// How an attempt ended.
    Attempted {
        /// Its result.
        result: PostResult,
        /// 64 random bits.
        entropy: u64,
    },
    /// What the caller's own handler made of it.
    Other(OtherEnd),
    /// What the backlog's sender needs to sign; `None` if its keys cannot be used.
    Sealed(Option<Sealed>),
    /// How an operation of the old queue ended.
    Queue(Result<(), QueueFailure>),
}

/// What the caller's own handler made of a message that is none of ours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OtherEnd {
    /// It is done with.
    Done,
    /// It comes again, after so many milliseconds.
    Again {
        /// Milliseconds.
        delay_ms: u64,
    },
}

/// Why an operation of the old queue did not succeed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
pub enum QueueFailure {
    /// Nothing happened.
    #[error("the legacy queue refused: nothing happened, try again later")]
    Unavailable,
    /// It may have happened.
    #[error("it is unknown whether the legacy queue did it")]
    Unknown,
    /// The message was received by somebody else since, or is gone: nothing happened.
    #[error("the receipt is outdated: another listener has the message, or it is gone")]
    Outdated,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_policy_is_eleven_attempts_doubling_jittered_and_capped() {
        let policy = OldPolicy::default();
        assert_eq!(policy.delay_ms(0, None, 0), Some(1_000));
        assert_eq!(policy.delay_ms(0, None, u64::MAX), Some(1_999));
        assert_eq!(policy.delay_ms(9, None, 0), Some(512_000));
        assert_eq!(policy.delay_ms(10, None, 0), None, "ten failures before this one: eleven attempts");
        assert_eq!(policy.delay_ms(10, Some(5), 0), None, "a Retry-After does not buy another attempt");
        assert_eq!(policy.delay_ms(3, Some(0), 0), Some(0));
        let patient = OldPolicy { retries_max: u32::MAX, ..policy };
        assert_eq!(patient.delay_ms(63, None, u64::MAX), Some(policy.max_ms));
        assert_eq!(patient.delay_ms(u32::MAX - 1, None, u64::MAX), Some(policy.max_ms));
    }
}
