//! Moving from an old queue to the backlog, and back, on two SQLite files: `cargo run -p restante-driver --example move_over`.
//!
//! Old messages are tried on the old path; one whose destination is held is adopted. Then intake is closed: a send goes to the old
//! queue, the backlog drains, and says so.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use restante_core::Config;
use restante_core::atoms::Sealed;
use restante_core::machine::{LegacyMode, LegacySettings, Post, PostResult};
use restante_driver::{Backlog, Message, OldPath, Owner};
use restante_kv::BoxFuture;
use restante_kv_sqlite::SqliteKv;
use restante_legacy::codec::{LegacyKey, OutboxMessage};
use restante_legacy::{Draft, KeyError, Keyring, LegacyQueue, SqliteQueue};

const ACCEPTED: PostResult = PostResult::Status { code: 202, retry_after_ms: None };

/// A server without keys.
#[derive(Debug)]
struct NoKeys;

impl Keyring for NoKeys {
    fn seal<'k>(&'k self, _keys: &'k [LegacyKey]) -> BoxFuture<'k, Result<Sealed, KeyError>> {
        Box::pin(async { Ok(Sealed::default()) })
    }
    fn open<'k>(&'k self, _signing: &'k Sealed) -> BoxFuture<'k, Result<Vec<LegacyKey>, KeyError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    fn base_url(&self) -> &str {
        "https://here.example/"
    }
}

struct OldSender;

impl OldPath for OldSender {
    fn attempt(&self, message: OutboxMessage) -> BoxFuture<'_, PostResult> {
        Box::pin(async move {
            println!("old path: {} to {}", message.id(), message.inbox());
            ACCEPTED
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let queue = SqliteQueue::open(folder.path().join("old-queue.sqlite"))?;
    let store = SqliteKv::builder(folder.path().join("backlog.sqlite")).open()?;
    let sender = tower::service_fn(|post: Post| async move {
        println!("backlog:  {} to {}", post.entry, post.inbox);
        Ok::<_, Infallible>(ACCEPTED)
    });
    let settings = LegacySettings { poll_ms: 20, ..LegacySettings::new(LegacyMode::AdoptOnHold) };
    let backlog = Backlog::builder(Arc::new(store), Config::new(86_400_000), sender)
        .legacy_queue(Arc::new(queue.clone()), settings, Arc::new(NoKeys))
        .build()?;

    // What the old server left behind. One host asks not to be delivered to for now.
    let old = |id: &str, host: &str| {
        let body = format!(r#"{{"type":"outbox","id":"{id}","inbox":"https://{host}/inbox","activity":{{}},"attempt":2}}"#);
        Draft::new(id, body.into_bytes())
    };
    queue.enqueue(vec![old("old-1", "a.example"), old("old-2", "held.example")]).await?;
    backlog.set_hold("https://held.example/", None, None).await?;

    let listener = backlog.work_off(OldSender)?;
    while !queue.depth().await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!("the old queue is empty, the backlog has {} delivery", backlog.depth().await?.entries);
    backlog.release_hold("https://held.example/", None).await?;

    // And back: nothing new is accepted, what is owned is delivered, and then nothing is left.
    backlog.set_intake(false).await?;
    let accepted = backlog.send(Message::new("https://b.example/inbox", &b"{}"[..])).await?;
    assert_eq!(accepted.owner, Owner::LegacyQueue);
    let worker = backlog.start();
    while !backlog.drained().await? || !queue.depth().await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!("drained");
    worker.shutdown(Duration::from_secs(5)).await;
    let report = listener.shutdown(Duration::from_secs(5)).await;
    assert_eq!((report.delivered, report.adopted), (2, 1));
    Ok(())
}
