//! The two worlds that there are, and the planted bugs of both by name.

use restante_engine::Property;
use serde::{Deserialize, Serialize};

use super::keyed::KEYED;
use crate::{Mutant, PROPERTIES, keyed};

/// What is under simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Simulated {
    /// The delivery backlog.
    #[default]
    Backlog,
    /// The core of the keyed queue.
    Keyed,
}

impl Simulated {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Backlog, Self::Keyed];

    /// What is promised of it.
    pub const fn properties(self) -> &'static [Property] {
        match self {
            Self::Backlog => PROPERTIES,
            Self::Keyed => keyed::PROPERTIES,
        }
    }

    /// In a sentence.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Backlog => "the backlog",
            Self::Keyed => "the keyed queue",
        }
    }

    /// Whether it is the backlog.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
    pub(crate) const fn is_backlog(&self) -> bool {
        matches!(self, Self::Backlog)
    }
}

/// A planted bug of either world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planted {
    /// One of the backlog's.
    Backlog(Mutant),
    /// One of the keyed queue's.
    Keyed(keyed::Mutant),
}

impl From<Mutant> for Planted {
    fn from(mutant: Mutant) -> Self {
        Self::Backlog(mutant)
    }
}

impl From<keyed::Mutant> for Planted {
    fn from(mutant: keyed::Mutant) -> Self {
        Self::Keyed(mutant)
    }
}

impl Planted {
    /// All of them, the backlog's first. No name occurs twice.
    pub fn all() -> impl Iterator<Item = Self> {
        let backlog = Mutant::ALL.iter().map(|mutant| Self::Backlog(*mutant));
        backlog.chain(keyed::Mutant::ALL.iter().map(|mutant| Self::Keyed(*mutant)))
    }

    /// The one of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::all().find(|planted| planted.name() == name)
    }

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Backlog(mutant) => mutant.name(),
            Self::Keyed(mutant) => mutant.name(),
        }
    }

    /// The property it is there to trip.
    pub const fn property(self) -> &'static str {
        match self {
            Self::Backlog(mutant) => mutant.property(),
            Self::Keyed(mutant) => mutant.property(),
        }
    }

    /// What it does, in one sentence.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Backlog(mutant) => mutant.sentence(),
            Self::Keyed(mutant) => mutant.sentence(),
        }
    }

    /// Name of the workload that it is looked for in.
    pub const fn workload(self) -> &'static str {
        match self {
            Self::Backlog(mutant) => mutant.scenario(),
            Self::Keyed(_) => KEYED,
        }
    }

    /// It, if it is one of the backlog's.
    pub fn of_backlog(self) -> Option<Mutant> {
        match self {
            Self::Backlog(mutant) => Some(mutant),
            Self::Keyed(_) => None,
        }
    }

    /// It, if it is one of the keyed queue's.
    pub fn of_keyed(self) -> Option<keyed::Mutant> {
        match self {
            Self::Keyed(mutant) => Some(mutant),
            Self::Backlog(_) => None,
        }
    }

    /// The world it can be planted in.
    pub const fn simulated(self) -> Simulated {
        match self {
            Self::Backlog(_) => Simulated::Backlog,
            Self::Keyed(_) => Simulated::Keyed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Planted, Simulated};

    #[test]
    fn a_name_means_one_thing_in_both_worlds() {
        let bugs: BTreeSet<_> = Planted::all().map(Planted::name).collect();
        assert_eq!(bugs.len(), Planted::all().count());
        let properties = || Simulated::ALL.iter().flat_map(|simulated| simulated.properties());
        assert_eq!(properties().map(|property| property.name).collect::<BTreeSet<_>>().len(), properties().count());
        for planted in Planted::all() {
            assert_eq!(Planted::by_name(planted.name()), Some(planted));
            let is_there = planted.simulated().properties().iter().any(|property| property.name == planted.property());
            assert!(is_there, "{}", planted.name());
        }
    }
}
