//! What is shown on standard error while a campaign runs: a bar to a person, a line per scenario to a log.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use restante_sim::campaign::{Tally, Watch, Workload};

use super::output::note;

/// The watcher of a campaign.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    is_quiet: bool,
}

impl Progress {
    /// Shows a bar when standard error is a terminal; `runs` is how many runs there will be, if that is known.
    pub(super) fn new(runs: Option<u64>) -> Self {
        use std::io::IsTerminal;
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(runs, ProgressDrawTarget::stderr());
            let template = if runs.is_some() {
                "[{elapsed}] {bar:40} {pos}/{len} runs {wide_msg}"
            } else {
                "[{elapsed}] {spinner} {pos} runs {wide_msg}"
            };
            // The template is fixed: when it cannot be read, the usual one serves as well.
            bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { bar, is_quiet: false }
    }

    /// Says nothing.
    pub(super) fn quiet() -> Self {
        Self { bar: None, is_quiet: true }
    }

    /// Another candidate has been tried.
    pub(super) fn on_candidate(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Watch for Progress {
    fn on_run(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    fn on_scenario(&self, workload: &Workload, tally: &Tally) {
        let found = match (&tally.harness_error, &tally.divergence, tally.failed.len()) {
            (Some(_), ..) => "harness error".to_owned(),
            (None, Some(_), _) => "nondeterminism".to_owned(),
            (None, None, 0) => match &tally.expected {
                Some(property) if tally.expected_count > 0 => {
                    format!("{property} violated in {}, as expected", tally.expected_count)
                }
                Some(property) => format!("{property} not violated, which was expected"),
                None => "no violation".to_owned(),
            },
            (None, None, count) => format!("{count} failing"),
        };
        let line = format!("{}: {} runs, {found}", workload.source(), tally.runs);
        match &self.bar {
            Some(bar) => bar.set_message(line),
            None if self.is_quiet => {}
            None => note(&line),
        }
    }
}
