//! A synchronous executor over the model of a store: a clock to set, faults and answers to script, every commit on record.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use restante_core::atoms::{Bytes, EntryId, OwnerId, Sealed, SendId};
use restante_core::keys::Kind;
use restante_core::machine::{
    About, Failure, FanoutChoice, Io, LocalTime, Post, PostResult, Reply, SendError, SendRequest, Sending, SendingStep, Transact,
    TransactStep,
};
use restante_core::plan::{DepthReport, Recipient};
use restante_core::record::{
    Class, Counters, DueRow, Entry, Intent, Lane, Marker, MarkerState, OrderKeyQueue, Quarantined, Record,
};
use restante_core::{Command, Config, Effect, Env, Outcome};
use restante_kv::{Committed, Key, Limits, Model, Mutation, StoreError, StoreTime, Txn, Value, Versioned, Write, check_strict};

pub(crate) const START_MS: u64 = 1_000_000;
pub(crate) const DAY_MS: u64 = 86_400_000;

/// What happens to one commit or read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    Conflict,
    Unavailable,
    /// It happened, and nobody was told.
    Committed,
    /// It never happened, and nobody was told.
    Lost,
    /// Nobody was told, and it is tried again right before the next commit.
    Late,
}

/// Activities that only read.
const READING: [&str; 7] =
    ["scan-pointers", "scan-due", "read-destinations", "sweep-scan", "load-payload", "load-recipients", "expand-probe"];

type Hook = Box<dyn FnOnce(&mut Bed)>;

