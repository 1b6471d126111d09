//! `serve`: a worker and the HTTP API, until a signal.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use super::args::ServeArgs;
use super::no_runtime;
use super::output::Output;
use crate::api::{self, Api};
use crate::fault::{Code, Fault};
use crate::site::{Purpose, Site};
use crate::views::{DrainView, ServeView};
use crate::{Exit, Token};

pub(super) fn serve(args: &ServeArgs, output: &mut Output) -> Result<Exit, Fault> {
    if !args.listen.ip().is_loopback() && !args.allow_non_loopback {
        return Err(Fault::new(
            Code::CannotListen,
            format!("{} can be reached from other machines, and the API is not encrypted", args.listen),
            "listen on 127.0.0.1 or [::1], or give --allow-non-loopback behind something that encrypts",
        ));
    }
    let token = Token::find(args.token_file.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| no_runtime(&error))?;
    runtime.block_on(run(args, token, output))
}

async fn run(args: &ServeArgs, token: Token, output: &mut Output) -> Result<Exit, Fault> {
    // Before the store: whoever finds the address taken must not begin a new file.
    let listener = TcpListener::bind(args.listen).await;
    let listening = listener.and_then(|listener| listener.local_addr().map(|address| (listener, address)));
    let (listener, address) = listening.map_err(|error| {
        let message = format!("{} cannot be listened on ({error})", args.listen);
        Fault::new(Code::CannotListen, message, "stop what listens there, or give another --listen")
    })?;
    let site = Site::open(&args.common.place().with_journal(args.journal.bounded()), Purpose::Deliver).await?;
    let mut stop = on_signal()?;
    let worker = site.backlog.start();
    let router = api::router(Arc::new(Api::new(site, token, args.body_bytes_max, worker.runs())));
    let address = format!("http://{address}");
    output.answer(&ServeView::Listening { address: address.clone() }, || format!("listening on {address}\n"));
    let deadline = Duration::from_millis(args.deadline);
    let mut stop_too = stop.clone();
    let (answered, drained) = tokio::join!(
        api::serve(listener, router, async move { drop(stop.wait_for(|stop| *stop).await) }, deadline),
        async move {
            drop(stop_too.wait_for(|stop| *stop).await);
            tracing::info!(deadline_ms = args.deadline, "stopping");
            worker.shutdown(deadline).await
        }
    );
    if !answered {
        tracing::warn!("requests were cut off at the deadline");
    }
    let report = DrainView { timed_out: drained.timed_out || !answered, ..drained.into() };
    output.answer(&ServeView::Stopped(report), || {
        let DrainView { completed, failed, abandoned, timed_out } = report;
        let how = if timed_out { "cut off at the deadline" } else { "in time" };
        format!("stopped {how}: completed {completed}, failed {failed}, abandoned {abandoned}\n")
    });
    Ok(if report.timed_out { Exit::No } else { Exit::Ok })
}

/// Becomes true at the first SIGTERM or SIGINT.
fn on_signal() -> Result<watch::Receiver<bool>, Fault> {
    let signal = signal().map_err(|error| {
        Fault::new(Code::Usage, format!("signals cannot be received ({error})"), "raise the limit of open files")
    })?;
    let (said, stop) = watch::channel(false);
    tokio::spawn(async move {
        signal.await;
        said.send_replace(true);
        // The sender must outlive whoever waits: a closed channel is no signal.
        said.closed().await;
    });
    Ok(stop)
}

#[cfg(unix)]
fn signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! { _ = terminate.recv() => {} _ = interrupt.recv() => {} }
    })
}

#[cfg(not(unix))]
fn signal() -> io::Result<impl Future<Output = ()>> {
    Ok(async { drop(tokio::signal::ctrl_c().await) })
}
