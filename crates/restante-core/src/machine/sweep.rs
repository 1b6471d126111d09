//! The sweep: everything the index could have lost is found again from the records themselves, and what is over is pruned.
//!
//! Bounded pages, idempotent repairs. A sweep that takes long records now and then how far it has come; one that is left half-way is
//! taken over from there by whoever comes next.

use restante_core_derive::VisitAtoms;
use std::collections::VecDeque;

use restante_kv::{Key, KeyRange, StoreError, StoreTime, Version, Versioned};

use super::transact::{Failure, Transact, TransactStep};
use super::{About, Io, LocalTime, Reply};
use crate::atoms::{AtomVisitor, EntryId, Fence, OwnerId, SendId, VisitAtoms};
use crate::effect::Effect;
use crate::keys::EXPANSIONS;
use crate::keys::Kind;
use crate::plan::sweep_record_ms;
use crate::plan::{
    AdvanceSweep, BeginSweep, Command, DropQuarantined, Env, Expire, FinishSweep, Outcome, Prune, Quarantine, Rejection,
    RepairIndex, RepairLane, RepairQueue, Subject,
};
use crate::record::{
    DeadIntent, DeadLetter, Destination, Entry, Intent, Lane, Marker, OrderKeyQueue, Quarantined, Record, Stage, SweepPlace,
    is_of_another_version,
};

/// Ranges in the order they are swept: of one kind of records, or of two whose keys are neighbours.
const RANGES: [(Kind, Option<Kind>); 8] = [
    (Kind::Entry, Some(Kind::Intent)),
    (Kind::OrderKeyQueue, Some(Kind::Lane)),
    (Kind::Stage, None),
    (Kind::RecipientChunk, Some(Kind::PayloadChunk)),
    (Kind::Marker, None),
    (Kind::DeadIntent, Some(Kind::DeadLetter)),
    (Kind::Quarantined, None),
    (Kind::Destination, None),
];

fn range(env: &Env, (first, second): (Kind, Option<Kind>)) -> KeyRange {
    match second {
        Some(second) => env.keys.all_of_both(first, second),
        None => env.keys.all(first),
    }
}

/// What a command of a sweep is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Purpose {
    Begin,
    Repair,
    Advance,
    End,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    Running(Purpose, Transact),
    Scanning,
    /// Asking for the rows that should exist.
    Verifying,
    /// Asking whether a send is still being staged, expanded, or kept aside.
    Staging {
        send: SendId,
        key: Key,
        version: Version,
    },
    /// Asking whether a send of which none of these is left still has members.
    Counting {
        send: SendId,
        key: Key,
        version: Version,
    },
    Ended,
}

/// Something a page suggests to do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Job {
    Run(Command),
    /// These keys should exist; run the command if one does not.
    Verify {
        expected: Vec<Key>,
        otherwise: Command,
    },
    PruneChunk {
        send: SendId,
        key: Key,
        version: Version,
    },
}

/// A sweep under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub(super) struct Sweep {
    owner: OwnerId,
    slot: u64,
    state: State,
    range_index: usize,
    range: KeyRange,
    next: Option<Key>,
    jobs: VecDeque<Job>,
    verifying: Vec<Job>,
    repaired: u64,
    /// Whether a repair could not be made now; the sweep then goes on, and proves nothing.
    skipped: bool,
    /// From then on its place is to be recorded: the page that it is at.
    record_at: LocalTime,
    /// Whether it began half-way: what lies before, somebody else saw.
    taken_over: bool,
}

/// How a sweep ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum SweepEnd {
    /// Completed; this many repairs were made. `taken_over`: part of it was somebody else's, any time ago.
    Completed { repaired: u64, taken_over: bool },
    /// A sweep was completed within the interval already.
    Fresh,
    /// Somebody else is at it, or the store refused.
    NotProved,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum SweepStep {
    Do(Io),
    Ended(SweepEnd),
}

impl Sweep {
    pub(super) fn begin(env: &Env, owner: OwnerId, slot: u64, local: LocalTime) -> (Self, SweepStep) {
        let (transact, step) = Transact::begin(env, Command::BeginSweep(BeginSweep { owner }), Fence::default(), local);
        let mut sweep = Self {
            owner,
            slot,
            state: State::Running(Purpose::Begin, transact),
            range_index: 0,
            range: range(env, RANGES[0]),
            next: None,
            jobs: VecDeque::new(),
            verifying: Vec::new(),
            repaired: 0,
            skipped: false,
            record_at: local.plus_ms(sweep_record_ms(&env.config)),
            taken_over: false,
        };
        let step = sweep.follow(env, step, &mut Vec::new(), local);
        (sweep, step)
    }

