//! The doctor: holds every record of a store against what must be true of it, and repairs what it is told to.
//!
//! Pages are read one after another while others may be at work, so a page only suggests. What it suggests is judged from one
//! snapshot: mostly by planning the command that would repair it, which plans something exactly if something is wrong. The
//! counters are judged only if none of them changed between before the first page and after the last.

use std::collections::VecDeque;
use std::sync::Arc;

use restante_kv::{Key, KeyRange, StoreTime, Version, Versioned};

use super::transact::{Failure, Transact, TransactStep};
use super::{About, Io, LocalTime, Reply};
use crate::atoms::{EntryId, Fence, Position, SendId};
use crate::effect::Effect;
use crate::keys::Kind;
use crate::plan::{
    Command, Env, HoldNotice, Prune, Recount, Rejection, RepairIndex, RepairLane, RepairQueue, SetHold, Stop, Subject, View,
};
use crate::record::{
    Body, Circuit, Class, Counters, DeadIntent, DeadLetter, Destination, DueRow, Entry, Intake, Intent, IntentSlot, Lane,
    LaneSlot, Lease, Marker, Member, OrderKeyQueue, PayloadChunk, Pointer, Quarantined, RecipientChunk, Record, Stage,
    SweepState, Unreadable,
};

/// Something that must not be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Finding {
    /// A key under the backlog's prefix that no record has.
    #[error("{key:?} is no key of a backlog: another program writes under this prefix, or a newer version does")]
    ForeignKey {
        /// The key.
        key: Key,
    },
    /// A record that this version cannot read.
    #[error(
        "the record under {key:?} cannot be read ({why}): a worker puts an entry aside by itself, another record needs the version that wrote it"
    )]
    Unreadable {
        /// Its key.
        key: Key,
        /// Why.
        why: Unreadable,
    },
    /// An entry that no worker would find before the next sweep.
    #[error("entry {entry} has no due row or no pointer: the next sweep puts it back")]
    Undiscoverable {
        /// The entry.
        entry: EntryId,
    },
    /// An entry that waits in a lane which does not lead to it.
    #[error("entry {entry} waits at place {} of a lane that does not lead to it: it would never be delivered", position.get())]
    OutsideItsLane {
        /// The entry.
        entry: EntryId,
        /// The place it believes to have.
        position: Position,
    },
    /// An entry whose lease is longer than any claim makes it.
    #[error(
        "the lease of entry {entry} ends further ahead than any lease is long: a clock was far ahead, or lease_ms was lowered"
    )]
    LeaseTooLong {
        /// The entry.
        entry: EntryId,
    },
    /// A due row that stands for no entry.
    #[error("a due row stands for entry {entry}, which is not due there: whoever finds it removes it")]
    StrayDueRow {
        /// The entry it names.
        entry: EntryId,
    },
    /// A lane whose head is gone or was not activated.
    #[error("the head of lane {order_key:?} to {destination} is gone, damaged or not active: nothing of the lane is delivered")]
    LaneStuck {
        /// Its order key.
        order_key: Arc<str>,
        /// Its destination.
        destination: Arc<str>,
    },
    /// A payload that is incomplete.
    #[error("entry {entry} has a staged payload that is incomplete or not held: it will be dropped as unreadable when it is due")]
    PayloadIncomplete {
        /// The entry.
        entry: EntryId,
    },
    /// A membership that no entry and no quarantined record needs.
    #[error("member {entry} belongs to no entry: it keeps the chunks of its send for ever")]
    StrayMember {
        /// The entry it names.
        entry: EntryId,
    },
    /// An order key whose head intent is gone or was not activated.
    #[error("the head of the intents of order key {order_key:?} is gone, damaged or not active: none of them is expanded")]
    QueueStuck {
        /// The order key.
        order_key: Arc<str>,
    },
    /// An intent that waits in a FIFO which does not lead to it.
    #[error("the intent of send {send} waits at place {} of a FIFO that does not lead to it: it would never be expanded", position.get())]
    OutsideItsQueue {
        /// The send.
        send: SendId,
        /// The place it believes to have.
        position: Position,
    },
    /// An intent whose next recipients or whose payload are missing.
    #[error("the intent of send {send} lacks recipients or payload: it will be put aside, or its deliveries dropped")]
    IntentIncomplete {
        /// The send.
        send: SendId,
    },
    /// Recipients of a send that is neither staged nor an intent.
    #[error("recipients of send {send} are left over: the next sweep removes them")]
    StrayRecipients {
        /// The send.
        send: SendId,
    },
    /// Hold intervals that overlap, or are not in order: a time would be counted twice.
    #[error("the holds of {destination} are not canonical: time under them would be miscounted")]
    HoldsNotCanonical {
        /// The destination.
        destination: Arc<str>,
    },
    /// A circuit that counts more failures than open it, or that is forgotten before its probe ends.
    #[error(
        "the circuit breaker of {destination} is out of its bounds: breaker_failures or lease_ms was lowered, or it is damaged"
    )]
    BreakerOutOfBounds {
        /// The destination.
        destination: Arc<str>,
    },
    /// Depth is not what is there.
    #[error("the counters say {recorded}, counted were {counted}")]
    Miscounted {
        /// Sum of the counters.
        recorded: Counters,
        /// What is there.
        counted: Counters,
    },
}

