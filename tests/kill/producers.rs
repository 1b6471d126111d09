//! Whoever hands items over, and repeats what was not answered.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Item;
use super::process::TOKEN;
use super::receiver::Receiver;

const PRODUCERS: u64 = 8;

#[derive(Debug)]
struct Shared {
    address: Mutex<String>,
    accepted: Mutex<BTreeMap<Item, Instant>>,
    gives_up_at: Mutex<Option<Instant>>,
}

#[derive(Debug)]
pub(crate) struct Producers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Producers {
    pub(crate) fn start(item_count: u64, receiver: &Arc<Receiver>, address: &str) -> Self {
        let shared = Arc::new(Shared {
            address: Mutex::new(address.to_owned()),
            accepted: Mutex::default(),
            gives_up_at: Mutex::new(None),
        });
        // One producer a key, so that the order in which its items are accepted is the order of their numbers.
        let producer_of = |item: Item| item.order_key().unwrap_or(item.0) % PRODUCERS;
        let threads = (0..PRODUCERS)
            .map(|number| {
                let (shared, receiver) = (Arc::clone(&shared), Arc::clone(receiver));
                std::thread::spawn(move || {
                    for item in (0..item_count).map(Item).filter(|item| producer_of(*item) == number) {
                        if !shared.hand_over(item, &receiver.inbox(item)) {
                            return;
                        }
                        // So that the kills come while items are still being handed over.
                        std::thread::sleep(Duration::from_millis(25));
                    }
                })
            })
            .collect();
        Self { shared, threads }
    }

    /// The process has another address now.
    pub(crate) fn moved_to(&self, address: &str) {
        *self.shared.address.lock().expect("no panic") = address.to_owned();
    }

    pub(crate) fn accepted(&self) -> usize {
        self.shared.accepted.lock().expect("no panic").len()
    }

    /// Waits until everything is handed over; items with the instants of their acceptance.
    pub(crate) fn finish(self, deadline: Duration) -> BTreeMap<Item, Instant> {
        *self.shared.gives_up_at.lock().expect("no panic") = Some(Instant::now() + deadline);
        for thread in self.threads {
            thread.join().expect("a producer does not panic");
        }
        self.shared.accepted.lock().expect("no panic").clone()
    }
}

impl Shared {
    fn hand_over(&self, item: Item, inbox: &str) -> bool {
        let key = item.order_key().map(|key| format!(",\"order_key\":\"key-{key}\"")).unwrap_or_default();
        let number = item.0;
        let body = format!(
            "{{\"inboxes\":[\"{inbox}\"],\"payload\":{{\"json\":{{\"item\":{number}}}}},\"idempotency_key\":\"item-{number}\"{key}}}"
        );
        loop {
            let address = self.address.lock().expect("no panic").clone();
            // Whatever is not a clear yes is asked again: the idempotency key makes that safe.
            if ask(&address, &body).is_ok_and(|status| status == 202) {
                self.accepted.lock().expect("no panic").insert(item, Instant::now());
                return true;
            }
            if self.gives_up_at.lock().expect("no panic").is_some_and(|at| Instant::now() > at) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn ask(address: &str, body: &str) -> std::io::Result<u16> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(
        stream,
        "POST /v1/sends HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0))
}
