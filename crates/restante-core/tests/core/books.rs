//! What must hold between the records of a store, whatever was committed to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use restante_core::Env;
use restante_core::atoms::{EntryId, Position, SendId};
use restante_core::keys::{DueKey, Kind};
use restante_core::record::{
    Body, Class, Counters, Destination, DueRow, Entry, Intake, Intent, IntentSlot, Lane, LaneRef, LaneSlot, Marker, MarkerState,
    OrderKeyQueue, Quarantined, RecipientChunk, Record,
};
use restante_kv::{Key, Model, StoreTime, Value};

/// Something between records that should not be.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Flaw {
    NoDueRow(EntryId),
    /// The due row says another lane than the entry.
    DueRowLane(EntryId),
    /// A due row is there, and no pointer leads to it in time.
    NoPointer(EntryId),
    /// A due row that stands for no entry.
    OrphanRow(Key),
    /// An entry without a lane is not active.
    NeverActive(EntryId),
    /// An entry is not where it says it is in its lane, or is active elsewhere than at its head.
    LanePlace(EntryId),
    LaneEmpty(Key),
    /// The head of a lane does not exist, or is not active.
    LaneHead(Key),
    /// A lane has other places than those between its head and its end.
    LanePlaces(Key),
    StrayPlace(Key),
    NoMember(EntryId),
    StrayMember(EntryId),
    NoPayload(EntryId),
    /// By how much the counters differ from a recount.
    Counters(String),
    /// An intent is not where it says it is in its FIFO, or is active elsewhere than at its head.
    QueuePlace(SendId),
    /// The head of a FIFO does not exist, is not active, or its places are others than those behind it.
    Queue(Key),
    StrayIntentPlace(Key),
    /// The recipients at an intent's cursor, or its payload, are not there.
    NoRecipients(SendId),
    Unreadable(Key),
}

/// A store's records, read once.
pub(crate) struct Books<'e> {
    env: &'e Env,
    entries: BTreeMap<EntryId, (Value, Option<Entry>)>,
    due_rows: BTreeMap<Key, (DueKey, Option<DueRow>)>,
    /// First pointer of every destination.
    pointers: BTreeMap<Arc<str>, StoreTime>,
    destinations: BTreeMap<Key, Destination>,
    lanes: BTreeMap<Key, Lane>,
    places: BTreeMap<Key, LaneSlot>,
    members: BTreeSet<EntryId>,
    chunks: BTreeSet<Key>,
    /// With the recipients that quarantined intents still have.
    quarantined: BTreeMap<EntryId, i64>,
    intents: BTreeMap<SendId, (Value, Option<Intent>)>,
    recipients: BTreeMap<Key, RecipientChunk>,
    queues: BTreeMap<Key, OrderKeyQueue>,
    intent_places: BTreeMap<Key, IntentSlot>,
    markers: BTreeMap<Key, Marker>,
    dead_letters: BTreeSet<EntryId>,
    counters: Counters,
    intake_epoch: u64,
    unreadable: Vec<Key>,
}

impl<'e> Books<'e> {
    pub(crate) fn read(env: &'e Env, model: &Model) -> Self {
        let mut books = Self {
            env,
            entries: BTreeMap::new(),
            due_rows: BTreeMap::new(),
            pointers: BTreeMap::new(),
            destinations: BTreeMap::new(),
            lanes: BTreeMap::new(),
            places: BTreeMap::new(),
            members: BTreeSet::new(),
            chunks: BTreeSet::new(),
            quarantined: BTreeMap::new(),
            intents: BTreeMap::new(),
            recipients: BTreeMap::new(),
            queues: BTreeMap::new(),
            intent_places: BTreeMap::new(),
            markers: BTreeMap::new(),
            dead_letters: BTreeSet::new(),
            counters: Counters::default(),
            intake_epoch: 0,
            unreadable: Vec::new(),
        };
        for (key, found) in model.iter() {
            if books.enter(key, &found.value).is_none() {
                books.unreadable.push(key.clone());
            }
        }
        books
    }