/// A finding and what repairs it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnosis {
    /// What is wrong.
    pub finding: Finding,
    /// What repairs it; `None` where nothing does by itself.
    pub repair: Option<Command>,
    /// Whether it was repaired.
    pub repaired: bool,
}

/// What an examination came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DoctorReport {
    /// Records examined.
    pub records: u64,
    /// What was found; at most [`DoctorReport::FINDINGS_MAX`].
    pub diagnoses: Vec<Diagnosis>,
    /// How many findings did not fit.
    pub not_listed: u64,
    /// Whether others committed meanwhile, so that the counters could not be judged.
    pub in_motion: bool,
}

impl DoctorReport {
    /// Most findings that are listed.
    pub const FINDINGS_MAX: usize = 10_000;

    /// Whether nothing is wrong, or nothing any more.
    pub fn is_clean(&self) -> bool {
        self.not_listed == 0 && self.diagnoses.iter().all(|diagnosis| diagnosis.repaired)
    }
}

/// What the doctor wants next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DoctorStep {
    /// Execute this.
    Do(Io),
    /// The report, and what to tell the world; or why there is none.
    Done(Result<(DoctorReport, Vec<Effect>), Failure>),
}

/// A question that one snapshot answers.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Question {
    /// Would this command change anything?
    Plan(Command, Finding),
    /// Are these there, while `while_there` is as it was?
    Present { while_there: (Key, Version), keys: Vec<Key>, finding: Finding },
    /// Does the place of a waiting entry name it?
    InLane { entry: (Key, Version), id: EntryId, lane: Key, slot: Key, position: Position },
    /// Does the place of a waiting intent name it?
    InQueue { intent: (Key, Version), send: SendId, queue: Key, slot: Key, position: Position },
    /// Is one of these there?
    AnyOf { keys: Vec<Key>, finding: Finding },
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum State {
    /// Reading the counters, before or after the pages.
    Counting,
    Scanning,
    Asking {
        question: Box<Question>,
        keys: Vec<Key>,
    },
    Repairing {
        index: usize,
        transact: Box<Transact>,
    },
}

/// An examination under way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Doctor {
    repair: bool,
    state: State,
    range: KeyRange,
    next: Option<Key>,
    questions: VecDeque<Question>,
    counted: Counters,
    recorded: Counters,
    /// Whether a record that says what to count, or how much was, cannot be read: then no count is exact.
    is_uncountable: bool,
    /// Versions of the counters before the first page.
    seen: Option<Vec<Option<Version>>>,
    report: DoctorReport,
    effects: Vec<Effect>,
}

/// Records read at once.
const PAGE: usize = 256;
/// Chunks asked for at once: with the entry they fit the smallest snapshot.
const CHUNKS_AT_ONCE: u32 = 8;

/// Whether a record says so, or is another version's and may.
fn may_be<R: Record>(found: &Versioned, says: impl FnOnce(R) -> bool) -> bool {
    match R::decode(&found.value) {
        Ok(record) => says(record),
        Err(why) => matches!(why, Unreadable::UnknownFormat(_)),
    }
}

impl Doctor {
    /// Begins to examine everything; `repair` also commits the repairs.
    pub fn begin(env: &Env, repair: bool) -> (Self, DoctorStep) {
        let range = env.keys.everything();
        let doctor = Self {
            repair,
            state: State::Counting,
            range,
            next: None,
            questions: VecDeque::new(),
            counted: Counters::default(),
            recorded: Counters::default(),
            is_uncountable: false,
            seen: None,
            report: DoctorReport::default(),
            effects: Vec::new(),
        };
        (doctor, DoctorStep::Do(Io::Read(env.keys.all_counters())))
    }

