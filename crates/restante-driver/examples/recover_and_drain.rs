//! A life of a backlog: messages are accepted, the process "dies" while it delivers, another one recovers without any traffic,
//! intake is closed, and "drained" is proved.
//!
//! Run it with `cargo run -p restante-driver --example recover_and_drain`. It ends with an error if anything is not as it says.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use restante_core::Config;
use restante_core::machine::{Post, PostResult};
use restante_driver::{Backlog, Message, SendError};
use restante_kv_sqlite::SqliteKv;
use tower::service_fn;

const MESSAGES: usize = 20;
const LEASE_MS: u64 = 2_000;

/// What receivers got.
#[derive(Clone, Default)]
struct Got {
    /// How often, by payload.
    times: BTreeMap<String, u32>,
    /// The payloads, in the order of their first arrival.
    order: Vec<String>,
}

#[derive(Clone, Default)]
struct Receivers(Arc<Mutex<Got>>);

impl Receivers {
    fn take(&self, post: &Post) {
        let payload = String::from_utf8_lossy(post.payload.as_slice()).into_owned();
        let mut got = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = got.times.entry(payload.clone()).or_insert(0);
        *count += 1;
        if *count == 1 {
            got.order.push(payload);
        }
    }

    fn got(&self) -> Got {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A process opens the store. Its receivers answer after `answer_after`.
fn open(path: &Path, receivers: &Receivers, answer_after: Duration) -> Result<Backlog, Box<dyn Error>> {
    let store = SqliteKv::builder(path).create(true).open()?;
    let config = Config {
        lease_ms: LEASE_MS,
        request_timeout_ms: 500,
        lease_margin_ms: 200,
        gate_freshness_ms: 500,
        ..Config::new(24 * 3_600_000)
    };
    let receivers = receivers.clone();
    let sender = service_fn(move |post: Post| {
        let receivers = receivers.clone();
        async move {
            receivers.take(&post);
            tokio::time::sleep(answer_after).await;
            Ok(PostResult::Status { code: 202, retry_after_ms: None })
        }
    });
    Ok(Backlog::builder(Arc::new(store), config, sender).build()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("backlog.sqlite");
    let receivers = Receivers::default();

    // The first process accepts everything and begins to deliver.
    {
        let backlog = open(&path, &receivers, Duration::from_millis(150))?;
        for number in 0..MESSAGES {
            let message = Message::new("https://a.example/inbox", format!("message {number}").as_bytes())
                .idempotency_key(format!("message-{number}"))
                .order_key("one conversation");
            backlog.send(message).await?;
        }
        println!("accepted: {}", backlog.depth().await?.entries);
        let worker = backlog.start();
        tokio::time::sleep(Duration::from_millis(700)).await;
        // Nothing is awaited, nothing is put in order: the process is gone.
        let report = worker.shutdown(Duration::ZERO).await;
        println!("died with {} under way; {} had arrived", report.abandoned, receivers.got().order.len());
    }

    // Another process. Nobody sends anything; bounded runs alone find what is left, also what the dead one had leased.
    let backlog = open(&path, &receivers, Duration::ZERO)?;
    backlog.set_intake(false).await?;
    let refused = backlog.send(Message::new("https://a.example/inbox", &b"too late"[..])).await;
    assert!(matches!(refused, Err(SendError::IntakeClosed)), "closed intake refuses: {refused:?}");
    while !backlog.drained().await? {
        let report = backlog.run_once(100).await;
        println!("a run delivered {}, more: {}", report.processed, report.more);
        if !report.more {
            // What is leased still is due when its lease ends.
            tokio::time::sleep(Duration::from_millis(LEASE_MS / 4)).await;
        }
    }
    println!("drained: proved at one snapshot, with intake closed");

    let Got { times, order } = receivers.got();
    let expected: Vec<String> = (0..MESSAGES).map(|number| format!("message {number}")).collect();
    assert_eq!(order, expected, "accepted order");
    let twice: Vec<&String> = times.iter().filter(|(_, count)| **count > 1).map(|(payload, _)| payload).collect();
    println!("arrived: {} of {MESSAGES}, in accepted order; twice: {twice:?}", times.len());
    Ok(())
}
