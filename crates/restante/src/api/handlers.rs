//! What is done for each operation.

use std::future::Future;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::{MethodRouter, delete, get, post, put};

use tokio::task::JoinError;

use super::answer::json;
use super::requests::{ReleaseHoldBody, RunOnceBody, SendBody, SetHoldBody, SetIntakeBody, optional_instant};
use super::{ANSWER_TIME_MAX, Api, Operation, body};
use crate::fault::{Code, Fault};
use crate::operate::{self, HoldEnd, PAGE_DEFAULT, PAGE_MAX, RUN_MAX};
use crate::views::{
    AcceptedView, DeadLettersView, DepthView, DestinationView, DestinationsView, DoneView, EntriesView, EntryView, HealthView,
    IntakeView, QuarantinesView, RunView,
};

type Shared = State<Arc<Api>>;
type Answer = Result<Response, Fault>;
type IdPath = Result<Path<String>, PathRejection>;

/// The id in a path. One whose escapes are no text is as unknown as any other.
fn id_of(path: IdPath) -> Result<String, Fault> {
    let not_text = |error: PathRejection| {
        let message = format!("the id in the path cannot be read ({})", error.body_text());
        Fault::new(Code::UnknownId, message, "list what there is, and take an id from there")
    };
    path.map(|Path(id)| id).map_err(not_text)
}

pub(super) fn of(operation: Operation) -> MethodRouter<Arc<Api>> {
    match operation {
        Operation::Health => get(health),
        Operation::Send => post(send),
        Operation::Depth => get(depth),
        Operation::Entries => get(entries),
        Operation::Entry => get(entry),
        Operation::RunOnce => post(run_once),
        Operation::SetIntake => put(set_intake),
        Operation::Drained => get(drained),
        Operation::Quarantine => get(quarantine),
        Operation::Revive => post(revive),
        Operation::DropQuarantined => delete(drop_quarantined),
        Operation::DeadLetters => get(dead_letters),
        Operation::Destinations => get(destinations),
        Operation::SetHold => put(set_hold),
        Operation::ReleaseHold => post(release_hold),
    }
}

/// Runs to its end whatever becomes of the caller: a request that is broken off must not leave it unknown what was done.
/// `late` is what a caller is told that waits too long.
async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    late: fn() -> Fault,
) -> Result<T, Fault> {
    match tokio::time::timeout(ANSWER_TIME_MAX, tokio::spawn(work)).await {
        Ok(result) => ended(result),
        Err(_) => Err(late()),
    }
}

fn ended<T>(result: Result<Result<T, Fault>, JoinError>) -> Result<T, Fault> {
    result.unwrap_or_else(|panicked| {
        tracing::error!(%panicked, "a request ended in a mistake of this program");
        Err(Fault::new(Code::Internal, "this program made a mistake; its log says more", "report it"))
    })
}

fn late_commit() -> Fault {
    let message = format!("the store has not answered within {} s", ANSWER_TIME_MAX.as_secs());
    Fault::new(Code::OutcomeUnknown, message, "repeat the same request, a send under the same idempotency key: that is harmless")
}

fn late_look() -> Fault {
    let message = format!("the store has not answered within {} s", ANSWER_TIME_MAX.as_secs());
    Fault::new(Code::StoreUnavailable, message, "try again; if that does not help, look at its file and disk")
}

async fn health(State(api): Shared) -> Answer {
    to_its_end(async move { operate::ping(&api.site.backlog).await }, late_look).await?;
    Ok(json(Operation::Health.done(), &HealthView { status: "ok".to_owned() }))
}

async fn send(State(api): Shared, request: Request) -> Answer {
    let asked: SendBody = body::json(request, api.body_bytes_max).await?;
    // A key of the server's own would be of no use to a caller that gets no answer; it is told in the answer, though.
    let message = asked.into_message()?;
    let accepted = to_its_end(async move { Ok(api.site.backlog.send(message).await?) }, late_commit).await?;
    Ok(json(Operation::Send.done(), &AcceptedView::from(accepted)))
}

async fn depth(State(api): Shared, request: Request) -> Answer {
    let [] = body::query(&request, [])?;
    let report = to_its_end(async move { Ok(api.site.backlog.depth().await?) }, late_look).await?;
    Ok(json(Operation::Depth.done(), &DepthView::from(report)))
}

async fn drained(State(api): Shared, request: Request) -> Answer {
    let [] = body::query(&request, [])?;
    let report = to_its_end(async move { Ok(api.site.backlog.depth().await?) }, late_look).await?;
    Ok(json(Operation::Drained.done(), &DepthView::from(report)))
}

/// Most rows of a page, from the query.
fn limit(asked: Option<&str>) -> Result<usize, Fault> {
    let Some(text) = asked else { return Ok(PAGE_DEFAULT) };
    text.parse().ok().filter(|limit| (1..=PAGE_MAX).contains(limit)).ok_or_else(|| {
        Fault::new(Code::InvalidRequest, format!("limit is {text:?}"), format!("give a whole number from 1 to {PAGE_MAX}"))
    })
}

async fn entries(State(api): Shared, request: Request) -> Answer {
    let [cursor, asked, destination] = body::query(&request, ["cursor", "limit", "destination"])?;
    let (limit, with_retention) = (limit(asked.as_deref())?, api.site.knows_retention());
    let page = async move { operate::inspect(&api.site.backlog, cursor.as_deref(), limit, destination.as_deref()).await };
    let (page, destinations) = to_its_end(page, late_look).await?;
    Ok(json(Operation::Entries.done(), &EntriesView::new(&page, &destinations, with_retention)))
}

