//! The world as event handlers on this engine.

use std::fmt;

use restante_engine::{Alternative, Decider, Digest, EventId, Quantity, SimTime, Timeline};

use super::{protocol::*, *};

const LOSS: [Alternative; 2] = [Alternative::new("arrives", 100 - LOSS_PERCENT), Alternative::new("lost", LOSS_PERCENT)];
const LATENCY: Quantity = Quantity::uniform(LATENCY_MIN_US, LATENCY_MAX_US, 100);

/// What a datagram is about: the key of its decisions.
#[derive(Clone, Copy)]
struct About {
    worker: usize,
    id: u64,
    attempt: u32,
    reply: bool,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.reply { "reply" } else { "request" };
        let (life, number) = (self.id >> 32, self.id & 0xffff_ffff);
        write!(f, "{kind} {number} of worker {} life {life}, attempt {}", self.worker, self.attempt)
    }
}

enum Event {
    Arrive { to: usize, about: About, bytes: Vec<u8> },
    Retry { worker: usize },
    Wake { worker: usize },
    Crash { worker: usize },
    Restart { worker: usize },
}

#[derive(Clone, Copy)]
struct Cas {
    key: u64,
    version: u64,
    state: u64,
}

#[derive(Clone, Copy)]
enum Step {
    Scan,
    Idle,
    Cas(Cas),
    ReadBack(Cas),
    Post { key: u64, version: u64 },
}

struct Worker {
    owner: u64,
    next_id: u64,
    todo: Vec<(u64, u64)>,
    step: Step,
    to: usize,
    request: Vec<u8>,
    attempt: u32,
    /// The retry in flight, or the wake when idle.
    timer: EventId,
}

struct World {
    decider: Decider,
    timeline: Timeline<Event>,
    digest: Digest,
    kv: Kv,
    workers: [Option<Worker>; WORKERS],
    buffers: Vec<Vec<u8>>,
    outcome: Outcome,
}

pub(crate) fn run(seed: u64) -> Outcome {
    let mut world = World {
        decider: Decider::new(seed),
        timeline: Timeline::new(),
        digest: Digest::new(),
        kv: Kv::new(),
        workers: [const { None }; WORKERS],
        buffers: vec![vec![0; BUFFER_LEN]; NODES],
        outcome: Outcome::default(),
    };
    (0..WORKERS).for_each(|worker| world.boot(worker));
    world.timeline.push(SimTime::from_ms(CRASH_MS), 0, Event::Crash { worker: 0 });
    world.timeline.push(SimTime::from_ms(RESTART_MS), 0, Event::Restart { worker: 0 });
    while world.kv.unsettled > 0 {
        let (at, event) = world.timeline.pop().expect("a worker is always waiting for something");
        world.on_event(at, event);
    }
    world.outcome.sim_ms = world.timeline.now().as_ms();
    world.outcome.digest = world.digest.value();
    world.outcome
}

impl World {
    fn on_event(&mut self, at: SimTime, event: Event) {
        self.digest.u64(at.as_us());
        match event {
            Event::Arrive { to, about, bytes } => {
                self.digest.u64(to as u64);
                self.digest.bytes(&bytes);
                self.on_datagram(to, about, &bytes);
            }
            Event::Retry { worker } => {
                self.outcome.retries += 1;
                self.send_request(worker);
            }
            Event::Wake { worker } => self.scan(worker),
            Event::Crash { worker } => {
                if let Some(dead) = self.workers[worker].take() {
                    self.timeline.cancel(dead.timer);
                }
            }
            Event::Restart { worker } => self.boot(worker),
        }
    }

    fn on_datagram(&mut self, to: usize, about: About, bytes: &[u8]) {
        let buffer = &mut self.buffers[to];
        buffer[..bytes.len()].copy_from_slice(bytes);
        let received = &buffer[..bytes.len()];
        let reply = match to {
            KV => self.kv.reply(received),
            _ if to < FIRST_WORKER => self.outcome.on_post(received),
            _ => return self.on_reply(about, bytes.len()),
        };
        self.send(FIRST_WORKER + about.worker, About { reply: true, ..about }, &reply);
    }

    fn send(&mut self, to: usize, about: About, bytes: &[u8]) {
        self.outcome.messages += 1;
        if self.decider.choose("net.loss", format_args!("{about}"), &LOSS) == 0 {
            let latency_us = self.decider.quantity("net.latency", format_args!("{about}"), LATENCY);
            let tie = self.decider.tie(format_args!("{about}"));
            let event = Event::Arrive { to, about, bytes: bytes.to_vec() };
            self.timeline.push(self.timeline.now().plus_us(latency_us), tie, event);
        }
    }

