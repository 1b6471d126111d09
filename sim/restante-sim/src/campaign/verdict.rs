//! What a command came to, as its exit code.

use std::process::ExitCode;

use serde::Serialize;

/// The class of an outcome. When several apply, [`worst`](Self::worst) says which one is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// 0: everything that was asked for ran, and every promise held.
    #[default]
    Pass,
    /// 1: a property was violated.
    Violated,
    /// 2: the command was called wrongly; nothing ran.
    Usage,
    /// 3: the same seed did two different things.
    Nondeterminism,
    /// 4: the simulator itself failed, or could not write what it found.
    Harness,
    /// 5: the runs proved less than they were meant to.
    Vacuous,
    /// 6: the work was not finished within the time or the states that it was given.
    Unfinished,
    /// 7: the capsule was made by another build and is not reproducible with this one.
    Stale,
}

impl Verdict {
    /// All verdicts, by exit code.
    pub const ALL: [Self; 8] = [
        Self::Pass,
        Self::Violated,
        Self::Usage,
        Self::Nondeterminism,
        Self::Harness,
        Self::Vacuous,
        Self::Unfinished,
        Self::Stale,
    ];

    /// The process's exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Violated => 1,
            Self::Usage => 2,
            Self::Nondeterminism => 3,
            Self::Harness => 4,
            Self::Vacuous => 5,
            Self::Unfinished => 6,
            Self::Stale => 7,
        }
    }

    /// In a few words.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Violated => "a property was violated",
            Self::Usage => "called wrongly",
            Self::Nondeterminism => "nondeterminism: the same seed did two different things",
            Self::Harness => "harness error",
            Self::Vacuous => "vacuous: the runs proved less than they were meant to",
            Self::Unfinished => "the work was not finished within what it was given",
            Self::Stale => "stale capsule: made by another build, not reproducible with this one",
        }
    }

    /// The one of the two that is reported: 2 > 4 > 3 > 1 > 6 > 7 > 5 > 0. (A usage error stands alone: nothing ran.)
    pub const fn worst(self, other: Self) -> Self {
        if self.rank() >= other.rank() { self } else { other }
    }

    const fn rank(self) -> u8 {
        match self {
            Self::Usage => 7,
            Self::Harness => 6,
            Self::Nondeterminism => 5,
            Self::Violated => 4,
            Self::Unfinished => 3,
            Self::Stale => 2,
            Self::Vacuous => 1,
            Self::Pass => 0,
        }
    }
}

impl FromIterator<Verdict> for Verdict {
    /// The worst of them, or [`Verdict::Pass`].
    fn from_iter<I: IntoIterator<Item = Self>>(verdicts: I) -> Self {
        verdicts.into_iter().fold(Self::Pass, Self::worst)
    }
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        Self::from(verdict.code())
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict;

    #[test]
    fn precedence() {
        let by_code = |code: u8| Verdict::ALL[usize::from(code)];
        assert!(Verdict::ALL.iter().all(|verdict| by_code(verdict.code()) == *verdict));
        let order = [4, 3, 1, 6, 7, 5, 0];
        for (place, code) in order.iter().enumerate() {
            for lower in &order[place..] {
                assert_eq!(by_code(*code).worst(by_code(*lower)).code(), *code);
                assert_eq!(by_code(*lower).worst(by_code(*code)).code(), *code);
            }
        }
        assert_eq!(order.iter().rev().map(|code| by_code(*code)).collect::<Verdict>(), Verdict::Harness);
        assert_eq!(std::iter::empty().collect::<Verdict>(), Verdict::Pass);
    }
}
