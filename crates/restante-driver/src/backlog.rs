//! The backlog's handle.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;
use restante_core::atoms::{EntryId, SendId};
use restante_core::machine::{
    DeadLetterPage, DestinationPage, DestinationRow, DoctorReport, Failure, InspectPage, InspectRow, IntentPage, PostResult,
    QuarantinePage, RunReport, SendRequest, dead_letter_page, dead_letter_range, destination_keys, destination_page,
    destination_range, destinations_read, inspect_page, inspect_range, intent_page, intent_range, quarantine_page,
    quarantine_range,
};
use restante_core::plan::{Depth, DepthReport, DropQuarantined, HoldNotice, Rejection, Revive, SetHold, SetIntake};
use restante_core::{Command, Config, Env, Outcome, machine};
use restante_kv::{AtomicKv, Key, StoreError, StoreTime};
use tokio::sync::watch;

use crate::builder::Builder;
use crate::handle::WorkerHandle;
use crate::legacy::{self, LegacyHandle, LegacyRun, OldPath};
use crate::message::{InvalidInbox, Message, recipient};
use crate::report::RunOutcome;
use crate::sender::Sender;
use crate::shared::{Shared, new_send, wall_clock};
use crate::worker::Running;

/// A delivery backlog over one store. Cheap to clone; clones are one backlog.
///
/// - **Sends**: [`send`](Self::send), [`send_many`](Self::send_many), and [`immediate`](Self::immediate), which owns nothing.
/// - **Works**: [`run_once`](Self::run_once) for cron, [`start`](Self::start) for good; [`work_off_once`](Self::work_off_once) and
///   [`work_off`](Self::work_off) do the same for an old queue.
/// - **Looks**: [`depth`](Self::depth), [`drained`](Self::drained), [`inspect`](Self::inspect), [`destinations_of`](Self::destinations_of),
///   [`intents`](Self::intents),
///   [`destinations`](Self::destinations), [`quarantined`](Self::quarantined), [`dead_letters`](Self::dead_letters),
///   [`doctor`](Self::doctor).
/// - **Operates**: [`set_intake`](Self::set_intake), [`set_hold`](Self::set_hold), [`release_hold`](Self::release_hold),
///   [`revive`](Self::revive), [`drop_quarantined`](Self::drop_quarantined).
#[derive(Clone)]
pub struct Backlog {
    shared: Arc<Shared>,
}

/// What a send came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// Its id; an earlier request's when `duplicate`. The legacy queue knows a send by its idempotency key instead.
    pub send: SendId,
    /// Whether an earlier request under the same idempotency key was accepted already.
    pub duplicate: bool,
    /// Who owns it now.
    pub owner: Owner,
}

/// Who owns a send.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Owner {
    /// The backlog: it is delivered or visibly dropped.
    Backlog,
    /// The legacy queue, because intake is closed: what it promises is all that is promised.
    LegacyQueue,
}

/// There is no legacy queue to work off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the backlog was built without a legacy queue: give the builder one")]
pub struct NoLegacyQueue;

/// Why a send was not accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendError {
    /// A recipient is none; nothing was accepted.
    #[error(transparent)]
    InvalidInbox(#[from] InvalidInbox),
    /// Intake is closed; nothing was accepted.
    #[error("intake is closed: send to the legacy queue, or open intake again")]
    IntakeClosed,
    /// Nothing was accepted.
    #[error("the send was not accepted: {0}")]
    NotAccepted(Failure),
    /// Intake is closed, and the legacy queue refused: nobody owns the send.
    #[error("intake is closed and the legacy queue refused the message, nobody owns it: send again later")]
    NotHandedOver,
    /// Intake is closed, and no message of the legacy queue can stand for the send: nobody owns it.
    #[error("intake is closed and the legacy queue cannot hold this send, nobody owns it: {why}")]
    NotTranslated {
        /// Why.
        why: String,
    },
    /// It may have been accepted, or handed over to the legacy queue. Repeat the same message under the same idempotency key to find out.
    #[error("it is unknown whether the send was accepted: repeat it under the idempotency key {idempotency_key:?}")]
    Unknown {
        /// The key it was sent under.
        idempotency_key: Arc<str>,
    },
}

