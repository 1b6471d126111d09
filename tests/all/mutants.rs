//! Every planted bug is found by the property it is there for, and the seed that finds it passes without it.

use restante_sim::campaign::run_guarded;
use restante_sim::{Mutant, RunOptions, scenario};

const SEEDS_MAX: u64 = 1_000;

#[test]
fn every_planted_bug_is_found_by_its_property_and_its_seed_passes_without_it() {
    for mutant in Mutant::ALL {
        let (scenario, _) = scenario::load(mutant.scenario()).expect("a scenario that comes with the command");
        let run = |seed, mutant| {
            let run = run_guarded(&scenario, seed, &RunOptions { mutant, ..RunOptions::default() });
            run.expect("the simulator is not at fault").violation
        };
        let found = (1..=SEEDS_MAX).find_map(|seed| Some((seed, run(seed, Some(*mutant))?)));
        let (seed, violation) = found.unwrap_or_else(|| panic!("{} is not found in {SEEDS_MAX} seeds", mutant.name()));
        assert_eq!(violation.property, mutant.property(), "{} at seed {seed}", mutant.name());
        assert_eq!(run(seed, None), None, "seed {seed} fails without {} too", mutant.name());
    }
}