    pub(super) fn about(&self) -> About {
        let what = match &self.state {
            State::Running(_, transact) => return transact.about(),
            State::Scanning => "sweep-scan",
            State::Verifying => "sweep-verify",
            State::Staging { .. } => "sweep-stage",
            State::Counting { .. } | State::Ended => "sweep-count",
        };
        About { what, subject: Subject::Backlog, fence: Fence::default(), tries: 0 }
    }

    pub(super) fn step(&mut self, env: &Env, reply: Reply, effects: &mut Vec<Effect>, local: LocalTime) -> SweepStep {
        match (&mut self.state, reply) {
            (State::Running(_, transact), reply) => {
                let step = transact.step(env, reply, local);
                self.follow(env, step, effects, local)
            }
            (State::Scanning, Reply::Page { result: Ok(page), at, .. }) => {
                self.next = page.next;
                for (key, record) in page.entries {
                    if let Some(job) = self.job_for(env, key, &record, at) {
                        self.jobs.push_back(job);
                    }
                }
                self.next_job(env, local)
            }
            (State::Verifying, Reply::Snapshot { result: Ok(records), .. }) => self.on_verified(env, &records, local),
            (State::Staging { send, key, version }, Reply::Snapshot { result: Ok(records), .. }) => {
                if records.iter().any(Option::is_some) {
                    return self.next_job(env, local);
                }
                // Only now: a publish deletes the stage and writes the members in one commit, and an expansion writes members as
                // long as its intent is there, so that members counted before these were seen gone would prove nothing.
                let range = env.keys.members(*send);
                self.state = State::Counting { send: *send, key: key.clone(), version: *version };
                SweepStep::Do(Io::Scan { range, limit: 1 })
            }
            (State::Counting { send, key, version }, Reply::Page { result: Ok(page), .. }) => {
                let prune = Prune { key: key.clone(), version: *version, chunk_of: Some(*send) };
                match (page.entries.is_empty(), page.next) {
                    (true, None) => self.repair(env, Command::Prune(prune), local),
                    (true, Some(next)) => {
                        let range = KeyRange { start: next, ..env.keys.members(*send) };
                        SweepStep::Do(Io::Scan { range, limit: 1 })
                    }
                    (false, _) => self.next_job(env, local),
                }
            }
            (_, Reply::Page { result: Err(_), .. } | Reply::Snapshot { result: Err(_), .. }) => self.end(SweepEnd::NotProved),
            (state, reply) => {
                debug_assert!(false, "a sweep in {state:?} cannot use {reply:?}");
                self.end(SweepEnd::NotProved)
            }
        }
    }

    fn end(&mut self, end: SweepEnd) -> SweepStep {
        self.state = State::Ended;
        SweepStep::Ended(end)
    }

