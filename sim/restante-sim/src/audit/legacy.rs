//! What becomes of the messages of an old queue, and of what is handed over to it.

use std::sync::Arc;

use restante_core::Subject;
use restante_core::atoms::{Bytes, SendId};
use restante_core::keys::Kind;
use restante_core::machine::{About, LegacyEnd, LegacyRunReport, OldDelivery, OldMessage, PostResult};
use restante_core::plan::{DepthReport, Recipient};
use restante_core::record::{Destination, Entry, Intent, Marker, MarkerState};
use restante_engine::SimTime;
use restante_kv::{Key, Model, Mutation, StoreTime, Txn};

use super::Auditor;
use super::judged::judged;
use crate::world::Origin;
use crate::world::build::read;

/// The truth about a message of the old queue.
#[derive(Clone, Debug, Default)]
pub(super) struct GhostOld {
    destination: Arc<str>,
    payload: Bytes,
    /// Attempts on the old path that were counted.
    failures: u32,
    /// It was delivered, or given up by the old policy, and the listener was told so.
    is_ended: bool,
    /// Its deliveries are in the old queue.
    is_expanded: bool,
    /// The send that adopted it.
    owned: Option<SendId>,
    /// It has left the old queue.
    is_gone: bool,
}

/// What a look at an old message saw: the message, whether its destination was held, and whether the backlog owned it.
pub(super) type OldSeen = (Arc<str>, bool, bool);

/// The truth about the bounded run of a listener.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OldRun {
    /// When the old queue was asked last, nothing was in hand.
    asked_empty_handed: bool,
    /// What was asked for last, the old queue truly did not have.
    had_nothing: bool,
    /// It handed a message out, and nobody knows.
    is_hidden: bool,
    /// How many messages it handed out.
    taken_count: u64,
    /// How many it may.
    limit: u64,
}

fn of_old(id: &str) -> super::Evidence {
    vec![("old-message", id.to_owned())]
}

impl Auditor {
    pub(crate) fn on_old_put(&mut self, id: &Arc<str>, what: &OldMessage) {
        if *what == OldMessage::Other {
            // Its end is its handler's business.
            return;
        }
        let ghost = self.old.entry(id.clone()).or_default();
        if ghost.is_gone {
            // Its fanout was expanded again: this is its next life in the old queue. What the backlog owns, it owns.
            *ghost = GhostOld { owned: ghost.owned, ..GhostOld::default() };
        }
        if let OldMessage::Delivery(delivery) = what {
            ghost.destination = delivery.to.destination.clone();
            ghost.payload = delivery.payload.clone();
        }
    }

    /// A message was handed out; if it is adopted, then as `send`.
    pub(crate) fn on_old_received(&mut self, send: SendId, delivery: &OldDelivery) {
        self.old_sends.insert(send, delivery.id.clone());
        let known: (Vec<Recipient>, _) = (vec![delivery.to.clone()], delivery.order_key.clone());
        self.requests.entry(send).or_insert(known);
    }

    fn old_of(&self, about: &About) -> Option<Arc<str>> {
        match &about.subject {
            Subject::Send(send) => self.old_sends.get(send).cloned(),
            Subject::Entry(_) | Subject::Destination(_) | Subject::Backlog => None,
        }
    }

    /// A gate looks at an old message.
    pub(super) fn on_legacy_gate_read(&mut self, origin: Origin, about: &About, store: &Model, now: StoreTime) {
        let Some(id) = self.old_of(about) else { return };
        let Some(ghost) = self.old.get(&id) else { return };
        let known = store.get(&self.env.keys.destination(&ghost.destination));
        let known = known.and_then(|found| read::<Destination>(&found.value).ok()).unwrap_or_default();
        // Who has no clock but its own may believe it is a little earlier or later.
        let (early, late) = (now.minus_ms(self.ahead_ms), now.plus_ms(self.ahead_ms));
        let is_held = known.holds.iter().any(|hold| hold.from <= early && late < hold.until);
        let is_owned = ghost.owned.is_some();
        self.old_seen.insert((origin.node, origin.task), (id, is_held, is_owned));
    }

