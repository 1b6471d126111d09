//! Checks as trials of a test binary without the standard harness.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::{Outcome, Suite};

impl Suite {
    /// The chosen checks as trials called `store::check`.
    pub fn trials(&self) -> Vec<Trial> {
        let trial = |check: &'static crate::Check| {
            let suite = self.clone();
            let name = format!("{}::{}", self.name(), check.name);
            Trial::ignorable_test(name, move || {
                let ran = suite.run_check(check);
                match &ran.outcome {
                    Outcome::Passed => Ok(Completion::Completed),
                    Outcome::Skipped { why } => Ok(Completion::ignored_with(why)),
                    Outcome::Failed(failure) => Err(Failed::from(format!("rule:     {}\n{failure}", check.sentence))),
                    Outcome::NotOpened { error } => Err(Failed::from(error)),
                }
            })
            .with_kind(check.tier.to_string())
        };
        self.chosen().map(trial).collect()
    }
}

/// The whole of a test binary: runs the checks of all suites as the arguments of the process say. A run in which nothing was
/// run fails.
pub fn main(suites: impl IntoIterator<Item = Suite>) -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = suites.into_iter().flat_map(|suite| suite.trials()).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list && conclusion.num_passed + conclusion.num_failed == 0 {
        eprintln!("error: no check was run, which shows nothing: mind the filter, or the capabilities that the store claims");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}
