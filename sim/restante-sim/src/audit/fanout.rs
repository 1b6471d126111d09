//! What becomes of intents: published whole, expanded once and in order, ended visibly.

use restante_core::Subject;
use restante_core::atoms::{Bytes, EntryId, Fence, SendId};
use restante_core::keys::Kind;
use restante_core::machine::{About, SendRequest};
use restante_core::plan::Recipient;
use restante_core::record::{Body, DeadIntent, Entry, Intent, Quarantined, RecipientChunk};
use restante_engine::SimTime;
use restante_kv::{Key, Model, Mutation, StoreTime, Txn, Value, Versioned};

use super::ghost::{End, GhostIntent, GhostLease};
use super::judged::judged;
use super::{Auditor, Evidence};
use crate::world::alias::{EntryAlias, SendAlias};
use crate::world::build::read;

fn of_send(send: SendId) -> Evidence {
    vec![("send", SendAlias(send).to_string())]
}

/// What a transaction puts under a key.
fn put<'t>(txn: &'t Txn, key: &Key) -> Option<&'t Value> {
    txn.writes.iter().find_map(|write| match &write.mutation {
        Mutation::Put(value) if write.key == *key => Some(value),
        _ => None,
    })
}

impl Auditor {
    pub(super) fn remember_request(&mut self, request: &SendRequest) {
        let known = (request.recipients.clone(), request.order_key.clone());
        self.requests.entry(request.send).or_insert(known);
    }

    /// A transaction was applied; its entries are looked at next.
    pub(super) fn on_intents(
        &mut self,
        about: &About,
        txn: &Txn,
        before: &[Option<Versioned>],
        store: &Model,
        at: SimTime,
        now: StoreTime,
    ) {
        for (write, before) in txn.writes.iter().zip(before) {
            let before = before.as_ref().map(|found| &found.value);
            match self.env.keys.kind_of(&write.key) {
                Some(Kind::Intent) => {
                    let Ok(send) = self.env.keys.read_send(Kind::Intent, &write.key) else { continue };
                    match (before, &write.mutation) {
                        (None, Mutation::Put(value)) => self.on_intent_created(send, about, value, store, at),
                        (Some(before), Mutation::Put(value)) => self.on_intent_changed(send, about, before, value, txn, at, now),
                        (Some(before), Mutation::Delete) => self.on_intent_removed(send, about, before, txn, at),
                        (None, Mutation::Delete) => {}
                    }
                }
                Some(Kind::RecipientChunk) if write.mutation == Mutation::Delete && before.is_some() => {
                    let Ok(send) = self.env.keys.read_send(Kind::RecipientChunk, &write.key) else { continue };
                    self.on_recipients_pruned(send, store, at);
                }
                _ => {}
            }
        }
    }

    fn on_intent_created(&mut self, send: SendId, about: &About, value: &Value, store: &Model, at: SimTime) {
        let Ok(intent) = read::<Intent>(value) else { return };
        let Some((recipients, order_key)) = self.requests.get(&send).cloned() else { return };
        if about.what == "revive" && self.intents.get(&send).is_some_and(|ghost| ghost.end == Some(End::Quarantined)) {
            self.on_intent_revived(send, &intent, at);
            return;
        }
        if self.intents.contains_key(&send) {
            // It was over. No token of it is current any more.
            self.violate(at, "expansion-holds-the-fence", of_send(send));
            return;
        }
        judged!(self, "publish-is-whole");
        if !self.is_published_whole(send, &intent, &recipients, store) {
            self.violate(at, "publish-is-whole", of_send(send));
        }
        if about.what == "accept" {
            self.mark("direct-send-queued-behind-intents");
        }
        if let Some(order_key) = &order_key {
            self.queues.entry(order_key.clone()).or_default().push_back(send);
            for (index, recipient) in (0..).zip(&recipients) {
                let lane = (order_key.clone(), recipient.destination.clone());
                self.lanes.entry(lane).or_default().push_back(EntryId { send, index });
            }
        }
        let ghost = GhostIntent {
            recipients,
            order_key,
            position: intent.place.map(|place| place.position),
            cursor: 0,
            end: None,
            fence_max: intent.fence,
            lease: None,
            changed_at: at,
        };
        self.intents.insert(send, ghost);
    }

