//! Workers on a test bed: one run, two runs side by side, a run that dies, and serving.

use std::collections::{BTreeMap, VecDeque};

use restante_core::Effect;
use restante_core::atoms::{EntryId, SendId};
use restante_core::machine::{About, DeliveryEnd, ExpansionEnd, Io, Reply, RunReport, Slots, TaskId, Worker, WorkerStep};

use crate::bed::{Bed, owner};

const ACTIONS_MAX: usize = 20_000;

/// What a run came to.
pub(crate) struct Ran {
    pub(crate) report: RunReport,
    pub(crate) ended: Vec<(EntryId, DeliveryEnd)>,
    pub(crate) expanded: Vec<(SendId, ExpansionEnd)>,
    pub(crate) effects: Vec<Effect>,
}

/// A run under way, one action at a time, first asked first done.
struct Running {
    worker: Worker,
    queue: VecDeque<(TaskId, About, Io)>,
    ended: Vec<(EntryId, DeliveryEnd)>,
    expanded: Vec<(SendId, ExpansionEnd)>,
    effects: Vec<Effect>,
    report: Option<RunReport>,
}

impl Running {
    fn begin(bed: &Bed, who: u8, limit: u64) -> Self {
        let (worker, step) = Worker::once(bed.env.clone(), owner(who), Slots::All, limit, bed.local());
        let mut running =
            Self { worker, queue: VecDeque::new(), ended: Vec::new(), expanded: Vec::new(), effects: Vec::new(), report: None };
        running.take(step);
        running
    }

    fn take(&mut self, step: WorkerStep) {
        self.queue.extend(step.actions);
        self.effects.extend(step.effects);
        self.ended.extend(step.ended);
        self.expanded.extend(step.expanded);
        self.report = self.report.or(step.finished);
    }

    /// Executes one action, unless the run is finished.
    fn step(&mut self, bed: &mut Bed) {
        if self.report.is_none() {
            let Some((task, about, io)) = self.queue.pop_front() else { panic!("the run is stuck: {:?}", bed.actions) };
            let reply = bed.execute(&about, io);
            let step = self.worker.step(task, reply, bed.local());
            self.take(step);
        }
    }
}

impl Bed {
    /// One run of a worker.
    pub(crate) fn once(&mut self, who: u8, limit: u64) -> Ran {
        let mut running = Running::begin(self, who, limit);
        for _ in 0..ACTIONS_MAX {
            running.step(self);
            if let Some(report) = running.report {
                return Ran { report, ended: running.ended, expanded: running.expanded, effects: running.effects };
            }
        }
        panic!("the run does not end; its latest actions: {:?}", &self.actions[self.actions.len() - 40..]);
    }

    /// A run that dies after `actions` actions.
    pub(crate) fn die_after(&mut self, who: u8, actions: usize) {
        let mut running = Running::begin(self, who, u64::MAX);
        (0..actions).for_each(|_| running.step(self));
    }

    /// Two runs side by side: `turns` says whose action is next, again from its beginning when it is used up.
    pub(crate) fn race(&mut self, who: [u8; 2], turns: &[bool]) {
        let mut both = who.map(|who| Running::begin(self, who, u64::MAX));
        for turn in turns.iter().cycle().take(ACTIONS_MAX) {
            both[usize::from(*turn)].step(self);
            if both.iter().all(|running| running.report.is_some()) {
                return;
            }
            // Only one of them may be left, and it need not be the one whose turn it is.
            if let Some(left) = both.iter_mut().find(|running| running.report.is_none()) {
                left.step(self);
            }
        }
        panic!("the runs do not end; their latest actions: {:?}", &self.actions[self.actions.len() - 40..]);
    }

    /// A serving worker for `ms` milliseconds. Actions take no time, so that only a wait lets time pass.
    pub(crate) fn serve(&mut self, who: u8, ms: u64, actions_max: usize) -> Vec<(EntryId, DeliveryEnd)> {
        let until_ms = self.now_ms + ms;
        let (mut worker, mut step) = Worker::serve(self.env.clone(), owner(who), Slots::All, self.local());
        let mut ended = Vec::new();
        let mut ready: VecDeque<(TaskId, About, Io)> = VecDeque::new();
        let mut asleep: BTreeMap<(u64, TaskId), ()> = BTreeMap::new();
        for _ in 0..actions_max {
            ended.extend(step.ended);
            for (task, about, io) in step.actions {
                match io {
                    Io::Sleep { ms, .. } => _ = asleep.insert((self.now_ms + ms, task), ()),
                    io => ready.push_back((task, about, io)),
                }
            }
            let (task, reply) = match ready.pop_front() {
                Some((task, about, io)) => (task, self.execute(&about, io)),
                None => {
                    let ((at_ms, task), ()) = asleep.pop_first().expect("a serving worker always waits for something");
                    if at_ms > until_ms {
                        return ended;
                    }
                    self.now_ms = self.now_ms.max(at_ms);
                    (task, Reply::Slept)
                }
            };
            step = worker.step(task, reply, self.local());
        }
        panic!("more than {actions_max} actions in {ms} ms; the latest: {:?}", &self.actions[self.actions.len() - 20..]);
    }
}
