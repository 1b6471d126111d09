//! A started worker, the runs beside it, and how all of it stops.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::{JoinError, JoinSet};

use crate::report::{DrainReport, RunOutcome};
use crate::shared::Shared;
use crate::worker::Running;

/// A started worker.
#[derive(Debug)]
pub struct WorkerHandle {
    stop: watch::Sender<bool>,
    cut: watch::Sender<bool>,
    runs: BoundedRuns,
}

/// Bounded runs beside a started worker, which stop with it. Cheap to clone.
#[derive(Clone)]
pub struct BoundedRuns {
    shared: Arc<Shared>,
    tasks: Arc<Mutex<Tasks>>,
    stop: watch::Receiver<bool>,
    cut: watch::Receiver<bool>,
}

/// The worker and the runs that were begun.
#[derive(Debug, Default)]
struct Tasks {
    under_way: JoinSet<DrainReport>,
    /// What those came to that have ended.
    report: DrainReport,
    /// Nothing is begun any more.
    closed: bool,
}

impl WorkerHandle {
    pub(crate) fn start(shared: Arc<Shared>) -> Self {
        let ((stop, stopped), (cut, cut_off)) = (watch::channel(false), watch::channel(false));
        let runs = BoundedRuns { shared: Arc::clone(&shared), tasks: Arc::default(), stop: stopped, cut: cut_off };
        runs.begin(Running::serve(shared), None);
        Self { stop, cut, runs }
    }

    /// To run beside this worker, and no longer than it.
    pub fn runs(&self) -> BoundedRuns {
        self.runs.clone()
    }

    /// Takes nothing new, waits for the deliveries under way, those of its runs too, at most until `deadline`, and reports. What is
    /// cut off comes back when its lease ends.
    pub async fn shutdown(self, deadline: Duration) -> DrainReport {
        self.stop.send_replace(true);
        let (mut under_way, mut report) = self.runs.close();
        let drain = async {
            while let Some(ended) = under_way.join_next().await {
                report.add(ended.unwrap_or_else(panicked));
            }
        };
        if tokio::time::timeout(deadline, drain).await.is_err() {
            self.cut.send_replace(true);
            while let Some(ended) = under_way.join_next().await {
                report.add(ended.unwrap_or_else(panicked));
            }
        }
        report
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        self.runs.lock().under_way.detach_all();
    }
}

impl BoundedRuns {
    /// Delivers what is due, at most `limit` deliveries, as [`run_once_telling`](crate::Backlog::run_once_telling) does. It runs to its end also if
    /// this future is dropped. `None` if its worker is shut down: before it began, or so that the deadline cut it off. A run that is
    /// under way takes nothing new then, and reports what it has done.
    pub async fn run_once(&self, limit: u64) -> Option<RunOutcome> {
        let (told, report) = oneshot::channel();
        self.begin(Running::once(Arc::clone(&self.shared), limit), Some(told));
        report.await.ok()
    }

    fn begin(&self, mut running: Running, told: Option<oneshot::Sender<RunOutcome>>) {
        let (stop, mut cut) = (self.stop.clone(), self.cut.clone());
        let mut tasks = self.lock();
        while let Some(ended) = tasks.under_way.try_join_next() {
            tasks.report.add(ended.unwrap_or_else(panicked));
        }
        if tasks.closed {
            return;
        }
        tasks.under_way.spawn(async move {
            let finished = tokio::select! {
                report = running.run(stop) => Some(report),
                Ok(_) = cut.wait_for(|cut| *cut) => None,
            };
            let mut report = running.drained();
            match finished {
                // Who asked may be gone.
                Some(report) => drop(told.map(|told| told.send(RunOutcome { report, refused: running.refused() }))),
                None => {
                    report.abandoned = running.under_way();
                    report.timed_out = true;
                }
            }
            report
        });
    }

    fn close(&self) -> (JoinSet<DrainReport>, DrainReport) {
        let mut tasks = self.lock();
        tasks.closed = true;
        (std::mem::take(&mut tasks.under_way), tasks.report)
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for BoundedRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedRuns").field("tasks", &self.tasks).finish_non_exhaustive()
    }
}

/// The report of a worker that ended by a mistake of its own: what it had under way comes back when its leases end.
fn panicked(error: JoinError) -> DrainReport {
    tracing::error!(%error, "a worker ended by a panic");
    DrainReport { timed_out: true, ..DrainReport::default() }
}
