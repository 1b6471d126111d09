//! An old queue beside the backlog: handing over what a closed intake refuses, and working off what is in it.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use restante_core::atoms::Bytes;
use restante_core::machine::{
    HandOver, HandOverError, HandOverStep, LegacyEnd, LegacyIo, LegacyReply, LegacyRunReport, LegacySettings, LegacyStep,
    Listener, OldMessage, OtherEnd, PostResult, SendError as Refusal, SendRequest, WorkId,
};
use restante_core::plan::Recipient;
use restante_kv::BoxFuture;
use restante_legacy::codec::{LegacyMessage, Malformed, OutboxMessage, decode};
use restante_legacy::{
    HandedOver, KeyError, Keyring, LegacyQueue, QueueError, Receipt, body_with_failures, deliveries_of, message_of, old_message,
};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::backlog::SendError;
use crate::message::recipient;
use crate::shared::{Shared, entropy, new_send, wall_clock};

/// An old queue, and how it is worked off.
#[derive(Clone, Debug)]
pub(crate) struct LegacySide {
    pub(crate) queue: Arc<dyn LegacyQueue>,
    pub(crate) settings: LegacySettings,
    pub(crate) keyring: Arc<dyn Keyring>,
}

/// The caller's old path: what a message of the old queue was handled by before.
pub trait OldPath: Send + Sync + 'static {
    /// One attempt to deliver. Neither retries nor puts anything back: what becomes of the message follows from the result.
    fn attempt(&self, message: OutboxMessage) -> BoxFuture<'_, PostResult>;

    /// A message that is none of ours, `inbox` and `task` among them. Unless said otherwise, it comes again in a minute: for
    /// another process, which knows it. Cut off after `visible_ms`, when others may have it.
    fn other(&self, body: Bytes, why: NotOurs) -> BoxFuture<'_, OtherEnd> {
        let (_, _) = (body, why);
        Box::pin(std::future::ready(OtherEnd::Again { delay_ms: 60_000 }))
    }
}

impl<P: OldPath + ?Sized> OldPath for Arc<P> {
    fn attempt(&self, message: OutboxMessage) -> BoxFuture<'_, PostResult> {
        (**self).attempt(message)
    }
    fn other(&self, body: Bytes, why: NotOurs) -> BoxFuture<'_, OtherEnd> {
        (**self).other(body, why)
    }
}

/// Why a message is none of ours.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotOurs {
    /// It is of another kind.
    #[error("it is of the kind {0:?}")]
    Kind(String),
    /// It is a delivery to no inbox.
    #[error("its inbox is none: an http or https URL is needed")]
    NoInbox,
    /// It cannot be read.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// What a bounded run of a listener came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LegacyRun {
    /// What became of the messages that it received.
    pub report: LegacyReport,
    /// `false` exactly when the old queue had nothing to hand out while this run had nothing in hand, and it is known what became of
    /// all that it was handed. What lies there for later, or is in somebody else's hands, does not count: the queue's `depth` does.
    pub more: bool,
}

/// What became of the messages that a listener received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LegacyReport {
    /// Delivered on the old path.
    pub delivered: u64,
    /// Given up on the old path.
    pub given_up: u64,
    /// Owned by the backlog.
    pub adopted: u64,
    /// Expanded into deliveries of the old queue.
    pub expanded: u64,
    /// Handled by the caller's own handler.
    pub others: u64,
    /// In the old queue again, to be tried later.
    pub put_back: u64,
    /// Left to whoever receives it next, if it is there still: the old queue did not say that it was completed or put back.
    pub left: u64,
    /// Still under way at the deadline: they come again, to whoever listens then.
    pub abandoned: u64,
    /// Whether the deadline ended it.
    pub timed_out: bool,
}

impl LegacyReport {
    fn count(&mut self, end: &LegacyEnd) {
        *match end {
            LegacyEnd::Delivered => &mut self.delivered,
            LegacyEnd::GivenUp(_) => &mut self.given_up,
            LegacyEnd::Adopted { .. } => &mut self.adopted,
            LegacyEnd::Expanded => &mut self.expanded,
            LegacyEnd::Other => &mut self.others,
            LegacyEnd::Retried
            | LegacyEnd::Held
            | LegacyEnd::IntakeClosed
            | LegacyEnd::Unsealed
            | LegacyEnd::AdoptionUnknown
            | LegacyEnd::Yielded => &mut self.put_back,
            LegacyEnd::Left => &mut self.left,
        } += 1;
    }
}

