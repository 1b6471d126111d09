//! Every planted bug is found by the property it is there for, and the seed that finds it passes without it.

use restante_sim::campaign::{Target, hunt_in_general, run_guarded};
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

#[test]
fn workloads_that_were_written_for_no_planted_bug_find_two_thirds_of_them() {
    let target = |name: &str| {
        let (scenario, text) = scenario::load(name).expect("a scenario that comes with the command");
        Target { source: name.into(), text, scenario }
    };
    let general: Vec<Target> = scenario::general_names().map(target).collect();
    assert!(general.iter().all(|general| Mutant::ALL.iter().all(|mutant| mutant.scenario() != general.source)));
    // A few seeds find most; `restante-sim mutants` takes more.
    let is_found = |mutant: &&Mutant| {
        let found = hunt_in_general(&general, **mutant, 10, 2).expect("the simulator is not at fault");
        found.is_some_and(|found| found.passes_without)
    };
    let found = Mutant::ALL.iter().filter(is_found).count();
    assert!(found * 3 >= Mutant::ALL.len() * 2, "{found} of {}", Mutant::ALL.len());
}
