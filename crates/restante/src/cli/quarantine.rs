//! `quarantine`.

use super::args::{ListArgs, OfRecord, QuarantineAct, QuarantineArgs};
use super::inspect::entry_text;
use super::output::Output;
use super::table::{list, more, table};
use crate::Exit;
use crate::fault::Fault;
use crate::operate;
use crate::site::{Purpose, Site};
use crate::views::{DoneView, QuarantineView, QuarantinesView};

pub(super) async fn quarantine(args: &QuarantineArgs, output: &mut Output) -> Result<Exit, Fault> {
    match &args.act {
        QuarantineAct::List(args) => show_all(args, output).await,
        QuarantineAct::Show(args) => show(args, output).await,
        QuarantineAct::Drop(args) => {
            let site = Site::open(&args.common.place(), Purpose::Operate).await?;
            operate::drop_quarantined(&site.backlog, &args.id).await?;
            output.answer(&DoneView::new(&args.id), || format!("{} is dropped\n", args.id));
            Ok(Exit::Ok)
        }
        QuarantineAct::Revive(args) => {
            let site = Site::open(&args.common.place(), Purpose::Operate).await?;
            operate::revive(&site.backlog, &args.id).await?;
            output.answer(&DoneView::new(&args.id), || format!("{} is an entry again\n", args.id));
            Ok(Exit::Ok)
        }
    }
}

async fn show_all(args: &ListArgs, output: &mut Output) -> Result<Exit, Fault> {
    let site = Site::open(&args.common.place(), Purpose::Operate).await?;
    let page = operate::quarantined(&site.backlog, args.page.cursor.as_deref(), args.page.limit as usize).await?;
    let page = QuarantinesView::new(&page, site.knows_retention());
    output.answer(&page, || {
        let row = |record: &QuarantineView| {
            let inbox = record.entry.as_ref().map_or_else(|| "(cannot be read)".to_owned(), |entry| entry.inbox.clone());
            [record.id.clone(), record.why.clone(), record.bytes.to_string(), record.expires_at.clone(), inbox]
        };
        let mut text = table(["id", "why", "bytes", "dropped at", "inbox"], page.records.iter().map(row).collect());
        text += &more(page.next_cursor.as_deref());
        text
    });
    Ok(Exit::Ok)
}

async fn show(args: &OfRecord, output: &mut Output) -> Result<Exit, Fault> {
    let site = Site::open(&args.common.place(), Purpose::Operate).await?;
    let record = operate::quarantined_one(&site.backlog, &args.id).await?;
    let record = QuarantineView::new(&record, site.knows_retention());
    output.answer(&record, || {
        let head =
            list(&[("why", record.why.clone()), ("bytes", record.bytes.to_string()), ("dropped at", record.expires_at.clone())]);
        let entry = record.entry.as_ref().map_or_else(|| "this version cannot read the record\n".to_owned(), entry_text);
        head + &entry
    });
    Ok(Exit::Ok)
}
