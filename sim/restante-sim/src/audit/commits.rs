//! What a commit changes, checked as it happens.

use std::sync::Arc;

use restante_core::Subject;
use restante_core::atoms::{Bytes, EntryId, Fence};
use restante_core::keys::Kind;
use restante_core::machine::About;
use restante_core::record::{Body, Destination, Entry, Intake, Intent, Marker, MarkerState, Quarantined, SweepState, WaitReason};
use restante_engine::SimTime;
use restante_kv::{Check, Key, Model, Mutation, StoreTime, Txn, Value, Versioned, Write};

use super::ghost::{End, GhostEntry, GhostLease};
use super::judged::judged;
use super::{Auditor, Evidence};
use crate::scenario::kind_name;
use crate::world::alias::{EntryAlias, SendAlias, read_send_id};
use crate::world::build::{is_newer, read};
use crate::world::{EPOCH_MS, Origin};

/// Whether all that a record of this kind says stands in its key, or in the record that it stands for: it is put and removed with
/// that one, whoever wrote it.
const fn is_all_key(kind: Kind) -> bool {
    matches!(kind, Kind::DueRow | Kind::Pointer | Kind::Member)
}

impl Auditor {
    /// A transaction was applied to `store`; `before` is what each written key held.
    #[expect(clippy::too_many_arguments, reason = "what one commit was, and when")]
    pub(crate) fn on_commit(
        &mut self,
        origin: Origin,
        about: &About,
        txn: &Txn,
        before: &[Option<Versioned>],
        store: &Model,
        at: SimTime,
        now: StoreTime,
    ) {
        self.on_legacy_commit(about, txn, at);
        self.on_intents(about, txn, before, store, at, now);
        self.on_destination_commit(origin, about, txn, at, now);
        self.on_commit_when_drained(about, txn, at);
        self.on_sweep(about, txn, store, at);
        for (write, before) in txn.writes.iter().zip(before) {
            let before = before.as_ref().map(|found| &found.value);
            match (self.env.keys.kind_of(&write.key), &write.mutation) {
                (Some(Kind::Marker), Mutation::Put(value)) => self.on_marker(value, before, at),
                (Some(Kind::Intake), Mutation::Put(value)) => {
                    if let Ok(intake) = read::<Intake>(value) {
                        self.intake_open = intake.open;
                        self.is_drained &= !intake.open;
                    }
                }
                (Some(Kind::Destination), mutation) => {
                    let after = match mutation {
                        Mutation::Put(value) => Some(value),
                        Mutation::Delete => None,
                    };
                    if let Ok(destination) = self.env.keys.read_destination(&write.key) {
                        self.on_known(&destination, about, before, after, at, now);
                    }
                    if let Some(value) = after {
                        self.on_destination(&write.key, value, now);
                    }
                }
                (Some(Kind::Entry), mutation) => {
                    let Ok(id) = self.env.keys.read_entry(Kind::Entry, &write.key) else { continue };
                    match (before, mutation) {
                        (None, Mutation::Put(value)) => self.on_entry_created(id, about, value, at),
                        (Some(_), Mutation::Put(_)) if self.makes_again(about, id) => self.on_made_again(id, at),
                        (Some(before), Mutation::Put(value)) => {
                            self.on_entry_changed(id, about, before, value, at, now);
                            if about.what == "claim" {
                                self.on_claimed_again(id, before, store, at);
                            }
                        }
                        (Some(before), Mutation::Delete) => self.on_entry_removed(id, about, before, txn, at),
                        (None, Mutation::Delete) => {}
                    }
                }
                _ => {}
            }
        }
    }

    fn of_entry(id: EntryId) -> Evidence {
        vec![("entry", EntryAlias(id).to_string())]
    }

