//! Where answers come from: a seed (and a tape), or an exploration that tries every alternative.

use std::fmt::Arguments;

use restante_engine::{Alternative, Decider, DecisionLog, Quantity};

/// Answers every question of a world.
#[derive(Clone, Debug)]
pub(crate) enum Choices {
    /// A seeded run.
    Seeded(Box<Decider>),
    /// A step of an exploration.
    Explored(Script),
}

/// The answers of one step of an exploration: what is not scripted is benign, and noted as a place to branch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    /// Indices into the alternatives, in the order asked.
    pub(crate) answers: Vec<usize>,
    /// What was asked: the names of the alternatives, the benign one first.
    pub(crate) asked: Vec<Vec<&'static str>>,
}

impl Script {
    fn choose(&mut self, alternatives: &[Alternative]) -> usize {
        let answer = self.answers.get(self.asked.len()).copied().unwrap_or(0).min(alternatives.len() - 1);
        self.asked.push(alternatives.iter().map(|alternative| alternative.name).collect());
        answer
    }
}

impl Choices {
    pub(crate) fn choose(&mut self, site: &'static str, key: Arguments<'_>, alternatives: &[Alternative]) -> usize {
        match self {
            Self::Seeded(decider) => decider.choose(site, key, alternatives),
            // The workload of an exploration is what the scenario says for certain.
            Self::Explored(_) if site.starts_with("load.") => {
                alternatives.iter().position(|alternative| alternative.weight >= 500_000).unwrap_or(0)
            }
            Self::Explored(script) => script.choose(alternatives),
        }
    }

    /// In an exploration nothing takes longer than it must: any order is tried anyway.
    pub(crate) fn quantity(&mut self, site: &'static str, key: Arguments<'_>, range: Quantity) -> u64 {
        match self {
            Self::Seeded(decider) => decider.quantity(site, key, range),
            Self::Explored(_) => range.min,
        }
    }

    pub(crate) fn draw(&mut self, site: &'static str, key: Arguments<'_>) -> u64 {
        match self {
            Self::Seeded(decider) => decider.draw(site, key),
            Self::Explored(_) => 0,
        }
    }

    pub(crate) fn tie(&self, key: Arguments<'_>) -> u64 {
        match self {
            Self::Seeded(decider) => decider.tie(key),
            Self::Explored(_) => 0,
        }
    }

    pub(crate) fn log(&self) -> DecisionLog {
        match self {
            Self::Seeded(decider) => decider.log().clone(),
            Self::Explored(_) => Decider::new(0).log().clone(),
        }
    }
}
