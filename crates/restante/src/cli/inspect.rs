//! `inspect`.

use super::args::InspectArgs;
use super::output::Output;
use super::table::{list, more, table};
use crate::Exit;
use crate::fault::Fault;
use crate::operate;
use crate::site::{Purpose, Site};
use crate::views::{EntriesView, EntryView};

pub(super) async fn inspect(args: &InspectArgs, output: &mut Output) -> Result<Exit, Fault> {
    let site = Site::open(&args.common.place(), Purpose::Operate).await?;
    let with_retention = site.knows_retention();
    if let Some(id) = &args.id {
        let (row, destinations) = operate::entry(&site.backlog, id).await?;
        let entry = EntryView::beside(&row, &destinations, with_retention);
        output.answer(&entry, || entry_text(&entry));
        return Ok(Exit::Ok);
    }
    let limit = args.page.limit as usize;
    let (page, destinations) =
        operate::inspect(&site.backlog, args.page.cursor.as_deref(), limit, args.destination.as_deref()).await?;
    let entries = EntriesView::new(&page, &destinations, with_retention);
    output.answer(&entries, || page_text(&entries));
    Ok(Exit::Ok)
}

fn page_text(page: &EntriesView) -> String {
    let row = |entry: &EntryView| {
        let state = if entry.lease.is_some() { "leased" } else { &entry.wait };
        let blocked = entry.blocked.as_ref().map(|block| format!(", {}", block.by)).unwrap_or_default();
        let order_key = entry.order_key.clone().unwrap_or_else(|| "-".to_owned());
        [
            entry.id.clone(),
            format!("{state}{blocked}"),
            entry.failure_count.to_string(),
            entry.vest_at.clone(),
            order_key,
            entry.inbox.clone(),
        ]
    };
    let mut text = table(["id", "state", "failures", "vest_at", "order key", "inbox"], page.entries.iter().map(row).collect());
    for unreadable in &page.unreadable {
        text += &format!("{}  cannot be read: {}\n", unreadable.id, unreadable.why);
    }
    text += &more(page.next_cursor.as_deref());
    text
}

/// All that is shown of one entry.
pub(super) fn entry_text(entry: &EntryView) -> String {
    let none = || "-".to_owned();
    let blocked = entry.blocked.as_ref().map(|block| format!("{} until {}", block.by, block.until));
    let lease = entry.lease.as_ref().map(|lease| format!("{} until {}", lease.owner, lease.expires_at));
    list(&[
        ("id", entry.id.clone()),
        ("inbox", entry.inbox.clone()),
        ("origin", entry.origin.clone()),
        ("retention_end_at", entry.retention_end_at.clone().unwrap_or_else(|| "- (max_retention is not configured)".to_owned())),
        ("vest_at", entry.vest_at.clone()),
        ("failure_count", entry.failure_count.to_string()),
        ("fence", entry.fence.to_string()),
        ("lease", lease.unwrap_or_else(none)),
        ("order_key", entry.order_key.clone().unwrap_or_else(none)),
        ("position", entry.position.map_or_else(none, |position| position.to_string())),
        ("wait", entry.wait.clone()),
        ("blocked", blocked.unwrap_or_else(none)),
    ])
}
