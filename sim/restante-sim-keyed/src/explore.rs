//! Every order of events of a small bound.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use restante_engine::{Marks, Trace, Violation};
use restante_keyed_queue::core::QueueTime;
use serde::{Deserialize, Serialize};

use crate::Mutant;
use crate::ghost::Place;
use crate::world::{Step, World};

/// What may happen in an exploration.
///
/// Everything may happen at any point: a start, an end of an attempt either way, the end of a backoff, the deadline of a stop;
/// submissions in their order; cancels, pauses and stops within their counts; resumes without limit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// Keys of the tasks, in the order of their submission.
    pub tasks: Vec<u32>,
    /// Most keys in an attempt.
    pub width: u32,
    /// Most attempts of a task.
    pub attempts_max: u32,
    /// How often somebody cancels a task.
    pub cancels_max: u32,
    /// How often somebody pauses the queue or a key.
    pub pauses_max: u32,
    /// How often somebody stops the queue, with a deadline or without.
    pub stops_max: u32,
}

impl Bound {
    /// Three tasks of two keys, two attempts each; two cancels, two pauses and two stops at any point.
    pub fn small(width: u32) -> Self {
        Self { tasks: vec![0, 0, 1], width, attempts_max: 2, cancels_max: 2, pauses_max: 2, stops_max: 2 }
    }
}

/// What an exploration came to.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// States visited.
    pub states: u64,
    /// Moves taken.
    pub moves: u64,
    /// Moves on the longest shortest way to a state.
    pub depth_max: u64,
    /// States in which nothing is outstanding or under way and nothing more can be submitted.
    pub ended: u64,
    /// Whether every state of the bound was visited.
    pub is_complete: bool,
    /// `sometimes` states reached.
    pub marks: Marks,
    /// A violation with the fewest moves that lead to one, by name.
    pub violation: Option<(Violation, Vec<String>)>,
}

/// A schedule that was taken again.
#[derive(Clone, Debug)]
pub struct Retaken {
    /// The violation it led to.
    pub violation: Option<Violation>,
    /// Chain over everything that happened.
    pub digest: u128,
    /// Tasks accepted.
    pub tasks: u64,
    /// Tasks that completed.
    pub completed: u64,
    /// `sometimes` states reached.
    pub marks: Marks,
    /// What happened.
    pub trace: Trace,
    /// How many of its moves were possible.
    pub moves_taken: usize,
}

#[derive(Clone)]
struct State {
    world: World,
    /// Tasks submitted, refused ones included.
    submitted: usize,
    cancels_left: u32,
    pauses_left: u32,
    stops_left: u32,
    path: Path,
}

/// The moves that lead to a state, sharing their beginnings.
type Path = Option<Arc<Link>>;

struct Link {
    step: Step,
    before: Path,
}

/// Far behind everything else.
const DEADLINE: Duration = Duration::from_secs(3_600);
const BACKOFF: Duration = Duration::from_secs(1);

/// Explores `bound`, breadth first, until a violation or at most `states_max` states.
pub fn explore(bound: &Bound, mutant: Option<Mutant>, states_max: u64) -> Exploration {
    let root = State::root(bound, mutant, Trace::off());
    let mut seen = BTreeSet::from([root.fingerprint()]);
    let mut result =
        Exploration { states: 1, moves: 0, depth_max: 0, ended: 0, is_complete: false, marks: Marks::new(), violation: None };
    let mut level = vec![root];
    while !level.is_empty() {
        let mut next_level = Vec::new();
        for state in level {
            let steps = state.steps(bound);
            result.ended += u64::from(state.is_ended(bound));
            for step in steps {
                let mut next = state.clone();
                next.take(step);
                result.moves += 1;
                result.marks.merge(&std::mem::take(&mut next.world.found.marks));
                if let Some(violation) = next.world.found.violation.take() {
                    result.violation = Some((violation, next.schedule()));
                    return result;
                }
                if seen.insert(next.fingerprint()) {
                    if result.states == states_max {
                        return result;
                    }
                    result.states += 1;
                    next_level.push(next);
                }
            }
        }
        result.depth_max += u64::from(!next_level.is_empty());
        level = next_level;
    }
    result.is_complete = true;
    result
}

/// Takes a schedule again, as far as its moves are possible.
pub fn retake(bound: &Bound, mutant: Option<Mutant>, schedule: &[String]) -> Retaken {
    let mut state = State::root(bound, mutant, Trace::all());
    let mut moves_taken = 0;
    for name in schedule {
        let Some(step) = state.steps(bound).into_iter().find(|step| name_of(*step) == *name) else { break };
        state.take(step);
        moves_taken += 1;
        if state.world.found.violation.is_some() {
            break;
        }
    }
    let world = state.world;
    let (digest, counts) = (world.digest.value(), world.core.counts());
    Retaken {
        violation: world.found.violation,
        digest,
        tasks: counts.submitted,
        completed: counts.completed,
        marks: world.found.marks,
        trace: world.trace,
        moves_taken,
    }
}

