//! `doctor`.

use super::args::DoctorArgs;
use super::output::Output;
use crate::Exit;
use crate::fault::Fault;
use crate::site::{Purpose, Site};
use crate::views::{DoctorView, FindingView};

pub(super) async fn doctor(args: &DoctorArgs, output: &mut Output) -> Result<Exit, Fault> {
    let site = Site::open(&args.common.place(), Purpose::Operate).await?;
    let report = DoctorView::new(&site.backlog.doctor(args.repair).await?);
    output.answer(&report, || text(&report, args.repair));
    Ok(if report.clean { Exit::Ok } else { Exit::No })
}

fn text(report: &DoctorView, repair: bool) -> String {
    let line = |finding: &FindingView| {
        let state = match (finding.repaired, finding.repairable) {
            (true, _) => "repaired",
            (false, true) if repair => "not repaired",
            (false, true) => "--repair repairs it",
            (false, false) => "needs somebody",
        };
        format!("{}: {} ({state})\n", finding.finding, finding.what)
    };
    let mut text: String = report.findings.iter().map(line).collect();
    if report.not_listed > 0 {
        text += &format!("and {} more\n", report.not_listed);
    }
    if report.in_motion {
        text += "others were at work meanwhile: the counters were not judged\n";
    }
    let found = report.findings.len() as u64 + report.not_listed;
    text + &format!("{} records examined, {found} findings\n", report.records)
}
