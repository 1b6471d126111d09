//! The vacuity report: what a set of runs asked for, reached, judged and saw, row by row. An empty row is something that the
//! set says nothing about, however green it is.

use restante_engine::{FaultCounts, Marks, Quantifier};
use serde::Serialize;

use super::Simulated;
use crate::OPERATIONS;
use crate::scenario::families;

/// What a row of the vacuity report is about, with its counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum About {
    /// A fault family.
    Fault {
        /// How many were asked for.
        requested: u64,
        /// How many really happened to somebody.
        delivered: u64,
    },
    /// Something that can be asked of the backlog, somebody who works for it, or a schedule.
    Operation {
        /// How often it was reached.
        reached: u64,
    },
    /// A property that must hold.
    Property {
        /// How often it was judged where it could have been found violated.
        judged: u64,
    },
    /// A state that some run has to reach.
    State {
        /// How often it was reached.
        reached: u64,
    },
}

/// A row of the vacuity report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Row {
    /// Name of the fault family, operation, property or state.
    pub name: &'static str,
    /// What it is about.
    #[serde(flatten)]
    pub about: About,
}

impl Row {
    /// Whether the runs say nothing about it.
    pub const fn is_empty(&self) -> bool {
        matches!(
            self.about,
            About::Fault { delivered: 0, .. }
                | About::Operation { reached: 0 }
                | About::Property { judged: 0 }
                | About::State { reached: 0 }
        )
    }

    /// What kind of a row it is, in one word.
    pub const fn kind(&self) -> &'static str {
        match self.about {
            About::Fault { .. } => "fault",
            About::Operation { .. } => "operation",
            About::Property { .. } => "property",
            About::State { .. } => "state",
        }
    }
}

/// What was counted in a set of runs.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'t> {
    /// Faults, as requested and as delivered.
    pub faults: &'t FaultCounts,
    /// Operations that were reached.
    pub operations: &'t Marks,
    /// Properties that were judged.
    pub judged: &'t Marks,
    /// States that were reached.
    pub marks: &'t Marks,
}

/// Every row there is, empty or not, in a fixed order: faults, operations, properties, states. The keyed queue has no faults, and
/// what is asked of it shows in its states.
pub fn rows(simulated: Simulated, counted: Counted<'_>) -> Vec<Row> {
    let states = simulated.properties().iter().filter(|property| property.quantifier == Quantifier::Sometimes);
    let states =
        states.map(|property| Row { name: property.name, about: About::State { reached: counted.marks.count(property.name) } });
    let faults = families(&Default::default()).into_iter().map(|(name, _)| {
        let count = counted.faults.count(name);
        Row { name, about: About::Fault { requested: count.requested, delivered: count.delivered } }
    });
    let operations = OPERATIONS.map(|name| Row { name, about: About::Operation { reached: counted.operations.count(name) } });
    let must = simulated.properties().iter().filter(|property| property.quantifier != Quantifier::Sometimes);
    let must =
        must.map(|property| Row { name: property.name, about: About::Property { judged: counted.judged.count(property.name) } });
    match simulated {
        Simulated::Backlog => faults.chain(operations).chain(must).chain(states).collect(),
        Simulated::Keyed => must.chain(states).collect(),
    }
}