    fn enter(&mut self, key: &Key, value: &Value) -> Option<()> {
        let keys = &self.env.keys;
        let kind = keys.kind_of(key)?;
        match kind {
            Kind::Entry => {
                let id = keys.read_entry(kind, key).ok()?;
                _ = self.entries.insert(id, (value.clone(), Entry::decode(value).ok()));
            }
            Kind::DueRow => _ = self.due_rows.insert(key.clone(), (keys.read_due(key).ok()?, DueRow::decode(value).ok())),
            Kind::Pointer => {
                let pointer = keys.read_pointer(key).ok()?;
                let first = self.pointers.entry(pointer.destination).or_insert(pointer.bucket_at);
                *first = pointer.bucket_at.min(*first);
            }
            Kind::Destination => _ = self.destinations.insert(key.clone(), Destination::decode(value).ok()?),
            Kind::Lane => _ = self.lanes.insert(key.clone(), Lane::decode(value).ok()?),
            Kind::LaneSlot => _ = self.places.insert(key.clone(), LaneSlot::decode(value).ok()?),
            Kind::Member => _ = self.members.insert(keys.read_entry(kind, key).ok()?),
            Kind::PayloadChunk => _ = self.chunks.insert(key.clone()),
            Kind::Quarantined => {
                let (id, aside) = (keys.read_entry(kind, key).ok()?, Quarantined::decode(value).ok()?);
                let remaining = Intent::remaining_of(aside.record.as_slice()).filter(|_| id.is_intent());
                _ = self.quarantined.insert(id, remaining.map_or(0, i64::from));
            }
            Kind::Intent => {
                _ = self.intents.insert(keys.read_send(kind, key).ok()?, (value.clone(), Intent::decode(value).ok()));
            }
            Kind::RecipientChunk => _ = self.recipients.insert(key.clone(), RecipientChunk::decode(value).ok()?),
            Kind::OrderKeyQueue => _ = self.queues.insert(key.clone(), OrderKeyQueue::decode(value).ok()?),
            Kind::IntentSlot => _ = self.intent_places.insert(key.clone(), IntentSlot::decode(value).ok()?),
            Kind::DeadLetter => _ = self.dead_letters.insert(keys.read_entry(kind, key).ok()?),
            Kind::Marker => _ = self.markers.insert(key.clone(), Marker::decode(value).ok()?),
            Kind::Intake => self.intake_epoch = Intake::decode(value).ok()?.epoch,
            Kind::Counters => self.counters = self.counters.plus(Counters::decode(value).ok()?),
            Kind::Stage | Kind::SweepState | Kind::DeadIntent => {}
        }
        Some(())
    }

    /// All flaws, as of `now`. What was once unreadable may leave a due row without an entry and a lane without a head.
    pub(crate) fn flaws(&self, now: StoreTime, once_unreadable: &BTreeSet<EntryId>) -> BTreeSet<Flaw> {
        let mut flaws: BTreeSet<Flaw> = self.unreadable.iter().cloned().map(Flaw::Unreadable).collect();
        for (id, entry) in self.readable() {
            flaws.extend(self.flaws_of_entry(id, entry, now));
        }
        for (key, (due, _)) in &self.due_rows {
            let entry = self.entries.get(&due.entry).and_then(|(_, entry)| entry.as_ref());
            let intent = self.intents.get(&due.entry.send).and_then(|(_, intent)| intent.as_ref());
            let stands = if due.entry.is_intent() {
                intent.is_some_and(|it| it.active && it.vest_at == due.vest_at && due.destination.is_empty())
            } else {
                entry.is_some_and(|it| it.active && it.vest_at == due.vest_at && it.destination == due.destination)
            };
            if !stands && !once_unreadable.contains(&due.entry) {
                flaws.insert(Flaw::OrphanRow(key.clone()));
            }
        }
        flaws.extend(self.flaws_of_lanes(once_unreadable));
        flaws.extend(self.flaws_of_intents(now, once_unreadable));
        for id in &self.members {
            let is_staged = match self.entries.get(id) {
                Some((_, Some(entry))) => matches!(entry.body, Body::Staged { .. }),
                Some((_, None)) => true,
                None => self.quarantined.contains_key(id),
            };
            if !is_staged {
                flaws.insert(Flaw::StrayMember(*id));
            }
        }
        let remaining = |(value, _): &(Value, Option<Intent>)| Intent::remaining_of(value.as_bytes()).map_or(0, i64::from);
        let pending_recipients: i64 = self.intents.values().map(remaining).sum::<i64>() + self.quarantined.values().sum::<i64>();
        let counted = self.entries.values().fold(Counters::default(), |sum, (value, _)| sum.plus(Class::counted_of(value)));
        let (quarantined, intents) = (self.quarantined.len() as i64, self.intents.len() as i64);
        let recount = Counters { quarantined, intents, pending_recipients, ..counted };
        if self.counters != recount {
            flaws.insert(Flaw::Counters(self.counters.minus(recount).to_string()));
        }
        flaws
    }

