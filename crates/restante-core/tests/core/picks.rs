//! Picks commands that mean something to a store with a history, and now and then nothing any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use restante_core::Command;
use restante_core::atoms::{Bytes, EntryId, Fence, OwnerId, Sealed, SendId};
use restante_core::keys::{DueKey, Kind};
use restante_core::plan::{
    Accept, Adopt, AdvanceSweep, BeginSweep, Claim, ClaimIntent, CountAttempt, Depth, DropIntent, DropQuarantined, Expand,
    Expire, FinishSweep, Gate, HoldNotice, LegacyGate, Obstacle, ParkIntent, Prune, Publish, Quarantine, Reach, Recipient, Renew,
    RepairIndex, RepairLane, RepairQueue, ResolveAccept, Revive, SetHold, SetIntake, Settle, StageBegin, StageChunk, TidyPointer,
    Verdict, Wake, chunk_len,
};
use restante_core::record::{
    Block, Body, Circuit, Destination, DropReason, DueRow, Entry, Intent, LaneRef, RecipientChunk, Record, SweepPlace, WaitReason,
};
use restante_kv::{Key, StoreTime, Versioned};

use crate::bed::{Bed, entry_id, owner, recipient};

/// Numbers that look random and are the same every time.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound.max(1) as u64) as usize
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.number() % 100 < percent
    }

    pub(crate) fn one<'t, T>(&mut self, of: &'t [T]) -> Option<&'t T> {
        (!of.is_empty()).then(|| &of[self.below(of.len())])
    }
}

/// A store with a history, sorted by what commands are about.
pub(crate) struct Scene<'b> {
    pub(crate) bed: &'b Bed,
    /// Every entry that ever was, with all its readable versions.
    entries: Vec<(EntryId, Vec<Entry>)>,
    /// Those that are there now.
    current: Vec<EntryId>,
    due_rows: Vec<(DueKey, Option<LaneRef>)>,
    lanes: Vec<(Arc<str>, Arc<str>)>,
    quarantined: Vec<EntryId>,
    /// Intents that are there, as they are.
    intents: Vec<(SendId, Intent)>,
    order_keys: Vec<Arc<str>>,
    staged: Vec<SendId>,
    sends: Vec<SendId>,
    /// Entries of which some version could not be read.
    pub(crate) once_unreadable: BTreeSet<EntryId>,
    /// Instants at which something changes.
    instants: Vec<StoreTime>,
    by_kind: BTreeMap<Kind, Vec<(Key, Versioned)>>,
}

impl<'b> Scene<'b> {
    pub(crate) fn of(bed: &'b Bed) -> Self {
        let mut scene = Self {
            bed,
            entries: Vec::new(),
            current: Vec::new(),
            due_rows: Vec::new(),
            lanes: Vec::new(),
            quarantined: Vec::new(),
            intents: Vec::new(),
            order_keys: Vec::new(),
            staged: Vec::new(),
            sends: Vec::new(),
            once_unreadable: BTreeSet::new(),
            instants: vec![bed.now()],
            by_kind: BTreeMap::new(),
        };
        let keys = &bed.env.keys;
        for (key, versions) in &bed.history {
            let Some(kind) = keys.kind_of(key) else { continue };
            let found = || versions.iter().flatten();
            let is_current = bed.model.get(key).is_some();
            match kind {
                Kind::Entry => {
                    let id = keys.read_entry(kind, key).expect("an entry's key");
                    let readable: Vec<Entry> = found().filter_map(|found| Entry::decode(&found.value).ok()).collect();
                    if readable.len() < found().count() {
                        scene.once_unreadable.insert(id);
                    }
                    if let (true, Some(latest)) = (is_current, readable.last()) {
                        scene.current.push(id);
                        scene.instants.extend([latest.vest_at, latest.origin.plus_ms(bed.env.config.max_retention_ms)]);
                    }
                    if !scene.sends.contains(&id.send) {
                        scene.sends.push(id.send);
                    }
                    scene.entries.push((id, readable));
                }
                Kind::DueRow => {
                    let lane = found().last().and_then(|found| DueRow::decode(&found.value).ok()?.lane);
                    scene.due_rows.push((keys.read_due(key).expect("a due row's key"), lane));
                }
                Kind::Lane => scene.lanes.push(keys.read_lane(key).expect("a lane's key")),
                Kind::Quarantined => scene.quarantined.push(keys.read_entry(kind, key).expect("its key")),
                Kind::Intent => {
                    let send = keys.read_send(kind, key).expect("an intent's key");
                    let readable: Vec<Intent> = found().filter_map(|found| Intent::decode(&found.value).ok()).collect();
                    if readable.len() < found().count() {
                        scene.once_unreadable.insert(EntryId::of_intent(send));
                    }
                    if let (true, Some(latest)) = (is_current, readable.last()) {
                        scene.intents.push((send, latest.clone()));
                        scene.instants.extend([latest.vest_at, latest.origin.plus_ms(bed.env.config.max_retention_ms)]);
                    }
                    if !scene.sends.contains(&send) {
                        scene.sends.push(send);
                    }
                }
                Kind::OrderKeyQueue => scene.order_keys.push(keys.read_order_key(key).expect("an order key's key")),
                Kind::Stage if is_current => scene.staged.push(keys.read_send(kind, key).expect("its key")),
                _ => {}
            }
            scene.by_kind.entry(kind).or_default().extend(found().map(|found| (key.clone(), found.clone())));
        }
        scene
    }