    fn on_marker(&mut self, value: &Value, before: Option<&Value>, at: SimTime) {
        let accepted = |value: &Value| match read::<Marker>(value) {
            Ok(Marker { state: MarkerState::Accepted { send, recipient_count, .. }, .. }) => Some((send, recipient_count)),
            _ => None,
        };
        let Some((id, recipient_count)) = accepted(value) else { return };
        self.recipient_count += i64::from(recipient_count);
        let evidence = vec![("send", SendAlias(id).to_string())];
        if read_send_id(id).1 > 0 {
            judged!(self, "one-send-per-key");
        }
        if !self.intake_open {
            self.violate(at, "closed-intake-accepts-nothing", evidence.clone());
        }
        let send = self.sends.entry(read_send_id(id).0).or_default();
        let told_not_owned = send.told_not_owned.contains(&id);
        if !send.told_not_owned.is_empty() {
            judged!(self, "told-not-owned-is-not-owned");
        }
        let owned_before = send.owned.is_some() || before.is_some_and(|before| accepted(before).is_some());
        send.owned = Some(id);
        if owned_before {
            self.violate(at, "one-send-per-key", evidence.clone());
        }
        if told_not_owned {
            self.violate(at, "told-not-owned-is-not-owned", evidence);
        }
    }

    fn on_destination(&mut self, key: &Key, value: &Value, now: StoreTime) {
        let Ok(Destination { paced_until, .. }) = read::<Destination>(value) else { return };
        if paced_until <= now {
            return;
        }
        self.mark("retry-after-was-kept");
        let of_key = |destination: &Arc<str>| self.env.keys.destination(destination) == *key;
        if let Some(destination) = self.entries.values().map(|ghost| &ghost.destination).find(|known| of_key(known)) {
            self.paced.insert(destination.clone(), (now, paced_until));
        }
    }

    /// A sweep begins, is taken over, or is recorded complete.
    fn on_sweep(&mut self, about: &About, txn: &Txn, store: &Model, at: SimTime) {
        let key = self.env.keys.sweep();
        let put = txn.writes.iter().filter(|write| write.key == key).find_map(|write| match &write.mutation {
            Mutation::Put(value) => read::<SweepState>(value).ok(),
            Mutation::Delete => None,
        });
        let Some(state) = put else { return };
        match (about.what, state.place) {
            ("begin-sweep", None) => self.sweep_began_at = at,
            ("begin-sweep", Some(_)) => self.mark("sweep-was-taken-over"),
            ("finish-sweep", _) if state.taken_until == StoreTime::default() => self.on_swept(store, at),
            _ => {}
        }
    }

    /// What was there all the time a sweep took, and had lost its due row before that, has it again. Where time stands still, in an
    /// exploration, nobody knows what was before.
    fn on_swept(&mut self, store: &Model, at: SimTime) {
        let began_at = self.sweep_began_at;
        self.swept_from = Some(began_at);
        for (id, lost_at) in &self.due_rows_lost {
            let Some(row) = self.due_row_of(*id, store) else { continue };
            let is_untouched = self.last_change_of(*id).is_some_and(|changed_at| changed_at < began_at);
            if !(is_untouched && *lost_at < began_at) {
                continue;
            }
            judged!(self, "swept-is-indexed");
            if store.get(&row).is_none() {
                self.violate(at, "swept-is-indexed", Self::of_entry(*id));
                return;
            }
        }
    }

    /// When an entry or intent was created or changed last.
    pub(super) fn last_change_of(&self, id: EntryId) -> Option<SimTime> {
        match id.is_intent() {
            true => self.intents.get(&id.send).map(|ghost| ghost.changed_at),
            false => self.entries.get(&id).map(|ghost| ghost.changed_at),
        }
    }

    /// The due row that an entry or intent needs, if it is there and may be claimed.
    fn due_row_of(&self, id: EntryId, store: &Model) -> Option<Key> {
        let keys = &self.env.keys;
        if id.is_intent() {
            let intent = read::<Intent>(&store.get(&keys.intent(id.send))?.value).ok()?;
            return intent.active.then(|| keys.intent_due(id.send, intent.vest_at));
        }
        let entry = read::<Entry>(&store.get(&keys.entry(id))?.value).ok()?;
        entry.active.then(|| keys.due(&entry.destination, entry.vest_at, id))
    }