/// One backlog on one store, and everything that was asked of it.
pub(crate) struct Bed {
    pub(crate) env: Arc<Env>,
    pub(crate) model: Model,
    pub(crate) now_ms: u64,
    /// Entropy of every answer that carries some.
    pub(crate) entropy: u64,
    /// Answers of the attempts to come; 200 when there is none left.
    pub(crate) answers: VecDeque<PostResult>,
    pub(crate) posts: Vec<Post>,
    /// Every commit that was asked for, under the name of its command.
    pub(crate) commits: Vec<(&'static str, Txn)>,
    /// Every action that was executed.
    pub(crate) actions: Vec<&'static str>,
    /// Keyed sends in the order in which they were accepted.
    pub(crate) keyed: Vec<SendId>,
    /// Keyed sends that were asked for.
    keyed_asked: Vec<SendId>,
    /// What every key ever held, oldest first; `None` where it was deleted.
    pub(crate) history: BTreeMap<Key, Vec<Option<Versioned>>>,
    faults: Vec<(&'static str, Fault)>,
    hooks: Vec<(&'static str, Hook)>,
    late: Vec<Txn>,
}

/// No circuit breaker, no share and no ramp: tests of these ask for them.
pub(crate) fn config() -> Config {
    Config {
        concurrency_per_destination: 16,
        ramp_step_ms: 0,
        resume_jitter_ms: 0,
        breaker_failures: 0,
        ..Config::new(7 * DAY_MS)
    }
}

pub(crate) fn owner(number: u8) -> OwnerId {
    OwnerId::from_bytes([number; 16])
}

pub(crate) fn send_id(number: u8) -> SendId {
    SendId::from_bytes([number; 16])
}

pub(crate) fn entry_id(send: u8, index: u32) -> EntryId {
    EntryId { send: send_id(send), index }
}

pub(crate) fn recipient(inbox: &str) -> Recipient {
    let host = inbox.split('/').next().unwrap_or_default();
    Recipient { inbox: format!("https://{inbox}").into(), destination: format!("https://{host}").into(), deadline: None }
}

/// A small send: `number` is its id and its idempotency key.
pub(crate) fn send(number: u8, inboxes: &[&str]) -> SendRequest {
    SendRequest {
        send: send_id(number),
        idempotency_key: format!("key-{number}").into(),
        recipients: inboxes.iter().map(|inbox| recipient(inbox)).collect(),
        order_key: None,
        payload: Bytes::from(format!("payload {number}").into_bytes()),
        signing: Sealed::new(&b"sealed"[..]),
        fanout: FanoutChoice::Auto,
    }
}

pub(crate) fn keyed(number: u8, order_key: &str, inboxes: &[&str]) -> SendRequest {
    SendRequest { order_key: Some(order_key.into()), ..send(number, inboxes) }
}

pub(crate) fn status(code: u16) -> PostResult {
    PostResult::Status { code, retry_after_ms: None }
}

pub(crate) fn retry_after(pause_ms: u64) -> PostResult {
    PostResult::Status { code: 429, retry_after_ms: Some(pause_ms) }
}

impl Default for Bed {
    fn default() -> Self {
        Self::new(config())
    }
}

impl Bed {
    pub(crate) fn new(config: Config) -> Self {
        assert_eq!(config.validate(&Limits::FLOOR), Ok(()), "a test bed runs on the smallest store");
        Self {
            env: Arc::new(Env::new(config)),
            model: Model::new(Limits::FLOOR),
            now_ms: START_MS,
            entropy: 0,
            answers: VecDeque::new(),
            posts: Vec::new(),
            commits: Vec::new(),
            actions: Vec::new(),
            keyed: Vec::new(),
            keyed_asked: Vec::new(),
            history: BTreeMap::new(),
            faults: Vec::new(),
            hooks: Vec::new(),
            late: Vec::new(),
        }
    }

    pub(crate) fn now(&self) -> StoreTime {
        StoreTime::from_ms(self.now_ms)
    }
    pub(crate) fn local(&self) -> LocalTime {
        LocalTime::from_ms(self.now_ms)
    }

    /// The next action named `what` meets this fault.
    pub(crate) fn fault(&mut self, what: &'static str, fault: Fault) {
        self.faults.push((what, fault));
    }

    /// Runs `hook` right before the next action named `what`.
    pub(crate) fn before(&mut self, what: &'static str, hook: impl FnOnce(&mut Self) + 'static) {
        self.hooks.push((what, Box::new(hook)));
    }

    fn take_fault(&mut self, what: &str) -> Option<Fault> {
        let at = self.faults.iter().position(|(name, _)| *name == what)?;
        Some(self.faults.remove(at).1)
    }

    /// Every change of the store goes through here.
    fn apply(&mut self, txn: &Txn) -> Result<Committed, StoreError> {
        let committed = self.model.commit(txn)?;
        for write in &txn.writes {
            if let (Some(Kind::Marker), Mutation::Put(value)) = (self.env.keys.kind_of(&write.key), &write.mutation)
                && let Ok(Marker { state: MarkerState::Accepted { send, .. }, .. }) = Marker::decode(value)
                && self.keyed_asked.contains(&send)
            {
                self.keyed.push(send);
            }
            self.history.entry(write.key.clone()).or_default().push(self.model.get(&write.key).cloned());
        }
        Ok(committed)
    }

    fn commit(&mut self, txn: &Txn, what: &'static str) -> Result<Committed, StoreError> {
        if let Err(violation) = check_strict(txn) {
            panic!("{what}: {violation}");
        }
        self.commits.push((what, txn.clone()));
        let fault = self.take_fault(what);
        self.land_late();
        match fault {
            None => self.apply(txn),
            Some(Fault::Conflict) => Err(StoreError::Conflict { failed: Vec::new() }),
            Some(Fault::Unavailable) => Err(StoreError::Unavailable("scripted".into())),
            Some(Fault::Lost) => Err(StoreError::Ambiguous("scripted".into())),
            Some(Fault::Committed) => {
                let _unheard = self.apply(txn);
                Err(StoreError::Ambiguous("scripted".into()))
            }
            Some(Fault::Late) => {
                self.late.push(txn.clone());
                Err(StoreError::Ambiguous("scripted".into()))
            }
        }
    }

    /// No fault that was asked for and has not happened yet happens any more.
    pub(crate) fn heal(&mut self) {
        self.faults.clear();
        self.hooks.clear();
        self.land_late();
    }

    /// The commits that are on their way, to be tried whenever the test likes.
    pub(crate) fn take_late(&mut self) -> Vec<Txn> {
        std::mem::take(&mut self.late)
    }

    /// Tries the commits that were late until now.
    pub(crate) fn land_late(&mut self) {
        for txn in std::mem::take(&mut self.late) {
            let _unheard = self.apply(&txn);
        }
    }

    pub(crate) fn execute(&mut self, about: &About, io: Io) -> Reply {
        self.actions.push(about.what);
        if let Some(at) = self.hooks.iter().position(|(name, _)| *name == about.what) {
            let (_, hook) = self.hooks.remove(at);
            hook(self);
        }
        let at = self.now();
        // A command's fault is meant for its commit, an activity's for what it reads.
        let refused = READING.contains(&about.what) && self.take_fault(about.what).is_some();
        let refusal = || StoreError::Unavailable("scripted".into());
        match io {
            Io::Read(_) if refused => Reply::Snapshot { result: Err(refusal()), at },
            Io::Scan { .. } if refused => Reply::Page { result: Err(refusal()), at, entropy: self.entropy },
            Io::Read(keys) => Reply::Snapshot { result: self.model.get_many(&keys), at },
            Io::Scan { range, limit } => Reply::Page { result: self.model.scan(&range, limit), at, entropy: self.entropy },
            Io::Commit(txn) => Reply::Committed(self.commit(&txn, about.what)),
            Io::Sleep { ms, .. } => {
                self.now_ms += ms;
                Reply::Slept
            }
            Io::Post(post) if self.local() >= post.post_by => Reply::PostTooLate,
            Io::Post(post) => {
                self.posts.push(post);
                let result = self.answers.pop_front().unwrap_or_else(|| status(200));
                Reply::Posted { result, entropy: self.entropy }
            }
        }
    }

    /// Runs a command to its end.
    pub(crate) fn run(&mut self, command: Command) -> Result<(Outcome, Vec<Effect>), Failure> {
        let env = self.env.clone();
        let (mut transact, mut step) = Transact::begin(&env, command, restante_core::atoms::Fence::default(), self.local());
        loop {
            step = match step {
                TransactStep::Done(result) => return result,
                TransactStep::Do(io) => {
                    let reply = self.execute(&transact.about(), io);
                    transact.step(&env, reply, self.local())
                }
            };
        }
    }

    /// Runs a send to its end.
    pub(crate) fn send(&mut self, request: SendRequest) -> Result<(SendId, bool, Vec<Effect>), SendError> {
        if request.order_key.is_some() {
            self.keyed_asked.push(request.send);
        }
        let env = self.env.clone();
        let (mut sending, mut step) = Sending::begin(&env, request, 0, self.local());
        loop {
            step = match step {
                SendingStep::Done(result) => return result,
                SendingStep::Do(io) => {
                    let reply = self.execute(&sending.about(), io);
                    sending.step(&env, reply, self.local())
                }
            };
        }
    }

    /// Accepts a send that must succeed.
    pub(crate) fn accept(&mut self, request: SendRequest) {
        let id = request.send;
        let accepted = self.send(request).map(|(send, duplicate, _)| (send, duplicate));
        assert_eq!(accepted, Ok((id, false)));
    }

    pub(crate) fn entry(&self, send: u8, index: u32) -> Option<Entry> {
        self.read(&self.env.keys.entry(entry_id(send, index)))
    }

    pub(crate) fn read<R: Record>(&self, key: &Key) -> Option<R> {
        self.model.get(key).map(|found| R::decode(&found.value).expect("readable"))
    }

    pub(crate) fn all(&self, kind: Kind) -> Vec<(Key, Value)> {
        let range = self.env.keys.all(kind);
        self.model.iter().filter(|(key, _)| range.contains(key)).map(|(key, found)| (key.clone(), found.value.clone())).collect()
    }

    /// Writes behind everybody's back.
    pub(crate) fn tamper(&mut self, key: Key, value: Option<Value>) {
        let mutation = value.map_or(Mutation::Delete, Mutation::Put);
        let write = Write { key, mutation, guard: restante_kv::Guard::Idempotent };
        self.apply(&Txn { checks: Vec::new(), writes: vec![write] }).expect("a write without checks succeeds");
    }

    pub(crate) fn delete_all(&mut self, kind: Kind) {
        for (key, _) in self.all(kind) {
            self.tamper(key, None);
        }
    }

    /// Turns an entry into one of a format that nobody here knows.
    pub(crate) fn make_unknown(&mut self, send: u8, index: u32) -> Value {
        let key = self.env.keys.entry(entry_id(send, index));
        let mut bytes = self.model.get(&key).expect("exists").value.as_bytes().to_vec();
        bytes[0] = 9;
        self.tamper(key, Some(Value::from(bytes.clone())));
        Value::from(bytes)
    }

    /// The commits of a command: number of checks and of writes.
    pub(crate) fn sizes(&self, what: &str) -> Vec<(usize, usize)> {
        let commits = self.commits.iter().filter(|(name, _)| *name == what);
        commits.map(|(_, txn)| (txn.checks.len(), txn.writes.len())).collect()
    }

    pub(crate) fn depth(&mut self) -> DepthReport {
        match self.run(Command::Depth(restante_core::plan::Depth {})) {
            Ok((Outcome::Depth(report), _)) => report,
            other => panic!("depth came to {other:?}"),
        }
    }

    /// Depth is what a recount finds.
    pub(crate) fn assert_counted(&mut self) {
        let entries = self.all(Kind::Entry);
        let quarantined = self.all(Kind::Quarantined);
        let intents = self.all(Kind::Intent);
        let remaining = |bytes: &[u8]| i64::from(Intent::remaining_of(bytes).unwrap_or_default());
        let aside = |(key, value): &(Key, Value)| {
            let id = self.env.keys.read_entry(Kind::Quarantined, key).expect("its key");
            let record = Quarantined::decode(value).expect("readable").record;
            if id.is_intent() { remaining(record.as_slice()) } else { 0 }
        };
        let pending_recipients = intents.iter().map(|(_, value)| remaining(value.as_bytes())).sum::<i64>()
            + quarantined.iter().map(aside).sum::<i64>();
        let counted = entries.iter().fold(Counters::default(), |sum, (_, value)| sum.plus(Class::counted_of(value)));
        let (quarantined, intents) = (quarantined.len() as i64, intents.len() as i64);
        let counted = Counters { quarantined, intents, pending_recipients, ..counted };
        let depth = self.depth();
        assert_eq!(depth, DepthReport::new(counted, depth.intake_open), "depth (left) differs from a recount");
    }

    /// Every entry is discoverable: it has its due row and a pointer, or a lane in which it waits.
    pub(crate) fn assert_discoverable(&self) {
        for (key, value) in self.all(Kind::Intent) {
            let send = self.env.keys.read_send(Kind::Intent, &key).expect("an intent's key");
            let Ok(intent) = Intent::decode(&value) else { continue };
            if intent.active {
                let due: Option<DueRow> = self.read(&self.env.keys.intent_due(send, intent.vest_at));
                assert!(due.is_some_and(|due| due.lane == intent.place), "intent {send} has no due row");
            } else {
                let at = intent.place.expect("an inactive intent stands in a FIFO");
                let queue: OrderKeyQueue = self.read(&self.env.keys.order_key(&at.order_key)).expect("its FIFO exists");
                assert!(queue.head < at.position && at.position < queue.next, "intent {send} stands outside of its FIFO");
            }
        }
        for (key, value) in self.all(Kind::Entry) {
            let id = self.env.keys.read_entry(Kind::Entry, &key).expect("an entry's key");
            let Ok(entry) = Entry::decode(&value) else { continue };
            if entry.active {
                let due: Option<DueRow> = self.read(&self.env.keys.due(&entry.destination, entry.vest_at, id));
                assert!(due.is_some(), "{id} has no due row");
                let pointers = self.all(Kind::Pointer);
                let has_pointer = pointers.iter().any(|(key, _)| {
                    self.env.keys.read_pointer(key).is_ok_and(|pointer| pointer.destination == entry.destination)
                });
                assert!(has_pointer, "{id} has no pointer");
            } else {
                let at = entry.lane.expect("an inactive entry stands in a lane");
                let lane: Lane = self.read(&self.env.keys.lane(&at.order_key, &entry.destination)).expect("its lane exists");
                assert!(lane.head < at.position && at.position < lane.next, "{id} stands outside of its lane");
            }
        }
    }
}