    /// An instant around which answers change.
    pub(crate) fn instant(&self, dice: &mut Dice) -> StoreTime {
        let now = self.bed.now();
        match dice.below(16) {
            0..=7 => now,
            8 => StoreTime::from_ms(dice.number()),
            9 => StoreTime::MAX,
            10 => StoreTime::default(),
            11 => now.plus_ms(self.bed.env.config.quarantine_retention_ms),
            way => {
                let at = dice.one(&self.instants).copied().unwrap_or(now);
                if way == 12 { at.minus_ms(1) } else { at.plus_ms(way as u64 - 13) }
            }
        }
    }

    /// A version of an entry: mostly of one that is there, mostly the latest.
    fn entry(&self, dice: &mut Dice) -> (EntryId, Option<&Entry>) {
        let known = match dice.below(20) {
            0 => None,
            1..=3 => dice.one(&self.entries).map(|(id, _)| *id),
            _ => dice.one(&self.current).copied(),
        };
        let id = known.unwrap_or(entry_id(230, 0));
        let Ok(at) = self.entries.binary_search_by_key(&id, |(id, _)| *id) else { return (id, None) };
        let versions = &self.entries[at].1;
        (id, if dice.chance(85) { versions.last() } else { dice.one(versions) })
    }

    /// An entry with its holder: mostly one that is leased.
    fn held(&self, dice: &mut Dice) -> (EntryId, OwnerId, Fence, u64, Arc<str>) {
        let (mut id, mut entry) = self.entry(dice);
        for _ in 0..8 {
            if entry.is_some_and(|entry| entry.lease.is_some()) {
                break;
            }
            (id, entry) = self.entry(dice);
        }
        let Some(entry) = entry else { return (id, owner(1), Fence::new(1), 0, "https://h0.example".into()) };
        let held_by = entry.lease.map_or(owner(1), |lease| lease.owner);
        (id, held_by, entry.fence, entry.wake_gen, entry.destination.clone())
    }