impl State {
    fn root(bound: &Bound, mutant: Option<Mutant>, trace: Trace) -> Self {
        Self {
            world: World::new(bound.width, bound.attempts_max, BACKOFF, mutant, trace),
            submitted: 0,
            cancels_left: bound.cancels_max,
            pauses_left: bound.pauses_max,
            stops_left: bound.stops_max,
            path: None,
        }
    }

    fn fingerprint(&self) -> u128 {
        self.world.fingerprint((self.submitted, self.cancels_left, self.pauses_left, self.stops_left))
    }

    fn is_ended(&self, bound: &Bound) -> bool {
        let tasks = &self.world.ghost.tasks;
        self.submitted == bound.tasks.len() && tasks.iter().all(|task| !task.is_outstanding() && task.under_way == 0)
    }

    /// All that can happen next.
    fn steps(&self, bound: &Bound) -> Vec<Step> {
        let (world, ghost) = (&self.world, &self.world.ghost);
        let mut steps = Vec::new();
        steps.extend(bound.tasks.get(self.submitted).map(|key| Step::Submit { key: *key }));
        if world.core.can_start() {
            steps.push(Step::Start);
        }
        for (task, found) in ghost.tasks.iter().enumerate() {
            if found.under_way > 0 {
                steps.extend([true, false].map(|has_succeeded| Step::End { task, has_succeeded }));
            }
            if world.sleeps.contains_key(&task) {
                steps.push(Step::SleepEnds { task });
            }
            if self.cancels_left > 0 && found.place != Place::Told(restante_keyed_queue::core::End::Cancelled) {
                steps.push(Step::Cancel { task });
            }
        }
        let keys: BTreeSet<u32> = bound.tasks.iter().copied().collect();
        if ghost.is_paused {
            steps.push(Step::Resume);
        }
        steps.extend(ghost.paused_keys.iter().map(|key| Step::ResumeKey { key: *key }));
        if self.pauses_left > 0 {
            if !ghost.is_paused {
                steps.push(Step::Pause);
            }
            steps.extend(keys.difference(&ghost.paused_keys).map(|key| Step::PauseKey { key: *key }));
        }
        if self.stops_left > 0 {
            steps.extend([None, Some(DEADLINE)].map(|within| Step::Stop { within }));
        }
        if ghost.stop.as_ref().is_some_and(|stop| stop.deadline.is_some() && stop.report.is_none()) {
            steps.push(Step::Deadline);
        }
        steps
    }

    fn take(&mut self, step: Step) {
        // Time does not pass, except that what sleeps is told that it is over: the core keeps no present.
        let now = match step {
            Step::SleepEnds { task } => self.world.sleeps.get(&task).map_or(QueueTime::ZERO, |(_, until)| *until),
            Step::Deadline => QueueTime::new(DEADLINE),
            _ => QueueTime::ZERO,
        };
        self.submitted += usize::from(matches!(step, Step::Submit { .. }));
        self.cancels_left -= u32::from(matches!(step, Step::Cancel { .. }));
        self.pauses_left -= u32::from(matches!(step, Step::Pause | Step::PauseKey { .. }));
        self.stops_left -= u32::from(matches!(step, Step::Stop { .. }));
        self.world.step(step, now);
        self.path = Some(Arc::new(Link { step, before: self.path.take() }));
    }

    fn schedule(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut path = &self.path;
        while let Some(link) = path {
            names.push(name_of(link.step));
            path = &link.before;
        }
        names.reverse();
        names
    }
}

/// The name of a move in a schedule.
fn name_of(step: Step) -> String {
    match step {
        Step::Submit { key } => format!("submit k{key}"),
        Step::Start => "start".to_owned(),
        Step::End { task, has_succeeded: true } => format!("t{} succeeds", task + 1),
        Step::End { task, has_succeeded: false } => format!("t{} fails", task + 1),
        Step::SleepEnds { task } => format!("backoff of t{} ends", task + 1),
        Step::Cancel { task } => format!("cancel t{}", task + 1),
        Step::Pause => "pause".to_owned(),
        Step::Resume => "resume".to_owned(),
        Step::PauseKey { key } => format!("pause k{key}"),
        Step::ResumeKey { key } => format!("resume k{key}"),
        Step::Stop { within: None } => "stop".to_owned(),
        Step::Stop { within: Some(_) } => "stop with a deadline".to_owned(),
        Step::Deadline => "deadline".to_owned(),
    }
}
