//! Nanoseconds a timeline call: `cargo bench -p restante-engine --bench timeline`. The least of several passes is printed.

use std::{hint::black_box, time::Instant};

use restante_engine::{SimTime, Timeline};

const PASSES: usize = 15;
const ROUNDS: u64 = 100_000;

fn main() {
    for in_flight in [10_u64, 100, 1_000, 100_000] {
        let mut timeline = Timeline::new();
        let mut state = 1_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        // An event of the size that a world's events have.
        let event = |number: u64| [number; 4];
        for number in 0..in_flight {
            timeline.push(SimTime::from_us(random() % 20_000), random(), event(number));
        }
        let (mut hold, mut retry) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..PASSES {
            let start = Instant::now();
            for number in 0..ROUNDS {
                let (at, popped) = timeline.pop().unwrap();
                black_box(popped);
                timeline.push(at.plus_us(1_000 + random() % 19_000), random(), event(number));
            }
            hold = hold.min(start.elapsed().as_secs_f64());
            let start = Instant::now();
            for number in 0..ROUNDS {
                let timer = timeline.push(timeline.now().plus_ms(60), 0, event(number));
                let (at, popped) = timeline.pop().unwrap();
                black_box(popped);
                timeline.push(at.plus_us(1_000 + random() % 19_000), random(), event(number));
                black_box(timeline.cancel(timer));
            }
            retry = retry.min(start.elapsed().as_secs_f64());
        }
        let ns = |seconds: f64| seconds * 1e9 / ROUNDS as f64;
        println!("{in_flight:>6} in flight: pop + push {:6.1} ns, with a retry set and cancelled {:6.1} ns", ns(hold), ns(retry));
    }
}
