//! The world's store for callers from outside. [`SimulatedKv`] puts operations on a world's timeline and takes the answers off
//! it; what answers is the code that answers in every run, [`World::on_store`].

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use restante_core::Subject;
use restante_core::atoms::Fence;
use restante_core::machine::{About, Reply};
use restante_engine::EventId;
use restante_kv::{AtomicKv, BoxFuture, Committed, Key, KeyRange, Limits, Page, Snapshot, StoreError, Txn, check_strict};

use super::event::{Act, Event, Origin, StoreOp, Task};
use super::{RunOptions, World};
use crate::scenario::{self, Scenario};

/// Everything takes the least time; a scan's page is legally short now and then.
static PROMPT: LazyLock<Scenario> =
    LazyLock::new(|| store_alone("[latency]\nstore = \"1ms..1ms\"\n[faults.store]\nshort_page = \"30%\""));

/// Operations overtake each other, and what becomes of a commit that nobody waits for is anybody's guess.
static IN_FLIGHT: LazyLock<Scenario> = LazyLock::new(|| {
    store_alone(
        "[latency]\nstore = \"1ms..40ms\"\n[faults.store]\nshort_page = \"30%\"\nambiguous_committed = \"25%\"\n\
         ambiguous_lost = \"25%\"\nambiguous_late = \"25%\"",
    )
});

fn store_alone(tables: &str) -> Scenario {
    let text = format!("why = \"A store by itself.\"\n{tables}");
    scenario::parse("store", &text).unwrap_or_else(|error| panic!("harness error: {error}"))
}

/// An operation on its way, as its caller knows it.
#[derive(Clone, Copy, Debug)]
struct Call {
    number: u64,
    sent: EventId,
}

impl World<'_> {
    /// Sends an operation on its way to the store.
    fn call(&mut self, number: u64, what: &'static str, op: StoreOp) -> Call {
        let about = About { what, subject: Subject::Backlog, fence: Fence::default(), tries: 0 };
        let act = Act { about, label: format!("{what} {number}").into() };
        let fate = match op {
            StoreOp::Read(_) => self.fault(|sites| &sites.read, format_args!("{}", act.label)),
            StoreOp::Scan { .. } => self.fault(|sites| &sites.scan, format_args!("{}", act.label)),
            // Whoever waits is told the truth. What a commit meets that nobody waits for is decided when nobody does.
            StoreOp::Commit(_) => "ok",
        };
        // No machine waits for the answer. The operator, who never crashes, stands for whoever does.
        let node = self.nodes.len() - 1;
        let origin = Origin { node, life: self.nodes[node].life, task: Task::Caller(number) };
        let latency_ms = self.store_latency(&act, fate);
        self.answers.insert(number, None);
        Call { number, sent: self.push_store(origin, act, op, fate, latency_ms) }
    }

    /// Lets events happen until the caller has its answer.
    fn answer(&mut self, call: Call) -> Reply {
        loop {
            if let Some(Some(reply)) = self.answers.get_mut(&call.number).map(Option::take) {
                self.answers.remove(&call.number);
                return reply;
            }
            match self.timeline.pop() {
                Some((_, event)) => self.handle(event),
                None => panic!("harness error: nothing is in flight, and call {} has no answer", call.number),
            }
        }
    }

    /// Nobody waits for the answer any more. A commit that has not reached the store yet meets there whatever commits of unknown
    /// outcome meet.
    fn abandon(&mut self, call: Call) {
        self.answers.remove(&call.number);
        let sent = self.timeline.iter().find(|(id, ..)| *id == call.sent).map(|(_, at, _)| at);
        if let Some(at) = sent
            && let Some(Event::Store { origin, act, op: op @ StoreOp::Commit(_), back_ms, .. }) = self.timeline.cancel(call.sent)
        {
            let fate = self.fault(|sites| &sites.commit, format_args!("{}", act.label));
            let tie = self.decider.tie(format_args!("store {}", act.label));
            self.timeline.push(at, tie, Event::Store { origin, act, op, fate, back_ms });
        }
    }
}

struct Shared {
    world: World<'static>,
    calls: u64,
}

/// The store of the simulation, by itself: a world in which nothing happens but what callers ask of its store.
///
/// A clone is another handle on the same records. Time is simulated, and passes while somebody waits.
#[derive(Clone)]
pub struct SimulatedKv {
    shared: Arc<Mutex<Shared>>,
    is_prompt: bool,
}

impl SimulatedKv {
    /// A store whose answers are there at the first poll: no operation overtakes another, and nothing is ever ambiguous.
    pub fn prompt(seed: u64) -> Self {
        Self::new(&PROMPT, seed, true)
    }

    /// A store under way to which operations overtake each other. The first poll sends an operation, a later one waits for its
    /// answer. A transaction that is dropped in between is ambiguous: of four, one happens in its time, one happens and says
    /// "unknown" to nobody, one does not happen, and one happens late, each as the seed decides.
    pub fn in_flight(seed: u64) -> Self {
        Self::new(&IN_FLIGHT, seed, false)
    }

