//! Nanoseconds a decision: `cargo bench -p restante-engine --bench decisions`. The least of several passes is printed, so
//! that other work on the machine counts little.

use std::{hint::black_box, time::Instant};

use restante_engine::{Alternative, Decider, Digest, Quantity};

const PASSES: usize = 200;
const DECISIONS: u64 = 5_000;
const LOSS: [Alternative; 2] = [Alternative::new("arrives", 98), Alternative::new("lost", 2)];
const OUTCOME: [Alternative; 6] = [
    Alternative::new("committed", 940),
    Alternative::new("unavailable", 10),
    Alternative::new("conflict", 20),
    Alternative::new("ambiguous-committed", 10),
    Alternative::new("ambiguous-not", 10),
    Alternative::new("limit-refused", 10),
];
const LATENCY: Quantity = Quantity::uniform(1_000, 20_000, 100);

fn measure(name: &str, mut pass: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..PASSES {
        let start = Instant::now();
        pass();
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / DECISIONS as f64);
    }
    println!("{name:<36} {best:7.1} ns");
}

fn main() {
    let mut decider = Decider::new(7);
    measure("choose, 2 alternatives, fixed key", || {
        for _ in 0..DECISIONS {
            black_box(decider.choose("net.send", format_args!("send A3 -> host b, attempt 2"), &LOSS));
        }
    });
    measure("choose, 2 alternatives, 3 parts", || {
        for n in 0..DECISIONS {
            black_box(decider.choose("net.send", format_args!("send A{n} -> host {}, attempt {}", "b", n & 3), &LOSS));
        }
    });
    measure("choose, 6 alternatives, 3 parts", || {
        for n in 0..DECISIONS {
            black_box(decider.choose("kv.commit", format_args!("claim A{n} by {}, try {}", "worker-2", n & 3), &OUTCOME));
        }
    });
    measure("quantity, 3 parts", || {
        for n in 0..DECISIONS {
            black_box(decider.quantity("net.latency", format_args!("send A{n} -> host {}, attempt {}", "b", n & 3), LATENCY));
        }
    });
    measure("quantity with a tail, 3 parts", || {
        let range = black_box(LATENCY.with_tail(10, 500_000));
        for n in 0..DECISIONS {
            black_box(decider.quantity("net.latency", format_args!("send A{n} -> host {}, attempt {}", "b", n & 3), range));
        }
    });
    measure("draw, 3 parts", || {
        for n in 0..DECISIONS {
            black_box(decider.draw("entropy", format_args!("send A{n} -> host {}, attempt {}", "b", n & 3)));
        }
    });
    measure("tie, 3 parts", || {
        for n in 0..DECISIONS {
            black_box(decider.tie(format_args!("send A{n} -> host {}, attempt {}", "b", n & 3)));
        }
    });
    measure("choose, 2 alternatives, recording", || {
        let mut decider = Decider::new(7).recording();
        for n in 0..DECISIONS {
            black_box(decider.choose("net.send", format_args!("send A{n} -> host {}, attempt {}", "b", n & 3), &LOSS));
        }
    });
    let mut text = String::new();
    measure("(formatting the 3 parts alone)", || {
        for n in 0..DECISIONS {
            text.clear();
            let _ = std::fmt::write(&mut text, format_args!("send A{n} -> host {}, attempt {}", "b", n & 3));
            black_box(&text);
        }
    });
    let mut digest = Digest::new();
    measure("digest of a number", || {
        for n in 0..DECISIONS {
            digest.u64(n);
        }
    });
    let body = vec![7_u8; 1_400];
    measure("digest of 1.4 KB", || {
        for _ in 0..DECISIONS {
            digest.bytes(black_box(&body));
        }
    });
    black_box(digest.value());
}
