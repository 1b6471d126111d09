//! Group commit: who shares a commit, and whose fault is whose.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use restante_kv::{AtomicKv, StoreError, Txn, Versioned};
use restante_kv_conformance::block_on;
use rusqlite::Connection;

use crate::OpenError;

use super::{Answer, Temp, absent, assert_sound, commit, delete, get, is, put, sent, txn};

/// Holds a commit up until the transactions of the next group wait behind it, so that they become one group.
struct Gate {
    temp: Temp,
    commits: Arc<AtomicUsize>,
    fail: Arc<AtomicBool>,
    hold: Arc<AtomicBool>,
    held: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
}

impl Gate {
    fn new() -> Self {
        let [fail, hold] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let commits = Arc::new(AtomicUsize::new(0));
        let (is_held, held) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        let channels = Mutex::new((is_held, may_go_on));
        let hook = {
            let (fail, hold, commits) = (Arc::clone(&fail), Arc::clone(&hold), Arc::clone(&commits));
            move || {
                commits.fetch_add(1, Ordering::SeqCst);
                if hold.swap(false, Ordering::SeqCst) {
                    let (is_held, may_go_on) = &*channels.lock().unwrap();
                    is_held.send(()).unwrap();
                    may_go_on.recv().unwrap();
                    return false;
                }
                fail.swap(false, Ordering::SeqCst)
            }
        };
        Self { temp: Temp::hooked(hook), commits, fail, hold, held, go_on }
    }

    /// Runs `txns` as one group, failing its commit if asked to; says how many commits that took.
    fn group(&self, txns: Vec<Txn>, fails: bool) -> (Vec<Answer>, usize) {
        self.hold.store(true, Ordering::SeqCst);
        let plug = sent(self.temp.cas_many(txn(&[], &[put("plug", "")])));
        self.held.recv_timeout(Duration::from_secs(10)).expect("the plug reaches its commit");
        let waiting: Vec<_> = txns.into_iter().map(|txn| sent(self.temp.cas_many(txn))).collect();
        let before = self.commits.load(Ordering::SeqCst);
        self.fail.store(fails, Ordering::SeqCst);
        self.go_on.send(()).unwrap();
        block_on(plug).expect("the plug commits");
        let answers = waiting.into_iter().map(block_on).collect();
        (answers, self.commits.load(Ordering::SeqCst) - before)
    }
}

fn bytes(record: Option<Versioned>) -> Option<Vec<u8>> {
    record.map(|record| record.value.as_bytes().to_vec())
}

fn is_conflict(answer: &Answer) -> bool {
    matches!(answer, Err(StoreError::Conflict { failed }) if failed == &[0])
}

#[test]
fn waiting_transactions_share_one_commit() {
    let gate = Gate::new();
    let (answers, commits) = gate.group((0..64).map(|i| txn(&[], &[put(&format!("k{i}"), "v")])).collect(), false);
    assert_eq!((answers.len(), commits), (64, 1));
    let mut versions: Vec<u128> = answers.into_iter().map(|answer| answer.expect("committed").version.to_raw()).collect();
    versions.dedup();
    assert_eq!(versions.len(), 64, "each member has a version of its own");
    let (_, commits) = gate.group((0..65).map(|i| txn(&[], &[put(&format!("k{i}"), "v")])).collect(), false);
    assert_eq!(commits, 2, "a group has 64 members at most");
}

#[test]
fn a_conflict_in_a_group_leaves_its_neighbours_intact() {
    let gate = Gate::new();
    let old = commit(&gate.temp, &[], &[put("taken", "old")]).unwrap().version;
    let (answers, commits) = gate.group(
        vec![
            txn(&[absent("a")], &[put("a", "1")]),
            txn(&[absent("taken"), absent("b")], &[put("b", "1"), put("taken", "new")]),
            txn(&[absent("c")], &[put("c", "1")]),
        ],
        false,
    );
    assert_eq!(commits, 1);
    assert!(answers[0].is_ok() && is_conflict(&answers[1]) && answers[2].is_ok(), "{answers:?}");
    assert_eq!(["a", "b", "c"].map(|name| get(&gate.temp, name).is_some()), [true, false, true]);
    assert_eq!(get(&gate.temp, "taken").unwrap().version, old);
}

