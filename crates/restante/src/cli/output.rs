//! Standard output and standard error, whoever is still listening.

use std::io::{self, ErrorKind, Write as _};

use serde::Serialize;

use crate::Exit;
use crate::fault::Fault;
use crate::views::FaultView;

/// Standard output. Once nobody listens any more, writing does nothing.
pub(super) struct Output {
    stdout: io::Stdout,
    trouble: Option<io::Error>,
    json: bool,
}

impl Output {
    pub(super) fn new(json: bool) -> Self {
        Self { stdout: io::stdout(), trouble: None, json }
    }

    /// Writes text, at once.
    pub(super) fn text(&mut self, text: &str) {
        if self.trouble.is_none() {
            self.trouble = self.stdout.write_all(text.as_bytes()).and_then(|()| self.stdout.flush()).err();
        }
    }

    /// Writes an answer: the document where JSON is wanted, the text elsewhere.
    pub(super) fn answer(&mut self, document: &impl Serialize, text: impl FnOnce() -> String) {
        if self.json {
            // Views have only text for keys.
            self.text(&(serde_json::to_string(document).unwrap_or_default() + "\n"));
        } else {
            self.text(&text());
        }
    }

    /// Says what went wrong, on standard error.
    pub(super) fn complain(&self, fault: &Fault) {
        let text = if self.json {
            serde_json::to_string(&FaultView::from(fault)).unwrap_or_default()
        } else {
            format!("error: {fault}")
        };
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// Whether all was written. That nobody listens is no error; that a disk is full is one: it is done, and nobody was told.
    pub(super) fn finish(self, exit: Exit) -> Exit {
        match self.trouble {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => {
                let _ = writeln!(io::stderr(), "error: standard output cannot be written ({error}); the answer is lost");
                Exit::Unknown
            }
            _ => exit,
        }
    }
}
