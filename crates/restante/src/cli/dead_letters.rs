//! `dead-letters`.

use super::args::ListArgs;
use super::output::Output;
use super::table::{more, table};
use crate::Exit;
use crate::fault::Fault;
use crate::operate;
use crate::site::{Purpose, Site};
use crate::views::{DeadIntentView, DeadLetterView, DeadLettersView};

pub(super) async fn dead_letters(args: &ListArgs, output: &mut Output) -> Result<Exit, Fault> {
    let site = Site::open(&args.common.place(), Purpose::Operate).await?;
    let page = operate::dead_letters(&site.backlog, args.page.cursor.as_deref(), args.page.limit as usize).await?;
    let page = DeadLettersView::new(&page);
    output.answer(&page, || page_text(&page));
    Ok(Exit::Ok)
}

fn page_text(page: &DeadLettersView) -> String {
    let reason =
        |reason: &str, status: Option<u16>| status.map_or_else(|| reason.to_owned(), |status| format!("{reason} ({status})"));
    let of_intent = |trace: &DeadIntentView| {
        let recipients = format!("({} of {} recipients)", trace.recipients_given_up, trace.recipients_total);
        let reason = reason(&trace.reason, trace.status);
        [trace.send.clone(), reason, "-".to_owned(), trace.origin.clone(), trace.expires_at.clone(), recipients]
    };
    let of_delivery = |letter: &DeadLetterView| {
        let DeadLetterView { id, inbox, attempts, origin, expires_at, .. } = letter;
        let reason = reason(&letter.reason, letter.status);
        [id.clone(), reason, attempts.to_string(), origin.clone(), expires_at.clone(), inbox.clone()]
    };
    let rows = page.dead_intents.iter().map(of_intent).chain(page.dead_letters.iter().map(of_delivery));
    let mut text = table(["id", "reason", "attempts", "accepted at", "kept until", "inbox"], rows.collect());
    for unreadable in &page.unreadable {
        text += &format!("{}  cannot be read: {}\n", unreadable.id, unreadable.why);
    }
    text += &more(page.next_cursor.as_deref());
    text
}
