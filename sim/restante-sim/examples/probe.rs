//! Probe.
use restante_sim::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (s, _) = scenario::load(&a[1]).unwrap_or_else(|e| { eprintln!("{e}"); std::process::exit(2) });
    let from: u64 = a[2].parse().unwrap();
    let n: u64 = a[3].parse().unwrap();
    let mutant = a.get(4).and_then(|m| Mutant::by_name(m));
    let t = std::time::Instant::now();
    let (mut ev, mut del, mut fails, mut ent) = (0, 0, 0, 0);
    let mut marks = restante_engine::Marks::new();
    let mut faults = restante_engine::FaultCounts::new();
    for seed in from..from + n {
        let r = World::run(&s, seed, &RunOptions { trace: n == 1, mutant, ..Default::default() });
        if n == 1 { print!("{}", r.trace.render()); }
        ev += r.events; del += r.delivered; ent += r.entries;
        marks.merge(&r.marks); faults.merge(&r.faults);
        if let Some(v) = r.violation { fails += 1; if fails < 8 { println!("seed {seed}: {} at {} sim {}", v.fingerprint(), v.at, r.sim_time); } }
    }
    let dt = t.elapsed().as_secs_f64();
    println!("runs {n} fails {fails} events/run {} entries/run {} delivered/run {} ms/run {:.2} ev/s {:.0}", ev / n, ent / n, del / n, dt * 1e3 / n as f64, ev as f64 / dt);
    println!("{marks:?}\n{faults:?}");
}
