//! A small world on this engine and on a plain async runtime with paused time, side by side:
//! `cargo bench -p restante-engine --bench small_workload`; `ROUNDS` (5) and `SEEDS` (30 a round) come from the environment.
//!
//! One store, four receivers and three workers settle 200 entries with bodies of 1.4 KB: scan what is due, lease, post, settle.
//! Datagrams take 1 to 20 ms and 2 % are lost; a request is repeated after 60 ms; a lease lasts 400 ms; one worker crashes at
//! 1.5 s and restarts at 2.0 s. Both sides share the protocol and copy every datagram twice, into flight and out of it. The
//! engine's side also makes its decisions by key and folds every event, bodies included, into a digest.

use std::time::Instant;

#[path = "small_workload/engine.rs"]
mod engine;
#[path = "small_workload/floor.rs"]
mod floor;
#[path = "small_workload/protocol.rs"]
mod protocol;

const ENTRIES: u32 = 200;
const WORKERS: usize = 3;
const RECEIVERS: usize = 4;
const KV: usize = 0;
const FIRST_RECEIVER: usize = 1;
const FIRST_WORKER: usize = FIRST_RECEIVER + RECEIVERS;
const NODES: usize = FIRST_WORKER + WORKERS;
const LATENCY_MIN_US: u64 = 1_000;
const LATENCY_MAX_US: u64 = 20_000;
const LOSS_PERCENT: u32 = 2;
const RETRY_MS: u64 = 60;
const LEASE_MS: u64 = 400;
const IDLE_MS: u64 = 20;
const CRASH_MS: u64 = 1_500;
const RESTART_MS: u64 = 2_000;
const BODY_LEN: usize = 1_400;
const BUFFER_LEN: usize = 65_536;

#[derive(Default)]
struct Round {
    wall_ms: f64,
    messages: u64,
    posts: u64,
    retries: u64,
    sim_ms: u64,
}

impl Round {
    fn per_second(&self) -> f64 {
        self.messages as f64 / self.wall_ms * 1e3
    }
}

fn round(run: fn(u64) -> protocol::Outcome, seeds: u64) -> Round {
    let mut round = Round::default();
    let start = Instant::now();
    for seed in 1..=seeds {
        let outcome = run(seed);
        outcome.check();
        round.messages += outcome.messages;
        round.posts += outcome.posts;
        round.retries += outcome.retries;
        round.sim_ms += outcome.sim_ms;
    }
    round.wall_ms = start.elapsed().as_secs_f64() * 1e3;
    round
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn main() {
    let (rounds, seeds) = (number("ROUNDS", 5).max(1), number("SEEDS", 30).max(1));
    for (name, run) in [("engine", engine::run as fn(u64) -> _), ("floor", floor::run)] {
        let Round { messages, posts, retries, sim_ms, .. } = round(run, seeds);
        let [messages, posts, retries, sim_ms] = [messages, posts, retries, sim_ms].map(|sum| sum as f64 / seeds as f64);
        println!("{name:<6} per run: {messages:.0} messages, {posts:.1} posts, {retries:.1} retries, {sim_ms:.0} simulated ms");
    }
    assert_eq!(engine::run(1).digest, engine::run(1).digest, "the same seed has to do the same");
    println!("\nround | engine ms/run | messages/s | floor ms/run | messages/s | ratio");
    let mut ratios = Vec::new();
    for index in 1..=rounds {
        let (engine, floor) = (round(engine::run, seeds), round(floor::run, seeds));
        let ratio = engine.per_second() / floor.per_second();
        let [ours, theirs] = [&engine, &floor].map(|round| (round.wall_ms / seeds as f64, round.per_second()));
        println!("{index:>5} | {:>13.3} | {:>10.0} | {:>12.3} | {:>10.0} | {ratio:>5.2}", ours.0, ours.1, theirs.0, theirs.1);
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio of messages/s, engine to floor: {:.2}", ratios[ratios.len() / 2]);
}