    pub(crate) fn command(&self, dice: &mut Dice) -> Command {
        let (slot, id) = (dice.number(), self.entry(dice).0);
        let (held, owner_id, fence, wake_seen, destination) = self.held(dice);
        match dice.below(60) {
            46..=58 => self.of_intent(dice, slot),
            59 => self.publish(dice),
            0..=5 => self.accept_or_adopt(dice),
            6..=9 => Command::Claim(Claim { id, owner: owner(200), slot }),
            10..=16 => {
                let (entropy, verdict) = (dice.number(), self.verdict(dice));
                Command::Settle(Settle { id: held, owner: owner_id, fence, wake_seen, verdict, entropy, slot })
            }
            17 | 18 => Command::Renew(Renew { id: held, owner: owner_id, fence }),
            19 => Command::Gate(Gate { id: held, owner: owner_id, fence, destination }),
            20 | 21 => Command::Wake(Wake { id }),
            22 => self.quarantine(dice, slot),
            23 => Command::DropQuarantined(DropQuarantined {
                id: dice.one(&self.quarantined).copied().unwrap_or(id),
                early: dice.chance(30),
                slot,
            }),
            36 | 37 => Command::Revive(Revive { id: dice.one(&self.quarantined).copied().unwrap_or(id), slot }),
            38..=40 => self.count(dice, held, owner_id, fence, destination),
            41..=43 => self.notice(dice, destination),
            44 | 45 => Command::Expire(Expire { id, slot }),
            24 => Command::RepairIndex(RepairIndex { id }),
            25 => match dice.one(&self.lanes) {
                Some((order_key, destination)) => {
                    Command::RepairLane(RepairLane { order_key: order_key.clone(), destination: destination.clone() })
                }
                None => Command::Depth(Depth {}),
            },
            26 | 27 => self.tidy(dice).unwrap_or(Command::Depth(Depth {})),
            28..=30 => self.prune(dice).unwrap_or(Command::Depth(Depth {})),
            31 => {
                let (send, idempotency_key) = self.send(dice);
                Command::ResolveAccept(ResolveAccept { send, idempotency_key })
            }
            32 => match (dice.one(&self.staged), dice.chance(50)) {
                (Some(send), true) => Command::StageBegin(StageBegin { send: *send }),
                _ => Command::StageBegin(StageBegin { send: SendId::from_bytes([230; 16]) }),
            },
            33 => {
                let send = dice.one(&self.staged).copied().unwrap_or(SendId::from_bytes([230; 16]));
                Command::StageChunk(StageChunk { send, number: dice.below(2) as u32, bytes: Bytes::from(&b"another"[..]) })
            }
            34 if dice.chance(50) => Command::BeginSweep(BeginSweep { owner: owner(200) }),
            34 if dice.chance(50) => {
                let place = SweepPlace { next: (&b"x"[..]).into(), skipped: dice.chance(50) };
                Command::AdvanceSweep(AdvanceSweep { owner: owner(dice.below(12) as u8), place })
            }
            34 => Command::FinishSweep(FinishSweep { owner: owner(dice.below(12) as u8), complete: dice.chance(50) }),
            _ => Command::SetIntake(SetIntake { open: dice.chance(50) }),
        }
    }

    /// What a worker, the sweep or an operator does to an intent.
    fn of_intent(&self, dice: &mut Dice, slot: u64) -> Command {
        let order_key = dice.one(&self.order_keys).cloned().unwrap_or_else(|| "thread".into());
        let Some((send, intent)) = dice.one(&self.intents) else { return Command::RepairQueue(RepairQueue { order_key }) };
        let (send, id) = (*send, EntryId::of_intent(*send));
        let (owner, fence) = (intent.lease.map_or(owner(1), |lease| lease.owner), intent.fence);
        match dice.below(14) {
            0..=3 => Command::ClaimIntent(ClaimIntent { send, owner: crate::bed::owner(200) }),
            4..=8 => {
                let keys = &self.bed.env.keys;
                let chunk = self.recipients(&keys.recipients(send, intent.chunk));
                let ahead = chunk.map_or(Vec::new(), |it| it.recipients[(intent.cursor - it.first) as usize..].to_vec());
                let len = chunk_len(&self.bed.env.config, intent, &ahead, 1 + dice.below(3));
                Command::Expand(Expand {
                    send,
                    owner,
                    fence,
                    from: intent.cursor,
                    recipients: ahead[..len].to_vec(),
                    ends_chunk: len == ahead.len(),
                    order_key: intent.place.as_ref().map(|place| place.order_key.clone()),
                    release: dice.chance(20),
                    slot,
                })
            }
            9 => Command::DropIntent(DropIntent { send, owner, fence, slot }),
            10 => {
                let obstacle = if dice.chance(50) {
                    Obstacle::Entry { index: intent.cursor }
                } else {
                    Obstacle::Recipients { chunk: intent.chunk }
                };
                Command::ParkIntent(ParkIntent { send, owner, fence, obstacle, slot })
            }
            11 => Command::RepairIndex(RepairIndex { id }),
            12 => {
                let due = DueKey { destination: "".into(), vest_at: intent.vest_at, entry: id };
                Command::Quarantine(Quarantine { id, due: Some(due), lane: intent.place.clone(), slot })
            }
            _ => Command::RepairQueue(RepairQueue { order_key }),
        }
    }