impl Backlog {
    /// Options for a backlog over `store`, whose attempts `sender` executes.
    pub fn builder(store: Arc<dyn AtomicKv>, config: Config, sender: impl Sender) -> Builder {
        Builder::new(store, config, sender)
    }

    pub(crate) fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// The settings and the key layout.
    pub fn env(&self) -> &Env {
        &self.shared.env
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn AtomicKv> {
        &self.shared.store
    }

    // Sends.

    /// Hands a message over. Returns when the store owns it, durably; then it is delivered or visibly dropped, whatever
    /// happens to this process. While intake is closed it goes to the legacy queue, if there is one. Dropping the future before that leaves it unknown whether it was accepted.
    ///
    /// # Errors
    /// See [`SendError`]. There is no hidden direct delivery.
    pub async fn send(&self, message: Message) -> Result<Accepted, SendError> {
        let recipients = message.recipients()?;
        let fanout = message.fanout;
        let (payload, idempotency_key, order_key, signing) = message.into_parts();
        let send = new_send();
        let idempotency_key = idempotency_key.unwrap_or_else(|| send.to_string().into());
        let request =
            SendRequest { send, idempotency_key: Arc::clone(&idempotency_key), recipients, order_key, payload, signing, fanout };
        let handed_over = self.shared.legacy.as_ref().map(|side| (side, request.clone()));
        let result = self.shared.accept(request).await;
        if let (Err(refusal), Some((side, request))) = (&result, handed_over)
            && let Some(result) = self.shared.hand_over(side, refusal, &request).await
        {
            return result.map(|()| Accepted { send, duplicate: false, owner: Owner::LegacyQueue });
        }
        match result {
            Ok((send, duplicate)) => Ok(Accepted { send, duplicate, owner: Owner::Backlog }),
            Err(machine::SendError::Unknown) => Err(SendError::Unknown { idempotency_key }),
            Err(machine::SendError::NotAccepted(Failure::Rejected(Rejection::IntakeClosed))) => Err(SendError::IntakeClosed),
            Err(machine::SendError::NotAccepted(failure)) => Err(SendError::NotAccepted(failure)),
        }
    }

    /// [`send`](Self::send) for many messages, side by side. Each is accepted or not by itself; answers stand in the order
    /// of the messages. Messages of one order key are accepted in no particular order among themselves: await one before
    /// sending the next where that matters.
    pub async fn send_many(&self, messages: Vec<Message>) -> Vec<Result<Accepted, SendError>> {
        join_all(messages.into_iter().map(|message| self.send(message))).await
    }

    /// One attempt to deliver to each inbox, now and directly: nothing is owned, nothing is tried again, the store is not
    /// touched. Answers stand in the order of the inboxes.
    ///
    /// # Errors
    /// [`InvalidInbox`]; then nothing was sent.
    pub async fn immediate(&self, message: Message) -> Result<Vec<PostResult>, InvalidInbox> {
        let recipients = message.recipients()?;
        let (payload, _, _, signing) = message.into_parts();
        let send = new_send();
        let attempts = recipients.into_iter().enumerate().map(|(index, recipient)| {
            let post = self.shared.direct_post(send, index, recipient, payload.clone(), signing.clone());
            self.shared.attempt(post)
        });
        Ok(join_all(attempts).await)
    }

    // Works.

    /// Delivers what is due, at most `limit` deliveries, and sweeps if a sweep is due: what cron calls. `more` is false
    /// exactly when it is proved that nothing is due; `next_at` keeps the caller from spinning.
    pub async fn run_once(&self, limit: u64) -> RunReport {
        self.run_once_telling(limit).await.report
    }

    /// [`run_once`](Self::run_once), and what the store had against it: for whoever has to tell a store that takes nothing from one
    /// that has more.
    pub async fn run_once_telling(&self, limit: u64) -> RunOutcome {
        let (_never, stop) = watch::channel(false);
        let mut running = Running::once(Arc::clone(&self.shared), limit);
        let report = running.run(stop).await;
        RunOutcome { report, refused: running.refused() }
    }

    /// Starts a worker on the current tokio runtime: it delivers and sweeps until it is shut down. Dropping the handle leaves
    /// it running.
    pub fn start(&self) -> WorkerHandle {
        WorkerHandle::start(Arc::clone(&self.shared))
    }

    /// Starts to work the legacy queue off, on the current tokio runtime, until it is shut down. Dropping the handle leaves it
    /// running.
    ///
    /// # Errors
    /// [`NoLegacyQueue`].
    pub fn work_off(&self, path: impl OldPath) -> Result<LegacyHandle, NoLegacyQueue> {
        let side = self.shared.legacy.clone().ok_or(NoLegacyQueue)?;
        Ok(LegacyHandle::start(Arc::clone(&self.shared), side, Arc::new(path)))
    }

    /// Works at most `limit` messages of the legacy queue off, as long as it hands some out: what cron calls. A future that is
    /// dropped leaves what it had in hand to whoever receives it when its time is over.
    ///
    /// # Errors
    /// [`NoLegacyQueue`].
    pub async fn work_off_once(&self, path: impl OldPath, limit: u64) -> Result<LegacyRun, NoLegacyQueue> {
        let side = self.shared.legacy.clone().ok_or(NoLegacyQueue)?;
        Ok(legacy::run_once(Arc::clone(&self.shared), side, Arc::new(path), limit).await)
    }

    // Looks.

    /// What the backlog owns, at one snapshot; the cost does not grow with the number of entries.
    ///
    /// # Errors
    /// [`Failure`] of the store.
    pub async fn depth(&self) -> Result<DepthReport, Failure> {
        match self.shared.command(Command::Depth(Depth {})).await? {
            Outcome::Depth(report) => {
                self.shared.telemetry.depth(&report);
                Ok(report)
            }
            other => unreachable!("depth is answered by a depth, not by {other:?}"),
        }
    }

    /// One page of at most `limit` entries, from `next` of an earlier page or from the beginning. No payload and no signing
    /// reference is in it.
    ///
    /// Pages follow one another in the order of ids, each at an instant of its own, while everybody goes on working. An entry that
    /// is there from before the first page until after the last is in exactly one page, as it was at that page's instant; no entry
    /// is in two. One that comes or goes in between is in one page or in none. ([`EntryId`]s never come back: a revived entry is
    /// the one that was put aside, and is absent meanwhile.)
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn inspect(&self, next: Option<Key>, limit: usize) -> Result<InspectPage, StoreError> {
        let page = self.shared.store.scan(inspect_range(&self.shared.env, next), limit).await?;
        Ok(inspect_page(&self.shared.env, &page))
    }

    /// What is known of the destinations of these entries, by name: a hold, a pause or a circuit there says why they wait. It is read
    /// after the page, at an instant of its own.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn destinations_of(&self, rows: &[InspectRow]) -> Result<BTreeMap<Arc<str>, DestinationRow>, StoreError> {
        let (store, env) = (&self.shared.store, &self.shared.env);
        let mut known = BTreeMap::new();
        for keys in destination_keys(env, rows, store.limits().get_keys_max) {
            let snapshot = store.get_many(keys.clone()).await?;
            let at = snapshot.at.unwrap_or_else(wall_clock);
            let rows = destinations_read(env, &keys, &snapshot.values, at);
            known.extend(rows.into_iter().map(|row| (Arc::clone(&row.destination), row)));
        }
        Ok(known)
    }