    /// What the current action is about.
    pub fn about(&self) -> About {
        let what = match &self.state {
            State::Counting => "doctor-count",
            State::Scanning => "doctor-scan",
            State::Asking { .. } => "doctor-ask",
            State::Repairing { transact, .. } => return transact.about(),
        };
        About { what, subject: Subject::Backlog, fence: Fence::default(), tries: 0 }
    }

    /// The next step.
    pub fn step(&mut self, env: &Env, reply: Reply, local: LocalTime) -> DoctorStep {
        match (&mut self.state, reply) {
            (State::Counting, Reply::Snapshot { result: Ok(slots), .. }) => self.on_counters(env, &slots, local),
            (State::Scanning, Reply::Page { result: Ok(page), at, .. }) => {
                for (key, record) in &page.entries {
                    self.report.records += 1;
                    self.examine(env, key, record, at);
                }
                self.next = page.next;
                self.ask_next(env)
            }
            (State::Asking { question, keys }, Reply::Snapshot { result: Ok(records), at }) => {
                let view = View { at, records: keys.iter().cloned().zip(records).collect() };
                let question = (**question).clone();
                self.judge(env, question, &view)
            }
            (State::Repairing { transact, .. }, reply) => {
                let step = transact.step(env, reply, local);
                self.follow_repair(env, step, local)
            }
            (_, Reply::Snapshot { result: Err(error), .. } | Reply::Page { result: Err(error), .. }) => {
                DoctorStep::Done(Err(Failure::Store(error)))
            }
            (state, reply) => {
                debug_assert!(false, "a doctor in {state:?} cannot use {reply:?}");
                DoctorStep::Done(Err(Failure::Contention))
            }
        }
    }

    fn on_counters(&mut self, env: &Env, slots: &[Option<Versioned>], local: LocalTime) -> DoctorStep {
        let versions: Vec<_> = slots.iter().map(|slot| slot.as_ref().map(|found| found.version)).collect();
        let Some(before) = &self.seen else {
            // One that cannot be read is reported when its page comes.
            let (readable, unreadable): (Vec<_>, Vec<_>) =
                slots.iter().flatten().map(|found| Counters::decode(&found.value)).partition(Result::is_ok);
            self.recorded = readable.into_iter().flatten().fold(Counters::default(), Counters::plus);
            self.is_uncountable |= !unreadable.is_empty();
            self.seen = Some(versions);
            return self.scan();
        };
        if *before != versions {
            self.report.in_motion = true;
        } else if self.recorded != self.counted && !self.is_uncountable {
            let recount = Recount { counted: self.counted, seen: versions };
            let finding = Finding::Miscounted { recorded: self.recorded, counted: self.counted };
            self.found(finding, Some(Command::Recount(recount)));
        }
        self.repair_from(env, 0, local)
    }

    fn scan(&mut self) -> DoctorStep {
        self.state = State::Scanning;
        DoctorStep::Do(Io::Scan { range: self.range.clone(), limit: PAGE })
    }

    fn found(&mut self, finding: Finding, repair: Option<Command>) {
        if self.report.diagnoses.len() < DoctorReport::FINDINGS_MAX {
            self.report.diagnoses.push(Diagnosis { finding, repair, repaired: false });
        } else {
            self.report.not_listed += 1;
        }
    }

    // What a page suggests.

    fn examine(&mut self, env: &Env, key: &Key, record: &Versioned, at: StoreTime) {
        let Some(kind) = env.keys.kind_of(key) else {
            return self.found(Finding::ForeignKey { key: key.clone() }, None);
        };
        if let Err(why) = self.examine_kind(env, kind, key, record, at) {
            self.found(Finding::Unreadable { key: key.clone(), why }, None);
        }
    }

