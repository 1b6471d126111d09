//! `run-once`: for cron.

use super::args::RunOnceArgs;
use super::output::Output;
use super::table::list;
use crate::Exit;
use crate::fault::Fault;
use crate::operate;
use crate::site::{Purpose, Site};
use crate::views::RunView;

pub(super) async fn run_once(args: &RunOnceArgs, output: &mut Output) -> Result<Exit, Fault> {
    let site = Site::open(&args.common.place().with_journal(args.journal.bounded()), Purpose::Deliver).await?;
    let run = async { Ok(site.backlog.run_once_telling(args.limit).await) };
    let report: RunView = operate::run_once(&site.backlog, run).await?.into();
    output.answer(&report, || {
        list(&[
            ("processed", report.processed.to_string()),
            ("more", if report.more { "yes" } else { "no" }.to_owned()),
            ("next_at", report.next_at.clone().unwrap_or_else(|| "-".to_owned())),
        ])
    });
    Ok(Exit::Ok)
}