fn recipient_of(inbox: &str) -> Option<Recipient> {
    recipient(&inbox.into()).ok()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl Shared {
    /// Hands a send over to the old queue, if `refusal` says that only a closed intake kept it out.
    pub(crate) async fn hand_over(
        self: &Arc<Self>,
        side: &LegacySide,
        refusal: &Refusal,
        request: &SendRequest,
    ) -> Option<Result<(), SendError>> {
        let (mut machine, mut step) = HandOver::after(refusal)?;
        let draft = match draft_of(side, request).await {
            Ok(draft) => draft,
            Err(why) => return Some(Err(SendError::NotTranslated { why })),
        };
        loop {
            step = match step {
                HandOverStep::Enqueue => {
                    let result = side.queue.enqueue(vec![draft.clone()]).await;
                    machine.enqueued(&self.env, result.as_ref().copied().map_err(QueueError::failure))
                }
                HandOverStep::Sleep(io) => {
                    self.execute(io, None).await;
                    machine.slept()
                }
                HandOverStep::Done(result) => {
                    let idempotency_key = Arc::clone(&request.idempotency_key);
                    return Some(result.map_err(|error| match error {
                        HandOverError::Refused => SendError::NotHandedOver,
                        HandOverError::Unknown => SendError::Unknown { idempotency_key },
                    }));
                }
            }
        }
    }
}

async fn draft_of(side: &LegacySide, request: &SendRequest) -> Result<restante_legacy::Draft, String> {
    let keys = side.keyring.open(&request.signing).await.map_err(|error| error.to_string())?;
    let send = HandedOver {
        idempotency_key: &request.idempotency_key,
        keys: &keys,
        base_url: side.keyring.base_url(),
        recipients: &request.recipients,
        order_key: request.order_key.as_ref(),
        payload: &request.payload,
        now_ms: wall_clock().as_ms(),
    };
    message_of(&send).map_err(|error| error.to_string())
}

/// A message in our hands.
struct InHand {
    receipt: Receipt,
    body: Bytes,
    message: Result<LegacyMessage, Malformed>,
}

impl InHand {
    fn what(&self) -> OldMessage {
        self.message.as_ref().map_or(OldMessage::Other, |message| old_message(message, &recipient_of))
    }

    fn why_not_ours(&self) -> NotOurs {
        match &self.message {
            Ok(LegacyMessage::Other { kind }) => NotOurs::Kind(kind.clone()),
            Ok(LegacyMessage::Outbox(_) | LegacyMessage::Fanout(_)) => NotOurs::NoInbox,
            Err(malformed) => NotOurs::Malformed(malformed.clone()),
        }
    }

    /// What it says from now on.
    fn body_with(&self, failure_count: Option<u32>) -> Bytes {
        let changed = failure_count.zip(self.message.as_ref().ok()).and_then(|(count, it)| body_with_failures(it, count));
        changed.unwrap_or_else(|| self.body.clone())
    }
}

type Action = BoxFuture<'static, (WorkId, LegacyReply, Option<InHand>)>;

/// A listener under way: executes what the machine asks for, side by side.
struct Listening {
    shared: Arc<Shared>,
    side: LegacySide,
    path: Arc<dyn OldPath>,
    listener: Listener,
    actions: FuturesUnordered<Action>,
    in_hand: BTreeMap<WorkId, Arc<InHand>>,
    /// Ends the listener's own wait.
    waiting: Option<oneshot::Sender<()>>,
    report: LegacyReport,
    finished: Option<LegacyRunReport>,
}

impl Listening {
    /// Takes at most `limit` messages, if there is a limit; serves otherwise.
    fn new(shared: Arc<Shared>, side: LegacySide, path: Arc<dyn OldPath>, limit: Option<u64>) -> Self {
        let slot = rand::random_range(0..shared.env.config.counter_slots.max(1));
        let (env, settings, local) = (Arc::clone(&shared.env), side.settings.clone(), shared.local());
        let (listener, step) = match limit {
            Some(limit) => Listener::once(env, settings, slot, limit, local),
            None => Listener::serve(env, settings, slot, local),
        };
        let mut listening = Self {
            shared,
            side,
            path,
            listener,
            actions: FuturesUnordered::new(),
            in_hand: BTreeMap::new(),
            waiting: None,
            report: LegacyReport::default(),
            finished: None,
        };
        listening.follow(step);
        listening
    }

    async fn run(&mut self, mut stop: watch::Receiver<bool>) -> LegacyRunReport {
        let mut is_stopping = false;
        loop {
            if let Some(finished) = self.finished {
                return finished;
            }
            tokio::select! {
                biased;
                Ok(_) = stop.wait_for(|stop| *stop), if !is_stopping => {
                    is_stopping = true;
                    let step = self.listener.stop();
                    self.follow(step);
                    let _woken = self.waiting.take().map(|waiting| waiting.send(()));
                }
                Some((work, reply, received)) = self.actions.next() => {
                    let step = self.listener.step(work, reply, self.shared.local());
                    if let (Some(id), Some(received)) = (step.received, received) {
                        self.in_hand.insert(id, Arc::new(received));
                    }
                    self.follow(step);
                }
            }
        }
    }

    fn follow(&mut self, step: LegacyStep) {
        self.shared.telemetry.observe(&self.shared, step.effects);
        for (work, end) in step.ended {
            let received = self.in_hand.remove(&work);
            let id = received.as_deref().and_then(|received| match &received.message {
                Ok(LegacyMessage::Outbox(outbox)) => Some(outbox.id().clone()),
                Ok(LegacyMessage::Fanout(fanout)) => Some(fanout.id().clone()),
                Ok(LegacyMessage::Other { .. }) | Err(_) => None,
            });
            tracing::debug!(message = id.as_deref(), ?end, "a message of the legacy queue");
            self.report.count(&end);
        }
        for (work, _, io) in step.actions {
            let action = self.action(work, io);
            self.actions.push(action);
        }
        self.finished = step.finished;
    }

    fn action(&mut self, work: WorkId, io: LegacyIo) -> Action {
        let (shared, queue) = (Arc::clone(&self.shared), Arc::clone(&self.side.queue));
        if let LegacyIo::Receive { visible_ms } = io {
            return Box::pin(async move {
                let received = queue.receive(ms(visible_ms)).await;
                let in_hand = received.map(|received| {
                    received.map(|it| InHand { receipt: it.receipt, message: decode(it.body.as_slice()), body: it.body })
                });
                match in_hand {
                    Ok(Some(in_hand)) => {
                        let message = (in_hand.what(), new_send());
                        (work, LegacyReply::Received(Ok(Some(message))), Some(in_hand))
                    }
                    Ok(None) => (work, LegacyReply::Received(Ok(None)), None),
                    Err(error) => {
                        tracing::warn!(%error, "the legacy queue does not hand anything out");
                        (work, LegacyReply::Received(Err(error.failure())), None)
                    }
                }
            });
        }
        if let LegacyIo::Store(io) = io {
            let woken = (work == WorkId::LISTENER).then(|| {
                let (waiting, woken) = oneshot::channel();
                self.waiting = Some(waiting);
                woken
            });
            return Box::pin(async move { (work, LegacyReply::Store(shared.execute(io, woken).await), None) });
        }
        let Some(message) = self.in_hand.get(&work).cloned() else {
            unreachable!("the machine asks for a message only from its receipt to its end");
        };
        let (side, path) = (self.side.clone(), Arc::clone(&self.path));
        Box::pin(async move { (work, act(&side, &*path, &message, io).await, None) })
    }
}

/// Executes one action for one message.
async fn act(side: &LegacySide, path: &dyn OldPath, message: &InHand, io: LegacyIo) -> LegacyReply {
    let LegacySide { queue, settings, keyring } = side;
    // Later the message is anybody's.
    let visible = ms(settings.visible_ms);
    let told = |result: Result<(), QueueError>| LegacyReply::Queue(result.map_err(|error| error.failure()));
    match (io, &message.message) {
        (LegacyIo::Attempt { timeout_ms }, Ok(LegacyMessage::Outbox(outbox))) => {
            let attempt = AssertUnwindSafe(path.attempt(outbox.clone())).catch_unwind();
            // What panicked or did not end in time may have sent.
            let result = match tokio::time::timeout(ms(timeout_ms), attempt).await {
                Ok(Ok(result)) => result,
                Ok(Err(_)) | Err(_) => PostResult::Unknown,
            };
            LegacyReply::Attempted { result, entropy: entropy() }
        }
        (LegacyIo::Seal, Ok(LegacyMessage::Outbox(outbox))) => {
            let late = |_| Err(KeyError("its keys were not sealed in time".into()));
            match tokio::time::timeout(visible, keyring.seal(outbox.keys())).await.unwrap_or_else(late) {
                Ok(sealed) => LegacyReply::Sealed(Some(sealed)),
                Err(error) => {
                    tracing::warn!(message = %outbox.id(), %error, "a message of the legacy queue cannot be adopted");
                    LegacyReply::Sealed(None)
                }
            }
        }
        (LegacyIo::Expand, Ok(LegacyMessage::Fanout(fanout))) => {
            told(queue.enqueue(deliveries_of(fanout, &recipient_of, wall_clock().as_ms())).await)
        }
        (LegacyIo::Complete, _) => told(queue.complete(message.receipt.clone()).await),
        (LegacyIo::PutBack { delay_ms, failure_count }, _) => {
            told(queue.put_back(message.receipt.clone(), ms(delay_ms), message.body_with(failure_count)).await)
        }
        (LegacyIo::Other, _) => {
            let why = message.why_not_ours();
            if let NotOurs::Malformed(error) = &why {
                tracing::warn!(%error, "a message of the legacy queue cannot be read");
            }
            let handled = AssertUnwindSafe(path.other(message.body.clone(), why)).catch_unwind();
            let again = OtherEnd::Again { delay_ms: 60_000 };
            LegacyReply::Other(tokio::time::timeout(visible, handled).await.map_or(again, |handled| handled.unwrap_or(again)))
        }
        (LegacyIo::Attempt { .. } | LegacyIo::Seal | LegacyIo::Expand | LegacyIo::Store(_) | LegacyIo::Receive { .. }, _) => {
            unreachable!("the machine asks of a message only what its kind can do")
        }
    }
}

/// Takes at most `limit` messages, and ends.
pub(crate) async fn run_once(shared: Arc<Shared>, side: LegacySide, path: Arc<dyn OldPath>, limit: u64) -> LegacyRun {
    let (_never, stop) = watch::channel(false);
    let mut listening = Listening::new(shared, side, path, Some(limit));
    let LegacyRunReport { more, .. } = listening.run(stop).await;
    LegacyRun { report: listening.report, more }
}

/// A listener of the old queue.
pub struct LegacyHandle {
    stop: watch::Sender<bool>,
    cut: watch::Sender<bool>,
    task: JoinHandle<LegacyReport>,
}

impl fmt::Debug for LegacyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LegacyHandle").finish_non_exhaustive()
    }
}

