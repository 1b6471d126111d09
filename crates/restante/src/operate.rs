//! What an operator asks of a backlog, for the command line and the HTTP API alike.

use std::future::Future;

use restante_core::Rejection;
use restante_core::keys::Kind;
use restante_core::machine::{Failure, InspectPage, InspectRow, QuarantinePage, QuarantineRow, RunReport};
use restante_core::record::{Intake, Record as _};
use restante_driver::{Backlog, RunOutcome};
use restante_kv::{Check, Expect, Guard, Mutation, StoreError, Txn, Write};

use crate::fault::{Code, Fault};
use crate::views::{Destinations, read_cursor, read_entry_id};

/// Entries of a page unless another number is asked for.
pub(crate) const PAGE_DEFAULT: usize = 100;
/// Most entries of a page.
pub(crate) const PAGE_MAX: usize = 1_000;
/// Entries that one page looks through for a destination.
const LOOKED_THROUGH_MAX: usize = 20_000;
/// Most deliveries of one bounded run over HTTP.
pub(crate) const RUN_MAX: u64 = 10_000;

/// Whether the store answers.
pub(crate) async fn ping(backlog: &Backlog) -> Result<(), Fault> {
    backlog.store().get_many(vec![backlog.env().keys.intake()]).await?;
    Ok(())
}

/// One page, and what is known of its entries' destinations; with `destination`, of what goes there. A rare one is looked for among [`LOOKED_THROUGH_MAX`] entries, so that no
/// question takes for ever: its page may be short, or empty, and not be the last.
pub(crate) async fn inspect(
    backlog: &Backlog,
    cursor: Option<&str>,
    limit: usize,
    destination: Option<&str>,
) -> Result<(InspectPage, Destinations), Fault> {
    let page = entries(backlog, cursor, limit, destination).await?;
    let destinations = backlog.destinations_of(&page.rows).await?;
    Ok((page, destinations))
}

async fn entries(backlog: &Backlog, cursor: Option<&str>, limit: usize, destination: Option<&str>) -> Result<InspectPage, Fault> {
    let mut next = cursor.map(|cursor| read_cursor(backlog.env(), Kind::Entry, cursor)).transpose()?;
    let Some(destination) = destination else { return Ok(backlog.inspect(next, limit).await?) };
    let mut found = InspectPage { rows: Vec::new(), unreadable: Vec::new(), next: None };
    for _ in 0..LOOKED_THROUGH_MAX / PAGE_MAX {
        let page = backlog.inspect(next, PAGE_MAX).await?;
        found.rows.extend(page.rows.into_iter().filter(|row| goes_to(row, destination)));
        found.unreadable.extend(page.unreadable);
        next = page.next;
        if found.rows.len() > limit || next.is_none() {
            break;
        }
    }
    if let Some(id) = found.rows.get(limit).map(|row| row.id) {
        found.rows.truncate(limit);
        found.unreadable.retain(|(unreadable, _)| *unreadable < id);
        next = Some(backlog.env().keys.entry(id));
    }
    Ok(InspectPage { next, ..found })
}

/// Whether the inbox lies at a destination, given as `https://host` or as the host alone.
fn goes_to(row: &InspectRow, destination: &str) -> bool {
    let of_inbox = url::Url::parse(&row.inbox).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
    of_inbox == destination || of_inbox.split_once("://").is_some_and(|(_, host)| host == destination)
}

/// One entry, and what is known of its destination.
pub(crate) async fn entry(backlog: &Backlog, id: &str) -> Result<(InspectRow, Destinations), Fault> {
    let unknown = || Fault::unknown_id(id);
    let asked = read_entry_id(id).ok_or_else(unknown)?;
    let page = backlog.inspect(Some(backlog.env().keys.entry(asked)), 1).await?;
    if let Some((_, why)) = page.unreadable.iter().find(|(id, _)| *id == asked) {
        let what_to_do = "use the version that wrote it, or run `restante doctor`";
        return Err(Fault::new(Code::RecordUnreadable, format!("entry {asked} cannot be read: {why}"), what_to_do));
    }
    let row = page.rows.into_iter().find(|row| row.id == asked).ok_or_else(unknown)?;
    let destinations = backlog.destinations_of(std::slice::from_ref(&row)).await?;
    Ok((row, destinations))
}

