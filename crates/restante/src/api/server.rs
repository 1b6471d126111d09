//! Accepts connections until it is asked to stop, and lets requests under way come to their end.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// How long the headers of a request may take, and how long a connection may lie idle.
const HEADER_TIME_MAX: Duration = Duration::from_secs(10);
/// Most connections at a time; more wait.
const CONNECTIONS_MAX: usize = 256;
/// Pause after the system gave no connection: it is out of something.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop`, then waits for requests under way until `deadline` is over. Returns whether all came to their end.
pub(crate) async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>, deadline: Duration) -> bool {
    let mut stop = pin!(stop);
    let connections = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(permit) = (tokio::select! {
            () = &mut stop => break,
            permit = Arc::clone(&permits).acquire_owned() => permit,
        }) else {
            break;
        };
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "no connection could be accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME_MAX)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke");
            }
            drop(permit);
        });
    }
    drop(listener);
    tokio::time::timeout(deadline, connections.shutdown()).await.is_ok()
}
