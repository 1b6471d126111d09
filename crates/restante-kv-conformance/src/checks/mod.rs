//! The checks, one file a subject.

use crate::Check;

mod ambiguity;
mod atomicity;
mod clock;
mod durability;
mod isolation;
mod keys;
mod limits;
mod pages;
mod prefixes;
mod programs;
mod races;
mod reads;
mod scans;
mod stress;
mod versions;

/// All checks, in the order in which they are run.
pub(crate) const ALL: &[&[Check]] = &[
    atomicity::CHECKS,
    versions::CHECKS,
    reads::CHECKS,
    keys::CHECKS,
    scans::CHECKS,
    pages::CHECKS,
    limits::CHECKS,
    prefixes::CHECKS,
    isolation::CHECKS,
    races::CHECKS,
    ambiguity::CHECKS,
    clock::CHECKS,
    durability::CHECKS,
    programs::CHECKS,
    stress::CHECKS,
];
