//! The machines of a journal, told again what they were told.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use restante_core::Env;
use restante_core::machine::{About, Io, LocalTime, Reply, Sending, SendingStep, TaskId, Worker, WorkerStep};
use restante_journal::{Event, IoRecord, Operation, ReplyRecord};

use super::Wrong;

/// All operations that began.
pub(super) struct Operations {
    env: Arc<Env>,
    running: BTreeMap<u64, Running>,
    steps: u64,
}

enum Machine {
    Worker(Box<Worker>),
    Sending(Box<Sending>),
    /// Only recorded.
    Command,
}

struct Running {
    machine: Machine,
    /// What the machine asked for and the journal has not said yet.
    expected: VecDeque<(u32, String, IoRecord)>,
    /// What the journal said and was not answered yet.
    open: BTreeMap<u32, (String, IoRecord)>,
}

impl Operations {
    pub(super) fn new(env: Arc<Env>) -> Self {
        Self { env, running: BTreeMap::new(), steps: 0 }
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    pub(super) fn step(&mut self, line: u64, event: &Event) -> Result<(), Wrong> {
        let wrong = |op: u64, about: &str, what: String| Wrong { line, op, about: about.to_owned(), what };
        match event {
            Event::Opened { .. } if line == 1 => Ok(()),
            Event::Opened { .. } => Err(wrong(0, "opened", "a second journal begins here".to_owned())),
            Event::Full {} => Ok(()),
            Event::Began { op, local_ms, operation } => {
                if self.running.contains_key(op) {
                    return Err(wrong(*op, "began", "an operation of this number began before".to_owned()));
                }
                let running = self.begin(operation, LocalTime::from_ms(*local_ms));
                self.running.insert(*op, running);
                Ok(())
            }
            Event::Asked { op, task, about, io } => {
                let running = self.running.get_mut(op).ok_or_else(|| wrong(*op, about, "no such operation began".to_owned()))?;
                running.on_asked(*task, about, io).map_err(|what| wrong(*op, about, what))
            }
            Event::Answered { op, task, local_ms, reply } => {
                let running =
                    self.running.get_mut(op).ok_or_else(|| wrong(*op, "answer", "no such operation began".to_owned()))?;
                let about = running.open.get(task).map_or_else(|| "answer".to_owned(), |(about, _)| about.clone());
                self.steps += 1;
                running
                    .on_answered(&self.env, *task, reply, LocalTime::from_ms(*local_ms))
                    .map_err(|what| wrong(*op, &about, what))
            }
            Event::Woken { op } | Event::Stopped { op } => {
                let running =
                    self.running.get_mut(op).ok_or_else(|| wrong(*op, "signal", "no such operation began".to_owned()))?;
                running.on_signal(&self.env, matches!(event, Event::Stopped { .. })).map_err(|what| wrong(*op, "signal", what))
            }
        }
    }

    fn begin(&self, operation: &Operation, local: LocalTime) -> Running {
        let env = &self.env;
        let mut running = Running { machine: Machine::Command, expected: VecDeque::new(), open: BTreeMap::new() };
        match operation {
            Operation::Serve { owner, slots } => {
                let (worker, step) = Worker::serve(Arc::clone(env), *owner, *slots, local);
                running.expect_worker(env, &step);
                running.machine = Machine::Worker(Box::new(worker));
            }
            Operation::Once { owner, slots, limit } => {
                let (worker, step) = Worker::once(Arc::clone(env), *owner, *slots, *limit, local);
                running.expect_worker(env, &step);
                running.machine = Machine::Worker(Box::new(worker));
            }
            Operation::Send { .. } => {
                if let Some((request, digest, slot)) = operation.to_request() {
                    let (sending, step) = Sending::begin_again(env, request, digest, slot, local);
                    running.expect_sending(env, &sending, &step);
                    running.machine = Machine::Sending(Box::new(sending));
                }
            }
            Operation::Command { .. } => {}
        }
        running
    }
}

/// An action as the journal describes it.
fn describe(about: &About) -> String {
    let About { what, subject, fence, tries } = about;
    format!("{what} {subject:?}, fence {}, tries {tries}", fence.get())
}

impl Running {
    fn expect(&mut self, env: &Env, task: u32, about: &About, io: &Io) {
        self.expected.push_back((task, describe(about), IoRecord::of(env, io)));
    }

    fn expect_worker(&mut self, env: &Env, step: &WorkerStep) {
        step.actions.iter().for_each(|(task, about, io)| self.expect(env, task.get(), about, io));
    }

    fn expect_sending(&mut self, env: &Env, sending: &Sending, step: &SendingStep) {
        if let SendingStep::Do(io) = step {
            self.expect(env, 0, &sending.about(), io);
        }
    }