    fn readable(&self) -> impl Iterator<Item = (EntryId, &Entry)> {
        self.entries.iter().filter_map(|(id, (_, entry))| Some((*id, entry.as_ref()?)))
    }

    fn flaws_of_entry(&self, id: EntryId, entry: &Entry, now: StoreTime) -> Vec<Flaw> {
        let (keys, mut flaws) = (&self.env.keys, Vec::new());
        if entry.active {
            match self.due_rows.get(&keys.due(&entry.destination, entry.vest_at, id)) {
                None => flaws.push(Flaw::NoDueRow(id)),
                Some((_, row)) => {
                    if row.as_ref().is_none_or(|row| row.lane != entry.lane) {
                        flaws.push(Flaw::DueRowLane(id));
                    }
                    // The pointer of a destination whose work is kept back was moved to when it is looked at again.
                    let known = self.destinations.get(&keys.destination(&entry.destination));
                    let look_at =
                        |at| known.and_then(|known| known.block_at(at, &self.env.config)).map_or(at, |(_, until)| until);
                    // What shortens a hold may be planned from an older snapshot than what moved the pointer: the next recheck tells.
                    let is_known = known.is_some_and(|known| !known.holds.is_empty());
                    let recheck = if is_known { now.plus_ms(self.env.config.held_recheck_interval_ms) } else { now };
                    let latest = look_at(now).max(look_at(entry.vest_at.max(now))).max(recheck);
                    if self.pointers.get(&entry.destination).is_none_or(|first| *first > latest) {
                        flaws.push(Flaw::NoPointer(id));
                    }
                }
            }
        }
        match &entry.lane {
            None if !entry.active => flaws.push(Flaw::NeverActive(id)),
            None => {}
            Some(at) if !self.stands_in_its_lane(id, entry, at) => flaws.push(Flaw::LanePlace(id)),
            Some(_) => {}
        }
        if let Body::Staged { chunk_count } = entry.body {
            if !self.members.contains(&id) {
                flaws.push(Flaw::NoMember(id));
            }
            if !(0..chunk_count).all(|number| self.chunks.contains(&keys.chunk(id.send, number))) {
                flaws.push(Flaw::NoPayload(id));
            }
        }
        flaws
    }

    fn stands_in_its_lane(&self, id: EntryId, entry: &Entry, at: &LaneRef) -> bool {
        let keys = &self.env.keys;
        let Some(lane) = self.lanes.get(&keys.lane(&at.order_key, &entry.destination)) else { return false };
        if at.position == lane.head {
            return lane.head_entry == id && entry.active;
        }
        let place = self.places.get(&keys.lane_slot(&at.order_key, &entry.destination, at.position));
        lane.head < at.position && at.position < lane.next && !entry.active && place.is_some_and(|place| place.entry == id)
    }

