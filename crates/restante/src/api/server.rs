//! Accepts connections until it is asked to stop, and lets requests under way come to their end.
//!
//! Whoever has not shown the token yet keeps nobody out: where there are too many connections, the oldest of those goes. Every wait
//! for a client ends, whether it is to send or to read.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tower::Service as _;

use super::bounded::Bounded;
use super::connections::{Connections, Known};

/// How long the headers of a request may take, and how long a connection may lie idle.
const HEADER_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a client may take to read the next piece of an answer.
const WRITE_TIME_MAX: Duration = Duration::from_secs(10);
/// Most connections at a time.
const CONNECTIONS_MAX: usize = 256;
/// Pause after the system gave no connection: it is out of something.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a connection on which the token was not shown yet may go on after a stop.
const UNKNOWN_TIME_MAX: Duration = Duration::from_millis(500);

/// Serves until `stop`, then waits for requests under way until `deadline` is over. Returns whether all that were asked with the
/// token came to their end.
pub(crate) async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>, deadline: Duration) -> bool {
    let mut stop = pin!(stop);
    let graceful = GracefulShutdown::new();
    let connections = Arc::new(Connections::new(CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &connections) => accepted,
        };
        let (stream, known) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "no connection could be accepted");
                tokio::select! { () = &mut stop => break, () = tokio::time::sleep(PAUSE) => continue }
            }
        };
        let service = {
            let (router, known) = (router.clone(), Arc::clone(&known));
            service_fn(move |mut request: hyper::Request<Incoming>| {
                request.extensions_mut().insert(Arc::clone(&known));
                router.clone().call(request.map(Body::new))
            })
        };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME_MAX)
            .serve_connection(TokioIo::new(Bounded::new(stream, WRITE_TIME_MAX)), service);
        let connection = graceful.watch(connection);
        let ended = connections.ended(known.number());
        tokio::spawn(async move {
            let _ended = ended;
            tokio::select! {
                result = connection => if let Err(error) = result {
                    tracing::debug!(%error, "a connection broke");
                },
                () = known.sent_away() => tracing::debug!("a connection was closed to make room, or to stop"),
            }
        });
    }
    drop(listener);
    let mut all_closed = pin!(graceful.shutdown());
    let began = tokio::time::Instant::now();
    if tokio::time::timeout(deadline.min(UNKNOWN_TIME_MAX), &mut all_closed).await.is_ok() {
        return true;
    }
    connections.send_unknown_away();
    if tokio::time::timeout_at(began + deadline, all_closed).await.is_ok() {
        return true;
    }
    connections.send_all_away() == 0
}

/// The next connection. If there are too many, the oldest one that has not shown the token goes; if all have, one of them ends first.
async fn accept(listener: &TcpListener, connections: &Arc<Connections>) -> std::io::Result<(TcpStream, Arc<Known>)> {
    connections.room().await;
    let (stream, _): (_, SocketAddr) = listener.accept().await?;
    Ok((stream, connections.begin()))
}