    fn recipients(&self, key: &Key) -> Option<RecipientChunk> {
        RecipientChunk::decode(&self.bed.model.get(key)?.value).ok()
    }

    /// Publishing what is staged, if recipients are.
    fn publish(&self, dice: &mut Dice) -> Command {
        let Some(send) = dice.one(&self.staged).copied() else { return Command::Depth(Depth {}) };
        let keys = &self.bed.env.keys;
        let chunks = (0..).map_while(|number| self.recipients(&keys.recipients(send, number)));
        let recipient_count = chunks.map(|chunk| chunk.recipients.len() as u32).sum();
        let payload_chunk_count =
            (0..).take_while(|number| self.bed.model.get(&keys.chunk(send, *number)).is_some()).count() as u32;
        Command::Publish(Publish {
            send,
            idempotency_key: format!("key-{}", send.as_bytes()[0]).into(),
            order_key: dice.chance(60).then(|| "thread".into()),
            recipient_count,
            payload_chunk_count,
            digest: 0,
            signing: Sealed::default(),
            slot: dice.number(),
        })
    }

    fn send(&self, dice: &mut Dice) -> (SendId, Arc<str>) {
        let number = match dice.one(&self.sends) {
            Some(send) if dice.chance(40) => send.as_bytes()[0],
            _ => 230,
        };
        (SendId::from_bytes([number; 16]), format!("key-{number}").into())
    }

    /// An accept, an adoption, or the gate of what may be adopted, often under the key of another.
    fn accept_or_adopt(&self, dice: &mut Dice) -> Command {
        let accept = self.accept(dice);
        match dice.below(10) {
            0..=6 => Command::Accept(accept),
            7 => {
                let destination = accept.recipients[0].destination.clone();
                let (send, idempotency_key) = (accept.send, accept.idempotency_key);
                Command::LegacyGate(LegacyGate { send, idempotency_key, destination, failure_count: dice.below(4) as u32 })
            }
            _ => Command::Adopt(Box::new(Adopt { accept, failure_count: dice.below(4) as u32 })),
        }
    }

    fn accept(&self, dice: &mut Dice) -> Accept {
        let (send, idempotency_key) = self.send(dice);
        let recipients: Vec<Recipient> =
            (0..1 + dice.below(4)).map(|n| recipient(&format!("h{}.example/{n}", dice.below(3)))).collect();
        let has_a_chunk = |send: &SendId| self.bed.model.get(&self.bed.env.keys.chunk(*send, 0)).is_some();
        let staged = dice.one(&self.staged).copied().filter(has_a_chunk).filter(|_| dice.chance(50));
        let body = if staged.is_some() { Body::Staged { chunk_count: 1 } } else { Body::Inline(Bytes::from(&b"body"[..])) };
        Accept {
            send: staged.unwrap_or(send),
            idempotency_key,
            recipients,
            order_key: dice.chance(60).then(|| "thread".into()),
            body,
            payload_digest: 0,
            signing: Sealed::new(&b"sealed"[..]),
            slot: dice.number(),
        }
    }

    fn verdict(&self, dice: &mut Dice) -> Verdict {
        match dice.below(10) {
            8 => Verdict::Park(Block::Held),
            9 => Verdict::Park(Block::Circuit),
            0..=2 => Verdict::Delivered,
            3 => Verdict::Drop(DropReason::Permanent(410)),
            4 | 5 => {
                let retry_after_ms = dice.chance(50).then(|| if dice.chance(90) { 3_000 } else { dice.number() });
                Verdict::Retry { wait: WaitReason::Backoff, retry_after_ms }
            }
            _ => Verdict::Defer { until: self.instant(dice) },
        }
    }

