//! A clock that was far ahead, or falls far behind: nothing is lost, and nothing is delivered before its time.

use std::sync::Arc;

use restante_core::machine::{Post, PostResult};
use restante_driver::{Backlog, Message};
use restante_kv::{AtomicKv, BoxFuture, Committed, Key, KeyRange, Limits, Page, Snapshot, StoreError, StoreTime, Txn};
use restante_kv_sqlite::SqliteKv;

use crate::bed::Bed;
use crate::receiver::Receiver;

const TEN_YEARS_MS: u64 = 10 * 365 * 86_400_000;

/// The store, under a clock that is ten years ahead.
struct Ahead(SqliteKv);

fn later(at: Option<StoreTime>) -> Option<StoreTime> {
    at.map(|at| at.plus_ms(TEN_YEARS_MS))
}

impl AtomicKv for Ahead {
    fn limits(&self) -> Limits {
        self.0.limits()
    }
    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move {
            let snapshot = self.0.get_many(keys).await?;
            Ok(Snapshot { at: later(snapshot.at), ..snapshot })
        })
    }
    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(async move {
            let page = self.0.scan(range, limit).await?;
            Ok(Page { at: later(page.at), ..page })
        })
    }
    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        self.0.cas_many(txn)
    }
}

#[test]
fn what_was_accepted_under_a_clock_far_ahead_is_kept_and_not_due_yet() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(202));
    let store = SqliteKv::builder(bed.path("backlog.sqlite")).open().expect("the store");
    let config = restante_core::Config { counter_slots: 128, ..restante_core::Config::new(7 * 86_400_000) };
    let nothing = tower::service_fn(|_: Post| async { Ok::<_, std::convert::Infallible>(PostResult::Unknown) });
    let ahead = Backlog::builder(Arc::new(Ahead(store)), config, nothing).build().expect("a backlog");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let sent = runtime.block_on(ahead.send(Message::new(receiver.inbox("/future"), &b"x"[..]))).expect("a send");
    drop((ahead, runtime));
    bed.send(&receiver.inbox("/now"), "y");

    let run = bed.ask(&["run-once"]);
    assert_eq!((&run["processed"], &run["more"]), (&1.into(), &false.into()), "{run}");
    assert!(run["next_in_ms"].as_u64().is_some_and(|ms| ms > 0), "{run}");
    assert_eq!(receiver.arrived().iter().map(|arrived| arrived.path.as_str()).collect::<Vec<_>>(), ["/now"]);
    assert_eq!(bed.ask(&["depth"])["entries"], 1, "it is still owned");
    let left = bed.ask(&["inspect", &format!("{}.0", sent.send)]);
    assert_eq!((&left["wait"], &left["failure_count"]), (&"new".into(), &0.into()));
    let doctor = bed.run(&["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");

    let server = bed.serve(&[]);
    assert_eq!(server.ask("GET", "/v1/depth", "").body["entries"], 1);
    assert_eq!(receiver.arrived().len(), 1, "a worker that serves does not deliver it either");
}