    /// A process of the older build committed: what it cannot read it puts aside whole, or leaves.
    pub(crate) fn on_older_commit(&mut self, txn: &Txn, before: &[Option<Versioned>], store: &Model, at: SimTime) {
        for (write, before) in txn.writes.iter().zip(before) {
            let Some(before) = before.as_ref().filter(|found| is_newer(found.value.as_bytes())) else { continue };
            let Some(kind) = self.env.keys.kind_of(&write.key).filter(|kind| !is_all_key(*kind)) else { continue };
            judged!(self, "unknown-version-is-left");
            let (id, evidence) = self.newer_record(kind, &write.key);
            let aside = id.map(|id| self.env.keys.quarantined(id));
            let keeps = |write: &Write| match &write.mutation {
                Mutation::Put(value) if Some(&write.key) == aside.as_ref() => {
                    read::<Quarantined>(value).is_ok_and(|aside| aside.record.as_slice() == before.value.as_bytes())
                }
                _ => false,
            };
            match write.mutation == Mutation::Delete && txn.writes.iter().any(keeps) {
                true => self.mark("newer-record-was-put-aside"),
                false => self.violate(at, "unknown-version-is-left", evidence),
            }
        }
        let is_left = |check: &Check| {
            let is_newer_there = store.get(&check.key).is_some_and(|found| is_newer(found.value.as_bytes()));
            is_newer_there && txn.writes.iter().all(|write| write.key != check.key)
        };
        if txn.checks.iter().any(is_left) {
            judged!(self, "unknown-version-is-left");
            self.mark("newer-record-was-left");
        }
    }

    /// What a record is called in evidence, and under which id it is put aside, if it may be.
    fn newer_record(&self, kind: Kind, key: &Key) -> (Option<EntryId>, Evidence) {
        let keys = &self.env.keys;
        match (kind, keys.read_entry(kind, key), keys.read_send(kind, key)) {
            (Kind::Entry, Ok(id), _) => (Some(id), Self::of_entry(id)),
            (Kind::Intent, _, Ok(send)) => (Some(EntryId::of_intent(send)), vec![("send", SendAlias(send).to_string())]),
            _ => (None, vec![("record", kind_name(kind))]),
        }
    }

    /// An operator brought back what lay aside: to the place in its lane that it had, or in front of a lane that has passed it.
    fn on_entry_revived(&mut self, id: EntryId, value: &Value, at: SimTime) {
        let Some(ghost) = self.entries.get_mut(&id) else { return };
        let revived = read::<Entry>(value);
        ghost.end = None;
        ghost.changed_at = at;
        let own = revived.as_ref().ok().and_then(|entry| entry.lane.as_ref()).map(|lane| lane.position);
        ghost.position = own;
        let is_kept = revived.is_ok_and(|entry| entry.origin == ghost.origin);
        if let Some(lane) = ghost.lane.clone() {
            let entries = &self.entries;
            // What is not expanded yet has no place yet, and gets one behind everything that has.
            let is_behind = |other: &EntryId| entries.get(other).is_none_or(|other| other.position > own);
            let queue = self.lanes.entry(lane).or_default();
            queue.retain(|waiting| *waiting != id);
            let place = queue.iter().position(is_behind).unwrap_or(queue.len());
            queue.insert(place, id);
        }
        self.mark("revived");
        if !is_kept {
            self.violate(at, "retention-origin-is-immutable", Self::of_entry(id));
        }
    }

    /// The deadline that its sender asked for.
    fn asked_deadline(&self, id: EntryId) -> Option<StoreTime> {
        let (recipients, _) = self.requests.get(&id.send)?;
        recipients.get(id.index as usize)?.deadline
    }

