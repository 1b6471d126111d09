//! Campaigns: many seeds over some scenarios, on some threads, with one verdict. The workload of the keyed queue counts as a
//! scenario here: [`Workload`].
//!
//! # Contract
//!
//! 1. The seeds of a scenario are `first_seed`, `first_seed + 1`, ... Results are merged in that order, and a scenario is
//!    stopped by its failures in that order. So without a time budget the outcome is the same whatever the number of threads.
//! 2. A panic is a violation of `does-not-panic`, unless its message says that the simulator is at fault.
//! 3. The first seed of each scenario, and every 16th after it, is run twice and compared: [`Divergence`].
//! 4. Every seed that violates a property is run once more, recorded, and becomes a
//!    [`Capsule`](crate::capsule::Capsule). If that run does something else, it is a [`Divergence`] too.
//! 5. Under a time budget, no new seed is begun once it is over; scenarios take turns, so that all get their share. With an
//!    explicit number of seeds every one of them has to run. Without, the floor is one run of every scenario.
//! 6. A set of runs that proved less than its scenario is for is [`vacuous`](Vacuity).
//!
//! What the wall clock showed is in [`Outcome::wall`] and nowhere else.

mod budget;
mod guard;
mod hunt;
mod keyed;
mod plan;
mod pool;
mod rows;
mod run;
mod sweep;
mod tally;
mod vacuity;
mod verdict;
mod workload;
mod worlds;

pub use self::budget::parse_budget;
pub use self::guard::{Difference, Divergence, HarnessError, divergence, run_guarded};
pub(crate) use self::guard::{Panic, caught};
pub use self::hunt::{Hunt, InGeneral, RATED_SEEDS, hunt, hunt_in_general};
pub use self::keyed::{ExplorationPanicked, KEYED, KEYED_WHY, KeyedBound};
pub use self::plan::{Failure, Outcome, Plan, ScenarioOutcome, Target};
pub use self::pool::map;
pub use self::rows::{About, Counted, Row, rows};
pub use self::run::{Watch, run};
pub use self::tally::{FailedSeed, Tally};
pub use self::vacuity::{JUDGED_RUNS_MIN, Sums, Vacuity, vacuities};
pub use self::verdict::Verdict;
pub use self::workload::{SeedOptions, Workload};
pub use self::worlds::{Planted, Simulated};
pub use crate::scenario::families;
