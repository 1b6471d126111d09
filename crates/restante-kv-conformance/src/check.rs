//! The table of checks.

use std::fmt;

use restante_kv::{Durability, Limits};

use crate::bed::Bed;
use crate::breach::Held;
use crate::checks;

/// How binding a check is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tier {
    /// Every store passes it; it is never skipped.
    Required,
    /// Passed by every store whose [`limits`](restante_kv::AtomicKv::limits) claim the capability; skipped, with the reason, for others.
    Capability,
    /// A required behaviour, looked for longer; its size is [`Options::stress`](crate::Options::stress).
    Stress,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Required => "required",
            Self::Capability => "capability",
            Self::Stress => "stress",
        })
    }
}

/// What a store must claim for a check to be run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Needs {
    Nothing,
    Clock,
    Durable,
}

/// One sentence of the contract, and how to see whether a store keeps it.
#[derive(Clone, Copy)]
pub struct Check {
    /// Stable, in kebab-case.
    pub name: &'static str,
    /// How binding it is.
    pub tier: Tier,
    /// What the store must do.
    pub sentence: &'static str,
    /// What Restante loses when the store does not.
    pub protects: &'static str,
    needs: Needs,
    pub(crate) run: fn(&Bed) -> Held,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("name", &self.name).field("tier", &self.tier).finish_non_exhaustive()
    }
}

impl Check {
    pub(crate) const fn required(
        name: &'static str,
        sentence: &'static str,
        protects: &'static str,
        run: fn(&Bed) -> Held,
    ) -> Self {
        Self { name, tier: Tier::Required, sentence, protects, needs: Needs::Nothing, run }
    }

    pub(crate) const fn stress(
        name: &'static str,
        sentence: &'static str,
        protects: &'static str,
        run: fn(&Bed) -> Held,
    ) -> Self {
        Self { tier: Tier::Stress, ..Self::required(name, sentence, protects, run) }
    }

    pub(crate) const fn with_clock(
        name: &'static str,
        sentence: &'static str,
        protects: &'static str,
        run: fn(&Bed) -> Held,
    ) -> Self {
        Self { tier: Tier::Capability, needs: Needs::Clock, ..Self::required(name, sentence, protects, run) }
    }

    pub(crate) const fn durable(
        name: &'static str,
        sentence: &'static str,
        protects: &'static str,
        run: fn(&Bed) -> Held,
    ) -> Self {
        Self { tier: Tier::Capability, needs: Needs::Durable, ..Self::required(name, sentence, protects, run) }
    }

    /// All checks, in the order in which they are run.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        checks::ALL.iter().copied().flatten()
    }

    /// The check of this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        Self::all().find(|check| check.name == name)
    }

    /// Why a store with these limits need not pass this check; `None` when it must.
    pub fn skipped_for(&self, limits: &Limits) -> Option<&'static str> {
        match self.needs {
            Needs::Clock if !limits.has_clock => Some("limits() says that the store has no clock"),
            Needs::Durable if limits.durability == Durability::Volatile => {
                Some("limits() says that nothing outlives the process: durability is Volatile")
            }
            Needs::Nothing | Needs::Clock | Needs::Durable => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_in_kebab_case() {
        let names: BTreeSet<&str> = Check::all().map(|check| check.name).collect();
        assert_eq!(names.len(), Check::all().count());
        assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')));
    }

    #[test]
    fn sentences_end_and_rules_do_not() {
        for check in Check::all() {
            assert!(check.sentence.ends_with('.') && !check.sentence.contains('|'), "{}", check.name);
            assert!(!check.protects.ends_with('.') && !check.protects.contains('|'), "{}", check.name);
        }
    }

    #[test]
    fn required_checks_are_never_skipped() {
        let nothing = Limits { has_clock: false, durability: Durability::Volatile, ..Limits::FLOOR };
        let required: Vec<&Check> = Check::all().filter(|check| check.tier == Tier::Required).collect();
        assert!(required.len() >= 40, "{} required checks", required.len());
        assert!(required.iter().all(|check| check.skipped_for(&nothing).is_none()));
        let capability: Vec<&Check> = Check::all().filter(|check| check.tier == Tier::Capability).collect();
        assert!(capability.iter().all(|check| check.skipped_for(&nothing).is_some()));
    }
}