    /// An operator brought back an intent that lay aside: to its place among the intents of its order key, or in front of them.
    fn on_intent_revived(&mut self, send: SendId, intent: &Intent, at: SimTime) {
        let Some(ghost) = self.intents.get_mut(&send) else { return };
        let own = intent.place.as_ref().map(|place| place.position);
        (ghost.end, ghost.changed_at, ghost.position) = (None, at, own);
        let went_back = intent.cursor != ghost.cursor;
        let (order_key, left, cursor) = (ghost.order_key.clone(), ghost.recipients.clone(), ghost.cursor);
        if let Some(order_key) = order_key {
            let intents = &self.intents;
            let is_behind = |other: &SendId| intents.get(other).is_some_and(|other| other.position > own);
            let queue = self.queues.entry(order_key.clone()).or_default();
            let place = queue.iter().position(is_behind).unwrap_or(queue.len());
            queue.insert(place, send);
            // Behind what is expanded before it, and in front of what is expanded after it.
            let later: Vec<SendId> = queue.iter().skip(place + 1).copied().collect();
            let is_later =
                |id: &EntryId| later.contains(&id.send) && intents.get(&id.send).is_some_and(|other| id.index >= other.cursor);
            for (index, recipient) in (0..).zip(left).skip(cursor as usize) {
                let lane = self.lanes.entry((order_key.clone(), recipient.destination)).or_default();
                let place = lane.iter().position(is_later).unwrap_or(lane.len());
                lane.insert(place, EntryId { send, index });
            }
        }
        self.mark("intent-revived");
        if went_back {
            self.violate(at, "cursor-never-goes-back", of_send(send));
        }
    }

    /// The stage is gone, and every recipient and all of the payload lie in their chunks.
    fn is_published_whole(&self, send: SendId, intent: &Intent, recipients: &[Recipient], store: &Model) -> bool {
        let keys = &self.env.keys;
        let chunks = (0..).map_while(|number| {
            let found = store.get(&keys.recipients(send, number))?;
            read::<RecipientChunk>(&found.value).ok()
        });
        let lies_there = chunks.flat_map(|chunk| chunk.recipients).eq(recipients.iter().cloned());
        let has_payload = match intent.body {
            Body::Staged { chunk_count } => (0..chunk_count).all(|number| store.get(&keys.chunk(send, number)).is_some()),
            Body::Inline(_) => true,
        };
        store.get(&keys.stage(send)).is_none() && lies_there && has_payload && intent.total as usize == recipients.len()
    }