    /// One page of at most `limit` intents: sends whose recipients are not all deliveries yet. From `next` of an earlier page or
    /// from the beginning.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn intents(&self, next: Option<Key>, limit: usize) -> Result<IntentPage, StoreError> {
        let page = self.shared.store.scan(intent_range(&self.shared.env, next), limit).await?;
        Ok(intent_page(&self.shared.env, &page))
    }

    /// Whether intake is closed and nothing is left to expand or deliver, at one snapshot.
    ///
    /// # Errors
    /// [`Failure`] of the store.
    pub async fn drained(&self) -> Result<bool, Failure> {
        Ok(self.depth().await?.is_drained())
    }

    /// One page of at most `limit` quarantined records, from `next` of an earlier page or from the beginning.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn quarantined(&self, next: Option<Key>, limit: usize) -> Result<QuarantinePage, StoreError> {
        let page = self.shared.store.scan(quarantine_range(&self.shared.env, next), limit).await?;
        Ok(quarantine_page(&self.shared.env, &page))
    }

    /// One page of at most `limit` traces of what was given up and is not forgotten yet, from `next` of an earlier page or from the
    /// beginning: intents first, then deliveries.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn dead_letters(&self, next: Option<Key>, limit: usize) -> Result<DeadLetterPage, StoreError> {
        let page = self.shared.store.scan(dead_letter_range(&self.shared.env, next), limit).await?;
        Ok(dead_letter_page(&self.shared.env, &page))
    }

    /// One page of at most `limit` destinations of which something is known: paced, held, or with a circuit that counts or is not
    /// closed. From `next` of an earlier page or from the beginning.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn destinations(&self, next: Option<Key>, limit: usize) -> Result<DestinationPage, StoreError> {
        let page = self.shared.store.scan(destination_range(&self.shared.env, next), limit).await?;
        let at = page.at.unwrap_or_else(wall_clock);
        Ok(destination_page(&self.shared.env, &page, at))
    }

    /// Holds every record against what must be true of it; `repair` also repairs what can be. May run beside workers.
    ///
    /// # Errors
    /// [`Failure`] of the store.
    pub async fn doctor(&self, repair: bool) -> Result<DoctorReport, Failure> {
        self.shared.doctor(repair).await
    }

    // Operates.

    /// Puts a quarantined delivery, or an intent (under [`EntryId::of_intent`]), back: to its own place
    /// if its lane has not come to it yet, and due at once in front of its lane otherwise. Its retention is not extended.
    ///
    /// # Errors
    /// [`Failure::Rejected`] with [`Rejection::Gone`], [`Rejection::StillUnreadable`], or [`Rejection::Taken`] while the head
    /// of its lane is being delivered; [`Failure`] of the store.
    pub async fn revive(&self, id: EntryId) -> Result<(), Failure> {
        let slot = self.shared.slots.take().await;
        self.shared.command(Command::Revive(Revive { id, slot: slot.number() })).await.map(drop)
    }

    /// Drops a quarantined record before the end of its retention, observed.
    ///
    /// # Errors
    /// [`Failure::Rejected`] with [`Rejection::Gone`]; [`Failure`] of the store.
    pub async fn drop_quarantined(&self, id: EntryId) -> Result<(), Failure> {
        let slot = self.shared.slots.take().await;
        let command = DropQuarantined { id, early: true, slot: slot.number() };
        self.shared.command(Command::DropQuarantined(command)).await.map(drop)
    }

    /// Takes note that a destination does not want deliveries: from then (now, if `None`) until then (nobody knows, if `None`: until
    /// it is released, and at most for `hold_cap_ms` unless it is said again). Said again with a later end, it is extended. Nothing
    /// is posted there meanwhile; nothing is kept for longer than its retention either.
    ///
    /// The destination is a URL: scheme, host and port of it count, so any inbox there will do.
    ///
    /// # Errors
    /// [`Failure::Rejected`] with [`Rejection::Invalid`] for what is no destination, or a hold that is over before it begins;
    /// [`Failure`] of the store. Saying it again is harmless.
    pub async fn set_hold(&self, destination: &str, from: Option<StoreTime>, until: Option<StoreTime>) -> Result<(), Failure> {
        self.notice(destination, HoldNotice::Hold { from, until }).await
    }

    /// Takes note that a destination is not held any more, from then (now, if `None`); what waits for it is looked at at once.
    ///
    /// # Errors
    /// As for [`set_hold`](Self::set_hold).
    pub async fn release_hold(&self, destination: &str, from: Option<StoreTime>) -> Result<(), Failure> {
        self.notice(destination, HoldNotice::Release { from }).await
    }

    async fn notice(&self, destination: &str, notice: HoldNotice) -> Result<(), Failure> {
        let invalid = |error: InvalidInbox| Failure::Rejected(Rejection::Invalid(error.to_string()));
        let destination = recipient(&destination.into()).map_err(invalid)?.destination;
        self.shared.command(Command::SetHold(SetHold { destination, notice })).await.map(drop)
    }

    /// Opens or closes intake. Once this returns after closing, no send is accepted any more, in no process.
    ///
    /// # Errors
    /// [`Failure`] of the store; [`Failure::Unknown`] is settled by asking again.
    pub async fn set_intake(&self, open: bool) -> Result<(), Failure> {
        self.shared.command(Command::SetIntake(SetIntake { open })).await.map(drop)
    }
}

impl fmt::Debug for Backlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backlog").field("prefix", &self.shared.env.config.prefix).finish_non_exhaustive()
    }
}
