//! Where a violation was found, as capsules keep it.

use crate::campaign::{KeyedBound, Simulated, Target, Workload};

/// What a capsule keeps of the workload or bound that it comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    pub(super) world: Simulated,
    pub(super) name: String,
    pub(super) text: String,
}

impl From<&Target> for Origin {
    fn from(target: &Target) -> Self {
        Self { world: Simulated::Backlog, name: target.scenario.name.clone(), text: target.text.clone() }
    }
}

impl From<&Workload> for Origin {
    fn from(workload: &Workload) -> Self {
        Self { world: workload.simulated(), name: workload.name().to_owned(), text: workload.text().to_owned() }
    }
}

impl From<&KeyedBound> for Origin {
    fn from(bound: &KeyedBound) -> Self {
        Self { world: Simulated::Keyed, name: bound.name.clone(), text: bound.text() }
    }
}

impl Origin {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}
