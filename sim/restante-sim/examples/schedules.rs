//! What other schedules find: for each planted bug of the backlog in its own scenario, the first seed that violates its
//! property, and the share of seeds that do, under each schedule. Then the same for bugs that need two workers to meet, in
//! a scenario that asks for no fault at all.
//!
//! `cargo run --release -p restante-sim --example schedules [SEEDS [BUG…]]` (400 seeds a bug and schedule, and all bugs, by
//! default). Bugs that every schedule finds in more than half of the seeds are only counted.

use restante_sim::campaign::{map, run_guarded};
use restante_sim::scenario::{self, Scenario, Schedule};
use restante_sim::{Mutant, RunOptions};

/// Workers that are close on each other's heels, and nothing that goes wrong.
const CALM: &str = r#"
why = "Three workers and one host, many deliveries: who comes first is a matter of milliseconds."
[world]
workers = 3
destinations = 1
heal_at = "15s"
[workload]
producers = 2
sends_count = 10
gap = "1ms..300ms"
recipients_max = 1
wakes_count = 10
fanout = "20%"
[faults.receiver]
server_error = "20%"
[faults.network]
lost_response = "5%"
"#;

/// First seed that violates the bug's own property, and how many of `seeds` do.
fn found(scenario: &Scenario, mutant: Mutant, schedule: Schedule, seeds: u64) -> Result<(Option<u64>, u64), String> {
    let mut scenario = scenario.clone();
    scenario.world.schedule = schedule;
    let options = RunOptions { mutant: Some(mutant), ..RunOptions::default() };
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let runs = map(jobs, seeds, |index| run_guarded(&scenario, index + 1, &options));
    let (mut first, mut count) = (None, 0);
    for (seed, run) in (1..).zip(runs) {
        let run = run.map_err(|error| error.to_string())?;
        if run.violation.is_some_and(|violation| violation.property == mutant.property()) {
            first = first.or(Some(seed));
            count += 1;
        }
    }
    Ok((first, count))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seeds: u64 = std::env::args().nth(1).map_or(Ok(400), |text| text.parse())?;
    let wanted: Vec<String> = std::env::args().skip(2).collect();
    if let Some(unknown) = wanted.iter().find(|name| Mutant::by_name(name).is_none()) {
        return Err(format!("{unknown} is no planted bug of the backlog").into());
    }
    let is_wanted = |mutant: &&Mutant| wanted.is_empty() || wanted.iter().any(|name| name == mutant.name());
    let calm = scenario::parse("calm", CALM)?;
    for is_calm in [false, true] {
        println!("{}", if is_calm { "\nin a calm scenario" } else { "in its own scenario" });
        let header = Schedule::ALL.map(|schedule| format!("{:>18}", schedule.name())).concat();
        println!("{:<28} {:<24}{header}", "planted bug", "scenario");
        let (mut common, mut sooner, mut shares) = (0, [0_u64; 3], [0_u64; 3]);
        for mutant in Mutant::ALL.iter().filter(is_wanted) {
            let own = scenario::load(mutant.scenario())?.0;
            let scenario = if is_calm { &calm } else { &own };
            let mut cells = Vec::new();
            for schedule in Schedule::ALL {
                cells.push(found(scenario, *mutant, schedule, seeds)?);
            }
            let is_never = cells.iter().all(|(first, _)| first.is_none());
            if is_never || cells.iter().all(|(_, count)| count * 2 > seeds) {
                common += 1;
                continue;
            }
            let best = cells.iter().filter_map(|(first, _)| *first).min();
            for (index, (first, count)) in cells.iter().enumerate() {
                sooner[index] += u64::from(*first == best);
                shares[index] += count;
            }
            let shown = cells.iter().map(|(first, count)| {
                let first = first.map_or("-".to_owned(), |seed| seed.to_string());
                format!("{:>18}", format!("{first}, {}.{} %", count * 100 / seeds, count * 1_000 / seeds % 10))
            });
            let shown: String = shown.collect();
            println!("{:<28} {:<24}{shown}", mutant.name(), if is_calm { "-" } else { mutant.scenario() });
        }
        println!("first or equally soon: {sooner:?}; violations in all: {shares:?}");
        println!("(not shown: {common} that all schedules find in more than half of the seeds, or none finds at all)");
    }
    Ok(())
}
