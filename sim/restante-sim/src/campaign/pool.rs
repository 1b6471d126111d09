//! Worker threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Does `work` on what `next` hands out, on `jobs` threads, until it hands out nothing more.
pub(super) fn work<T>(jobs: usize, next: impl Fn() -> Option<T> + Sync, work: impl Fn(T) + Sync) {
    let until_done = || {
        while let Some(item) = next() {
            work(item);
        }
    };
    thread::scope(|scope| {
        for _ in 1..jobs {
            scope.spawn(until_done);
        }
        until_done();
    });
}

/// What `one` makes of 0, 1, ... up to `count`, in that order whatever the number of threads.
pub fn map<T: Send>(jobs: usize, count: u64, one: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let cursor = AtomicU64::new(0);
    let results = Mutex::new(Vec::new());
    work(
        jobs,
        || Some(cursor.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < count),
        |index| {
            let result = one(index);
            results.lock().expect("no worker panics while it holds the results").push((index, result));
        },
    );
    let mut results = results.into_inner().expect("no worker panics while it holds the results");
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::map;

    #[test]
    fn results_come_in_order() {
        for jobs in [1, 2, 7] {
            assert_eq!(map(jobs, 100, |index| index * index), (0..100).map(|index| index * index).collect::<Vec<_>>());
        }
        assert!(map(3, 0, |index| index).is_empty());
    }
}
