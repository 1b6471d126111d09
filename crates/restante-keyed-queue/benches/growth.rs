//! Memory over many tasks and keys: `cargo bench -p restante-keyed-queue --bench growth`.
//!
//! Ten million tasks (`TASKS`), each of ten under another key, a thousand outstanding at once. Printed is the resident memory
//! (Linux) after each tenth, and what is left of the keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use restante_keyed_queue::Queue;

const OUTSTANDING: u64 = 1_000;
const TASKS_PER_KEY: u64 = 10;

/// A key whose clones are counted.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    name: String,
    alive: Alive,
}

struct Alive(Arc<AtomicU64>);

impl PartialEq for Alive {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Alive {}

impl std::hash::Hash for Alive {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl Key {
    fn new(number: u64, alive: &Arc<AtomicU64>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self { name: format!("https://host-{number}.example"), alive: Alive(alive.clone()) }
    }
}

impl Clone for Key {
    fn clone(&self) -> Self {
        self.alive.0.fetch_add(1, Ordering::Relaxed);
        Self { name: self.name.clone(), alive: Alive(self.alive.0.clone()) }
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.alive.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn resident_mb() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<f64>().ok());
    pages.map_or(f64::NAN, |pages| pages * 4_096.0 / 1e6)
}

#[tokio::main]
async fn main() {
    let tasks = std::env::var("TASKS").ok().and_then(|tasks| tasks.parse().ok()).unwrap_or(10_000_000_u64);
    let alive = Arc::new(AtomicU64::new(0));
    let queue = Queue::builder().width(64).build().expect("valid");
    println!("{tasks} tasks over {} keys, {OUTSTANDING} outstanding at once", tasks / TASKS_PER_KEY);
    println!("{:>12} | {:>12} | {:>10}", "tasks", "resident MB", "keys alive");
    let tell = |done: u64| println!("{done:>12} | {:>12.1} | {:>10}", resident_mb(), alive.load(Ordering::Relaxed));
    tell(0);
    let mut window = Vec::with_capacity(OUTSTANDING as usize);
    for first in (0..tasks).step_by(OUTSTANDING as usize) {
        window.extend((first..first + OUTSTANDING).map(|number| {
            let key = Key::new(number / TASKS_PER_KEY, &alive);
            queue.run(key, move || async move { Ok::<_, ()>(number) }).expect("it takes work").result
        }));
        for result in window.drain(..) {
            result.await.expect("it completes");
        }
        let done = first + OUTSTANDING;
        if done.is_multiple_of((tasks / 10).max(OUTSTANDING)) {
            tell(done);
        }
    }
    queue.when_idle().await;
    let snapshot = queue.snapshot();
    println!("completed {}, keys in use {}, keys alive {}", snapshot.completed, snapshot.keys, alive.load(Ordering::Relaxed));
}
