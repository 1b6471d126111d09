//! A receiver with a script, and what all tests build their attempts from.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use restante_core::atoms::{Bytes, EntryId, Fence, Sealed, SendId};
use restante_core::machine::{ExecutionKey, LocalTime, Post, PostResult};
use restante_http::{Addresses, Builder, HttpSender, Resolver};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const BODY: &[u8] = br#"{"type":"Create"}"#;

/// What a receiver does after it has read a request.
#[derive(Clone)]
pub(crate) enum Act {
    Write(Vec<u8>),
    Pause(Duration),
    /// Writes until the other side hangs up.
    Flood,
    /// Closes the connection without a word.
    Close,
    /// Resets it.
    Reset,
}

pub(crate) fn write(text: &str) -> Act {
    Act::Write(text.as_bytes().to_vec())
}

/// An answer with this status line and these header lines, and a body of five bytes.
pub(crate) fn answer(status: &str, headers: &str) -> Act {
    write(&format!("HTTP/1.1 {status}\r\n{headers}Content-Length: 5\r\n\r\nhello"))
}

/// A request as it arrived: the number of its connection, its head and its body.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) connection: usize,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) requests: Mutex<Vec<Got>>,
    pub(crate) connections: AtomicUsize,
    pub(crate) ended: AtomicUsize,
}

pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
}

impl Receiver {
    /// A receiver that goes through `script` after every request.
    pub(crate) async fn start(script: Vec<Act>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Seen::default());
        let theirs = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = theirs.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve_tcp(stream, connection, theirs.clone(), script.clone()));
            }
        });
        Self { address, seen }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
    pub(crate) fn requests(&self) -> Vec<Got> {
        self.seen.requests.lock().expect("no panic").clone()
    }
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }
    /// How many connections are over.
    pub(crate) fn ended(&self) -> usize {
        self.seen.ended.load(Ordering::SeqCst)
    }
}

async fn serve_tcp(stream: TcpStream, connection: usize, seen: Arc<Seen>, script: Vec<Act>) {
    if script.iter().any(|act| matches!(act, Act::Reset)) {
        stream.set_zero_linger().expect("an open socket");
    }
    let _ = serve(stream, connection, &seen, &script).await;
    seen.ended.fetch_add(1, Ordering::SeqCst);
}

pub(crate) async fn serve<S>(mut stream: S, connection: usize, seen: &Seen, script: &[Act]) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some((head, body)) = read_request(&mut stream).await? {
        seen.requests.lock().expect("no panic").push(Got { connection, head, body });
        for act in script {
            match act {
                Act::Write(bytes) => stream.write_all(bytes).await?,
                // Looks whether the other side hangs up meanwhile.
                Act::Pause(pause) => {
                    if let Ok(read) = tokio::time::timeout(*pause, stream.read_u8()).await {
                        return read.map(|_| ());
                    }
                }
                Act::Flood => loop {
                    stream.write_all(&[b'x'; 16 * 1024]).await?;
                },
                Act::Close | Act::Reset => return Ok(()),
            }
        }
    }
    Ok(())
}

async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) if head.is_empty() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    let head = String::from_utf8(head).expect("text");
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await?;
    Ok(Some((head, body)))
}

/// Answers every name in the same way.
pub(crate) struct Stub(pub(crate) Vec<IpAddr>);

impl Resolver for Stub {
    fn resolve<'a>(&'a self, _: &'a str) -> Addresses<'a> {
        Box::pin(async move { if self.0.is_empty() { Err(io::Error::other("no such name")) } else { Ok(self.0.clone()) } })
    }
}

/// A builder whose senders may do what the tests do: plain HTTP to this machine, unsigned.
pub(crate) fn open() -> Builder {
    HttpSender::builder().allow_unsigned(true).allow_http(true).allow_private_addresses(true)
}

pub(crate) fn post_to(inbox: &str) -> Post {
    let entry = EntryId { send: SendId::from_bytes([0xab; 16]), index: 3 };
    Post {
        entry,
        fence: Fence::new(1),
        inbox: inbox.into(),
        destination: inbox.into(),
        payload: Bytes::from(BODY),
        signing: Sealed::default(),
        post_by: LocalTime::from_ms(0),
        timeout_ms: 10_000,
        execution_key: ExecutionKey::Entry(entry),
    }
}

/// One attempt of a freshly built sender at a receiver with this script.
pub(crate) async fn attempt(script: Vec<Act>) -> PostResult {
    let receiver = Receiver::start(script).await;
    open().build().expect("a sender").send(post_to(&receiver.url("/inbox"))).await
}

/// Waits until `so` holds, ten seconds at most.
pub(crate) async fn eventually(what: &str, so: impl Fn() -> bool) {
    for _ in 0..1000 {
        if so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen");
}