    fn follow(&mut self, env: &Env, step: TransactStep, effects: &mut Vec<Effect>, local: LocalTime) -> SweepStep {
        let result = match step {
            TransactStep::Do(io) => return SweepStep::Do(io),
            TransactStep::Done(result) => result,
        };
        match (&self.state, result) {
            (State::Running(Purpose::Begin, _), Ok((outcome, _))) => {
                if let Outcome::Sweep(Some(place)) = outcome {
                    self.go_on_at(env, place);
                }
                self.scan()
            }
            (State::Running(Purpose::Begin, _), Err(Failure::Rejected(Rejection::NotDue))) => self.end(SweepEnd::Fresh),
            (State::Running(Purpose::Advance, _), Ok(_)) => {
                self.record_at = local.plus_ms(sweep_record_ms(&env.config));
                self.next_job(env, local)
            }
            (State::Running(Purpose::End, _), Ok(_)) if self.skipped => self.end(SweepEnd::NotProved),
            (State::Running(Purpose::End, _), Ok(_)) => {
                let (repaired, taken_over) = (self.repaired, self.taken_over);
                self.end(SweepEnd::Completed { repaired, taken_over })
            }
            (State::Running(Purpose::Repair, transact), Ok((outcome, new_effects))) => {
                self.repaired += 1;
                effects.extend(new_effects);
                // What waited behind it in its lane is often over as well, and may have been read before.
                if let Outcome::Expired { next: Some(id) } = outcome {
                    self.jobs.push_front(Job::Run(Command::Expire(Expire { id, slot: self.slot })));
                }
                // A lane moves on by one place a commit; the next head may be gone too.
                if let Command::RepairLane(_) | Command::RepairQueue(_) = transact.command() {
                    self.jobs.push_front(Job::Run(transact.command().clone()));
                }
                self.next_job(env, local)
            }
            (State::Running(Purpose::Repair, transact), Err(Failure::Rejected(_))) => {
                // "Not needed" after a commit without an answer: that commit made it so, and what it put back is to be looked for.
                self.repaired += u64::from(transact.may_have_committed());
                // What is not over after all has to be found like any other.
                if let Command::Expire(Expire { id, .. }) = transact.command() {
                    self.jobs.push_front(Job::Run(Command::RepairIndex(RepairIndex { id: *id })));
                }
                self.next_job(env, local)
            }
            // One record that cannot be repaired now must not keep the sweep from the others: it goes on, and proves nothing.
            (State::Running(Purpose::Repair, _), Err(Failure::Contention | Failure::Unknown)) => {
                self.skipped = true;
                self.next_job(env, local)
            }
            // One that can never be repaired must not keep it from proving the others either.
            (
                State::Running(Purpose::Repair, _),
                Err(Failure::Store(StoreError::LimitExceeded { .. } | StoreError::InvalidRequest(_))),
            ) => self.next_job(env, local),
            (State::Running(Purpose::Repair, transact), Err(Failure::Inconsistent { key, .. })) => {
                let command = self.quarantine_for(env, transact.command(), &key);
                match command {
                    Some(command) => self.repair(env, command, local),
                    None => self.next_job(env, local),
                }
            }
            (_, Err(_) | Ok(_)) => self.end(SweepEnd::NotProved),
        }
    }

    fn quarantine_for(&self, env: &Env, failed: &Command, key: &Key) -> Option<Command> {
        let of_intent = || env.keys.read_send(Kind::Intent, key).map(EntryId::of_intent);
        let id = env.keys.read_entry(Kind::Entry, key).or_else(|_| of_intent()).ok()?;
        let is_quarantine = matches!(failed, Command::Quarantine(_));
        (!is_quarantine).then_some(Command::Quarantine(Quarantine { id, due: None, lane: None, slot: self.slot }))
    }

    /// Goes on where another had come to; at the beginning if that is no place of ours.
    fn go_on_at(&mut self, env: &Env, place: SweepPlace) {
        let mut ranges = RANGES.iter().map(|kinds| range(env, *kinds)).enumerate();
        let Some((index, found)) = ranges.find(|(_, range)| range.contains(&place.next)) else { return };
        (self.range_index, self.range) = (index, KeyRange { start: place.next, ..found });
        (self.skipped, self.taken_over) = (place.skipped, true);
    }

    fn scan(&mut self) -> SweepStep {
        self.state = State::Scanning;
        SweepStep::Do(Io::Scan { range: self.range.clone(), limit: 64 })
    }