    fn examine_kind(&mut self, env: &Env, kind: Kind, key: &Key, record: &Versioned, at: StoreTime) -> Result<(), Unreadable> {
        let (value, broken) = (&record.value, Err(Unreadable::Corrupt));
        match kind {
            Kind::Intake => Intake::decode(value).map(drop),
            Kind::Marker => Marker::decode(value).map(drop),
            Kind::Stage => Stage::decode(value).map(drop),
            Kind::PayloadChunk => PayloadChunk::decode(value).map(drop),
            Kind::Pointer => Pointer::decode(value).map(drop),
            Kind::Destination => {
                let known = Destination::decode(value)?;
                let Ok(destination) = env.keys.read_destination(key) else { return broken };
                self.examine_destination(env, &destination, &known);
                Ok(())
            }
            Kind::Counters => Counters::decode(value).map(drop),
            Kind::SweepState => SweepState::decode(value).map(drop),
            Kind::DeadLetter => DeadLetter::decode(value).map(drop),
            Kind::LaneSlot => LaneSlot::decode(value).map(drop),
            Kind::IntentSlot => IntentSlot::decode(value).map(drop),
            Kind::DeadIntent => DeadIntent::decode(value).map(drop),
            Kind::Quarantined => {
                self.counted.quarantined += 1;
                let aside = Quarantined::decode(value);
                // What it holds is counted too, if it is an intent.
                self.is_uncountable |= aside.is_err();
                let aside = aside?;
                if env.keys.read_entry(kind, key).is_ok_and(|id| id.is_intent()) {
                    self.counted.pending_recipients += Intent::remaining_of(aside.record.as_slice()).map_or(0, i64::from);
                }
                Ok(())
            }
            Kind::RecipientChunk => {
                RecipientChunk::decode(value)?;
                let Ok(send) = env.keys.read_send(kind, key) else { return broken };
                let prune = Prune { key: key.clone(), version: record.version, chunk_of: Some(send) };
                self.questions.push_back(Question::Plan(Command::Prune(prune), Finding::StrayRecipients { send }));
                Ok(())
            }
            Kind::OrderKeyQueue => {
                OrderKeyQueue::decode(value)?;
                let Ok(order_key) = env.keys.read_order_key(key) else { return broken };
                let finding = Finding::QueueStuck { order_key: order_key.clone() };
                self.questions.push_back(Question::Plan(Command::RepairQueue(RepairQueue { order_key }), finding));
                Ok(())
            }
            Kind::Intent => {
                self.counted.intents += 1;
                self.counted.pending_recipients += Intent::remaining_of(value.as_bytes()).map_or(0, i64::from);
                let Ok(send) = env.keys.read_send(kind, key) else { return broken };
                let intent = Intent::decode(value)?;
                self.examine_intent(env, send, &intent, (key.clone(), record.version), at);
                Ok(())
            }
            Kind::Member => {
                Member::decode(value)?;
                let Ok(id) = env.keys.read_entry(kind, key) else { return broken };
                let keys = vec![env.keys.entry(id), env.keys.quarantined(id)];
                self.questions.push_back(Question::AnyOf { keys, finding: Finding::StrayMember { entry: id } });
                Ok(())
            }
            Kind::DueRow => {
                DueRow::decode(value)?;
                let Ok(due) = env.keys.read_due(key) else { return broken };
                let prune = Prune { key: key.clone(), version: record.version, chunk_of: None };
                let finding = Finding::StrayDueRow { entry: due.entry };
                self.questions.push_back(Question::Plan(Command::Prune(prune), finding));
                Ok(())
            }
            Kind::Lane => {
                Lane::decode(value)?;
                let Ok((order_key, destination)) = env.keys.read_lane(key) else { return broken };
                let finding = Finding::LaneStuck { order_key: order_key.clone(), destination: destination.clone() };
                self.questions.push_back(Question::Plan(Command::RepairLane(RepairLane { order_key, destination }), finding));
                Ok(())
            }
            Kind::Entry => {
                self.counted = self.counted.plus(Class::counted_of(value));
                let Ok(id) = env.keys.read_entry(kind, key) else { return broken };
                let entry = Entry::decode(value)?;
                self.examine_entry(env, id, &entry, (key.clone(), record.version), at);
                Ok(())
            }
        }
    }

    fn examine_destination(&mut self, env: &Env, destination: &Arc<str>, known: &Destination) {
        let too_many = known.holds.len() > Destination::HOLDS_MAX;
        if known.canonical_holds() != known.holds || too_many {
            // A notice that ends no hold leaves them canonical.
            let notice = HoldNotice::Release { from: Some(StoreTime::MAX) };
            let repair = Command::SetHold(SetHold { destination: destination.clone(), notice });
            self.found(Finding::HoldsNotCanonical { destination: destination.clone() }, Some(repair));
        }
        if let Some(breaker) = &known.breaker {
            let counted = match &breaker.circuit {
                Circuit::Counting(failures) => failures.len(),
                Circuit::Open { .. } | Circuit::HalfOpen(_) => 0,
            };
            let outlived = matches!(&breaker.circuit, Circuit::HalfOpen(probe) if probe.expires_at > breaker.expires_at);
            if counted > env.config.breaker_failures || outlived {
                self.found(Finding::BreakerOutOfBounds { destination: destination.clone() }, None);
            }
        }
    }

