//! The other end: notes every attempt, and answers it well, badly, late or not at all.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::{Item, mix};

/// Each is a destination of its own.
pub(crate) const PORTS: usize = 4;

/// How an attempt was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// 202.
    Accepted,
    /// 202, after the sender had given up waiting.
    AcceptedTooLate,
    /// 503.
    Unavailable,
    /// The connection was closed without a word.
    Nothing,
}

/// One attempt that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// What.
    pub(crate) item: Item,
    /// The delivery that it was an attempt of.
    pub(crate) entry: String,
    /// When it was there whole.
    pub(crate) at: Instant,
    /// How it was answered.
    pub(crate) answer: Answer,
}

impl Arrival {
    /// Whether the receiver took it, whatever the sender knows of it.
    pub(crate) fn is_accepted(&self) -> bool {
        matches!(self.answer, Answer::Accepted | Answer::AcceptedTooLate)
    }
}

#[derive(Debug, Default)]
struct Noted {
    arrivals: Vec<Arrival>,
    attempts: BTreeMap<Item, u64>,
}

#[derive(Debug)]
pub(crate) struct Receiver {
    seed: u64,
    ports: Vec<u16>,
    noted: Mutex<Noted>,
    more: Condvar,
}

impl Receiver {
    /// Listens until the program ends.
    pub(crate) fn start(seed: u64) -> Arc<Self> {
        let listeners: Vec<TcpListener> = (0..PORTS).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let ports = listeners.iter().map(|listener| listener.local_addr().expect("an address").port()).collect();
        let receiver = Arc::new(Self { seed, ports, noted: Mutex::default(), more: Condvar::new() });
        for listener in listeners {
            let receiver = Arc::clone(&receiver);
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let receiver = Arc::clone(&receiver);
                    // A connection that breaks is the process's, which was killed.
                    std::thread::spawn(move || drop(receiver.converse(stream)));
                }
            });
        }
        receiver
    }

    pub(crate) fn inbox(&self, item: Item) -> String {
        format!("http://127.0.0.1:{}/inbox", self.ports[item.port_index()])
    }

    fn converse(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut writer = stream.try_clone()?;
        let mut reader = BufReader::new(stream);
        loop {
            let (mut length, mut entry) = (0, String::new());
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line)? == 0 {
                    return Ok(());
                }
                let Some((name, value)) = line.trim().split_once(':') else {
                    if line.trim().is_empty() {
                        break;
                    }
                    continue;
                };
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.trim().parse().unwrap_or(0),
                    "idempotency-key" => entry = value.trim().to_owned(),
                    _ => {}
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            let text = String::from_utf8_lossy(&body);
            let number =
                text.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty()).and_then(|part| part.parse().ok());
            let item = Item(number.expect("an item's payload holds its number"));
            let (answer, delay) = self.note(item, entry);
            std::thread::sleep(delay);
            match answer {
                Answer::Accepted | Answer::AcceptedTooLate => {
                    writer.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")?
                }
                Answer::Unavailable => writer.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")?,
                Answer::Nothing => return Ok(()),
            }
        }
    }

    fn note(&self, item: Item, entry: String) -> (Answer, Duration) {
        let mut noted = self.noted.lock().expect("no panic");
        let attempt = noted.attempts.entry(item).or_default();
        *attempt += 1;
        let dice = mix(&[self.seed, item.0, *attempt]) % 1_000;
        // After a few tries everything goes well, so that the end comes.
        let (answer, delay_ms) = match dice {
            _ if *attempt > 6 => (Answer::Accepted, 0),
            0..=79 => (Answer::Unavailable, 0),
            80..=109 => (Answer::Nothing, 0),
            110..=119 => (Answer::AcceptedTooLate, 1_500),
            120..=199 => (Answer::Accepted, 50 + dice),
            _ => (Answer::Accepted, 0),
        };
        noted.arrivals.push(Arrival { item, entry, at: Instant::now(), answer });
        drop(noted);
        self.more.notify_all();
        (answer, Duration::from_millis(delay_ms))
    }

    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.noted.lock().expect("no panic").arrivals.clone()
    }

    /// Items of which anything arrived.
    pub(crate) fn items(&self) -> usize {
        self.noted.lock().expect("no panic").attempts.len()
    }

    /// Waits for the next arrival, and says when it came.
    pub(crate) fn wait_for_more(&self, deadline: Duration) -> Option<Instant> {
        let noted = self.noted.lock().expect("no panic");
        let count = noted.arrivals.len();
        let (noted, _) = self.more.wait_timeout_while(noted, deadline, |noted| noted.arrivals.len() == count).expect("no panic");
        noted.arrivals.get(count).map(|arrival| arrival.at)
    }
}