/// Delivers what is due, once, by `run`. A run over a store that takes no commit says only that there is more; here it is a fault.
pub(crate) async fn run_once(
    backlog: &Backlog,
    run: impl Future<Output = Result<RunOutcome, Fault>>,
) -> Result<RunReport, Fault> {
    ping(backlog).await?;
    let RunOutcome { report, refused } = run.await?;
    if report.processed == 0 && report.more {
        takes_commits(backlog).await?;
        // It takes little ones, then, and not those that the run needs.
        if let Some(refused) = refused {
            return Err(unconfirmed(&refused.to_string()));
        }
    }
    Ok(report)
}

/// Whether the store takes commits, by one that writes what is there already: what only checks never reaches the disk.
async fn takes_commits(backlog: &Backlog) -> Result<(), Fault> {
    let (store, key) = (backlog.store(), backlog.env().keys.intake());
    let found = store.get_many(vec![key.clone()]).await?.values.pop().flatten();
    let expect = found.as_ref().map_or(Expect::Absent, |found| Expect::Version(found.version));
    // No record means open, in its first epoch.
    let value = found.map_or_else(|| Intake { open: true, epoch: 0 }.encode(), |found| found.value);
    let writes = vec![Write { key: key.clone(), mutation: Mutation::Put(value), guard: Guard::Checked }];
    match store.cas_many(Txn { checks: vec![Check { key, expect }], writes }).await {
        // Whoever made it conflict has committed.
        Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(StoreError::Ambiguous(why)) => Err(unconfirmed(&why)),
        Err(error) => Err(error.into()),
    }
}

fn unconfirmed(why: &str) -> Fault {
    let message = format!("the store does not take what a run commits, or does not confirm it ({why})");
    Fault::new(Code::OutcomeUnknown, message, "look at its file and disk, and run again: nothing is lost")
}

/// One page of what was put aside.
pub(crate) async fn quarantined(backlog: &Backlog, cursor: Option<&str>, limit: usize) -> Result<QuarantinePage, Fault> {
    let next = cursor.map(|cursor| read_cursor(backlog.env(), Kind::Quarantined, cursor)).transpose()?;
    Ok(backlog.quarantined(next, limit).await?)
}

/// One record that was put aside.
pub(crate) async fn quarantined_one(backlog: &Backlog, id: &str) -> Result<QuarantineRow, Fault> {
    let unknown = || Fault::unknown_id(id);
    let asked = read_entry_id(id).ok_or_else(unknown)?;
    let page = backlog.quarantined(Some(backlog.env().keys.quarantined(asked)), 1).await?;
    page.rows.into_iter().find(|row| row.id == asked).ok_or_else(unknown)
}

/// Drops what was put aside.
pub(crate) async fn drop_quarantined(backlog: &Backlog, id: &str) -> Result<(), Fault> {
    let asked = read_entry_id(id).ok_or_else(|| Fault::unknown_id(id))?;
    backlog.drop_quarantined(asked).await.map_err(|failure| about(id, failure))
}

/// Makes what was put aside an entry again.
pub(crate) async fn revive(backlog: &Backlog, id: &str) -> Result<(), Fault> {
    let asked = read_entry_id(id).ok_or_else(|| Fault::unknown_id(id))?;
    backlog.revive(asked).await.map_err(|failure| about(id, failure))
}

/// "Gone" says which.
fn about(id: &str, failure: Failure) -> Fault {
    match failure {
        Failure::Rejected(Rejection::Gone) => Fault::unknown_id(id),
        other => other.into(),
    }
}
