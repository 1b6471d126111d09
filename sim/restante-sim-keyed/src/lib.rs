//! The keyed queue under simulation.
//!
//! # Contract
//!
//! 1. The world runs the queue's core as it is and decides nothing that the core decides; planted bugs ([`Mutant`]) rewrite
//!    what crosses the boundary between the two.
//! 2. After every step, an auditor that keeps books of its own checks every promise ([`PROPERTIES`]).
//! 3. [`run`] is a pure function of seed and options. Whatever differs between seeds is a keyed decision, so a tape can
//!    override it.
//! 4. [`explore`] takes every order of events within a [`Bound`], breadth first: what it finds is a shortest schedule, and
//!    [`retake`] takes that again, with a trace.
//!
//! ```
//! use restante_sim_keyed::{Bound, Mutant, RunOptions, explore, retake, run};
//!
//! assert_eq!(run(7, &RunOptions::default()).violation, None);
//!
//! let bound = Bound::small(1);
//! let (violation, schedule) = explore(&bound, Some(Mutant::SuccessorFirst), 10_000).violation.expect("it is found");
//! assert_eq!(violation.property, "submission-order");
//! assert_eq!(schedule, ["submit k0", "submit k0", "start"]);
//! assert!(retake(&bound, None, &schedule).violation.is_none(), "without the bug all is well");
//! ```
//!
//! # Architecture invariant
//!
//! No clock, no threads, no runtime: the queue's core is all of it that is under simulation. How the core is shared between
//! threads is checked by loom, where that code is.

mod explore;
mod ghost;
mod mutant;
mod properties;
mod run;
mod world;

pub use explore::{Bound, Exploration, Retaken, explore, retake};
pub use mutant::Mutant;
pub use properties::PROPERTIES;
pub use run::{Outcome, RunOptions, run};