#[test]
fn members_of_a_group_see_each_other_in_their_order() {
    let gate = Gate::new();
    let race = |value: &str| txn(&[absent("k")], &[put("k", value)]);
    let (answers, _) = gate.group(vec![race("first"), race("second"), txn(&[absent("k")], &[])], false);
    assert!(answers[0].is_ok() && is_conflict(&answers[1]) && is_conflict(&answers[2]), "{answers:?}");
    assert_eq!(bytes(get(&gate.temp, "k")).unwrap(), b"first");
}

#[test]
fn a_group_that_writes_nothing_commits_nothing() {
    let gate = Gate::new();
    let (answers, commits) = gate.group(vec![txn(&[absent("a")], &[]), txn(&[absent("plug")], &[put("a", "")])], false);
    assert!(answers[0].is_ok() && is_conflict(&answers[1]), "{answers:?}");
    assert_eq!(commits, 0);
}

#[test]
fn a_failed_commit_is_ambiguous_for_whoever_would_have_succeeded() {
    let gate = Gate::new();
    let old = commit(&gate.temp, &[], &[put("taken", "old")]).unwrap().version;
    let (answers, commits) = gate.group(
        vec![
            txn(&[absent("a")], &[put("a", "1")]),
            txn(&[absent("taken")], &[put("taken", "new")]),
            txn(&[is("taken", old)], &[delete("taken")]),
            txn(&[absent("z")], &[]),
        ],
        true,
    );
    assert_eq!(commits, 1);
    let ambiguous = |i: usize| matches!(answers[i], Err(StoreError::Ambiguous(_)));
    assert!(ambiguous(0) && is_conflict(&answers[1]) && ambiguous(2) && ambiguous(3), "{answers:?}");
    // This fault happens to be a rollback: nothing of the group is there, and the writer goes on with a new connection.
    assert_eq!(get(&gate.temp, "a"), None);
    assert_eq!(get(&gate.temp, "taken").unwrap().version, old);
    let next = commit(&gate.temp, &[absent("a")], &[put("a", "2")]).expect("the writer goes on").version.to_raw();
    assert!(next > old.to_raw() + 3, "version {next} was tried by the failed group");
    assert_eq!(bytes(get(&gate.temp, "a")).unwrap(), b"2");
    assert_sound(&gate.temp.path());
}