    /// What an attempt says of its destination; now and then it is the probe's.
    fn count(&self, dice: &mut Dice, id: EntryId, owner: OwnerId, fence: Fence, destination: Arc<str>) -> Command {
        let reach = [Reach::Failed, Reach::Failed, Reach::Reached, Reach::Untried][dice.below(4)];
        let known = self.bed.model.get(&self.bed.env.keys.destination(&destination));
        let breaker = known.and_then(|found| Destination::decode(&found.value).ok()?.breaker);
        let (id, owner, fence) = match breaker.map(|breaker| breaker.circuit) {
            Some(Circuit::HalfOpen(probe)) if dice.chance(60) => (probe.entry, probe.owner, probe.fence),
            _ => (id, owner, fence),
        };
        Command::CountAttempt(CountAttempt { destination, id, owner, fence, reach })
    }

    fn notice(&self, dice: &mut Dice, destination: Arc<str>) -> Command {
        let mut instant = || dice.chance(60).then(|| self.instant(dice));
        let (from, until) = (instant(), instant());
        let notice = if dice.chance(60) { HoldNotice::Hold { from, until } } else { HoldNotice::Release { from } };
        Command::SetHold(SetHold { destination, notice })
    }

    fn quarantine(&self, dice: &mut Dice, slot: u64) -> Command {
        let unreadable: Vec<EntryId> = self.once_unreadable.iter().copied().collect();
        let id = dice.one(&unreadable).copied().unwrap_or_else(|| self.entry(dice).0);
        let rows: Vec<&(DueKey, Option<LaneRef>)> = self.due_rows.iter().filter(|(due, _)| due.entry == id).collect();
        let row = dice.one(&rows).filter(|_| id.index < 9).copied().cloned();
        let (due, lane) = row.map_or((None, None), |(due, lane)| (Some(due), lane));
        Command::Quarantine(Quarantine { id, due, lane, slot })
    }

    /// Tidying a pointer as discovery would: its version was read, then the destination was scanned.
    fn tidy(&self, dice: &mut Dice) -> Option<Command> {
        let keys = &self.bed.env.keys;
        let (key, found) = dice.one(self.by_kind.get(&Kind::Pointer)?)?;
        let destination = keys.read_pointer(key).ok()?.destination;
        let due = self.bed.model.scan(&keys.due_rows(&destination), 1).ok()?.entries.into_iter().next();
        let known = self.bed.model.get(&keys.destination(&destination)).and_then(|found| Destination::decode(&found.value).ok());
        let block = known.and_then(|known| known.block_at(self.bed.now(), &self.bed.env.config));
        let next_vest_at = block.map(|(_, until)| until).or_else(|| Some(keys.read_due(&due?.0).ok()?.vest_at));
        Some(Command::TidyPointer(TidyPointer { key: key.clone(), version: found.version, destination, next_vest_at }))
    }

    /// Pruning as the sweep would: what is over, a chunk that no delivery needs, or any due row.
    fn prune(&self, dice: &mut Dice) -> Option<Command> {
        let kinds = [
            Kind::DueRow,
            Kind::DueRow,
            Kind::PayloadChunk,
            Kind::RecipientChunk,
            Kind::Stage,
            Kind::DeadLetter,
            Kind::Destination,
        ];
        let kind = *dice.one(&kinds)?;
        let (key, found) = dice.one(self.by_kind.get(&kind)?)?;
        let mut found = found;
        if let (true, Some(current)) = (dice.chance(60), self.bed.model.get(key)) {
            found = current;
        }
        let is_chunk = matches!(kind, Kind::PayloadChunk | Kind::RecipientChunk);
        let send = is_chunk.then(|| self.bed.env.keys.read_send(kind, key).expect("its key"));
        let needed = send.filter(|_| kind == Kind::PayloadChunk).is_some_and(|send| {
            self.bed.model.scan(&self.bed.env.keys.members(send), 1).is_ok_and(|page| !page.entries.is_empty())
        });
        let (now, config) = (self.bed.now(), &self.bed.env.config);
        let over = kind != Kind::Destination || Destination::decode(&found.value).is_ok_and(|known| known.is_over(now, config));
        (over && !needed).then(|| Command::Prune(Prune { key: key.clone(), version: found.version, chunk_of: send }))
    }
}
