//! Executing what the machines of a node ask for, and handing them their replies.

use std::sync::Arc;

use restante_core::machine::{About, ExpansionEnd, Io, LocalTime, Reply, RunReport, Slots, TransactStep, Worker, WorkerStep};
use restante_core::{Effect, Subject};

use super::alias::{self, SubjectAlias};
use super::build;
use super::choices::Choices;
use super::event::{Act, Event, Origin, StoreOp, Task};
use super::faults::{FaultSite, FaultSites};
use super::node::Role;
use super::{Perturbation, World};
use crate::audit::judged::judged;
use crate::scenario::Span;

/// Actions that recur are told apart by the time they are issued at, this coarsely, and by their number within it.
const RECURRENCE_MS: u64 = 250;

impl World<'_> {
    pub(super) fn local(&self, node: usize) -> LocalTime {
        self.nodes[node].clock.local(self.now())
    }

    pub(super) fn is_alive(&self, origin: Origin) -> bool {
        let node = &self.nodes[origin.node];
        node.up && node.life == origin.life
    }

    /// Whether that life of the node is one of the newer build.
    pub(super) fn is_newer(&self, origin: Origin) -> bool {
        self.nodes[origin.node].newer_since.is_some_and(|life| origin.life >= life)
    }

    /// How much longer a node stands still, if it does.
    pub(super) fn stands_still(&self, node: usize) -> Option<u64> {
        let until = self.nodes[node].stands_still_until;
        (until > self.now()).then(|| until.as_ms() - self.now().as_ms())
    }

    /// Names an action: command, alias, token and try. What has no token is told apart by who does it and when, coarsely.
    pub(super) fn act(&mut self, origin: Origin, about: About) -> Act {
        let About { what, ref subject, fence, tries } = about;
        let alias = SubjectAlias(subject);
        let label: Arc<str> = if fence.get() > 0 {
            format!("{what} {alias} f{} t{tries}", fence.get()).into()
        } else if let Subject::Send(_) = subject {
            format!("{what} {alias} t{tries}").into()
        } else {
            let node = &self.nodes[origin.node];
            let bucket = if let Subject::Entry(_) = subject { 0 } else { self.now().as_ms() / RECURRENCE_MS };
            let base = format!("{what} {alias} by {}#{}", node.name, node.life);
            if let Choices::Explored(_) = self.decider {
                return Act { about, label: format!("{base} t{tries}").into() };
            }
            let seen = self.occurrences.entry(hash(&base)).or_insert((bucket, 0));
            if seen.0 != bucket {
                *seen = (bucket, 0);
            }
            if tries == 0 || seen.1 == 0 {
                seen.1 += 1;
            }
            format!("{base} @{bucket} n{} t{tries}", seen.1).into()
        };
        Act { about, label }
    }

    /// Executes an action of a node.
    pub(super) fn issue(&mut self, origin: Origin, about: About, io: Io) {
        let operation = hash_about(&about);
        // All reads of one try, and its commit, share one name, and the later reads its latency: one read more or less in an
        // operation shifts nothing.
        let known = self.nodes[origin.node].paid.get(&origin.task).filter(|paid| paid.0 == operation).map(|paid| paid.1.clone());
        let paid = known.is_some();
        let act = known.unwrap_or_else(|| self.act(origin, about));
        if matches!(io, Io::Read(_)) {
            self.nodes[origin.node].paid.insert(origin.task, (operation, act.clone()));
        } else {
            self.nodes[origin.node].paid.remove(&origin.task);
        }
        match io {
            Io::Read(keys) => {
                if self.perturbation == Some(Perturbation::ExtraRead) && act.about.what == "settle" && !paid {
                    self.nodes[origin.node].read_again.insert(origin.task, keys.clone());
                }
                let fate = if paid { "ok" } else { self.fault(|sites| &sites.read, format_args!("{}", act.label)) };
                let latency_ms = if paid { 0 } else { self.store_latency(&act, fate) };
                self.push_store(origin, act, StoreOp::Read(keys), fate, latency_ms);
            }
            Io::Scan { range, limit } => {
                let fate = self.fault(|sites| &sites.scan, format_args!("{}", act.label));
                let latency_ms = self.store_latency(&act, fate);
                self.push_store(origin, act, StoreOp::Scan { range, limit }, fate, latency_ms);
            }
            Io::Commit(mut txn) => {
                if let Some(mutant) = self.mutant {
                    mutant.on_planned(&act.about, &mut txn, &self.env);
                }
                judged!(self.auditor, "writes-keep-their-rules");
                if let Err(violation) = restante_kv::check_strict(&txn) {
                    let evidence = vec![("command", act.about.what.to_owned()), ("rule", violation.rule().to_owned())];
                    self.auditor.violate(self.timeline.now(), "writes-keep-their-rules", evidence);
                }
                if self.crashes(origin.node, |sites| &sites.crash_before_commit, &act) {
                    return;
                }
                if let Some(mutant) = self.mutant {
                    mutant.on_txn(&act.about, &mut txn, &self.env, self.timeline.now());
                }
                if self.is_newer(origin) {
                    build::written_by_newer(&self.env, &self.newer_kinds, &mut txn);
                }
                let fate = self.fault(|sites| &sites.commit, format_args!("{}", act.label));
                let latency_ms = self.store_latency(&act, fate);
                self.push_store(origin, act, StoreOp::Commit(txn), fate, latency_ms);
            }
            Io::Sleep { mut ms, jitter_ms, wakeable } => {
                if let Some(mutant) = self.mutant {
                    mutant.on_sleep(&act.about, &mut ms);
                }
                let jitter_ms = match jitter_ms {
                    0 => 0,
                    max => self.span("core.jitter", format_args!("{}", act.label), Span::ms(0, max)),
                };
                let tie = self.decider.tie(format_args!("sleep {}", act.label));
                let id = self.push_in(ms + jitter_ms, tie, Event::Reply { origin, act, reply: Reply::Slept, resumed: false });
                if wakeable {
                    self.nodes[origin.node].wakeable.insert(origin.task, id);
                }
            }
            Io::Post(post) => {
                let mut after_ms = 0;
                if self.fault(|sites| &sites.pause_before_post, format_args!("{}", act.label)) != "ok" {
                    self.faults.delivered("process.pause-before-post");
                    after_ms = self.pause_length(&act);
                    let name = self.nodes[origin.node].name.clone();
                    self.row(&name, "pause", format_args!(""), format_args!("for {after_ms} ms, before {}", act.label));
                }
                let tie = self.decider.tie(format_args!("begin {}", act.label));
                self.push_in(after_ms, tie, Event::PostBegin { origin, act, post: Box::new(post) });
            }
        }
    }

    fn pause_length(&mut self, act: &Act) -> u64 {
        let length = self.scenario.faults.process.pause_length.unwrap_or(Span::ms(1_000, 10_000));
        self.span("pause.length", format_args!("{}", act.label), length)
    }

    pub(super) fn store_latency(&mut self, act: &Act, fate: &'static str) -> u64 {
        let latency_ms = self.span("kv.latency", format_args!("{}", act.label), self.scenario.latency.store);
        if fate == "store.slow" { latency_ms * 50 } else { latency_ms }
    }

    pub(super) fn push_store(
        &mut self,
        origin: Origin,
        act: Act,
        op: StoreOp,
        fate: &'static str,
        latency_ms: u64,
    ) -> restante_engine::EventId {
        // What a read sees is as old as its commit is late; a read whose answer takes no time of its own makes one read more in
        // an operation see the same.
        let there_ms = if matches!(op, StoreOp::Commit(_)) { latency_ms.div_ceil(2) } else { latency_ms };
        let back_ms = latency_ms - there_ms;
        let tie = self.decider.tie(format_args!("store {}", act.label));
        self.push_in(there_ms, tie, Event::Store { origin, act, op, fate, back_ms })
    }

    /// Whether a node crashes at this point; then it is gone already.
    pub(super) fn crashes(&mut self, node: usize, site: fn(&FaultSites) -> &FaultSite, act: &Act) -> bool {
        if self.crashes_left == 0 || self.nodes[node].role == Role::Operator {
            return false;
        }
        let fate = self.fault(site, format_args!("{}", act.label));
        if fate == "ok" {
            return false;
        }
        self.faults.delivered(fate);
        self.crashes_left -= 1;
        let name = self.nodes[node].name.clone();
        self.row(&name, "crash", format_args!("{}", SubjectAlias(&act.about.subject)), format_args!("{fate} {}", act.label));
        let restart = self.scenario.faults.process.restart_after.unwrap_or(Span::ms(500, 5_000));
        let after_ms = self.span("process.restart", format_args!("{}", act.label), restart);
        self.nodes[node].forget();
        self.push_in(after_ms, node as u64, Event::Start { node });
        true
    }

    /// A node starts.
    pub(super) fn on_start(&mut self, node: usize) {
        if self.nodes[node].up {
            return;
        }
        self.nodes[node].up = true;
        if matches!(self.nodes[node].role, Role::Worker | Role::Cron) {
            self.last_start = self.now();
        }
        let (name, life) = (self.nodes[node].name.clone(), self.nodes[node].life);
        self.row(&name, "start", format_args!(""), format_args!("life {life}"));
        match self.nodes[node].role {
            Role::Worker => {
                self.reached("worker.serve");
                let (worker, step) = Worker::serve(self.env.clone(), alias::owner_id(node, life), Slots::All, self.local(node));
                self.nodes[node].worker = Some(worker);
                self.follow_worker(node, step);
            }
            Role::Cron | Role::CronListener => {
                let life = self.nodes[node].life;
                self.push_in(1, node as u64, Event::Cron { node, life });
            }
            Role::Producer(producer) => self.resume_producer(node, producer),
            Role::Listener => self.start_listener(node),
            Role::Operator => {}
        }
    }

    /// A cron caller begins its next run, as another owner.
    pub(super) fn on_cron(&mut self, node: usize, life: u32) {
        if !self.nodes[node].up || self.nodes[node].life != life {
            return;
        }
        self.nodes[node].life += 1;
        self.nodes[node].paid.clear();
        let limit = self.scenario.world.cron_limit_count;
        let name = self.nodes[node].name.clone();
        self.row(&name, "run-once", format_args!(""), format_args!("limit {limit}"));
        self.nodes[node].run_began_at = self.now();
        if self.nodes[node].role == Role::CronListener {
            self.begin_listener_run(node, limit);
            return;
        }
        self.reached("worker.run-once");
        let owner = alias::owner_id(node, self.nodes[node].life);
        let (worker, step) = Worker::once(self.env.clone(), owner, Slots::All, limit, self.local(node));
        self.nodes[node].worker = Some(worker);
        self.follow_worker(node, step);
    }

    /// A wake signal reaches a node: it ends a wait that asked for it.
    pub(super) fn on_wake(&mut self, node: usize, life: u32) {
        if !self.nodes[node].up || self.nodes[node].life != life {
            return;
        }
        let Some((task, id)) = self.nodes[node].wakeable.pop_first() else {
            if let Some(worker) = &mut self.nodes[node].worker {
                worker.note_wake();
            }
            return;
        };
        if let Some(Event::Reply { origin, act, reply, .. }) = self.timeline.cancel(id) {
            debug_assert_eq!(origin.task, task);
            self.on_reply(origin, act, reply, false);
        }
    }

    /// An answer reaches a node.
    pub(super) fn on_reply(&mut self, origin: Origin, act: Act, reply: Reply, resumed: bool) {
        self.digest.str(&act.label);
        if !self.is_alive(origin) {
            return;
        }
        if let Some(again_ms) = self.stands_still(origin.node) {
            let tie = self.decider.tie(format_args!("again {}", act.label));
            self.push_in(again_ms, tie, Event::Reply { origin, act, reply, resumed });
            return;
        }
        let crashed = match &reply {
            Reply::Committed(_) => self.crashes(origin.node, |sites| &sites.crash_after_commit, &act),
            Reply::Posted { .. } => self.crashes(origin.node, |sites| &sites.crash_after_post, &act),
            _ => false,
        };
        if crashed {
            return;
        }
        // Asked once a reply: the same question has the same answer.
        if !resumed && !matches!(reply, Reply::Slept) && self.fault(|sites| &sites.pause, format_args!("{}", act.label)) != "ok" {
            self.faults.delivered("process.pause");
            let length_ms = self.pause_length(&act);
            self.nodes[origin.node].stands_still_until = self.now().plus_ms(length_ms);
            let name = self.nodes[origin.node].name.clone();
            self.row(&name, "pause", format_args!(""), format_args!("for {length_ms} ms, before the answer to {}", act.label));
            let tie = self.decider.tie(format_args!("paused {}", act.label));
            self.push_in(length_ms, tie, Event::Reply { origin, act, reply, resumed: true });
            return;
        }
        self.deliver(origin, act, reply);
    }

    /// Hands a reply to the machine that waits for it.
    pub(super) fn deliver(&mut self, origin: Origin, act: Act, mut reply: Reply) {
        if let Reply::Posted { result, .. } = &reply {
            self.auditor.on_answer(&act.about, *result, self.store_now());
        }
        if !self.scenario.world.store_clock
            && let Reply::Snapshot { at, .. } | Reply::Page { at, .. } = &mut reply
        {
            *at = self.nodes[origin.node].clock.wall(self.timeline.now());
        }
        if let Some(mutant) = self.mutant {
            mutant.on_reply(&act.about, &mut reply);
        }
        if matches!(reply, Reply::Snapshot { result: Ok(_), .. })
            && let Some(keys) = self.nodes[origin.node].read_again.remove(&origin.task)
        {
            self.issue(origin, act.about, Io::Read(keys));
            return;
        }
        let local = self.local(origin.node);
        match origin.task {
            Task::Worker(task) => {
                self.nodes[origin.node].wakeable.remove(&origin.task);
                let Some(worker) = &mut self.nodes[origin.node].worker else { return };
                let step = worker.step(task, reply, local);
                self.follow_worker(origin.node, step);
            }
            Task::Send(number) => {
                let Some((attempt, sending)) = self.nodes[origin.node].sends.get_mut(&number) else { return };
                let (attempt, step) = (*attempt, sending.step(&self.env, reply, local));
                self.follow_sending(origin.node, number, attempt, step);
            }
            Task::Operate(number) => {
                let Some(transact) = self.nodes[origin.node].commands.get_mut(&number) else { return };
                let step = transact.step(&self.env, reply, local);
                self.follow_command(origin.node, number, step);
            }
            Task::Legacy(work) => self.deliver_to_listener(origin.node, work, reply),
            Task::Caller(number) => {
                if let Some(answer) = self.answers.get_mut(&number) {
                    *answer = Some(reply);
                }
            }
        }
    }

    pub(super) fn follow_worker(&mut self, node: usize, step: WorkerStep) {
        let life = self.nodes[node].life;
        for (entry, end) in &step.ended {
            self.auditor.on_ended(*entry, end, self.timeline.now());
        }
        for (_, end) in &step.expanded {
            if let ExpansionEnd::Yielded(failure) = end {
                self.auditor.on_failure(failure);
            }
        }
        if !self.signal(node, step.effects) {
            return;
        }
        let mut actions = step.actions;
        if self.perturbation == Some(Perturbation::SwappedReads) {
            actions.reverse();
        }
        for (task, about, io) in actions {
            if self.nodes[node].life != life {
                return;
            }
            self.issue(Origin { node, life, task: Task::Worker(task) }, about, io);
        }
        if let Some(report) = step.finished
            && self.nodes[node].life == life
        {
            self.on_run_finished(node, report);
        }
    }

    fn on_run_finished(&mut self, node: usize, mut report: RunReport) {
        if let Some(mutant) = self.mutant {
            mutant.on_report(&mut report, self.scenario.world.cron_limit_count);
        }
        let name = self.nodes[node].name.clone();
        self.nodes[node].worker = None;
        let RunReport { processed, more, .. } = report;
        match self.nodes[node].role {
            Role::Cron => {
                self.row(&name, "run-ended", format_args!(""), format_args!("processed {processed}, more {more}"));
                let began_at = self.nodes[node].run_began_at;
                self.auditor.on_run_report(&self.store, report, began_at, self.timeline.now());
                self.push_next_run(node);
            }
            Role::Worker | Role::Producer(_) | Role::Listener | Role::CronListener | Role::Operator => {
                self.row(&name, "stopped", format_args!(""), format_args!("processed {processed}"));
                self.faults.delivered("process.graceful-restart");
                self.auditor.mark("worker-stopped-gracefully");
                self.reached("worker.stop");
                self.nodes[node].forget();
                self.push_in(500, node as u64, Event::Start { node });
            }
        }
    }

    /// The next run of whoever works in bounded runs.
    pub(super) fn push_next_run(&mut self, node: usize) {
        let (name, life) = (self.nodes[node].name.clone(), self.nodes[node].life);
        let every = self.scenario.world.cron_every;
        let after_ms = self.span("cron.every", format_args!("{name}#{life}"), every);
        let tie = self.decider.tie(format_args!("{name}#{life}"));
        self.push_in(after_ms, tie, Event::Cron { node, life });
    }

    /// Sends the wake signals among `effects`. Returns whether the node survived it.
    pub(super) fn signal(&mut self, node: usize, effects: Vec<Effect>) -> bool {
        for effect in effects {
            match effect {
                Effect::Observed(observation) => self.auditor.on_observed(&observation, self.timeline.now()),
                Effect::Wake { destination } => {
                    let about = About {
                        what: "wake-signal",
                        subject: Subject::Destination(destination),
                        fence: restante_core::atoms::Fence::default(),
                        tries: 0,
                    };
                    let (life, task) = (self.nodes[node].life, Task::Operate(u32::MAX));
                    let act = self.act(Origin { node, life, task }, about);
                    if self.crashes(node, |sites| &sites.crash_before_wake, &act) {
                        return false;
                    }
                    self.broadcast(&act);
                    if self.crashes(node, |sites| &sites.crash_after_wake, &act) {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn broadcast(&mut self, act: &Act) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].role != Role::Worker || !self.nodes[node].up {
                continue;
            }
            let (name, life) = (self.nodes[node].name.clone(), self.nodes[node].life);
            let fate = self.fault(|sites| &sites.signal, format_args!("{} -> {name}", act.label));
            if fate != "ok" {
                self.faults.delivered(fate);
            }
            let mut after_ms = self.span("signal.latency", format_args!("{} -> {name}", act.label), self.scenario.latency.signal);
            let tie = self.decider.tie(format_args!("{} -> {name}", act.label));
            match fate {
                "signals.lost" => continue,
                "signals.duplicated" => {
                    self.push_in(after_ms * 2, tie, Event::Wake { node, life });
                }
                "signals.late" => after_ms *= 100,
                _ => {}
            }
            self.push_in(after_ms, tie, Event::Wake { node, life });
        }
    }

    pub(super) fn begin_command(&mut self, node: usize, command: restante_core::Command) {
        let number = self.commands_issued;
        self.commands_issued += 1;
        if let restante_core::Command::SetHold(command) = &command {
            self.auditor.on_notice(Task::Operate(number), command.notice);
        }
        let fence = restante_core::atoms::Fence::default();
        let (transact, step) = restante_core::machine::Transact::begin(&self.env, command, fence, self.local(node));
        self.nodes[node].commands.insert(number, transact);
        self.follow_command(node, number, step);
    }

    pub(super) fn follow_command(&mut self, node: usize, number: u32, step: TransactStep) {
        match step {
            TransactStep::Do(io) => {
                let Some(about) = self.nodes[node].commands.get(&number).map(restante_core::machine::Transact::about) else {
                    return;
                };
                let life = self.nodes[node].life;
                self.issue(Origin { node, life, task: Task::Operate(number) }, about, io);
            }
            TransactStep::Done(result) => {
                let Some(transact) = self.nodes[node].commands.remove(&number) else { return };
                self.on_command_done(node, number, transact.command(), result);
            }
        }
    }
}

pub(super) fn hash(text: &str) -> u64 {
    let mut digest = restante_engine::Digest::new();
    digest.str(text);
    digest.value() as u64
}

fn hash_about(about: &About) -> u64 {
    let mut digest = restante_engine::Digest::new();
    digest.str(about.what);
    digest.u64(about.fence.get());
    digest.u64(u64::from(about.tries));
    match &about.subject {
        Subject::Send(send) => digest.bytes(send.as_bytes()),
        Subject::Entry(entry) => {
            digest.bytes(entry.send.as_bytes());
            digest.u64(u64::from(entry.index));
        }
        Subject::Destination(destination) => digest.str(destination),
        Subject::Backlog => {}
    }
    digest.value() as u64
}