    fn new(scenario: &'static Scenario, seed: u64, is_prompt: bool) -> Self {
        let mut world = World::new(scenario, restante_engine::Decider::new(seed), &RunOptions::default());
        if let Some(operator) = world.nodes.last_mut() {
            operator.up = true;
        }
        Self { shared: Arc::new(Mutex::new(Shared { world, calls: 0 })), is_prompt }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // Only the simulator's own mistakes panic while it is held; they are on their way to whoever looks already.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, what: &'static str, op: StoreOp) -> Asking<'_> {
        Asking { kv: self, what, op: Some(op), call: None }
    }
}

impl fmt::Debug for SimulatedKv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = self.lock();
        let Shared { world, calls } = &*shared;
        let mut shown = f.debug_struct("SimulatedKv");
        shown.field("records", &world.store.len()).field("calls", calls).field("is_prompt", &self.is_prompt).finish()
    }
}

/// An operation of a caller: the first poll sends it, and what is dropped after that is abandoned.
struct Asking<'k> {
    kv: &'k SimulatedKv,
    what: &'static str,
    op: Option<StoreOp>,
    call: Option<Call>,
}

impl Future for Asking<'_> {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reply> {
        let kv = self.kv;
        let mut shared = kv.lock();
        if let Some(op) = self.op.take() {
            shared.calls += 1;
            let number = shared.calls;
            self.call = Some(shared.world.call(number, self.what, op));
            if !kv.is_prompt {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        match self.call.take() {
            Some(call) => Poll::Ready(shared.world.answer(call)),
            None => panic!("harness error: an operation was polled after its answer"),
        }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.kv.lock().world.abandon(call);
        }
    }
}

fn another_answer<T>(reply: &Reply) -> T {
    panic!("harness error: the store gave another operation's answer: {reply:?}")
}

impl AtomicKv for SimulatedKv {
    fn limits(&self) -> Limits {
        self.lock().world.store.limits()
    }

    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move {
            match self.ask("get-many", StoreOp::Read(keys)).await {
                Reply::Snapshot { result, at } => Ok(Snapshot { values: result?, at: Some(at) }),
                reply => another_answer(&reply),
            }
        })
    }

    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(async move {
            match self.ask("scan", StoreOp::Scan { range, limit }).await {
                Reply::Page { result, at, .. } => Ok(Page { at: Some(at), ..result? }),
                reply => another_answer(&reply),
            }
        })
    }

    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        Box::pin(async move {
            // In a run, breaking a write rule is a violation; a caller from outside is refused.
            check_strict(&txn).map_err(|violation| StoreError::InvalidRequest(violation.to_string()))?;
            match self.ask("cas-many", StoreOp::Commit(txn)).await {
                Reply::Committed(result) => result,
                reply => another_answer(&reply),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use restante_kv::{AtomicKv, Check, Expect, Guard, Key, Mutation, StoreError, Txn, Value, Write};

    use super::SimulatedKv;

    fn put(key: &str) -> Txn {
        let key = Key::from(key.as_bytes());
        let write = Write { key: key.clone(), mutation: Mutation::Put(Value::from(&b"x"[..])), guard: Guard::Checked };
        Txn { checks: vec![Check { key, expect: Expect::Absent }], writes: vec![write] }
    }

    fn polled<T>(future: impl Future<Output = T>, times: usize) -> Option<T> {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        (0..times).find_map(|_| match future.as_mut().poll(&mut context) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        })
    }

    #[test]
    fn a_prompt_store_answers_at_the_first_poll_and_one_under_way_at_the_second() {
        assert!(polled(SimulatedKv::prompt(1).cas_many(put("a")), 1).is_some_and(|answer| answer.is_ok()));
        let kv = SimulatedKv::in_flight(1);
        assert!(polled(kv.cas_many(put("a")), 2).is_some_and(|answer| answer.is_ok()));
        let again = polled(kv.cas_many(put("a")), 2).expect("an answer");
        assert!(matches!(again, Err(StoreError::Conflict { .. })), "{again:?}");
    }

    #[test]
    fn what_nobody_waits_for_meets_everything_that_an_unknown_outcome_can_mean() {
        let kv = SimulatedKv::in_flight(7);
        let keys: Vec<String> = (0..60).map(|number| format!("k{number}")).collect();
        for key in &keys {
            assert!(polled(kv.cas_many(put(key)), 1).is_none(), "it is under way");
        }
        // Time passes while somebody waits.
        let is_there = |key: &String| {
            let read = polled(kv.get_many(vec![Key::from(key.as_bytes())]), 2).expect("an answer").expect("it reads");
            read.values[0].is_some()
        };
        let soon = keys.iter().filter(|key| is_there(key)).count();
        let at_last = keys.iter().filter(|key| is_there(key)).count();
        let shared = kv.lock();
        let delivered = |family: &str| shared.world.faults.count(family).delivered as usize;
        let families = ["store.ambiguous-committed", "store.ambiguous-lost", "store.ambiguous-late"];
        assert!(families.iter().all(|family| delivered(family) > 0), "{:?}", shared.world.faults);
        assert_eq!(at_last, keys.len() - delivered("store.ambiguous-lost"));
        assert!(soon <= at_last && shared.world.answers.is_empty(), "{soon} {at_last}");
    }
}
