//! Deliveries in order per destination, retried, beside each other: `cargo run -p restante-keyed-queue --example
//! deliver_in_order`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use restante_keyed_queue::{Queue, TaskError};

/// A destination that answers the first `failures` requests with an error.
struct Destination {
    name: &'static str,
    failures: AtomicU32,
}

impl Destination {
    async fn post(&self, number: u32) -> Result<u16, String> {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let fails = self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        println!("{} {number}: {}", self.name, if fails { "503" } else { "202" });
        if fails { Err(format!("{} answered 503", self.name)) } else { Ok(202) }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = Queue::builder().width(2).retry(3, |attempt| Duration::from_millis(50) * attempt.get()).build()?;
    let destinations = [("a.example", 2), ("b.example", 0), ("c.example", 9)];
    let destinations = destinations.map(|(name, failures)| Arc::new(Destination { name, failures: AtomicU32::new(failures) }));

    let mut tasks = Vec::new();
    for number in 1..=2 {
        for destination in &destinations {
            let to = destination.clone();
            tasks.push(queue.run(destination.name, move || {
                let to = to.clone();
                async move { to.post(number).await }
            })?);
        }
    }
    // The last one is not wanted after all; it has not started.
    let unwanted = tasks.pop().expect("there are six");
    assert!(queue.cancel(unwanted.id));
    assert_eq!(unwanted.await, Err(TaskError::Cancelled));

    let report = queue.stop(Some(Duration::from_secs(10))).await;
    for task in tasks {
        println!("{} of {}: {:?}", task.id, task.key, task.result.await);
    }
    println!("{} completed, {} failed, {} abandoned", report.completed, report.failed, report.abandoned);
    assert_eq!((report.completed, report.failed, report.abandoned, report.timed_out), (4, 1, 0, false));
    Ok(())
}
