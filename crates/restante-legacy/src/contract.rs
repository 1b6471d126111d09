//! What a migration needs of an old queue.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use restante_core::atoms::Bytes;
use restante_core::machine::QueueFailure;
use restante_kv::BoxFuture;
use thiserror::Error;

/// A message to put in.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Draft {
    /// Its id: while one of this id is in the queue, another is not put in.
    pub id: Arc<str>,
    /// What it says; opaque to the queue.
    pub body: Bytes,
    /// When it may be received first, from now.
    pub delay: Duration,
    /// Messages of one key are received one at a time, in order.
    pub order_key: Option<Arc<str>>,
}

impl Draft {
    /// A message that may be received at once, in no order.
    pub fn new(id: impl Into<Arc<str>>, body: impl Into<Bytes>) -> Self {
        Self { id: id.into(), body: body.into(), delay: Duration::ZERO, order_key: None }
    }

    /// The message, later.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The message, in the order of this key.
    #[must_use]
    pub fn order_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.order_key = Some(key.into());
        self
    }
}

/// Proof of having received a message, until somebody else receives it. Opaque; the queue's own words.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Receipt(Arc<str>);

impl Receipt {
    /// From the queue's own words.
    pub fn new(words: impl Into<Arc<str>>) -> Self {
        Self(words.into())
    }

    /// The queue's own words.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A message that was handed out.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Received {
    /// To complete it or to put it back.
    pub receipt: Receipt,
    /// What it says.
    pub body: Bytes,
    /// How often it was handed out since it was put in or put back, this time included; at least 1.
    pub received_count: u32,
}

/// How much lies in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct QueueDepth {
    /// Messages that may be received now, or once an earlier one of their order key is gone.
    pub ready: u64,
    /// Messages whose time has not come.
    pub delayed: u64,
    /// Messages that are handed out and kept from others.
    pub received: u64,
}

impl QueueDepth {
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Why an operation of a queue did not succeed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum QueueError {
    /// Nothing happened; try again later.
    #[error("the legacy queue is unavailable, nothing happened: {0}")]
    Unavailable(String),
    /// It may have happened, and may still.
    #[error("it is unknown whether the legacy queue did it: {0}")]
    Ambiguous(String),
    /// The receipt is not the current one: somebody else has received the message since, or it is gone. Nothing happened.
    #[error("the receipt is outdated: another listener has the message, or it is gone")]
    Outdated,
}

impl QueueError {
    /// What the machines are told of it.
    pub fn failure(&self) -> QueueFailure {
        match self {
            Self::Unavailable(_) => QueueFailure::Unavailable,
            Self::Ambiguous(_) => QueueFailure::Unknown,
            Self::Outdated => QueueFailure::Outdated,
        }
    }
}

/// An old queue; see the crate's documentation for its contract. A dropped future may have happened.
pub trait LegacyQueue: fmt::Debug + Send + Sync + 'static {
    /// Puts messages in, all or none.
    ///
    /// # Errors
    /// [`QueueError::Unavailable`], [`QueueError::Ambiguous`].
    fn enqueue(&self, drafts: Vec<Draft>) -> BoxFuture<'_, Result<(), QueueError>>;

    /// Hands out one message, if there is one now, and keeps it from others for `visible_after`.
    ///
    /// # Errors
    /// [`QueueError::Unavailable`], [`QueueError::Ambiguous`]: then a message may be kept from others for that time.
    fn receive(&self, visible_after: Duration) -> BoxFuture<'_, Result<Option<Received>, QueueError>>;

    /// Removes a message for good.
    ///
    /// # Errors
    /// See [`QueueError`].
    fn complete(&self, receipt: Receipt) -> BoxFuture<'_, Result<(), QueueError>>;

    /// Gives a message back, behind the others, saying `body` from now on; it may be received again after `delay`. One step:
    /// the message is in the queue all the time.
    ///
    /// # Errors
    /// See [`QueueError`].
    fn put_back(&self, receipt: Receipt, delay: Duration, body: Bytes) -> BoxFuture<'_, Result<(), QueueError>>;

    /// How much lies in it, at one instant.
    ///
    /// # Errors
    /// [`QueueError::Unavailable`].
    fn depth(&self) -> BoxFuture<'_, Result<QueueDepth, QueueError>>;
}

/// Waits for a future on this thread: any executor will do for these queues, and this one is enough for tests and examples.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => thread::park(),
        }
    }
}
