//! `hold`.

use super::args::{HoldAct, HoldArgs, NoticeArgs};
use super::destinations::{hold_text, hold_to_come_text};
use super::output::Output;
use crate::Exit;
use crate::fault::Fault;
use crate::operate;
use crate::site::{Purpose, Site};
use crate::views::DestinationView;

pub(super) async fn hold(args: &HoldArgs, output: &mut Output) -> Result<Exit, Fault> {
    let row = match &args.act {
        HoldAct::Set(args) => {
            let NoticeArgs { destination, common, from } = &args.notice;
            let site = Site::open(&common.place(), Purpose::Operate).await?;
            operate::set_hold(&site.backlog, destination, *from, args.end()).await?
        }
        HoldAct::Release(NoticeArgs { destination, common, from }) => {
            let site = Site::open(&common.place(), Purpose::Operate).await?;
            operate::release_hold(&site.backlog, destination, *from).await?
        }
    };
    let known = DestinationView::new(&row);
    output.answer(&known, || what_is_so(&known));
    Ok(Exit::Ok)
}

/// What a notice came to, beside those before it.
fn what_is_so(known: &DestinationView) -> String {
    let DestinationView { destination, held, holds_to_come, .. } = known;
    let now = match held {
        Some(hold) => format!("{destination} is held {}\n", hold_text(hold)),
        None => format!("{destination} is not held\n"),
    };
    let later = holds_to_come.iter().map(|hold| format!("{destination} is to be held {}\n", hold_to_come_text(hold)));
    now + &later.collect::<String>()
}
