//! One seeded run: a workload on a queue, every difference decided by key.

use std::time::Duration;

use restante_engine::{Alternative, Decider, DecisionLog, Marks, Quantity, SimTime, Tape, Timeline, Trace, Violation};
use restante_keyed_queue::core::QueueTime;

use crate::Mutant;
use crate::world::{Begun, Step, World};

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Overrides of single decisions.
    pub tape: Tape,
    /// A planted bug.
    pub mutant: Option<Mutant>,
    /// Keep the trace.
    pub trace: bool,
    /// Keep the log of decisions.
    pub record: bool,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The first property found violated.
    pub violation: Option<Violation>,
    /// Chain over everything that happened.
    pub digest: u128,
    /// Events handled.
    pub events: u64,
    /// Tasks accepted.
    pub tasks: u64,
    /// Tasks that completed.
    pub completed: u64,
    /// Simulated time of the run.
    pub sim_time: SimTime,
    /// How often each property was judged where it could have been found violated.
    pub judged: Marks,
    /// `sometimes` states reached.
    pub marks: Marks,
    /// The trace, if it was kept.
    pub trace: Trace,
    /// The decisions, if they were kept; what became of the tape, always.
    pub log: DecisionLog,
}

const TASKS: Quantity = Quantity::uniform(5, 60, 1);
const KEYS: Quantity = Quantity::uniform(1, 6, 1);
const WIDTH: Quantity = Quantity::uniform(1, 4, 1);
const ATTEMPTS: Quantity = Quantity::uniform(1, 4, 1);
const BACKOFF_US: Quantity = Quantity::uniform(0, 20_000, 1_000);
const GAP_US: Quantity = Quantity::uniform(0, 4_000, 100);
const WORKER_US: Quantity = Quantity::uniform(0, 500, 50);
const ATTEMPT_US: Quantity = Quantity::uniform(0, 10_000, 100).with_tail(10, 200_000);
const PAUSE_US: Quantity = Quantity::uniform(0, 30_000, 1_000);
const DEADLINE_US: Quantity = Quantity::uniform(0, 100_000, 1_000);
const SUCCESS: [Alternative; 2] = [Alternative::new("succeeds", 3), Alternative::new("fails", 1)];
const SLEEP: [Alternative; 2] = [Alternative::new("sleeps", 19), Alternative::new("short", 1)];
const SUBMIT: [Alternative; 6] = [
    Alternative::new("submits", 80),
    Alternative::new("cancels-it", 10),
    Alternative::new("cancels-an-earlier-one", 10),
    Alternative::new("pauses-its-key", 6),
    Alternative::new("pauses", 3),
    Alternative::new("stops", 1),
];
const STOP: [Alternative; 2] = [Alternative::new("patient", 1), Alternative::new("deadline", 1)];

enum Event {
    Submit { number: u64 },
    Step(Step),
}

/// Runs the workload of `seed` to its end.
pub fn run(seed: u64, options: &RunOptions) -> Outcome {
    let mut decider = Decider::with_tape(seed, &options.tape);
    if options.record {
        decider = decider.recording();
    }
    let mut run = Run::new(decider, options);
    while run.world.found.violation.is_none() {
        let Some((at, event)) = run.timeline.pop() else { break };
        run.events += 1;
        run.handle(QueueTime::new(Duration::from_micros(at.as_us())), event);
    }
    let world = run.world;
    Outcome {
        violation: world.found.violation,
        digest: world.digest.value(),
        events: run.events,
        tasks: world.core.counts().submitted,
        completed: world.core.counts().completed,
        sim_time: run.timeline.now(),
        judged: world.found.judged.by_name(crate::PROPERTIES),
        marks: world.found.marks,
        trace: world.trace,
        log: run.decider.log().clone(),
    }
}

struct Run {
    decider: Decider,
    timeline: Timeline<Event>,
    world: World,
    keys: u64,
    tasks: u64,
    is_worker_coming: bool,
    workers: u64,
    events: u64,
}

impl Run {
    fn new(mut decider: Decider, options: &RunOptions) -> Self {
        let mut setting = |name: &str, range| decider.quantity("keyed.setting", format_args!("{name}"), range);
        let (keys, tasks) = (setting("keys", KEYS), setting("tasks", TASKS));
        let (width, attempts_max) = (setting("width", WIDTH) as u32, setting("attempts", ATTEMPTS) as u32);
        let backoff = Duration::from_micros(setting("backoff", BACKOFF_US));
        let trace = if options.trace { Trace::all() } else { Trace::off() };
        let world = World::new(width, attempts_max, backoff, options.mutant, trace);
        let mut timeline = Timeline::new();
        timeline.push(SimTime::ZERO, 0, Event::Submit { number: 1 });
        Self { decider, timeline, world, keys, tasks, is_worker_coming: false, workers: 0, events: 0 }
    }