    fn flaws_of_lanes(&self, once_unreadable: &BTreeSet<EntryId>) -> Vec<Flaw> {
        let (keys, mut flaws, mut known) = (&self.env.keys, Vec::new(), BTreeSet::new());
        for (key, lane) in &self.lanes {
            let Ok((order_key, destination)) = keys.read_lane(key) else { continue };
            if lane.head >= lane.next {
                flaws.push(Flaw::LaneEmpty(key.clone()));
            }
            let head = self.entries.get(&lane.head_entry).and_then(|(_, entry)| entry.as_ref());
            let at = Some(LaneRef { order_key: order_key.clone(), position: lane.head });
            let is_head = head.is_some_and(|head| head.active && head.lane == at && head.destination == destination);
            // A lane whose next place cannot be read stays as it is, under a head that is gone.
            let next = keys.lane_slot(&order_key, &destination, lane.head.next());
            let is_stuck = lane.head.next() < lane.next && !self.places.contains_key(&next);
            if !is_head && !is_stuck && !once_unreadable.contains(&lane.head_entry) {
                flaws.push(Flaw::LaneHead(key.clone()));
            }
            let mut position = lane.head.next();
            while position < lane.next {
                let place = keys.lane_slot(&order_key, &destination, position);
                if !self.places.contains_key(&place) {
                    flaws.push(Flaw::LanePlaces(key.clone()));
                }
                known.insert(place);
                position = position.next();
            }
        }
        flaws.extend(self.places.keys().filter(|place| !known.contains(*place)).cloned().map(Flaw::StrayPlace));
        flaws
    }

    fn flaws_of_intents(&self, now: StoreTime, once_unreadable: &BTreeSet<EntryId>) -> Vec<Flaw> {
        let (keys, mut flaws) = (&self.env.keys, Vec::new());
        for (send, (_, intent)) in &self.intents {
            let (Some(intent), id) = (intent, EntryId::of_intent(*send)) else { continue };
            if intent.active {
                match self.due_rows.get(&keys.intent_due(*send, intent.vest_at)) {
                    None => flaws.push(Flaw::NoDueRow(id)),
                    Some((_, row)) if row.as_ref().is_none_or(|row| row.lane != intent.place) => flaws.push(Flaw::DueRowLane(id)),
                    Some(_) if self.pointers.get("").is_none_or(|first| *first > intent.vest_at.max(now)) => {
                        flaws.push(Flaw::NoPointer(id));
                    }
                    Some(_) => {}
                }
            }
            match &intent.place {
                None if !intent.active => flaws.push(Flaw::NeverActive(id)),
                Some(at) if !self.stands_in_its_queue(*send, intent, at) => flaws.push(Flaw::QueuePlace(*send)),
                _ => {}
            }
            let chunk = self.recipients.get(&keys.recipients(*send, intent.chunk));
            let holds = |chunk: &RecipientChunk| {
                chunk.first <= intent.cursor && (intent.cursor - chunk.first) < chunk.recipients.len() as u32
            };
            let Body::Staged { chunk_count } = intent.body else { continue };
            let has_payload = (0..chunk_count).all(|number| self.chunks.contains(&keys.chunk(*send, number)));
            if !chunk.is_some_and(holds) || !has_payload {
                flaws.push(Flaw::NoRecipients(*send));
            }
        }
        let mut known = BTreeSet::new();
        for (key, queue) in &self.queues {
            let Ok(order_key) = keys.read_order_key(key) else { continue };
            let head = self.intents.get(&queue.head_intent).and_then(|(_, intent)| intent.as_ref());
            let at = Some(LaneRef { order_key: order_key.clone(), position: queue.head });
            let is_head = head.is_some_and(|head| head.active && head.place == at);
            let next = keys.intent_slot(&order_key, queue.head.next());
            let is_stuck = queue.head.next() < queue.next && !self.intent_places.contains_key(&next);
            let was_unreadable = once_unreadable.contains(&EntryId::of_intent(queue.head_intent));
            let mut is_dense = queue.head < queue.next;
            let mut position: Position = queue.head.next();
            while position < queue.next {
                let place = keys.intent_slot(&order_key, position);
                is_dense &= self.intent_places.contains_key(&place);
                known.insert(place);
                position = position.next();
            }
            if !is_dense || !is_head && !is_stuck && !was_unreadable {
                flaws.push(Flaw::Queue(key.clone()));
            }
        }
        flaws.extend(self.intent_places.keys().filter(|place| !known.contains(*place)).cloned().map(Flaw::StrayIntentPlace));
        flaws
    }

