//! The delivery backlog under simulation.
//!
//! A [`scenario`] describes a world and its faults; [`world`](crate::World) runs the production machines of
//! `restante-core` in it, every difference decided by key; the auditor checks the properties ([`PROPERTIES`]) against what
//! really happened; a [`Mutant`] is a planted bug that one of them must find.
//! A [`campaign`] runs many seeds and comes to one verdict; a [`capsule`] holds a violation, to be seen again; [`shrink`]
//! makes a smaller capsule of it. A [`journal`] of production is run again through the same machines.
//! Campaigns, capsules and the command also take the world of the [`keyed`] queue: [`campaign::Workload`].

mod audit;
pub mod campaign;
pub mod capsule;
pub mod explore;
pub mod journal;
mod mutant;
pub mod scenario;
pub mod shrink;
mod world;

/// The keyed queue's world: a crate of its own, with properties and planted bugs of its own.
pub use restante_sim_keyed as keyed;

pub use audit::PROPERTIES;
pub use mutant::Mutant;
pub use world::{OPERATIONS, Perturbation, RunOptions, RunResult, SimulatedKv, World};
