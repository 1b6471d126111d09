//! Everything at once on real threads, for a few seconds: submitters, pauses, cancels, failures, panics, a stop.
//!
//! Each key belongs to one submitter, so that its submission order is known.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use restante_keyed_queue::{Queue, Snapshot, TaskError, TaskResult};

const SUBMITTERS: u64 = 3;
const KEYS: u64 = 48;
const WIDTH: u32 = 8;
const ATTEMPTS: u32 = 3;
const LASTS: Duration = Duration::from_secs(2);
const DEADLINE: Duration = Duration::from_millis(150);

/// What handlers of one key saw.
#[derive(Default)]
struct Seen {
    in_attempt: AtomicBool,
    attempts_begun: AtomicU64,
    state: Mutex<Order>,
}

#[derive(Default)]
struct Order {
    /// Numbers of the tasks in the order in which they started.
    started: Vec<u64>,
    /// The task that has started and is not over, with its attempts so far.
    current: Option<(u64, u32)>,
}

#[derive(Default)]
struct Shared {
    keys: Vec<Seen>,
    running: AtomicU32,
}

/// What a task comes to: decided when it is submitted, by its number.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

impl Shared {
    /// One attempt, which fails or panics by chance. The last one of a task clears the way for the next.
    async fn attempt(self: Arc<Self>, key: u64, number: u64, mut random: Random) -> Result<u64, String> {
        let seen = &self.keys[key as usize];
        assert!(!seen.in_attempt.swap(true, Ordering::SeqCst), "K1: two attempts of key {key} overlap");
        seen.attempts_begun.fetch_add(1, Ordering::SeqCst);
        assert!(self.running.fetch_add(1, Ordering::SeqCst) < WIDTH, "K3: more keys run than the width");
        let attempt = {
            let mut order = seen.state.lock().expect("no handler panics here");
            let attempt = match order.current {
                Some((current, attempts)) => {
                    assert_eq!(current, number, "K2: a successor started between attempts of key {key}");
                    attempts + 1
                }
                None => {
                    order.started.push(number);
                    1
                }
            };
            order.current = Some((number, attempt));
            attempt
        };
        match random.below(4) {
            0 => {}
            1 => tokio::task::yield_now().await,
            _ => tokio::time::sleep(Duration::from_micros(random.below(2_000))).await,
        }
        let outcome = random.below(20);
        if outcome >= 6 || attempt == ATTEMPTS {
            seen.state.lock().expect("no handler panics here").current = None;
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
        seen.in_attempt.store(false, Ordering::SeqCst);
        match outcome {
            // Without telling the panic hook: there are thousands.
            0 => std::panic::resume_unwind(Box::new("on purpose")),
            1..6 => Err(format!("task {number} failed")),
            _ => Ok(number),
        }
    }
}

fn assert_adds_up(snapshot: &Snapshot<u64>) {
    let ended = snapshot.completed + snapshot.failed + snapshot.cancelled + snapshot.abandoned;
    assert_eq!(snapshot.submitted, ended + snapshot.running + snapshot.queued, "K5: {snapshot:?}");
}

/// Submits, cancels and pauses until the queue takes no more.
fn submitter(queue: &Queue<u64>, shared: &Arc<Shared>, me: u64) -> Vec<(u64, u64, bool, TaskResult<u64, String>)> {
    let mut random = Random(0x5EED + me);
    let mut tasks = Vec::new();
    let mut cancelled = 0;
    for number in 1.. {
        // A few keys get most of the work.
        let key = me + SUBMITTERS * if random.below(2) == 0 { random.below(2) } else { random.below(KEYS / SUBMITTERS) };
        let (handed, mut seed) = (shared.clone(), Random(random.below(u64::MAX) | 1));
        let handler = move || handed.clone().attempt(key, number, Random(seed.below(u64::MAX) | 1));
        let Ok(task) = queue.run(key, handler) else { break };
        let mut was_cancelled = false;
        match random.below(200) {
            0..20 => was_cancelled = queue.cancel(task.id),
            20..22 => {
                let seen = &shared.keys[key as usize];
                queue.pause_key(&key);
                let (in_attempt, begun) = (seen.in_attempt.load(Ordering::SeqCst), seen.attempts_begun.load(Ordering::SeqCst));
                std::thread::sleep(Duration::from_micros(500));
                // An attempt that had started may only now have come to say so.
                let late = seen.attempts_begun.load(Ordering::SeqCst) - begun;
                assert!(late <= u64::from(!in_attempt), "K6: {late} attempts of paused key {key} began");
                queue.resume_key(&key);
            }
            22 if me == 0 => {
                queue.pause();
                std::thread::sleep(Duration::from_micros(300));
                queue.resume();
            }
            23 => assert_adds_up(&queue.snapshot()),
            24..40 => std::thread::sleep(Duration::from_micros(200)),
            _ => {}
        }
        cancelled += u64::from(was_cancelled);
        tasks.push((key, number, was_cancelled, task.result));
    }
    assert!(cancelled > 0, "nothing was cancelled");
    tasks
}

#[test]
fn every_promise_holds_on_real_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_time().build().expect("a runtime");
    let queue: Queue<u64> = Queue::builder()
        .width(WIDTH)
        .retry(ATTEMPTS, |attempt| Duration::from_micros(u64::from(attempt.get() - 1) * 700))
        .runtime(runtime.handle().clone())
        .build()
        .expect("valid");
    let keys = (0..KEYS).map(|_| Seen::default()).collect();
    let shared = Arc::new(Shared { keys, running: AtomicU32::new(0) });
    let mut tasks = Vec::new();
    std::thread::scope(|scope| {
        let submitters: Vec<_> = (0..SUBMITTERS)
            .map(|me| {
                scope.spawn({
                    let (queue, shared) = (&queue, &shared);
                    move || submitter(queue, shared, me)
                })
            })
            .collect();
        std::thread::sleep(LASTS);
        let begun = Instant::now();
        let report = runtime.block_on(queue.stop(Some(DEADLINE)));
        // Other work on the machine may keep the timer waiting.
        assert!(begun.elapsed() < DEADLINE + Duration::from_secs(2), "K7: the stop took {:?}", begun.elapsed());
        let snapshot = queue.snapshot();
        assert_eq!((snapshot.running, snapshot.queued, snapshot.keys), (0, 0, 0));
        assert_eq!(snapshot.abandoned, report.abandoned);
        for submitter in submitters {
            tasks.extend(submitter.join().expect("a promise was broken"));
        }
    });
    // What was abandoned while it ran comes to an end, and changes nothing.
    std::thread::sleep(Duration::from_millis(20));
    let snapshot = queue.snapshot();
    assert_adds_up(&snapshot);
    let mut ends = [0_u64; 4];
    let mut not_cancelled: Vec<Vec<u64>> = vec![Vec::new(); KEYS as usize];
    for (key, number, was_cancelled, result) in tasks {
        let result = runtime.block_on(result);
        assert_eq!(was_cancelled, result == Err(TaskError::Cancelled), "K4: cancel and result disagree");
        if !was_cancelled {
            not_cancelled[key as usize].push(number);
        }
        ends[match result {
            Ok(value) => {
                assert_eq!(value, number, "K4: another task's value");
                0
            }
            Err(TaskError::Failed(_)) => 1,
            Err(TaskError::Panicked { message }) => {
                assert_eq!(message, "on purpose");
                1
            }
            Err(TaskError::Cancelled) => 2,
            Err(TaskError::Stopped) => 3,
        }] += 1;
    }
    assert_eq!(ends, [snapshot.completed, snapshot.failed, snapshot.cancelled, snapshot.abandoned], "K4, K5");
    assert!(ends[0] > 100 && ends[1] > 0 && ends[2] > 0, "too little happened: {ends:?}");
    for (seen, not_cancelled) in shared.keys.iter().zip(not_cancelled) {
        let started = &seen.state.lock().expect("no handler panics here").started;
        assert_eq!(*started, not_cancelled[..started.len()], "K2: started in another order than submitted");
    }
}
