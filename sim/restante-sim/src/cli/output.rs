//! Standard output and standard error, whoever is still listening.

use std::io::{self, ErrorKind, IsTerminal, Write};

use restante_sim::campaign::Verdict;
use serde::Serialize;

/// Standard output. Once nobody listens any more, writing does nothing.
pub(super) struct Output {
    stdout: io::Stdout,
    trouble: Option<io::Error>,
}

impl Output {
    pub(super) fn new() -> Self {
        Self { stdout: io::stdout(), trouble: None }
    }

    /// Whether a person reads it as it comes.
    pub(super) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Writes text, at once.
    pub(super) fn text(&mut self, text: &str) {
        if self.trouble.is_none() {
            self.trouble = self.stdout.write_all(text.as_bytes()).and_then(|()| self.stdout.flush()).err();
        }
    }

    /// Writes one JSON document.
    pub(super) fn json(&mut self, document: &impl Serialize) {
        let text = serde_json::to_string_pretty(document).expect("reports have only text for keys");
        self.text(&(text + "\n"));
    }

    /// Whether all was written. That nobody listens is no error; that a disk is full is one.
    pub(super) fn finish(self) -> Verdict {
        match self.trouble {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => {
                complain(&format!("standard output: {error}"));
                Verdict::Harness
            }
            _ => Verdict::Pass,
        }
    }
}

/// Says what went wrong, on standard error.
pub(super) fn complain(message: &str) {
    note(&format!("error: {message}"));
}

/// Says something on standard error.
pub(super) fn note(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}