    fn stands_in_its_queue(&self, send: SendId, intent: &Intent, at: &LaneRef) -> bool {
        let keys = &self.env.keys;
        let Some(queue) = self.queues.get(&keys.order_key(&at.order_key)) else { return false };
        if at.position == queue.head {
            return queue.head_intent == send && intent.active;
        }
        let place = self.intent_places.get(&keys.intent_slot(&at.order_key, at.position));
        queue.head < at.position && at.position < queue.next && !intent.active && place.is_some_and(|it| it.intent == send)
    }

    fn assert_intents_follow(&self, before: &Self, command: &str) {
        for (send, (_, intent)) in &before.intents {
            let Some((_, after)) = self.intents.get(send) else {
                assert!(["expand", "drop-intent", "park-intent", "quarantine"].contains(&command), "{command} removed {send}");
                continue;
            };
            let (Some(intent), Some(after)) = (intent, after) else { continue };
            assert!(
                intent.fence == after.fence || command == "claim-intent" && intent.fence < after.fence,
                "{command} of {send}"
            );
            assert!(intent.cursor == after.cursor || command == "expand" && intent.cursor < after.cursor, "{command} of {send}");
            let fixed = |it: &Intent| (it.origin, it.total, it.body.clone(), it.signing.clone());
            assert_eq!(fixed(intent), fixed(after), "{command} changed what never changes of {send}");
            let made = self.entries.keys().filter(|id| id.send == *send && !before.entries.contains_key(id));
            let made: Vec<u32> = made.map(|id| id.index).collect();
            assert_eq!(made, (intent.cursor..after.cursor).collect::<Vec<_>>(), "{command} of {send}: entries and cursor");
        }
        let is_new = self.intents.keys().any(|send| !before.intents.contains_key(send));
        assert!(!is_new || ["publish", "accept", "adopt", "revive"].contains(&command), "{command} made an intent");
    }

    /// What a command may not do to single records, by comparing them with what they were `before`.
    pub(crate) fn assert_follows(&self, before: &Self, command: &str) {
        for (id, (_, entry)) in &before.entries {
            let Some((_, after)) = self.entries.get(id) else {
                assert!(["settle", "quarantine", "expire"].contains(&command), "{command} removed {id}");
                assert_eq!(self.quarantined.contains_key(id), command == "quarantine", "{command} of {id}");
                continue;
            };
            let (Some(entry), Some(after)) = (entry, after) else {
                assert_eq!(entry, after, "{command} changed whether {id} can be read");
                continue;
            };
            assert!(entry.fence <= after.fence, "{command} lowered the fence of {id}");
            assert!(entry.fence == after.fence || command == "claim", "{command} gave {id} a new fence");
            assert!(entry.failure_count <= after.failure_count && entry.wake_gen <= after.wake_gen, "{command} of {id}");
            assert!(!entry.active || after.active, "{command} deactivated {id}");
            let fixed = |it: &Entry| (it.origin, it.inbox.clone(), it.destination.clone(), it.body.clone(), it.lane.clone());
            assert_eq!(fixed(entry), fixed(after), "{command} changed what never changes of {id}");
        }
        let is_new = self.entries.keys().any(|id| !before.entries.contains_key(id));
        assert!(!is_new || ["accept", "adopt", "expand", "revive"].contains(&command), "{command} made an entry");
        self.assert_intents_follow(before, command);
        assert!(before.intake_epoch <= self.intake_epoch, "{command} lowered the epoch of intake");
        for (key, marker) in &before.markers {
            if let MarkerState::Accepted { .. } = marker.state {
                let is_kept = self.markers.get(key).is_none_or(|after| after == marker);
                assert!(is_kept, "{command} changed what was accepted under {key:?}");
            }
        }
        assert!(before.dead_letters.is_subset(&self.dead_letters) || command == "prune", "{command} removed a dead letter");
    }
}