    fn later(&mut self, us: u64, event: Event) {
        let at = self.timeline.now().plus_us(us);
        let tie = match &event {
            Event::Submit { number } => self.decider.tie(format_args!("submit {number}")),
            Event::Step(step) => self.decider.tie(format_args!("{step:?}")),
        };
        self.timeline.push(at, tie, event);
    }

    fn handle(&mut self, now: QueueTime, event: Event) {
        match event {
            Event::Submit { number } => self.submit(now, number),
            Event::Step(step) => {
                if step == Step::Start {
                    self.is_worker_coming = false;
                }
                self.step(step, now);
            }
        }
        if self.world.core.can_start() && !self.is_worker_coming {
            self.is_worker_coming = true;
            self.workers += 1;
            let workers = self.workers;
            let us = self.decider.quantity("keyed.worker", format_args!("worker {workers}"), WORKER_US);
            self.later(us, Event::Step(Step::Start));
        }
    }

    /// A submission, what goes with it, and the next one.
    fn submit(&mut self, now: QueueTime, number: u64) {
        let key = self.decider.quantity("keyed.key", format_args!("submission {number}"), Quantity::uniform(0, self.keys - 1, 1))
            as u32;
        let accepted_before = self.world.ghost.tasks.len();
        self.step(Step::Submit { key }, now);
        let besides = self.decider.choose("keyed.submit", format_args!("submission {number}"), &SUBMIT);
        match SUBMIT[besides].name {
            "cancels-it" if self.world.ghost.tasks.len() > accepted_before => {
                self.step(Step::Cancel { task: accepted_before }, now);
            }
            "cancels-an-earlier-one" if accepted_before > 0 => {
                let earlier = Quantity::uniform(0, accepted_before as u64 - 1, 1);
                let task = self.decider.quantity("keyed.cancel", format_args!("submission {number}"), earlier) as usize;
                self.step(Step::Cancel { task }, now);
            }
            "pauses-its-key" => {
                self.step(Step::PauseKey { key }, now);
                let us = self.decider.quantity("keyed.pause", format_args!("key, submission {number}"), PAUSE_US);
                self.later(us, Event::Step(Step::ResumeKey { key }));
            }
            "pauses" => {
                self.step(Step::Pause, now);
                let us = self.decider.quantity("keyed.pause", format_args!("submission {number}"), PAUSE_US);
                self.later(us, Event::Step(Step::Resume));
            }
            "stops" => self.stop(now, number),
            _ => {}
        }
        if number < self.tasks {
            let us = self.decider.quantity("keyed.gap", format_args!("submission {number}"), GAP_US);
            self.later(us, Event::Submit { number: number + 1 });
        } else {
            self.stop(now, number + 1);
        }
    }

    fn stop(&mut self, now: QueueTime, number: u64) {
        let has_deadline = self.decider.choose("keyed.stop", format_args!("stop {number}"), &STOP) == 1;
        let within = has_deadline
            .then(|| Duration::from_micros(self.decider.quantity("keyed.deadline", format_args!("stop {number}"), DEADLINE_US)));
        self.step(Step::Stop { within }, now);
        // Whether or not the queue asks for it: time passes.
        if let Some(within) = within {
            self.later(within.as_micros() as u64, Event::Step(Step::Deadline));
        }
    }

    fn step(&mut self, step: Step, now: QueueTime) {
        // A clock is watched until the stop is over, for the deadline that counts.
        if step == Step::Deadline && !self.world.is_deadline_due(now) {
            return;
        }
        for begun in self.world.step(step, now) {
            match begun {
                Begun::Attempt { task, attempt } => {
                    let key = format_args!("t{} attempt {attempt}", task + 1).to_string();
                    let us = self.decider.quantity("keyed.attempt", format_args!("{key}"), ATTEMPT_US);
                    let has_succeeded = self.decider.choose("keyed.outcome", format_args!("{key}"), &SUCCESS) == 0;
                    self.later(us, Event::Step(Step::End { task, has_succeeded }));
                }
                Begun::Backoff { task, attempt, at } => {
                    let left = at.since(now).as_micros() as u64;
                    let short = format_args!("t{} attempt {attempt}, {left} us", task + 1).to_string();
                    let is_short = self.decider.choose("keyed.sleep", format_args!("{short}"), &SLEEP) == 1;
                    self.later(if is_short { left / 2 } else { left }, Event::Step(Step::SleepEnds { task }));
                }
                Begun::Deadline { .. } => {}
            }
        }
    }
}
