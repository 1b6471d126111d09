//! Random programs against the model.

use crate::Check;
use crate::bed::Bed;
use crate::breach::Held;
use crate::program::run_many;

pub(super) const CHECKS: &[Check] = &[Check::required(
    "random-programs-answer-as-the-model-does",
    "Short random programs of commits, reads and scans through two handles are answered as the model answers them.",
    "what holds in the simulation holds on this store",
    random_programs_answer_as_the_model_does,
)];

fn random_programs_answer_as_the_model_does(bed: &Bed) -> Held {
    run_many(bed, bed.random(), 25)
}