    /// A commit about an old message: "not the backlog's", or "the backlog's".
    pub(super) fn on_legacy_commit(&mut self, about: &About, txn: &Txn, at: SimTime) {
        let Some(id) = self.old_of(about) else { return };
        let markers = txn.writes.iter().filter(|write| self.env.keys.kind_of(&write.key) == Some(Kind::Marker));
        let put = |write: &restante_kv::Write| match &write.mutation {
            Mutation::Put(value) => read::<Marker>(value).ok().map(|marker| marker.state),
            Mutation::Delete => None,
        };
        let state = markers.filter_map(put).next();
        match (about.what, state) {
            ("legacy-gate", Some(MarkerState::Tried { .. })) => {
                judged!(self, "owned-is-not-attempted");
                let is_owned = self.old.get(&id).is_some_and(|ghost| ghost.owned.is_some());
                if is_owned {
                    self.violate(at, "owned-is-not-attempted", of_old(&id));
                }
            }
            ("adopt", Some(MarkerState::Accepted { send, .. })) => self.on_adopted(&id, send, txn, at),
            _ => {}
        }
    }

    fn on_adopted(&mut self, id: &Arc<str>, send: SendId, txn: &Txn, at: SimTime) {
        let keys = &self.env.keys;
        let failures = txn.writes.iter().find_map(|write| match (keys.kind_of(&write.key), &write.mutation) {
            (Some(Kind::Entry), Mutation::Put(value)) => read::<Entry>(value).ok().map(|entry| entry.failure_count),
            (Some(Kind::Intent), Mutation::Put(value)) => read::<Intent>(value).ok().map(|intent| intent.failure_count),
            _ => None,
        });
        judged!(self, "old-attempts-count", "late-adoption-is-refused", "adopted-at-most-once", "closed-intake-adopts-nothing");
        let Some(ghost) = self.old.get_mut(id) else { return };
        let mut broken = None;
        if failures != Some(ghost.failures) {
            broken = Some("old-attempts-count");
        }
        if ghost.is_gone && ghost.owned.is_none() {
            broken = Some("late-adoption-is-refused");
        }
        if ghost.owned.is_some() {
            broken = Some("adopted-at-most-once");
        }
        if !self.intake_open {
            broken = Some("closed-intake-adopts-nothing");
        }
        if ghost.failures > 0 {
            self.marks.mark("adopted-after-attempts");
        }
        ghost.owned = Some(send);
        let payload = ghost.payload.clone();
        let key = crate::world::alias::read_send_id(send).0;
        self.sends.entry(key).or_default().payload = payload;
        self.mark("old-message-adopted");
        if let Some(property) = broken {
            self.violate(at, property, of_old(id));
        }
    }

    pub(crate) fn on_old_attempt(&mut self, origin: Origin, id: &Arc<str>, at: SimTime) {
        self.mark("old-message-attempted");
        judged!(self, "old-hold-is-honoured");
        let Some((seen, is_held, is_owned)) = self.old_seen.get(&(origin.node, origin.task)) else { return };
        match (seen == id, is_held, is_owned) {
            (true, true, _) => self.violate(at, "old-hold-is-honoured", of_old(id)),
            (true, _, true) => self.violate(at, "owned-is-not-attempted", of_old(id)),
            _ => {}
        }
    }

    /// A listener learns how its attempt ended.
    pub(crate) fn on_old_answer(&mut self, id: &Arc<str>, result: PostResult) {
        let config = &self.env.config;
        let Some(ghost) = self.old.get_mut(id) else { return };
        let is_last = ghost.failures + 1 >= config.attempts_max;
        let is_over = match result {
            PostResult::Status { code, .. } => (200..300).contains(&code) || config.permanent_codes.contains(&code),
            PostResult::NotSent(_) | PostResult::Unknown => false,
        };
        ghost.is_ended |= is_over || is_last;
    }

    pub(crate) fn on_old_put_back(&mut self, id: &Arc<str>, failures: u32) {
        if let Some(ghost) = self.old.get_mut(id) {
            ghost.failures = failures;
        }
    }

    pub(crate) fn on_old_expanded(&mut self, id: &Arc<str>) {
        if let Some(ghost) = self.old.get_mut(id) {
            ghost.is_expanded = true;
        }
        self.mark("old-fanout-expanded");
    }

    /// A message leaves the old queue.
    pub(crate) fn on_old_completed(&mut self, id: &Arc<str>, at: SimTime) {
        judged!(self, "adopted-before-completed");
        // Others never came in by us.
        let Some(ghost) = self.old.get_mut(id) else { return };
        ghost.is_gone = true;
        if !(ghost.is_ended || ghost.is_expanded || ghost.owned.is_some()) {
            self.violate(at, "adopted-before-completed", of_old(id));
        }
    }

