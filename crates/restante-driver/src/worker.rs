//! Runs one worker machine: executes its actions side by side and hands the replies back.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use restante_core::machine::{DeliveryEnd, ExpansionEnd, Failure, Io, Reply, RunReport, TaskId, Worker, WorkerStep};
use restante_core::plan::Settled;
use restante_journal::Operation;
use restante_kv::{BoxFuture, Key};
use tokio::sync::{oneshot, watch};

use crate::recording::Recording;
use crate::report::DrainReport;
use crate::shared::{Shared, new_owner};

/// A worker under way.
pub(crate) struct Running {
    shared: Arc<Shared>,
    worker: Worker,
    recording: Recording,
    /// Each with the keys it reads, for the journal.
    actions: FuturesUnordered<BoxFuture<'static, (TaskId, Vec<Key>, Reply)>>,
    /// Waits that a wake may end.
    wakeable: BTreeMap<TaskId, oneshot::Sender<()>>,
    finished: Option<RunReport>,
    /// Deliveries whose claim ended since the worker was asked to stop.
    drained: DrainReport,
    stopping: bool,
    /// Why the store did not take what the claim that was given up last asked of it.
    refused: Option<Failure>,
}

impl Running {
    /// A worker that serves until it is stopped.
    pub(crate) fn serve(shared: Arc<Shared>) -> Self {
        let (owner, slots, local) = (new_owner(), shared.slots.of_workers(), shared.local());
        let recording = Recording::begin(&shared, local, || Operation::Serve { owner, slots });
        let begun = Worker::serve(Arc::clone(&shared.env), owner, slots, local);
        Self::new(shared, recording, begun)
    }

    /// A worker that runs once.
    pub(crate) fn once(shared: Arc<Shared>, limit: u64) -> Self {
        let (owner, slots, local) = (new_owner(), shared.slots.of_workers(), shared.local());
        let recording = Recording::begin(&shared, local, || Operation::Once { owner, slots, limit });
        let begun = Worker::once(Arc::clone(&shared.env), owner, slots, limit, local);
        Self::new(shared, recording, begun)
    }

    fn new(shared: Arc<Shared>, recording: Recording, (worker, first): (Worker, WorkerStep)) -> Self {
        let mut running = Self {
            shared,
            worker,
            recording,
            actions: FuturesUnordered::new(),
            wakeable: BTreeMap::new(),
            finished: None,
            drained: DrainReport::default(),
            stopping: false,
            refused: None,
        };
        running.follow(first);
        running
    }

    /// Runs until the machine has finished. `stop` asks it to take nothing new and to finish.
    pub(crate) async fn run(&mut self, mut stop: watch::Receiver<bool>) -> RunReport {
        let wakes = self.shared.wakes.register();
        loop {
            if let Some(report) = self.finished {
                return report;
            }
            tokio::select! {
                biased;
                Ok(_) = stop.wait_for(|stop| *stop), if !self.stopping => {
                    self.stopping = true;
                    self.recording.stopped();
                    let step = self.worker.stop();
                    self.follow(step);
                }
                () = wakes.notified() => match self.wakeable.pop_first() {
                    // The wait's own end may have come first; then its reply is on its way, and that is a look as good as any.
                    Some((_, woken)) => drop(woken.send(())),
                    None => {
                        self.recording.woken();
                        self.worker.note_wake();
                    }
                },
                Some((task, keys, reply)) = self.actions.next() => {
                    self.wakeable.remove(&task);
                    let local = self.shared.local();
                    self.recording.answered(&self.shared, task, &reply, &keys, local);
                    let step = self.worker.step(task, reply, local);
                    self.follow(step);
                }
            }
        }
    }

    fn follow(&mut self, step: WorkerStep) {
        self.shared.telemetry.observe(&self.shared, step.effects);
        for (entry, end) in step.ended {
            self.shared.telemetry.claim_ended(entry, &end);
            if self.stopping {
                self.drained.count(&end);
            }
            if let DeliveryEnd::Yielded(failure @ (Failure::Store(_) | Failure::Unknown)) = end {
                self.refused = Some(failure);
            }
        }
        for (_, end) in step.expanded {
            if let ExpansionEnd::Yielded(failure @ (Failure::Store(_) | Failure::Unknown)) = end {
                self.refused = Some(failure);
            }
        }
        for (task, about, io) in step.actions {
            self.recording.asked(&self.shared, task, &about, &io);
            let (shared, keys, woken) = (Arc::clone(&self.shared), self.recording.keys_of(&io), self.wakeable_wait(task, &io));
            self.actions.push(Box::pin(async move { (task, keys, shared.execute(io, woken).await) }));
        }
        if step.finished.is_some() {
            self.finished = step.finished;
        }
    }

    fn wakeable_wait(&mut self, task: TaskId, io: &Io) -> Option<oneshot::Receiver<()>> {
        let Io::Sleep { wakeable: true, .. } = io else { return None };
        let (woken, wait) = oneshot::channel();
        self.wakeable.insert(task, woken);
        Some(wait)
    }

    /// What became of the deliveries since the worker was asked to stop.
    pub(crate) fn drained(&self) -> DrainReport {
        self.drained
    }

    /// Why the store did not take what the claim that was given up last asked of it.
    pub(crate) fn refused(&self) -> Option<Failure> {
        self.refused.clone()
    }

    /// Deliveries under way.
    pub(crate) fn under_way(&self) -> u64 {
        self.worker.deliveries_under_way() as u64
    }
}

impl DrainReport {
    fn count(&mut self, end: &DeliveryEnd) {
        match end {
            DeliveryEnd::Settled(Settled::Delivered | Settled::Gone) => self.completed += 1,
            DeliveryEnd::NotClaimed => {}
            DeliveryEnd::Settled(Settled::Dropped(_) | Settled::Retried | Settled::Deferred | Settled::Parked(_))
            | DeliveryEnd::LeaseLost
            | DeliveryEnd::Quarantined
            | DeliveryEnd::Yielded(_) => self.failed += 1,
        }
    }
}
