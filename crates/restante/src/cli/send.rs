//! `send`.

use std::io::Read as _;
use std::path::Path;

use restante_core::atoms::Bytes;

use super::args::SendArgs;
use super::output::Output;
use crate::Exit;
use crate::api::message;
use crate::fault::{Code, Fault};
use crate::site::{Purpose, Site};
use crate::views::AcceptedView;

pub(super) async fn send(args: &SendArgs, output: &mut Output) -> Result<Exit, Fault> {
    let payload = Bytes::from(read(&args.payload, "the payload")?);
    let signing = args.signing.reference();
    let message = message(args.inboxes.clone(), payload, args.idempotency_key.clone(), args.order_key.clone(), signing.as_ref())?;
    let site = Site::open(&args.common.place(), Purpose::Operate).await?;
    let accepted: AcceptedView = site.backlog.send(message).await?.into();
    output.answer(&accepted, || {
        let again = if accepted.duplicate { ", by an earlier request" } else { "" };
        format!("accepted as {}{again}\n", accepted.send)
    });
    Ok(Exit::Ok)
}

/// The bytes of a file, or of standard input for `-`.
pub(super) fn read(path: &Path, what: &str) -> Result<Vec<u8>, Fault> {
    let read = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    read.map_err(|error| {
        Fault::new(Code::Usage, format!("{what} in {path:?} cannot be read ({error})"), "correct the path, or make it readable")
    })
}
