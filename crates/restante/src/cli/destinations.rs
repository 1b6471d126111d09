//! `destinations`.

use super::args::ListArgs;
use super::output::Output;
use super::table::{more, plain, table};
use crate::Exit;
use crate::fault::Fault;
use crate::operate;
use crate::site::{Purpose, Site};
use crate::views::{DestinationView, DestinationsView, HoldView};

pub(super) async fn destinations(args: &ListArgs, output: &mut Output) -> Result<Exit, Fault> {
    let site = Site::open(&args.common.place(), Purpose::Operate).await?;
    let page = operate::destinations(&site.backlog, args.page.cursor.as_deref(), args.page.limit as usize).await?;
    let page = DestinationsView::new(&page);
    output.answer(&page, || page_text(&page));
    Ok(Exit::Ok)
}

fn page_text(page: &DestinationsView) -> String {
    let none = || "-".to_owned();
    let row = |known: &DestinationView| {
        let holds = known.held.iter().map(hold_text).chain(known.holds_to_come.iter().map(hold_to_come_text));
        let holds = holds.collect::<Vec<_>>().join("; ");
        [
            known.destination.clone(),
            known.circuit.state.clone(),
            known.circuit.failure_count.to_string(),
            known.circuit.probe_at.clone().unwrap_or_else(none),
            known.paced_until.clone().unwrap_or_else(none),
            if holds.is_empty() { none() } else { holds },
        ]
    };
    let head = ["destination", "circuit", "failures", "probe at", "paced until", "held"];
    let mut text = table(head, page.destinations.iter().map(row).collect());
    for unreadable in &page.unreadable {
        text += &format!("{}  cannot be read: {}\n", plain(&unreadable.destination), unreadable.why);
    }
    text += &more(page.next_cursor.as_deref());
    text
}

/// Until when a hold lasts.
pub(super) fn hold_text(hold: &HoldView) -> String {
    let HoldView { from: _, until, end_known } = hold;
    if *end_known { format!("until {until}") } else { format!("until it is released, at most until {until}") }
}

/// When a hold that has not begun lasts.
pub(super) fn hold_to_come_text(hold: &HoldView) -> String {
    format!("from {} {}", hold.from, hold_text(hold))
}
