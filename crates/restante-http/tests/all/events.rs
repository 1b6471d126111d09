//! What the sender tells of its attempts, and what it does not.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use restante_core::atoms::{Bytes, EntryId, SendId};
use restante_core::machine::{NotSent, PostResult};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::receiver::{Receiver, answer, open, post_to};

/// Keeps the events of all senders in this process, each as a line of text: which places are listened to is known to the whole
/// process, so a subscriber of one thread alone would miss some while other tests run.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<String>>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}

impl Subscriber for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("restante_http")
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = String::new();
        event.record(&mut Fields(&mut line));
        self.0.lock().expect("no panic").push(line);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn events_name_entry_and_host_and_neither_path_nor_payload() {
    let kept = Kept::default();
    tracing::subscriber::set_global_default(kept.clone()).expect("the only one");
    let receiver = Receiver::start(vec![answer("202 Accepted", "X-Secret-Answer: 1\r\n")]).await;
    let sender = open().header("authorization", "secret-header").build().expect("a sender");
    let mut post = post_to(&receiver.url("/secret-path?secret-query"));
    post.entry = EntryId { send: SendId::from_bytes([0xee; 16]), index: 0 };
    post.payload = Bytes::from(&b"secret-payload"[..]);
    assert_eq!(sender.send(post.clone()).await, PostResult::Status { code: 202, retry_after_ms: None });
    // Refused by the sender, and without an answer.
    post.inbox = "ftp://secret-user@social.example/secret-path".into();
    assert_eq!(sender.send(post.clone()).await, PostResult::NotSent(NotSent::Refused));
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    post.inbox = format!("http://{free}/secret-path").into();
    assert_eq!(sender.send(post.clone()).await, PostResult::NotSent(NotSent::Connect));

    let entry = format!("entry={} ", post.entry);
    let kept = kept.0.lock().expect("no panic");
    let told: Vec<&str> = kept.iter().filter(|line| line.contains(&entry)).map(String::as_str).collect();
    let told = told.join("\n");
    assert!(told.contains(&format!("host={} ", receiver.address)), "{told}");
    assert!(told.contains("not sent: Refused") && told.contains("no answer"), "{told}");
    assert!(!told.to_lowercase().contains("secret"), "{told}");
}
