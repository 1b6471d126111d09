//! Logs, on standard error.

use std::io;

use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

use super::args::{LogArgs, LogFormat};

/// Reads a level, or levels by module. A bare word must be a level: taken for a module, it would hide everything else.
pub(super) fn levels(text: &str) -> Result<Targets, String> {
    const KNOWN: &str = "write off, error, warn, info, debug or trace, or MODULE=LEVEL, with commas between";
    if let Some(word) = text.split(',').find(|part| !part.contains('=') && part.parse::<LevelFilter>().is_err()) {
        return Err(format!("{word:?} is no level; {KNOWN}"));
    }
    text.parse().map_err(|error: ParseError| format!("{error}; {KNOWN}"))
}

pub(super) fn start(args: &LogArgs, is_serving: bool) {
    let level = if is_serving { LevelFilter::INFO } else { LevelFilter::WARN };
    let targets = args.log.clone().unwrap_or_else(|| Targets::new().with_default(level));
    let layer = fmt::layer().with_writer(io::stderr).with_ansi(false);
    let layer = match args.log_format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    };
    // There is none yet: this is the first thing the program does.
    let _ = tracing::subscriber::set_global_default(Registry::default().with(layer.with_filter(targets)));
}
