//! What is logged names ids and never a secret.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use restante_core::atoms::Sealed;
use restante_core::machine::PostResult;
use restante_driver::Message;
use restante_kv::{AtomicKv as _, Check, Expect, Guard, Mutation, Txn, Write};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

use crate::bed::{ACCEPTED, Log, answering, backlog, config, memory};

/// Writes every event down.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<String>>);

impl Visit for &Written {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0.lock().unwrap(), " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Written {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        attributes.record(&mut &*self);
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut &*self);
    }
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut &*self);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn events_name_deliveries_and_repeat_no_secret() {
    let written = Written::default();
    let _guard = tracing::subscriber::set_default(written.clone());
    let (store, log) = (memory(), Log::default());
    let gone = PostResult::Status { code: 410, retry_after_ms: None };
    let backlog = backlog(&store, config(), answering(&log, move |n| if n == 0 { ACCEPTED } else { gone }));
    let message = || {
        let signing = Sealed::new(&b"sealed-signing-reference"[..]);
        Message::new("https://a.example/inbox", &b"the-secret-payload"[..]).signing(signing)
    };
    let first = backlog.send(message()).await.unwrap();
    backlog.run_once(10).await;
    backlog.send(message()).await.unwrap();
    backlog.run_once(10).await;
    let text = written.0.lock().unwrap().clone();
    assert!(text.contains(&first.send.to_string()), "{text}");
    assert!(text.contains("refused for good with status 410"), "{text}");
    assert!(!text.contains("the-secret-payload") && !text.contains("sealed-signing"), "{text}");
}

#[tokio::test]
async fn changes_of_a_circuit_are_told_with_their_destination_and_their_state() {
    let written = Written::default();
    let _guard = tracing::subscriber::set_default(written.clone());
    let (store, log) = (memory(), Log::default());
    let broken = PostResult::Status { code: 500, retry_after_ms: None };
    let config = restante_core::Config { breaker_failures: 2, ..config() };
    let backlog = backlog(&store, config, answering(&log, move |_| broken));
    for _ in 0..2 {
        backlog.send(Message::new("https://a.example/inbox", &b"x"[..])).await.unwrap();
    }
    backlog.run_once(2).await;
    let text = written.0.lock().unwrap().clone();
    assert!(text.contains(r#"destination=https://a.example state="open""#), "{text}");
}

#[tokio::test]
async fn a_record_that_cannot_be_used_is_told_by_its_kind_and_no_key_of_the_store_is() {
    let written = Written::default();
    let _guard = tracing::subscriber::set_default(written.clone());
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, config(), answering(&log, |_| ACCEPTED));
    let accepted = backlog.send(Message::new("https://ada.example/inbox", &b"x"[..])).await.unwrap();
    let key = backlog.env().keys.destination("https://ada.example");
    let writes = vec![Write { key: key.clone(), mutation: Mutation::Put(vec![200, 1].into()), guard: Guard::Checked }];
    let checks = vec![Check { key: key.clone(), expect: Expect::Absent }];
    store.cas_many(Txn { checks, writes }).await.unwrap();
    backlog.run_once(10).await;
    let text = written.0.lock().unwrap().clone();
    let warned = text.split(" message=").find(|event| event.starts_with("given up for now")).unwrap_or_default();
    assert!(warned.contains(&accepted.send.to_string()) && warned.contains("a record cannot be used"), "{text}");
    assert!(!text.contains(&format!("{key:?}")), "{text}");
}
