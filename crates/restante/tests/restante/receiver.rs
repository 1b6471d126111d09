//! A receiver of deliveries on this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Listens until the test ends.
pub(crate) struct Receiver {
    port: u16,
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

impl Receiver {
    /// Answers everything with this status.
    pub(crate) fn answering(status: u16) -> Self {
        Self::start(Some(format!("{status} Done")))
    }

    /// Answers everything with 429, and asks for a pause of this many seconds.
    pub(crate) fn pausing(seconds: u64) -> Self {
        Self::start(Some(format!("429 Slower\r\nRetry-After: {seconds}")))
    }

    /// Reads everything and never answers.
    pub(crate) fn silent() -> Self {
        Self::start(None)
    }

    fn start(answer: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let arrived = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&arrived);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (noted, answer) = (Arc::clone(&noted), answer.clone());
                std::thread::spawn(move || receive(stream, answer.as_deref(), &noted));
            }
        });
        Self { port, arrived }
    }

    pub(crate) fn inbox(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn arrived(&self) -> Vec<Arrived> {
        self.arrived.lock().expect("no panic").clone()
    }

    /// Waits until `count` requests arrived.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Arrived> {
        let began = Instant::now();
        while self.arrived().len() < count {
            assert!(began.elapsed() < Duration::from_secs(20), "{} of {count} arrived", self.arrived().len());
            std::thread::sleep(Duration::from_millis(5));
        }
        self.arrived()
    }
}

fn receive(stream: TcpStream, answer: Option<&str>, arrived: &Mutex<Vec<Arrived>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        arrived.lock().ok()?.push(Arrived { path, head, body: String::from_utf8_lossy(&body).into_owned() });
        match answer {
            Some(answer) => write!(&stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").ok()?,
            None => std::thread::sleep(Duration::from_secs(60)),
        }
    }
}
