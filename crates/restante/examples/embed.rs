//! The backlog inside a server: it starts with the server, owns what the server sends, and stops with it.
//!
//! ```sh
//! cargo run -p restante --example embed
//! ```
//!
//! So that it runs anywhere, it delivers to a receiver of its own on the loopback interface, over plain HTTP and unsigned. A
//! server leaves out the three `allow_` lines and gives the sender a signer.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use restante_core::Config;
use restante_driver::{Backlog, Message, SendError};
use restante_http::HttpSender;
use restante_kv_sqlite::SqliteKv;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let inbox = receiver().await?;
    let folder = tempfile::tempdir()?;

    // One store, one backlog. Both are cheap to share; nothing is read or written yet.
    let store = Arc::new(SqliteKv::builder(folder.path().join("backlog.sqlite")).open()?);
    let config = Config { counter_slots: 128, ..Config::new(7 * DAY_MS) };
    let sender = HttpSender::builder()
        .user_agent("example/1.0 (+https://social.example)")
        .connect_timeout(Duration::from_secs(5))
        .total_timeout(Duration::from_millis(config.request_timeout_ms))
        .allow_unsigned(true)
        .allow_http(true)
        .allow_private_addresses(true)
        .build()?;
    let backlog = Backlog::builder(store, config, sender).build()?;

    // The worker runs beside the server until it is shut down.
    let worker = backlog.start();

    // In a request handler: after this returns, the message is owned, whatever happens to the process.
    let note = Message::new(inbox, r#"{"type":"Create"}"#.as_bytes()).idempotency_key("note-1").order_key("notes");
    match backlog.send(note.clone()).await {
        Ok(accepted) => println!("accepted as {}", accepted.send),
        // Nothing is known: the same message under the same key finds out.
        Err(SendError::Unknown { .. }) => println!("accepted as {}", backlog.send(note.clone()).await?.send),
        Err(error) => return Err(error.into()),
    }
    println!("and again: duplicate is {}", backlog.send(note).await?.duplicate);

    while backlog.depth().await?.entries > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("delivered");

    // Before the backlog is given up for good: nothing more comes in, and nothing is left.
    backlog.set_intake(false).await?;
    println!("drained: {}", backlog.depth().await?.is_drained());

    // When the server stops. What is not done by then comes back when its lease ends.
    let report = worker.shutdown(Duration::from_secs(10)).await;
    println!("stopped: completed {}, failed {}, abandoned {}", report.completed, report.failed, report.abandoned);
    Ok(())
}

/// Somebody else's server: it takes everything.
async fn receiver() -> Result<String, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let inbox = format!("http://{}/inbox", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 8_192];
                let read = stream.read(&mut request).await?;
                let line = String::from_utf8_lossy(&request[..read]);
                println!("the receiver got: {}", line.lines().next().unwrap_or_default());
                stream.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await
            });
        }
    });
    Ok(inbox)
}
