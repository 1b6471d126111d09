//! `intake`.

use super::args::{Common, IntakeAct, IntakeArgs};
use super::output::Output;
use crate::Exit;
use crate::fault::Fault;
use crate::site::{Purpose, Site};
use crate::views::{Intake, IntakeView};

pub(super) async fn intake(args: &IntakeArgs, output: &mut Output) -> Result<Exit, Fault> {
    let intake = match &args.act {
        IntakeAct::Open(common) => set(common, Intake::Open).await?,
        IntakeAct::Close(common) => set(common, Intake::Closed).await?,
        IntakeAct::Show(common) => {
            let site = Site::open(&common.place(), Purpose::Operate).await?;
            Intake::of(site.backlog.depth().await?.intake_open)
        }
    };
    output.answer(&IntakeView { intake }, || format!("intake is {}\n", intake.name()));
    Ok(Exit::Ok)
}

async fn set(common: &Common, intake: Intake) -> Result<Intake, Fault> {
    let site = Site::open(&common.place(), Purpose::Operate).await?;
    site.backlog.set_intake(intake == Intake::Open).await?;
    Ok(intake)
}