    fn boot(&mut self, index: usize) {
        self.outcome.boots += 1;
        let life = self.outcome.boots;
        let worker = Worker {
            owner: life << 8 | index as u64,
            next_id: life << 32,
            todo: Vec::new(),
            step: Step::Scan,
            to: KV,
            request: Vec::new(),
            attempt: 0,
            timer: self.timeline.push(self.timeline.now(), index as u64, Event::Wake { worker: index }),
        };
        self.workers[index] = Some(worker);
    }

    fn ask(&mut self, index: usize, step: Step, to: usize, request: impl FnOnce(u64) -> Vec<u8>) {
        let worker = self.workers[index].as_mut().unwrap();
        worker.next_id += 1;
        (worker.step, worker.to, worker.request, worker.attempt) = (step, to, request(worker.next_id), 0);
        self.send_request(index);
    }

    fn send_request(&mut self, index: usize) {
        let mut worker = self.workers[index].take().unwrap();
        worker.attempt += 1;
        let about = About { worker: index, id: worker.next_id, attempt: worker.attempt, reply: false };
        self.send(worker.to, about, &worker.request);
        worker.timer = self.timeline.push(self.timeline.now().plus_ms(RETRY_MS), index as u64, Event::Retry { worker: index });
        self.workers[index] = Some(worker);
    }

    fn scan(&mut self, index: usize) {
        let now_ms = self.timeline.now().as_ms();
        self.ask(index, Step::Scan, KV, |id| request(id, b's', &[now_ms]));
    }

    fn cas(&mut self, index: usize, cas: Cas) {
        let owner = self.workers[index].as_ref().unwrap().owner;
        let due_ms = if cas.state == LEASED { self.timeline.now().as_ms() + LEASE_MS } else { 0 };
        self.ask(index, Step::Cas(cas), KV, |id| request(id, b'c', &[cas.key, cas.version, due_ms, owner, cas.state]));
    }

    fn on_reply(&mut self, about: About, len: usize) {
        let index = about.worker;
        let Some(worker) = self.workers[index].as_mut().filter(|worker| worker.next_id == about.id) else { return };
        let reply = &self.buffers[FIRST_WORKER + index][..len];
        match worker.step {
            Step::Idle => {}
            Step::Scan => {
                self.timeline.cancel(worker.timer);
                let life_and_number = worker.next_id;
                let mut random = self.decider.draw("worker.pick", format_args!("worker {index} scan {life_and_number}"));
                worker.todo = pick(candidates(reply), || {
                    random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    random >> 32
                });
                worker.todo.reverse();
                if worker.todo.is_empty() {
                    worker.step = Step::Idle;
                    let at = self.timeline.now().plus_ms(IDLE_MS);
                    worker.timer = self.timeline.push(at, index as u64, Event::Wake { worker: index });
                } else {
                    self.next(index);
                }
            }
            Step::Cas(cas) => {
                self.timeline.cancel(worker.timer);
                if get(reply, 8) > 0 {
                    self.on_won(index, cas);
                } else if worker.attempt > 1 {
                    // Did an attempt land whose reply was lost?
                    self.ask(index, Step::ReadBack(cas), KV, |id| request(id, b'g', &[cas.key]));
                } else {
                    self.next(index);
                }
            }
            Step::ReadBack(cas) => {
                self.timeline.cancel(worker.timer);
                if [8, 24, 32].map(|at| get(reply, at)) == [cas.version + 1, worker.owner, cas.state] {
                    self.on_won(index, cas);
                } else {
                    self.next(index);
                }
            }
            Step::Post { key, version } => {
                self.timeline.cancel(worker.timer);
                self.cas(index, Cas { key, version, state: SETTLED });
            }
        }
    }

    fn on_won(&mut self, index: usize, Cas { key, version, state }: Cas) {
        if state == SETTLED {
            return self.next(index);
        }
        let receiver = FIRST_RECEIVER + key as usize % RECEIVERS;
        self.ask(index, Step::Post { key, version: version + 1 }, receiver, |id| post(id, key));
    }

    fn next(&mut self, index: usize) {
        match self.workers[index].as_mut().unwrap().todo.pop() {
            Some((key, version)) => self.cas(index, Cas { key, version, state: LEASED }),
            None => self.scan(index),
        }
    }
}