    #[expect(clippy::too_many_arguments, reason = "what one commit did to one record")]
    fn on_intent_changed(
        &mut self,
        send: SendId,
        about: &About,
        before: &Value,
        after: &Value,
        txn: &Txn,
        at: SimTime,
        now: StoreTime,
    ) {
        let (Ok(before), Ok(after)) = (read::<Intent>(before), read::<Intent>(after)) else { return };
        let tolerance_ms = self.tolerance_ms;
        let Some(ghost) = self.intents.get_mut(&send) else { return };
        ghost.changed_at = at;
        let mut broken = None;
        let mut mark = None;
        // The last chunk of one intent activates the next one of its order key.
        let is_its_own = about.subject == Subject::Send(send);
        judged!(self, "retention-origin-is-immutable");
        match about.what {
            "claim-intent" => {
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
                    mark = Some("expansion-taken-over");
                }
                if before.lease.is_some() && ghost.lease.is_some_and(|lease| lease.expires_at > now.plus_ms(tolerance_ms)) {
                    broken = broken.or(Some("lease-is-exclusive"));
                }
            }
            "expand" if is_its_own => {
                judged!(self, "expansion-holds-the-fence");
                if about.fence != before.fence {
                    broken = Some("expansion-holds-the-fence");
                }
            }
            _ => {}
        }
        if after.origin != before.origin {
            broken = Some("retention-origin-is-immutable");
        }
        ghost.fence_max = ghost.fence_max.max(after.fence);
        ghost.lease = after.lease.map(|lease| GhostLease { fence: after.fence, expires_at: lease.expires_at });
        if before.cursor > 0 {
            judged!(self, "cursor-never-goes-back");
        }
        if after.cursor < before.cursor {
            broken = Some("cursor-never-goes-back");
        }
        if !before.active && after.active {
            mark = mark.or(Some("intent-waited-its-turn"));
        }
        if let Some(mark) = mark {
            self.mark(mark);
        }
        if let Some(property) = broken {
            self.violate(at, property, of_send(send));
        }
        self.on_expanded(send, before.cursor..after.cursor, txn, at);
    }

    /// A commit moved the cursor over these recipients: exactly they are new entries of it, and it was their turn.
    fn on_expanded(&mut self, send: SendId, passed: std::ops::Range<u32>, txn: &Txn, at: SimTime) {
        let keys = &self.env.keys;
        let made = txn.writes.iter().filter(|write| matches!(write.mutation, Mutation::Put(_)));
        let mut made: Vec<u32> = made
            .filter_map(|write| keys.read_entry(Kind::Entry, &write.key).ok())
            .filter(|id| id.send == send)
            .map(|id| id.index)
            .collect();
        made.sort_unstable();
        if made.is_empty() && passed.is_empty() {
            return;
        }
        judged!(self, "cursor-counts-entries", "snapshot-is-followed");
        if self.has_intruder(send) {
            judged!(self, "conflict-is-parked");
        }
        if !made.iter().copied().eq(passed.clone()) {
            self.violate(at, "cursor-counts-entries", of_send(send));
        }
        let followed = made.iter().all(|index| {
            let entry = put(txn, &self.env.keys.entry(EntryId { send, index: *index }));
            let accepted = self.intents.get(&send).and_then(|ghost| ghost.recipients.get(*index as usize));
            match (entry.map(read::<Entry>), accepted) {
                (Some(Ok(entry)), Some(recipient)) => {
                    entry.inbox == recipient.inbox && entry.destination == recipient.destination
                }
                _ => false,
            }
        });
        if !followed {
            self.violate(at, "snapshot-is-followed", of_send(send));
        }
        let Some(ghost) = self.intents.get_mut(&send) else { return };
        ghost.cursor = ghost.cursor.max(passed.end);
        let order_key = ghost.order_key.clone();
        if order_key.as_ref().and_then(|key| self.queues.get(key)).is_some_and(|queue| queue.len() > 1) {
            judged!(self, "only-the-head-expands");
        }
        let is_its_turn = |key| self.queues.get(key).and_then(|queue| queue.front()) == Some(&send);
        if !order_key.as_ref().is_none_or(is_its_turn) {
            self.violate(at, "only-the-head-expands", of_send(send));
        }
    }

    fn on_intent_removed(&mut self, send: SendId, about: &About, before: &Value, txn: &Txn, at: SimTime) {
        let keys = &self.env.keys;
        let aside = put(txn, &keys.quarantined(EntryId::of_intent(send))).map(read::<Quarantined>);
        let trace = put(txn, &keys.dead_intent(send)).map(read::<DeadIntent>);
        let readable = read::<Intent>(before);
        if let Ok(before) = &readable
            && about.what == "expand"
        {
            judged!(self, "expansion-holds-the-fence");
            if about.fence != before.fence {
                self.violate(at, "expansion-holds-the-fence", of_send(send));
            }
            self.on_expanded(send, before.cursor..before.total, txn, at);
        }
        judged!(self, "intent-ends-visibly");
        if aside.is_some() {
            judged!(self, "quarantine-keeps-the-record");
            if self.has_intruder(send) {
                judged!(self, "conflict-is-parked");
            }
        }
        let Some(ghost) = self.intents.get_mut(&send) else { return };
        ghost.changed_at = at;
        let left = ghost.left();
        let (end, broken) = match (aside, trace) {
            (Some(aside), _) => {
                let is_whole = aside.is_ok_and(|aside| {
                    aside.record == Bytes::from(before.as_bytes()) || read::<Intent>(&aside.record.as_slice().into()) == readable
                });
                (End::Quarantined, (!is_whole).then_some("quarantine-keeps-the-record"))
            }
            (None, Some(trace)) => {
                let counts = trace.is_ok_and(|trace| trace.total.saturating_sub(trace.cursor) == left);
                (End::Dropped, (!counts).then_some("intent-ends-visibly"))
            }
            // Expanded to the last recipient: nothing is left of it.
            (None, None) => (End::Delivered, (left > 0).then_some("intent-ends-visibly")),
        };
        ghost.end = Some(end);
        let (order_key, cursor) = (ghost.order_key.clone(), ghost.cursor);
        match end {
            End::Delivered => self.mark("intent-expanded"),
            End::Dropped => self.mark("intent-expired"),
            End::Quarantined => self.mark("intent-parked"),
        }
        if let Some(order_key) = order_key {
            if let Some(queue) = self.queues.get_mut(&order_key) {
                queue.retain(|waiting| *waiting != send);
            }
            // Whoever comes after them does not wait for recipients that never become entries.
            let never = |id: &EntryId| id.send == send && id.index >= cursor;
            let lanes = self.lanes.iter_mut().filter(|((key, _), _)| *key == order_key);
            lanes.for_each(|(_, lane)| lane.retain(|id| !never(id)));
        }
        if let Some(property) = broken {
            self.violate(at, property, of_send(send));
        }
    }

    fn on_recipients_pruned(&mut self, send: SendId, store: &Model, at: SimTime) {
        judged!(self, "recipients-outlive-their-expansion");
        let keys = &self.env.keys;
        let keepers = [keys.stage(send), keys.intent(send), keys.quarantined(EntryId::of_intent(send))];
        if keepers.iter().any(|key| store.get(key).is_some()) {
            self.violate(at, "recipients-outlive-their-expansion", of_send(send));
        }
        if !self.intents.contains_key(&send) {
            self.mark("unpublished-was-collected");
        }
    }

    /// Whether a commit that writes over an entry means to make it.
    pub(super) fn makes_again(&self, about: &About, id: EntryId) -> bool {
        about.what == "expand" || about.what == "replay" && self.intents.contains_key(&id.send)
    }

    /// An entry that is written anew although it was made before: by an expansion.
    pub(super) fn on_made_again(&mut self, id: EntryId, at: SimTime) {
        let property = if self.intruders.contains(&id) { "conflict-is-parked" } else { "recipient-materialises-once" };
        self.violate(at, property, vec![("entry", EntryAlias(id).to_string())]);
    }

    // Entries that somebody else put where an expansion goes.

    pub(crate) fn on_intruder(&mut self, id: EntryId) {
        self.intruders.insert(id);
    }

    pub(crate) fn intruders(&self) -> Vec<EntryId> {
        self.intruders.iter().copied().collect()
    }

    fn has_intruder(&self, send: SendId) -> bool {
        self.intruders.iter().any(|id| id.send == send)
    }

    pub(crate) fn is_intruder(&self, id: EntryId) -> bool {
        self.intruders.contains(&id)
    }

    pub(crate) fn on_intruder_gone(&mut self, id: EntryId) {
        self.intruders.remove(&id);
    }
}