    fn examine_entry(&mut self, env: &Env, id: EntryId, entry: &Entry, as_seen: (Key, Version), at: StoreTime) {
        self.examine_lease(env, id, entry.lease, at);
        if entry.active {
            let repair = Command::RepairIndex(RepairIndex { id });
            self.questions.push_back(Question::Plan(repair, Finding::Undiscoverable { entry: id }));
        } else if let Some(lane) = &entry.lane {
            let (order_key, position) = (&lane.order_key, lane.position);
            self.questions.push_back(Question::InLane {
                entry: as_seen.clone(),
                id,
                lane: env.keys.lane(order_key, &entry.destination),
                slot: env.keys.lane_slot(order_key, &entry.destination, position),
                position,
            });
        }
        if let Body::Staged { chunk_count } = entry.body {
            let finding = Finding::PayloadIncomplete { entry: id };
            self.ask_for(&as_seen, vec![env.keys.member(id)], &finding);
            self.ask_for_payload(env, id.send, chunk_count, &as_seen, &finding);
        }
    }

    fn examine_lease(&mut self, env: &Env, id: EntryId, lease: Option<Lease>, at: StoreTime) {
        let longest_ms = env.config.lease_ms.saturating_add(env.config.max_clock_skew_ms);
        if lease.is_some_and(|lease| lease.expires_at.since_ms(at) > longest_ms) {
            self.found(Finding::LeaseTooLong { entry: id }, None);
        }
    }

    fn examine_intent(&mut self, env: &Env, send: SendId, intent: &Intent, as_seen: (Key, Version), at: StoreTime) {
        let id = EntryId::of_intent(send);
        self.examine_lease(env, id, intent.lease, at);
        if intent.active {
            let repair = Command::RepairIndex(RepairIndex { id });
            self.questions.push_back(Question::Plan(repair, Finding::Undiscoverable { entry: id }));
        } else if let Some(place) = &intent.place {
            self.questions.push_back(Question::InQueue {
                intent: as_seen.clone(),
                send,
                queue: env.keys.order_key(&place.order_key),
                slot: env.keys.intent_slot(&place.order_key, place.position),
                position: place.position,
            });
        }
        let finding = Finding::IntentIncomplete { send };
        self.ask_for(&as_seen, vec![env.keys.recipients(send, intent.chunk)], &finding);
        if let Body::Staged { chunk_count } = intent.body {
            self.ask_for_payload(env, send, chunk_count, &as_seen, &finding);
        }
    }

    fn ask_for(&mut self, while_there: &(Key, Version), keys: Vec<Key>, finding: &Finding) {
        let (while_there, finding) = (while_there.clone(), finding.clone());
        self.questions.push_back(Question::Present { while_there, keys, finding });
    }

    fn ask_for_payload(&mut self, env: &Env, send: SendId, chunk_count: u32, as_seen: &(Key, Version), finding: &Finding) {
        let mut from = 0;
        while from < chunk_count {
            let until = from.saturating_add(CHUNKS_AT_ONCE).min(chunk_count);
            self.ask_for(as_seen, (from..until).map(|number| env.keys.chunk(send, number)).collect(), finding);
            from = until;
        }
    }

    // What one snapshot says to it.

    fn ask_next(&mut self, env: &Env) -> DoctorStep {
        match (self.questions.pop_front(), self.next.take()) {
            (Some(question), next) => {
                self.next = next;
                let keys = match &question {
                    Question::Plan(..) => return self.judge(env, question, &View::default()),
                    Question::Present { while_there, keys, .. } => [std::slice::from_ref(&while_there.0), keys].concat(),
                    Question::InLane { entry, lane, slot, .. } => vec![entry.0.clone(), lane.clone(), slot.clone()],
                    Question::InQueue { intent, queue, slot, .. } => vec![intent.0.clone(), queue.clone(), slot.clone()],
                    Question::AnyOf { keys, .. } => keys.clone(),
                };
                self.ask(question, keys)
            }
            (None, Some(next)) => {
                self.range.start = next;
                self.scan()
            }
            (None, None) => {
                self.state = State::Counting;
                DoctorStep::Do(Io::Read(env.keys.all_counters()))
            }
        }
    }