async fn quarantine(State(api): Shared, request: Request) -> Answer {
    let [cursor, asked] = body::query(&request, ["cursor", "limit"])?;
    let (limit, with_retention) = (limit(asked.as_deref())?, api.site.knows_retention());
    let page = async move { operate::quarantined(&api.site.backlog, cursor.as_deref(), limit).await };
    let page = to_its_end(page, late_look).await?;
    Ok(json(Operation::Quarantine.done(), &QuarantinesView::new(&page, with_retention)))
}

async fn revive(State(api): Shared, path: IdPath, request: Request) -> Answer {
    let (id, []) = (id_of(path)?, body::query(&request, [])?);
    let done = DoneView::new(&id);
    to_its_end(async move { operate::revive(&api.site.backlog, &id).await }, late_commit).await?;
    Ok(json(Operation::Revive.done(), &done))
}

async fn drop_quarantined(State(api): Shared, path: IdPath, request: Request) -> Answer {
    let (id, []) = (id_of(path)?, body::query(&request, [])?);
    let done = DoneView::new(&id);
    to_its_end(async move { operate::drop_quarantined(&api.site.backlog, &id).await }, late_commit).await?;
    Ok(json(Operation::DropQuarantined.done(), &done))
}

async fn entry(State(api): Shared, path: IdPath, request: Request) -> Answer {
    let (id, []) = (id_of(path)?, body::query(&request, [])?);
    let with_retention = api.site.knows_retention();
    let entry = async move { operate::entry(&api.site.backlog, &id).await };
    let (row, destinations) = to_its_end(entry, late_look).await?;
    Ok(json(Operation::Entry.done(), &EntryView::beside(&row, &destinations, with_retention)))
}

async fn run_once(State(api): Shared, request: Request) -> Answer {
    let RunOnceBody { limit } = body::json(request, api.body_bytes_max).await?;
    if !(1..=RUN_MAX).contains(&limit) {
        let what_to_do = format!("give a whole number from 1 to {RUN_MAX}");
        return Err(Fault::new(Code::InvalidRequest, format!("limit is {limit}"), what_to_do));
    }
    let Ok(one_at_a_time) = Arc::clone(&api.one_run).try_acquire_owned() else {
        return Err(Fault::new(Code::Busy, "another run is under way", "ask again when it has ended"));
    };
    let run = async move {
        let stopped =
            || Fault::new(Code::Busy, "the server stops: the run was cut off, or not begun", "ask the server that follows");
        let report = operate::run_once(&api.site.backlog, async { api.runs.run_once(limit).await.ok_or_else(stopped) }).await;
        drop(one_at_a_time);
        report
    };
    // It lasts as long as its deliveries do, each of which has a bound of its own, and ends with the server.
    let report = ended(tokio::spawn(run).await)?;
    Ok(json(Operation::RunOnce.done(), &RunView::from(report)))
}

async fn set_intake(State(api): Shared, request: Request) -> Answer {
    let SetIntakeBody { intake } = body::json(request, api.body_bytes_max).await?;
    to_its_end(async move { Ok(api.site.backlog.set_intake(intake.into()).await?) }, late_commit).await?;
    Ok(json(Operation::SetIntake.done(), &IntakeView { intake }))
}

async fn dead_letters(State(api): Shared, request: Request) -> Answer {
    let [cursor, asked] = body::query(&request, ["cursor", "limit"])?;
    let limit = limit(asked.as_deref())?;
    let page = async move { operate::dead_letters(&api.site.backlog, cursor.as_deref(), limit).await };
    let page = to_its_end(page, late_look).await?;
    Ok(json(Operation::DeadLetters.done(), &DeadLettersView::new(&page)))
}

async fn destinations(State(api): Shared, request: Request) -> Answer {
    let [cursor, asked] = body::query(&request, ["cursor", "limit"])?;
    let limit = limit(asked.as_deref())?;
    let page = async move { operate::destinations(&api.site.backlog, cursor.as_deref(), limit).await };
    let page = to_its_end(page, late_look).await?;
    Ok(json(Operation::Destinations.done(), &DestinationsView::new(&page)))
}

async fn set_hold(State(api): Shared, request: Request) -> Answer {
    let SetHoldBody { destination, from, until } = body::json(request, api.body_bytes_max).await?;
    let from = optional_instant("from", from.as_deref())?;
    let end = optional_instant("until", until.as_deref())?.map_or(HoldEnd::Unknown, HoldEnd::At);
    let known = async move { operate::set_hold(&api.site.backlog, &destination, from, end).await };
    let known = to_its_end(known, late_commit).await?;
    Ok(json(Operation::SetHold.done(), &DestinationView::new(&known)))
}

async fn release_hold(State(api): Shared, request: Request) -> Answer {
    let ReleaseHoldBody { destination, from } = body::json(request, api.body_bytes_max).await?;
    let from = optional_instant("from", from.as_deref())?;
    let known = async move { operate::release_hold(&api.site.backlog, &destination, from).await };
    let known = to_its_end(known, late_commit).await?;
    Ok(json(Operation::ReleaseHold.done(), &DestinationView::new(&known)))
}
