//! The pure machines over a real SQLite file: what the simulator runs is what a store runs.

use std::sync::Arc;

use restante_core::atoms::{Bytes, Fence, OwnerId, Sealed, SendId};
use restante_core::machine::{
    Io, LocalTime, PostResult, Reply, RunReport, SendError, SendRequest, Sending, SendingStep, Slots, Transact, TransactStep,
    Worker,
};
use restante_core::plan::{Depth, DepthReport, Recipient, SetIntake};
use restante_core::{Command, Config, Env, Outcome, Rejection};
use restante_kv::{AtomicKv, StoreTime};
use restante_kv_sqlite::SqliteKv;

/// Executes what the machines ask for, one action after the other; every POST is answered by `code`.
struct Bed {
    env: Arc<Env>,
    store: SqliteKv,
    code: u16,
    posts: Vec<Bytes>,
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::yield_now(),
        }
    }
}

impl Bed {
    fn new(path: &std::path::Path) -> Self {
        let env = Arc::new(Env::new(Config { backoff_initial_ms: 1, ..Config::new(86_400_000) }));
        let store = SqliteKv::builder(path).open().expect("a fresh file");
        env.config.validate(&store.limits()).expect("SQLite is above the floor");
        Self { env, store, code: 202, posts: Vec::new() }
    }

    fn execute(&mut self, io: Io) -> Reply {
        match io {
            Io::Read(keys) => match wait(self.store.get_many(keys)) {
                Ok(snapshot) => Reply::Snapshot { result: Ok(snapshot.values), at: snapshot.at.expect("a clock") },
                Err(error) => Reply::Snapshot { result: Err(error), at: StoreTime::default() },
            },
            Io::Scan { range, limit } => {
                let result = wait(self.store.scan(range, limit));
                let at = result.as_ref().ok().and_then(|page| page.at).unwrap_or_default();
                Reply::Page { result, at, entropy: 0 }
            }
            Io::Commit(txn) => Reply::Committed(wait(self.store.cas_many(txn))),
            Io::Sleep { ms, .. } => {
                std::thread::sleep(std::time::Duration::from_millis(ms));
                Reply::Slept
            }
            Io::Post(post) => {
                self.posts.push(post.payload);
                Reply::Posted { result: PostResult::Status { code: self.code, retry_after_ms: None }, entropy: 0 }
            }
        }
    }

    fn send(&mut self, number: u8, order_key: Option<&str>, payload: &[u8]) -> Result<(SendId, bool), SendError> {
        let destination: Arc<str> = "https://a.example".into();
        let request = SendRequest {
            send: SendId::from_bytes([number; 16]),
            idempotency_key: format!("request-{number}").into(),
            recipients: vec![Recipient { inbox: "https://a.example/inbox".into(), destination, deadline: None }],
            order_key: order_key.map(Arc::from),
            payload: Bytes::from(payload),
            signing: Sealed::default(),
            fanout: restante_core::machine::FanoutChoice::Auto,
        };
        let env = self.env.clone();
        let (mut sending, mut step) = Sending::begin(&env, request, 0, LocalTime::default());
        loop {
            step = match step {
                SendingStep::Do(io) => {
                    let reply = self.execute(io);
                    sending.step(&env, reply, LocalTime::default())
                }
                SendingStep::Done(result) => return result.map(|(send, duplicate, _)| (send, duplicate)),
            };
        }
    }

    fn run_once(&mut self, owner: u8, limit: u64) -> RunReport {
        let owner = OwnerId::from_bytes([owner; 16]);
        let (mut worker, mut step) = Worker::once(self.env.clone(), owner, Slots::All, limit, LocalTime::default());
        let mut actions = std::collections::VecDeque::new();
        loop {
            actions.extend(step.actions);
            if let Some(report) = step.finished {
                return report;
            }
            let (task, _, io) = actions.pop_front().expect("a worker that has not finished waits for something");
            let reply = self.execute(io);
            step = worker.step(task, reply, LocalTime::default());
        }
    }

    fn command(&mut self, command: Command) -> Outcome {
        let env = self.env.clone();
        let (mut transact, mut step) = Transact::begin(&env, command, Fence::default(), LocalTime::default());
        loop {
            step = match step {
                TransactStep::Do(io) => {
                    let reply = self.execute(io);
                    transact.step(&env, reply, LocalTime::default())
                }
                TransactStep::Done(result) => return result.expect("no fault is injected here").0,
            };
        }
    }

    fn depth(&mut self) -> DepthReport {
        match self.command(Command::Depth(Depth {})) {
            Outcome::Depth(report) => report,
            other => panic!("depth came to {other:?}"),
        }
    }
}

#[test]
fn sends_are_owned_across_a_reopen_and_delivered_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("backlog.sqlite");
    let mut bed = Bed::new(&path);
    for number in 1..=3 {
        bed.send(number, Some("object"), &[number; 100]).expect("accepted");
    }
    assert!(bed.send(2, Some("object"), &[2; 100]).expect("the same request").1, "a repetition is the same send");
    drop(bed);

    let mut bed = Bed::new(&path);
    assert_eq!(bed.depth().entries, 3);
    let report = bed.run_once(1, 100);
    assert_eq!((report.processed, report.more), (3, false));
    assert_eq!(bed.posts, [Bytes::from(vec![1; 100]), Bytes::from(vec![2; 100]), Bytes::from(vec![3; 100])]);
    assert_eq!(bed.depth().entries, 0);
}

#[test]
fn failures_are_retried_and_large_payloads_arrive_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bed = Bed::new(&folder.path().join("backlog.sqlite"));
    let payload: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
    bed.send(1, None, &payload).expect("accepted");
    bed.code = 500;
    assert_eq!(bed.run_once(1, 1).processed, 1);
    bed.code = 202;
    std::thread::sleep(std::time::Duration::from_millis(20));
    while bed.run_once(2, 10).more {}
    assert_eq!(bed.posts.len(), 2);
    assert!(bed.posts.iter().all(|posted| posted.as_slice() == payload));
    assert_eq!(bed.depth().entries, 0);
}

#[test]
fn a_closed_intake_refuses_and_drained_is_provable() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bed = Bed::new(&folder.path().join("backlog.sqlite"));
    bed.send(1, None, b"hello").expect("accepted");
    bed.command(Command::SetIntake(SetIntake { open: false }));
    assert_eq!(bed.send(2, None, b"hello"), Err(Rejection::IntakeClosed.into()));
    assert!(!bed.depth().is_drained());
    bed.run_once(1, 10);
    assert!(bed.depth().is_drained());
}
