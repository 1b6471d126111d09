//! `depth` and `drained`.

use super::args::Common;
use super::output::Output;
use super::table::list;
use crate::Exit;
use crate::fault::Fault;
use crate::site::{Purpose, Site};
use crate::views::DepthView;

pub(super) async fn depth(args: &Common, output: &mut Output) -> Result<Exit, Fault> {
    let depth = look(args).await?;
    output.answer(&depth, || text(&depth));
    Ok(Exit::Ok)
}

pub(super) async fn drained(args: &Common, output: &mut Output) -> Result<Exit, Fault> {
    let depth = look(args).await?;
    output.answer(&depth, || text(&depth));
    Ok(if depth.drained { Exit::Ok } else { Exit::No })
}

async fn look(args: &Common) -> Result<DepthView, Fault> {
    let site = Site::open(&args.place(), Purpose::Operate).await?;
    Ok(site.backlog.depth().await?.into())
}

fn text(depth: &DepthView) -> String {
    list(&[
        ("entries", depth.entries.to_string()),
        ("leased", depth.leased.to_string()),
        ("held", depth.held.to_string()),
        ("circuit held", depth.circuit_held.to_string()),
        ("intents", depth.intents.to_string()),
        ("pending recipients", depth.pending_recipients.to_string()),
        ("quarantined", depth.quarantined.to_string()),
        ("intake", depth.intake.name().to_owned()),
        ("drained", if depth.drained { "yes" } else { "no" }.to_owned()),
    ])
}