    fn job_for(&self, env: &Env, key: Key, record: &Versioned, at: StoreTime) -> Option<Job> {
        let version = record.version;
        let prune_if = |over: bool| over.then_some(Job::Run(Command::Prune(Prune { key: key.clone(), version, chunk_of: None })));
        match env.keys.kind_of(&key)? {
            // Whether anybody needs a chunk is seen without reading it. One of another version may say more than its key.
            Kind::RecipientChunk | Kind::PayloadChunk if is_of_another_version(&record.value) => None,
            Kind::Entry => self.job_for_entry(env, env.keys.read_entry(Kind::Entry, &key).ok()?, record, at),
            Kind::Lane => {
                let (order_key, destination) = env.keys.read_lane(&key).ok()?;
                let lane = Lane::decode(&record.value).ok()?;
                let otherwise = Command::RepairLane(RepairLane { order_key, destination });
                Some(Job::Verify { expected: vec![env.keys.entry(lane.head_entry)], otherwise })
            }
            Kind::Intent => self.job_for_intent(env, env.keys.read_send(Kind::Intent, &key).ok()?, record),
            Kind::OrderKeyQueue => {
                let order_key = env.keys.read_order_key(&key).ok()?;
                let queue = OrderKeyQueue::decode(&record.value).ok()?;
                let otherwise = Command::RepairQueue(RepairQueue { order_key });
                Some(Job::Verify { expected: vec![env.keys.intent(queue.head_intent)], otherwise })
            }
            Kind::RecipientChunk => {
                let send = env.keys.read_send(Kind::RecipientChunk, &key).ok()?;
                Some(Job::Run(Command::Prune(Prune { key: key.clone(), version, chunk_of: Some(send) })))
            }
            Kind::DeadIntent => prune_if(DeadIntent::decode(&record.value).is_ok_and(|trace| trace.expires_at <= at)),
            Kind::Stage => prune_if(Stage::decode(&record.value).is_ok_and(|stage| stage.deadline <= at)),
            Kind::PayloadChunk => {
                let send = env.keys.read_send(Kind::PayloadChunk, &key).ok()?;
                Some(Job::PruneChunk { send, key: key.clone(), version })
            }
            Kind::Marker => prune_if(Marker::decode(&record.value).is_ok_and(|marker| marker.expires_at <= at)),
            // Hosts are named by others: what is known of one must not stay for ever.
            Kind::Destination => prune_if(Destination::decode(&record.value).is_ok_and(|known| known.is_over(at, &env.config))),
            Kind::DeadLetter => prune_if(DeadLetter::decode(&record.value).is_ok_and(|letter| letter.expires_at <= at)),
            Kind::Quarantined => {
                let over = Quarantined::decode(&record.value).is_ok_and(|record| record.expires_at <= at);
                let id = env.keys.read_entry(Kind::Quarantined, &key).ok()?;
                over.then_some(Job::Run(Command::DropQuarantined(DropQuarantined { id, early: false, slot: self.slot })))
            }
            _ => None,
        }
    }

    fn job_for_entry(&self, env: &Env, id: EntryId, record: &Versioned, at: StoreTime) -> Option<Job> {
        match Entry::decode(&record.value) {
            // Nobody claims what is held or paced; one that waits in a lane may be its head by the time its turn comes.
            Ok(entry) if may_be_over(env, &entry, at) => Some(Job::Run(Command::Expire(Expire { id, slot: self.slot }))),
            Ok(entry) if entry.active => {
                let due = env.keys.due(&entry.destination, entry.vest_at, id);
                let pointer = env.keys.pointer(&entry.destination, entry.vest_at);
                Some(Job::Verify { expected: vec![due, pointer], otherwise: Command::RepairIndex(RepairIndex { id }) })
            }
            Ok(_) => None,
            Err(_) => Some(Job::Run(Command::Quarantine(Quarantine { id, due: None, lane: None, slot: self.slot }))),
        }
    }

    fn job_for_intent(&self, env: &Env, send: SendId, record: &Versioned) -> Option<Job> {
        let id = EntryId::of_intent(send);
        match Intent::decode(&record.value) {
            Ok(intent) if intent.active => {
                let due = env.keys.intent_due(send, intent.vest_at);
                let pointer = env.keys.pointer(EXPANSIONS, intent.vest_at);
                Some(Job::Verify { expected: vec![due, pointer], otherwise: Command::RepairIndex(RepairIndex { id }) })
            }
            Ok(_) => None,
            Err(_) => Some(Job::Run(Command::Quarantine(Quarantine { id, due: None, lane: None, slot: self.slot }))),
        }
    }

    fn next_job(&mut self, env: &Env, local: LocalTime) -> SweepStep {
        if local >= self.record_at {
            let place = SweepPlace { next: self.range.start.clone(), skipped: self.skipped };
            let command = AdvanceSweep { owner: self.owner, place };
            return self.run(env, Purpose::Advance, Command::AdvanceSweep(command), local);
        }
        match self.jobs.pop_front() {
            Some(Job::Run(command)) => self.repair(env, command, local),
            Some(Job::PruneChunk { send, key, version }) => {
                let aside = env.keys.quarantined(EntryId::of_intent(send));
                let keepers = vec![env.keys.stage(send), env.keys.intent(send), aside];
                self.state = State::Staging { send, key, version };
                SweepStep::Do(Io::Read(keepers))
            }
            Some(verify @ Job::Verify { .. }) => self.verify(verify),
            None => self.next_page(env, local),
        }
    }