    pub(crate) fn on_old_ended(&mut self, end: &LegacyEnd) {
        match end {
            LegacyEnd::Adopted { duplicate: true, .. } => self.mark("adoption-found-its-marker"),
            LegacyEnd::Held => self.mark("held-stays-in-the-old-queue"),
            LegacyEnd::IntakeClosed => self.mark("closed-intake-refused-adoption"),
            LegacyEnd::AdoptionUnknown => self.mark("adoption-stayed-unknown"),
            LegacyEnd::Adopted { duplicate: false, .. }
            | LegacyEnd::Delivered
            | LegacyEnd::GivenUp(_)
            | LegacyEnd::Expanded
            | LegacyEnd::Other
            | LegacyEnd::Retried
            | LegacyEnd::Unsealed
            | LegacyEnd::Yielded
            | LegacyEnd::Left => {}
        }
    }

    /// A listener begins a bounded run.
    pub(crate) fn on_old_run_began(&mut self, node: usize, limit: u64) {
        self.old_runs.insert(node, OldRun { limit, ..OldRun::default() });
    }

    pub(crate) fn on_old_asked(&mut self, node: usize, asked_empty_handed: bool) {
        if let Some(run) = self.old_runs.get_mut(&node) {
            (run.asked_empty_handed, run.had_nothing) = (asked_empty_handed, false);
        }
    }

    /// The old queue handed out a message, or had none. `is_known`: the listener will learn it.
    pub(crate) fn on_old_handed_out(&mut self, node: usize, is_one: bool, is_known: bool, at: SimTime) {
        let Some(run) = self.old_runs.get_mut(&node) else { return };
        run.had_nothing = !is_one;
        run.is_hidden |= is_one && !is_known;
        run.taken_count += u64::from(is_one && is_known);
        let (taken, limit) = (run.taken_count, run.limit);
        judged!(self, "old-run-keeps-to-its-limit");
        if taken > limit {
            self.violate(at, "old-run-keeps-to-its-limit", vec![("taken", taken.to_string())]);
        }
    }

    /// A bounded run of a listener reports.
    pub(crate) fn on_old_run_report(&mut self, node: usize, report: LegacyRunReport, at: SimTime) {
        let Some(run) = self.old_runs.remove(&node).filter(|_| !report.more) else { return };
        self.mark("listener-proved-empty");
        judged!(self, "old-run-proves-empty");
        if !run.asked_empty_handed || !run.had_nothing || run.is_hidden {
            self.violate(at, "old-run-proves-empty", vec![("processed", report.processed.to_string())]);
        }
    }

    /// A caller is told that the old queue owns its send.
    pub(crate) fn on_told_handed_over(&mut self, id: &str, at: SimTime) {
        self.mark("send-was-handed-over");
        judged!(self, "handed-over-is-queued");
        if !self.old.contains_key(id) {
            self.violate(at, "handed-over-is-queued", vec![("send", id.to_owned())]);
        }
    }

    // Drained.

    /// Somebody was told that the backlog is drained; `recount` is what was there at that snapshot.
    pub(super) fn on_told_drained(&mut self, recount: &DepthReport, at: SimTime) {
        self.mark("drained-was-proved");
        judged!(self, "drained-is-drained");
        self.is_drained = !self.intake_open;
        if recount.entries > 0 || recount.intents > 0 || recount.intake_open {
            self.violate(at, "drained-is-drained", vec![("depth", "not zero".to_owned())]);
        }
    }

    /// Something new is owned although the backlog was drained and intake has been closed since.
    pub(super) fn on_commit_when_drained(&mut self, about: &About, txn: &Txn, at: SimTime) {
        // An operator who brings back what lay aside ends it.
        self.is_drained &= about.what != "revive";
        if !self.is_drained || self.intake_open {
            return;
        }
        let is_work = |key: &Key| matches!(self.env.keys.kind_of(key), Some(Kind::Entry | Kind::Intent));
        if txn.writes.iter().any(|write| is_work(&write.key) && write.mutation != Mutation::Delete) {
            self.violate(at, "drained-is-drained", vec![("command", about.what.to_owned())]);
        }
    }
}
