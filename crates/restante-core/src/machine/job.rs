//! What a worker claims through a due row: a delivery, or an intent to expand.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;

use super::delivery::{Delivery, DeliveryEnd, DeliveryStep};
use super::expansion::{Expansion, ExpansionEnd, ExpansionStep};
use super::{About, DueHint, Io, LocalTime, Reply};
use crate::atoms::{EntryId, OwnerId};
use crate::effect::Effect;
use crate::keys::EXPANSIONS;
use crate::plan::Env;

/// One claim under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub(super) enum Job {
    Delivery(Box<Delivery>),
    Expansion(Box<Expansion>),
}

/// How a claim ended.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum JobEnd {
    Delivery(DeliveryEnd),
    Expansion(ExpansionEnd),
}

/// What a claim wants next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum JobStep {
    Do(Io),
    Ended(JobEnd),
}

impl Job {
    /// What the due row stands for, its destination says.
    pub(super) fn begin(env: &Env, hint: DueHint, owner: OwnerId, slot: u64, local: LocalTime) -> (Self, JobStep) {
        if &*hint.key.destination == EXPANSIONS {
            let (expansion, step) = Expansion::begin(env, hint, owner, slot, local);
            (Self::Expansion(Box::new(expansion)), step.into())
        } else {
            let (delivery, step) = Delivery::begin(env, hint, owner, slot, local);
            (Self::Delivery(Box::new(delivery)), step.into())
        }
    }

    pub(super) fn step(&mut self, env: &Env, reply: Reply, effects: &mut Vec<Effect>, local: LocalTime) -> JobStep {
        match self {
            Self::Delivery(delivery) => delivery.step(env, reply, effects, local).into(),
            Self::Expansion(expansion) => expansion.step(env, reply, effects, local).into(),
        }
    }

    pub(super) fn was_claimed(&self) -> bool {
        match self {
            Self::Delivery(delivery) => delivery.was_claimed(),
            Self::Expansion(expansion) => expansion.was_claimed(),
        }
    }

    pub(super) fn id(&self) -> EntryId {
        match self {
            Self::Delivery(delivery) => delivery.id(),
            Self::Expansion(expansion) => expansion.id(),
        }
    }

    /// Whose share of the worker it takes.
    pub(super) fn destination(&self) -> &Arc<str> {
        match self {
            Self::Delivery(delivery) => delivery.destination(),
            Self::Expansion(expansion) => expansion.destination(),
        }
    }

    pub(super) fn about(&self) -> About {
        match self {
            Self::Delivery(delivery) => delivery.about(),
            Self::Expansion(expansion) => expansion.about(),
        }
    }
}

impl JobEnd {
    /// Whether the claim came to nothing. What was given up before it was known to be claimed is found again by the next pass,
    /// and the next.
    pub(super) fn is_fruitless(&self, was_claimed: bool) -> bool {
        match self {
            Self::Delivery(DeliveryEnd::NotClaimed) | Self::Expansion(ExpansionEnd::NotClaimed) => true,
            Self::Delivery(DeliveryEnd::Yielded(_)) | Self::Expansion(ExpansionEnd::Yielded(_)) => !was_claimed,
            Self::Delivery(DeliveryEnd::Settled(_) | DeliveryEnd::LeaseLost | DeliveryEnd::Quarantined)
            | Self::Expansion(
                ExpansionEnd::Expanded
                | ExpansionEnd::GivenBack
                | ExpansionEnd::Dropped
                | ExpansionEnd::LeaseLost
                | ExpansionEnd::Quarantined,
            ) => false,
        }
    }
}

impl From<DeliveryStep> for JobStep {
    fn from(step: DeliveryStep) -> Self {
        match step {
            DeliveryStep::Do(io) => Self::Do(io),
            DeliveryStep::Ended(end) => Self::Ended(JobEnd::Delivery(end)),
        }
    }
}

impl From<ExpansionStep> for JobStep {
    fn from(step: ExpansionStep) -> Self {
        match step {
            ExpansionStep::Do(io) => Self::Do(io),
            ExpansionStep::Ended(end) => Self::Ended(JobEnd::Expansion(end)),
        }
    }
}