    /// Verifies as many records as one snapshot takes.
    fn verify(&mut self, first: Job) -> SweepStep {
        const KEYS_AT_ONCE: usize = 10;
        self.verifying = vec![first];
        while (self.verifying.len() + 1) * 2 <= KEYS_AT_ONCE
            && matches!(self.jobs.front(), Some(Job::Verify { .. }))
            && let Some(job) = self.jobs.pop_front()
        {
            self.verifying.push(job);
        }
        let keys = self.verifying.iter().flat_map(expected_of).cloned().collect();
        self.state = State::Verifying;
        SweepStep::Do(Io::Read(keys))
    }

    fn on_verified(&mut self, env: &Env, records: &[Option<Versioned>], local: LocalTime) -> SweepStep {
        let mut records = records.iter();
        for job in std::mem::take(&mut self.verifying) {
            let found: Vec<_> = records.by_ref().take(expected_of(&job).len()).collect();
            let missing = found.iter().filter(|record| record.is_none()).count();
            let idle_head = found.iter().any(|record| is_idle_head(&job, record.as_ref()));
            if let Job::Verify { otherwise, .. } = job
                && (missing > 0 || idle_head)
            {
                self.jobs.push_front(Job::Run(otherwise));
            }
        }
        self.next_job(env, local)
    }

    fn repair(&mut self, env: &Env, command: Command, local: LocalTime) -> SweepStep {
        self.run(env, Purpose::Repair, command, local)
    }

    fn run(&mut self, env: &Env, purpose: Purpose, command: Command, local: LocalTime) -> SweepStep {
        let (transact, step) = Transact::begin(env, command, Fence::default(), local);
        self.state = State::Running(purpose, transact);
        self.follow(env, step, &mut Vec::new(), local)
    }

    fn next_page(&mut self, env: &Env, local: LocalTime) -> SweepStep {
        // What a store says of a next page beyond the range is its end: behind it another range begins, or something else's.
        if let Some(next) = self.next.take().filter(|next| self.range.contains(next)) {
            self.range.start = next;
            return self.scan();
        }
        self.range_index += 1;
        if let Some(kinds) = RANGES.get(self.range_index) {
            self.range = range(env, *kinds);
            return self.scan();
        }
        let command = FinishSweep { owner: self.owner, complete: !self.skipped };
        self.run(env, Purpose::End, Command::FinishSweep(command), local)
    }
}

/// Whether an entry's time is over, or may be if its circuit is not closed.
fn may_be_over(env: &Env, entry: &Entry, at: StoreTime) -> bool {
    entry.ends_at(env.config.max_retention_ms) <= at || at.since_ms(entry.origin) >= env.config.circuit_held_max_ms
}

/// Whether the head of a lane or of a FIFO was never made claimable: it was promoted by a version that could not read it.
fn is_idle_head(job: &Job, head: Option<&Versioned>) -> bool {
    let Job::Verify { otherwise, .. } = job else { return false };
    head.is_some_and(|head| match otherwise {
        Command::RepairLane(_) => Entry::decode(&head.value).is_ok_and(|entry| !entry.active),
        Command::RepairQueue(_) => Intent::decode(&head.value).is_ok_and(|intent| !intent.active),
        _ => false,
    })
}

fn expected_of(job: &Job) -> &[Key] {
    match job {
        Job::Verify { expected, .. } => expected,
        Job::Run(_) | Job::PruneChunk { .. } => &[],
    }
}

impl VisitAtoms for State {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        match self {
            Self::Running(_, transact) => transact.visit_atoms(visitor),
            Self::Staging { send, key, version } | Self::Counting { send, key, version } => {
                send.visit_atoms(visitor);
                visitor.version_of(key, version);
                key.visit_atoms(visitor);
            }
            Self::Scanning | Self::Verifying | Self::Ended => {}
        }
    }
}

impl VisitAtoms for Job {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        match self {
            Self::Run(command) => command.visit_atoms(visitor),
            Self::Verify { expected, otherwise } => {
                expected.visit_atoms(visitor);
                otherwise.visit_atoms(visitor);
            }
            Self::PruneChunk { send, key, version } => {
                send.visit_atoms(visitor);
                visitor.version_of(key, version);
                key.visit_atoms(visitor);
            }
        }
    }
}
