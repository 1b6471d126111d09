//! Tasks a second, beside two ways to do without: `cargo bench -p restante-keyed-queue --bench throughput`.
//!
//! All do the same work, in one process, in interleaved rounds, on a runtime of two threads; one producer submits a
//! window of tasks and awaits all their results before it submits the next.
//!
//! - *queue*: this crate.
//! - *mutexes*: `tokio::spawn` a task, which locks its key's mutex (found without any lookup) and answers through a oneshot.
//!   It promises less: no width, no order that does not depend on the scheduler, no cancel, no pause, no stop.
//! - *consumer*: one task that takes boxed futures from a channel and runs one after the other, each with a oneshot. No two
//!   keys side by side, and all of it stays on one thread.
//! - *per key*: the same, with a channel and a consumer for each key, made beforehand and found without any lookup.
//!
//! `ROUNDS` (7) and `THREADS` (2) come from the environment. The ratios are medians over the rounds.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use restante_keyed_queue::Queue;
use tokio::sync::{Mutex, mpsc, oneshot};

const KEYS: u64 = 1_000;
const WINDOW: u64 = 2_000;

/// What a task does.
#[derive(Clone, Copy)]
enum Work {
    Nothing,
    Yields,
    Computes,
    Waits,
}

impl Work {
    const ALL: [(Self, &'static str, u64); 4] = [
        (Self::Nothing, "returns at once", 400_000),
        (Self::Yields, "yields once", 200_000),
        (Self::Computes, "computes some 5 us", 60_000),
        (Self::Waits, "waits 1 ms", 4_000),
    ];

    async fn run(self, number: u64) -> u64 {
        match self {
            Self::Nothing => {}
            Self::Yields => tokio::task::yield_now().await,
            Self::Computes => return (0..9_000).fold(number, |sum, step| black_box(sum).rotate_left(5) ^ step),
            Self::Waits => tokio::time::sleep(Duration::from_millis(1)).await,
        }
        number
    }
}

/// Spreads tasks over keys without a pattern that a cache could learn.
fn key(number: u64) -> u64 {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % KEYS
}

async fn queue(work: Work, tasks: u64) -> u64 {
    let queue = Queue::builder().width(if matches!(work, Work::Waits) { KEYS as u32 } else { 64 }).build().expect("valid");
    let mut sum = 0;
    let mut window = Vec::with_capacity(WINDOW as usize);
    for first in (0..tasks).step_by(WINDOW as usize) {
        window.extend((first..first + WINDOW).map(|number| {
            let handler = move || async move { Ok::<_, ()>(work.run(number).await) };
            queue.run(key(number), handler).expect("it takes work").result
        }));
        for result in window.drain(..) {
            sum += result.await.expect("it completes");
        }
    }
    sum
}

async fn mutexes(work: Work, tasks: u64) -> u64 {
    let keys: Vec<Arc<Mutex<()>>> = (0..KEYS).map(|_| Arc::default()).collect();
    let mut sum = 0;
    let mut window = Vec::with_capacity(WINDOW as usize);
    for first in (0..tasks).step_by(WINDOW as usize) {
        window.extend((first..first + WINDOW).map(|number| {
            let (sender, receiver) = oneshot::channel();
            let key = keys[key(number) as usize].clone();
            tokio::spawn(async move {
                let _turn = key.lock().await;
                let _ = sender.send(Ok::<_, ()>(work.run(number).await));
            });
            receiver
        }));
        for result in window.drain(..) {
            sum += result.await.expect("it answers").expect("it completes");
        }
    }
    sum
}

async fn consumers(count: u64, work: Work, tasks: u64) -> u64 {
    let consumers: Vec<_> = (0..count)
        .map(|_| {
            let (submit, mut submitted) = mpsc::unbounded_channel::<Pin<Box<dyn Future<Output = ()> + Send>>>();
            tokio::spawn(async move {
                while let Some(task) = submitted.recv().await {
                    task.await;
                }
            });
            submit
        })
        .collect();
    let mut sum = 0;
    let mut window = Vec::with_capacity(WINDOW as usize);
    for first in (0..tasks).step_by(WINDOW as usize) {
        window.extend((first..first + WINDOW).map(|number| {
            let (sender, receiver) = oneshot::channel();
            let task = async move {
                let _ = sender.send(Ok::<_, ()>(work.run(number).await));
            };
            let submit = &consumers[(key(number) % count) as usize];
            assert!(submit.send(Box::pin(task)).is_ok(), "it takes work");
            receiver
        }));
        for result in window.drain(..) {
            sum += result.await.expect("it answers").expect("it completes");
        }
    }
    sum
}

/// Tasks a second of one side.
fn rate<F: Future<Output = u64> + Send + 'static>(run: impl FnOnce() -> F, tasks: u64) -> f64 {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(from_environment("THREADS", 2))
        .enable_time()
        .build()
        .expect("a runtime");
    let begun = Instant::now();
    let sum = runtime.block_on(async { tokio::spawn(run()).await.expect("it ends") });
    let took = begun.elapsed();
    black_box(sum);
    tasks as f64 / took.as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn from_environment(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn main() {
    let rounds = from_environment("ROUNDS", 7);
    println!("{rounds} rounds, {KEYS} keys, windows of {WINDOW} tasks; thousands of tasks a second, and how many times as many");
    println!(
        "{:<18} | {:>8} | {:>8} | {:>8} | {:>8} | {:>10} | {:>10} | {:>10}",
        "a task", "queue", "mutexes", "consumer", "per key", "x mutexes", "x consumer", "x per key"
    );
    for (work, name, tasks) in Work::ALL {
        let mut rates: [Vec<f64>; 4] = Default::default();
        for _ in 0..rounds {
            rates[0].push(rate(move || queue(work, tasks), tasks));
            rates[1].push(rate(move || mutexes(work, tasks), tasks));
            // Waiting one after the other takes a second per thousand.
            let consumed = if matches!(work, Work::Waits) { WINDOW } else { tasks };
            rates[2].push(rate(move || consumers(1, work, consumed), consumed));
            rates[3].push(rate(move || consumers(KEYS, work, tasks), tasks));
        }
        let ratio = |other: usize| median(rates[0].iter().zip(&rates[other]).map(|(queue, other)| queue / other).collect());
        let ratios = [ratio(1), ratio(2), ratio(3)];
        let [queue, mutexes, consumer, per_key] = rates.map(|rates| median(rates) / 1_000.0);
        println!(
            "{name:<18} | {queue:>8.1} | {mutexes:>8.1} | {consumer:>8.1} | {per_key:>8.1} | {:>10.2} | {:>10.2} | {:>10.2}",
            ratios[0], ratios[1], ratios[2]
        );
    }
}