#[test]
fn every_failed_commit_of_many_is_ambiguous_and_none_is_half_there() {
    let turn = AtomicUsize::new(0);
    let temp = Temp::hooked(move || turn.fetch_add(1, Ordering::SeqCst) % 3 == 2);
    let callers = 16;
    let outcomes: Vec<(String, Answer)> = std::thread::scope(|scope| {
        let run = |caller: usize| {
            let attempt = |i: usize| {
                let name = format!("{caller}/{i}");
                let answer = commit(&temp, &[absent(&name)], &[put(&name, "x"), put(&format!("{name}/twin"), "x")]);
                (name, answer)
            };
            (0..20).map(attempt).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..callers).map(|caller| scope.spawn(move || run(caller))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut ambiguous = 0;
    for (name, answer) in outcomes {
        let found = [get(&temp, &name), get(&temp, &format!("{name}/twin"))];
        assert_eq!(found[0], found[1], "{name} is half there");
        match answer {
            Ok(committed) => assert_eq!(found[0].as_ref().map(|record| record.version), Some(committed.version)),
            Err(StoreError::Ambiguous(_)) => ambiguous += 1,
            Err(other) => panic!("{name}: {other}"),
        }
    }
    assert!(ambiguous > 0, "no commit failed");
    assert_sound(&temp.path());
}

#[test]
fn a_member_that_fills_the_disk_is_refused_and_its_neighbours_commit() {
    // SQLite reports a full disk in the middle of a member and rolls the whole group back.
    let is_limited = |connection: &mut Connection| connection.execute_batch("PRAGMA max_page_count = 60").unwrap();
    let temp = Temp::prepared(|builder| builder, is_limited);
    let blocker = temp.raw();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let large = vec![7; 900 * 1024];
    let futures = [
        temp.cas_many(txn(&[], &[put("plug", "")])),
        temp.cas_many(txn(&[], &[put("a", "1")])),
        temp.cas_many(txn(&[], &[put("b", "1"), put("large", &large)])),
        temp.cas_many(txn(&[absent("c")], &[put("c", "1")])),
    ];
    let waiting: Vec<_> = futures.into_iter().map(sent).collect();
    blocker.execute_batch("ROLLBACK").unwrap();
    let answers: Vec<Answer> = waiting.into_iter().map(block_on).collect();
    assert!(answers[1].is_ok() && answers[3].is_ok(), "{answers:?}");
    assert!(matches!(&answers[2], Err(StoreError::Unavailable(why)) if why.contains("full")), "{answers:?}");
    assert_eq!(["a", "b", "c", "large"].map(|name| get(&temp, name).is_some()), [true, false, true, false]);
    assert_sound(&temp.path());
}

/// A store whose commits all fail, and whose writer gets `reopened` when it asks for its second connection.
fn failing_then(mut reopened: impl FnMut() -> Result<(), OpenError> + Send + 'static) -> Temp {
    Temp::start(
        |builder| builder,
        |builder| {
            let settings = builder.settings().unwrap();
            let mut connect = settings.connector();
            let mut connections = 0;
            let connect = move || {
                connections += 1;
                if connections == 2 {
                    reopened()?;
                }
                let mut connection = connect()?;
                if connections == 1 {
                    connection.commit_hook(Some(|| true)).unwrap();
                }
                Ok(connection)
            };
            builder.open_with(settings, Box::new(connect)).unwrap()
        },
    )
}

#[test]
fn a_writer_that_cannot_connect_again_refuses_and_keeps_trying() {
    let temp = failing_then(|| Err(OpenError::ReadOnly { path: "s.db".into() }));
    let put = |value: &str| commit(&temp, &[absent("k")], &[put("k", value)]);
    assert!(matches!(put("1"), Err(StoreError::Ambiguous(_))));
    assert!(matches!(put("2"), Err(StoreError::Unavailable(why)) if why.contains("read-only")));
    put("3").expect("the third connection is good");
    assert_eq!(bytes(get(&temp, "k")).unwrap(), b"3");
}

#[test]
fn a_writer_that_panics_leaves_nobody_waiting() {
    let temp = failing_then(|| panic!("on purpose: the writer ends"));
    let put = || commit(&temp, &[], &[put("k", "1")]);
    assert!(matches!(put(), Err(StoreError::Ambiguous(_))));
    assert!(matches!(put(), Err(StoreError::Ambiguous(_))), "it was in the queue of the writer that ended");
    while let Err(StoreError::Ambiguous(_)) = put() {}
    assert!(matches!(put(), Err(StoreError::Unavailable(_))), "nothing is sent to a writer that ended");
    assert_eq!(get(&temp, "k"), None, "reading goes on");
}

#[test]
fn a_transaction_whose_future_was_dropped_happens_whole_or_not_at_all() {
    let temp = Temp::new();
    for i in 0..100 {
        let names = [format!("a{i}"), format!("b{i}")];
        drop(sent_or_done(temp.cas_many(txn(&[], &[put(&names[0], "x"), put(&names[1], "x")]))));
        drop(temp.cas_many(txn(&[], &[put("never polled", "x")])));
    }
    temp.kv.close();
    let again = temp.another();
    for i in 0..100 {
        assert_eq!(get(&again, &format!("a{i}")), get(&again, &format!("b{i}")));
    }
    assert_eq!(get(&again, "never polled"), None, "nothing is sent before the first poll");
}

/// Like [`sent`], for a store that may be fast enough to have answered.
fn sent_or_done<T>(mut future: restante_kv::BoxFuture<'_, T>) -> restante_kv::BoxFuture<'_, T> {
    let _ = future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    future
}