    fn on_asked(&mut self, task: u32, about: &str, io: &IoRecord) -> Result<(), String> {
        if !matches!(self.machine, Machine::Command) {
            match self.expected.pop_front() {
                Some((expected_task, expected_about, expected)) if expected_task == task && expected_about == about => {
                    if expected != *io {
                        return Err(format!("recorded is {}, the machine asks for {}", show(io), show(&expected)));
                    }
                }
                Some((expected_task, expected_about, _)) => {
                    return Err(format!(
                        "recorded is task {task}, the machine asks for {expected_about} of task {expected_task}"
                    ));
                }
                None => return Err(format!("recorded is {}, the machine asks for nothing", show(io))),
            }
        }
        match self.open.insert(task, (about.to_owned(), io.clone())) {
            Some((before, _)) => Err(format!("task {task} asks again before {before} was answered")),
            None => Ok(()),
        }
    }

    /// Nothing may happen to a machine while the journal has not said all that it asked for.
    fn all_said(&self) -> Result<(), String> {
        match self.expected.front() {
            Some((task, about, io)) => {
                Err(format!("the machine asks for {about} of task {task} ({}), which the journal does not say", show(io)))
            }
            None => Ok(()),
        }
    }

    fn on_answered(&mut self, env: &Env, task: u32, recorded: &ReplyRecord, local: LocalTime) -> Result<(), String> {
        self.all_said()?;
        let Some((_, asked)) = self.open.remove(&task) else {
            return Err(format!("an answer to task {task}, which asked for nothing"));
        };
        let reply = recorded.to_reply().map_err(|malformed| malformed.to_string())?;
        if !answers(&asked, &reply) {
            return Err(format!("an answer of another kind than what was asked for: {}", show(&asked)));
        }
        match &mut self.machine {
            Machine::Worker(worker) => {
                let step = worker.step(TaskId::new(task), reply, local);
                self.expect_worker(env, &step);
            }
            Machine::Sending(sending) => {
                let step = sending.step(env, reply, local);
                if let SendingStep::Do(io) = &step {
                    let about = sending.about();
                    self.expect(env, 0, &about, io);
                }
            }
            Machine::Command => {}
        }
        Ok(())
    }

    fn on_signal(&mut self, env: &Env, stop: bool) -> Result<(), String> {
        self.all_said()?;
        let Machine::Worker(worker) = &mut self.machine else { return Err("a signal to what is no worker".to_owned()) };
        if stop {
            let step = worker.stop();
            self.expect_worker(env, &step);
        } else {
            worker.note_wake();
        }
        Ok(())
    }
}

/// Whether a reply is one to this request: a machine must not be handed anything else, and a snapshot has one record a key.
fn answers(asked: &IoRecord, reply: &Reply) -> bool {
    match (asked, reply) {
        (IoRecord::Read { keys }, Reply::Snapshot { result: Ok(records), .. }) => records.len() == keys.len(),
        (IoRecord::Read { .. }, Reply::Snapshot { result: Err(_), .. })
        | (IoRecord::Scan { .. }, Reply::Page { .. })
        | (IoRecord::Commit { .. }, Reply::Committed(_))
        | (IoRecord::Sleep { .. }, Reply::Slept)
        | (IoRecord::Post { .. }, Reply::Posted { .. } | Reply::PostTooLate) => true,
        _ => false,
    }
}

/// An action in a line that a person can read.
fn show(io: &IoRecord) -> String {
    match io {
        IoRecord::Read { keys } => format!("a read of {}", keys.join(", ")),
        IoRecord::Scan { start, limit, .. } => format!("a scan of {limit} from {start}"),
        IoRecord::Commit { checks, writes } => {
            let checks: Vec<_> =
                checks.iter().map(|it| format!("{} at {}", it.key, it.version.as_deref().unwrap_or("absent"))).collect();
            let writes: Vec<_> = writes
                .iter()
                .map(|it| match &it.put {
                    Some(value) => format!("{} = {:08x}", it.key, fingerprint(value)),
                    None => format!("{} deleted", it.key),
                })
                .collect();
            format!("a commit checking [{}] and writing [{}]", checks.join("; "), writes.join("; "))
        }
        IoRecord::Sleep { ms, jitter_ms, .. } => format!("a wait of {ms} ms (+ {jitter_ms})"),
        IoRecord::Post { entry, fence, post_by_ms, .. } => format!("a POST of {entry} under fence {fence}, by {post_by_ms} ms"),
    }
}

fn fingerprint(text: &str) -> u32 {
    let mut digest = restante_engine::Digest::new();
    digest.str(text);
    digest.value() as u32
}