    fn on_entry_created(&mut self, id: EntryId, about: &About, value: &Value, at: SimTime) {
        if about.what == "revive" && self.entries.get(&id).is_some_and(|ghost| ghost.end == Some(End::Quarantined)) {
            self.on_entry_revived(id, value, at);
            return;
        }
        match self.intents.contains_key(&id.send) {
            true => judged!(self, "recipient-materialises-once"),
            false if self.ended_count > 0 => judged!(self, "settled-stays-settled"),
            false => {}
        }
        if self.entries.contains_key(&id) {
            match self.intents.contains_key(&id.send) {
                true => self.on_made_again(id, at),
                false => self.violate(at, "settled-stays-settled", Self::of_entry(id)),
            }
            return;
        }
        let Ok(entry) = read::<Entry>(value) else { return };
        self.accepted_count += 1;
        if matches!(entry.body, Body::Staged { .. }) {
            self.mark("payload-was-staged");
        }
        let lane = entry.lane.as_ref().map(|lane| (lane.order_key.clone(), entry.destination.clone()));
        // An intent's recipients stand in their lanes since it was accepted.
        if let Some(lane) = &lane
            && !self.intents.contains_key(&id.send)
        {
            self.lanes.entry(lane.clone()).or_default().push_back(id);
        }
        let ghost = GhostEntry {
            origin: entry.origin,
            deadline: self.asked_deadline(id),
            end: None,
            fence_max: entry.fence,
            lease: None,
            lane,
            position: entry.lane.as_ref().map(|lane| lane.position),
            destination: entry.destination.clone(),
            wake_pending: false,
            posted: Default::default(),
            accepted: Default::default(),
            told: Default::default(),
            gate_read_at: None,
            gate_seen: None,
            claimed_at: StoreTime::default(),
            changed_at: at,
        };
        self.entries.insert(id, ghost);
    }

    fn on_entry_changed(&mut self, id: EntryId, about: &About, before: &Value, after: &Value, at: SimTime, now: StoreTime) {
        let (Ok(before), Ok(after)) = (read::<Entry>(before), read::<Entry>(after)) else { return };
        let tolerance_ms = self.tolerance_ms;
        let is_parked = about.what == "settle" && after.wait == WaitReason::Held && before.lease.is_some();
        let held_for_nothing = is_parked && self.parked_as_held_for_nothing(id, about.fence);
        let Some(ghost) = self.entries.get_mut(&id) else { return };
        let mut broken: Option<&'static str> = held_for_nothing.then_some("held-only-under-a-hold");
        let mut mark: Option<&'static str> = None;
        judged!(self, "retention-origin-is-immutable");
        if is_parked {
            judged!(self, "held-only-under-a-hold");
        }
        if after.origin != ghost.origin {
            broken = Some("retention-origin-is-immutable");
        }
        if after.fence < ghost.fence_max {
            broken = Some("fence-rises");
        }
        let by_its_claim = matches!(&about.subject, Subject::Entry(subject) if *subject == id);
        match about.what {
            "claim" if by_its_claim => {
                if ghost.fence_max > Fence::default() {
                    judged!(self, "fence-rises");
                }
                if before.lease.is_some() && ghost.lease.is_some() {
                    judged!(self, "lease-is-exclusive");
                }
                if after.fence <= ghost.fence_max {
                    broken = Some("fence-rises");
                }
                if before.lease.is_some() {
                    mark = Some("reclaimed-after-expiry");
                }
                if before.lease.is_some() && ghost.lease.is_some_and(|lease| lease.expires_at > now.plus_ms(tolerance_ms)) {
                    broken = broken.or(Some("lease-is-exclusive"));
                }
                ghost.wake_pending = false;
                ghost.claimed_at = now;
            }
            "renew" if by_its_claim => {
                mark = Some("lease-was-renewed");
                judged!(self, "settle-holds-the-fence");
                if about.fence != before.fence {
                    broken = Some("settle-holds-the-fence");
                }
            }
            "settle" if by_its_claim => {
                judged!(self, "settle-holds-the-fence", "acknowledged-is-not-retried");
                if ghost.wake_pending {
                    judged!(self, "wake-is-not-lost");
                }
                if about.fence != before.fence {
                    broken = Some("settle-holds-the-fence");
                }
                if ghost.told.contains(&about.fence) {
                    broken = Some("acknowledged-is-not-retried");
                }
                // The transaction was planned a moment ago: due "at once" is due by now.
                if ghost.wake_pending && after.vest_at > now.plus_ms(tolerance_ms) {
                    broken = Some("wake-is-not-lost");
                }
                ghost.wake_pending = false;
            }
            "wake" if before.lease.is_some() => {
                ghost.wake_pending = true;
                mark = Some("wake-during-lease");
            }
            _ => {}
        }
        ghost.changed_at = at;
        ghost.fence_max = ghost.fence_max.max(after.fence);
        if let Some(lease) = after.lease
            && matches!(about.what, "claim" | "renew")
        {
            ghost.lease = Some(GhostLease { fence: after.fence, expires_at: lease.expires_at });
        }
        if !before.active && after.active {
            mark = Some("lane-moved-on");
        }
        if let Some(mark) = mark {
            self.mark(mark);
        }
        if let Some(property) = broken {
            self.violate(at, property, Self::of_entry(id));
        }
    }