impl LegacyHandle {
    pub(crate) fn start(shared: Arc<Shared>, side: LegacySide, path: Arc<dyn OldPath>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (cut, mut cut_off) = watch::channel(false);
        let task = tokio::spawn(async move {
            let mut listening = Listening::new(shared, side, path, None);
            let is_finished = tokio::select! {
                _ = listening.run(stopped) => true,
                Ok(_) = cut_off.wait_for(|cut| *cut) => false,
            };
            let mut report = listening.report;
            if !is_finished {
                (report.abandoned, report.timed_out) = (listening.listener.under_way() as u64, true);
            }
            report
        });
        Self { stop, cut, task }
    }

    /// Receives nothing more, waits for the messages under way, at most until `deadline`, and reports what became of all. What is
    /// cut off comes again once the time is over for which it is kept from others.
    pub async fn shutdown(mut self, deadline: Duration) -> LegacyReport {
        self.stop.send_replace(true);
        let ended = match tokio::time::timeout(deadline, &mut self.task).await {
            Ok(ended) => ended,
            Err(_) => {
                self.cut.send_replace(true);
                self.task.await
            }
        };
        ended.unwrap_or_else(|error| {
            tracing::error!(%error, "a listener of the legacy queue ended by a panic");
            LegacyReport { timed_out: true, ..LegacyReport::default() }
        })
    }
}