    fn ask(&mut self, question: Question, keys: Vec<Key>) -> DoctorStep {
        self.state = State::Asking { question: Box::new(question), keys: keys.clone() };
        DoctorStep::Do(Io::Read(keys))
    }

    fn judge(&mut self, env: &Env, question: Question, view: &View) -> DoctorStep {
        let record = |key: &Key| view.records.iter().find(|(read, _)| read == key).and_then(|(_, found)| found.as_ref());
        let is_still = |(key, version): &(Key, Version)| record(key).is_some_and(|found| found.version == *version);
        let wrong = match &question {
            Question::Plan(command, finding) => match command.plan(env, view, false) {
                Ok(_) => Some((finding.clone(), Some(command.clone()))),
                Err(Stop::Need(keys)) => {
                    let keys = view.records.iter().map(|(key, _)| key.clone()).chain(keys).collect();
                    return self.ask(question, keys);
                }
                // A lane whose head is gone and whose next place is missing or damaged: no repair knows where to go on.
                Err(Stop::Inconsistent { .. }) if matches!(command, Command::RepairLane(_) | Command::RepairQueue(_)) => {
                    Some((finding.clone(), None))
                }
                // What cannot be read is found by itself when its own page comes.
                Err(Stop::Reject(_) | Stop::Inconsistent { .. }) => None,
            },
            Question::Present { while_there, keys, finding } => {
                (is_still(while_there) && keys.iter().any(|key| record(key).is_none())).then(|| (finding.clone(), None))
            }
            Question::InLane { entry, id, lane, slot, position } => {
                let leads_there =
                    record(lane).is_some() && record(slot).is_some_and(|found| may_be(found, |slot: LaneSlot| slot.entry == *id));
                // A head that was not activated has no place behind the head; the lane itself is asked about that.
                let is_head = record(lane).is_some_and(|found| may_be(found, |lane: Lane| lane.head_entry == *id));
                let finding = Finding::OutsideItsLane { entry: *id, position: *position };
                (is_still(entry) && !leads_there && !is_head).then_some((finding, None))
            }
            Question::InQueue { intent, send, queue, slot, position } => {
                let leads_there = record(queue).is_some()
                    && record(slot).is_some_and(|found| may_be(found, |slot: IntentSlot| slot.intent == *send));
                let is_head = record(queue).is_some_and(|found| may_be(found, |it: OrderKeyQueue| it.head_intent == *send));
                let finding = Finding::OutsideItsQueue { send: *send, position: *position };
                (is_still(intent) && !leads_there && !is_head).then_some((finding, None))
            }
            Question::AnyOf { keys, finding } => keys.iter().all(|key| record(key).is_none()).then(|| (finding.clone(), None)),
        };
        if let Some((finding, repair)) = wrong {
            self.found(finding, repair);
        }
        self.ask_next(env)
    }

    // Repairs.

    fn repair_from(&mut self, env: &Env, index: usize, local: LocalTime) -> DoctorStep {
        let rest = self.report.diagnoses.get(index..).unwrap_or_default();
        let next = rest.iter().enumerate().find_map(|(ahead, it)| Some((index + ahead, it.repair.clone()?)));
        match next {
            Some((index, command)) if self.repair => {
                let (transact, step) = Transact::begin(env, command, Fence::default(), local);
                self.state = State::Repairing { index, transact: Box::new(transact) };
                self.follow_repair(env, step, local)
            }
            _ => DoctorStep::Done(Ok((std::mem::take(&mut self.report), std::mem::take(&mut self.effects)))),
        }
    }

    fn follow_repair(&mut self, env: &Env, step: TransactStep, local: LocalTime) -> DoctorStep {
        let State::Repairing { index, .. } = self.state else { return DoctorStep::Done(Err(Failure::Contention)) };
        match step {
            TransactStep::Do(io) => return DoctorStep::Do(io),
            TransactStep::Done(Ok((_, effects))) => {
                self.report.diagnoses[index].repaired = true;
                self.effects.extend(effects);
            }
            // A worker was faster: there is nothing to do any more.
            TransactStep::Done(Err(Failure::Rejected(Rejection::NotNeeded | Rejection::Gone))) => {
                self.report.diagnoses[index].repaired = true;
            }
            // Others changed what was counted: the count is outdated, and stays a finding.
            TransactStep::Done(Err(Failure::Rejected(Rejection::Taken))) => self.report.in_motion = true,
            TransactStep::Done(Err(_)) => {}
        }
        self.repair_from(env, index + 1, local)
    }
}