    /// What is claimed after a lease ended stood in the window of its destination: others that were due before it, and have not
    /// been touched since, do not fill one.
    fn on_claimed_again(&mut self, id: EntryId, before: &Value, store: &Model, at: SimTime) {
        let Ok(before) = read::<Entry>(before) else { return };
        if before.lease.is_none() || self.index_lost_at_all || !self.is_prompt {
            return;
        }
        judged!(self, "reclaimed-waits-its-turn");
        let is_before = |(key, record): &(&Key, &Versioned)| {
            let Ok(other) = self.env.keys.read_entry(Kind::Entry, key) else { return false };
            let is_settled = |ghost: &GhostEntry| ghost.changed_at.as_ms() + self.plan_slack_ms <= at.as_ms();
            self.entries.get(&other).is_some_and(is_settled)
                && read::<Entry>(&record.value)
                    .is_ok_and(|entry| entry.destination == before.destination && entry.active && entry.vest_at < before.vest_at)
        };
        if store.iter().filter(is_before).count() >= self.env.config.window {
            self.violate(at, "reclaimed-waits-its-turn", Self::of_entry(id));
        }
    }

    fn on_entry_removed(&mut self, id: EntryId, about: &About, before: &Value, txn: &Txn, at: SimTime) {
        let put = |key: &Key| {
            txn.writes.iter().find_map(|write| match &write.mutation {
                Mutation::Put(value) if write.key == *key => Some(value),
                _ => None,
            })
        };
        let Some(ghost) = self.entries.get_mut(&id) else { return };
        judged!(self, "nothing-vanishes");
        self.ended_count += 1;
        if read::<Entry>(before).is_ok_and(|entry| matches!(entry.body, Body::Staged { .. })) {
            judged!(self, "payload-outlives-its-entries");
        }
        let aside = put(&self.env.keys.quarantined(id)).map(read::<Quarantined>);
        let mut broken = None;
        let end = if let Some(aside) = aside {
            judged!(self, "quarantine-keeps-the-record");
            if aside.ok().map(|record| record.record) != Some(Bytes::from(before.as_bytes())) {
                broken = Some("quarantine-keeps-the-record");
            }
            Some(End::Quarantined)
        } else {
            let fence_now = read::<Entry>(before).map(|entry| entry.fence);
            if about.what == "settle" {
                judged!(self, "settle-holds-the-fence");
            }
            if about.what == "settle" && fence_now.is_ok_and(|fence| fence != about.fence) {
                broken = Some("settle-holds-the-fence");
            }
            if put(&self.env.keys.dead_letter(id)).is_some() {
                Some(End::Dropped)
            } else if ghost.accepted.contains(&about.fence) {
                Some(End::Delivered)
            } else {
                None
            }
        };
        ghost.end = end.or(Some(End::Dropped));
        if end.is_none() {
            broken = broken.or(Some("nothing-vanishes"));
        }
        self.delivered_count += u64::from(end == Some(End::Delivered));
        let (destination, took_ms) =
            (ghost.destination.clone(), StoreTime::from_ms(EPOCH_MS + at.as_ms()).since_ms(ghost.origin));
        if let Some(lane) = ghost.lane.clone()
            && let Some(queue) = self.lanes.get_mut(&lane)
        {
            queue.retain(|waiting| *waiting != id);
        }
        if end == Some(End::Delivered) && self.is_healthy(&destination) {
            self.healthy_ms.push(took_ms);
        }
        if let Some(property) = broken {
            self.violate(at, property, Self::of_entry(id));
        }
    }
}
