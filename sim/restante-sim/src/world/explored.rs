//! The same world without a clock that drives it: any event that could happen next may.
//!
//! An exploration takes one *move* at a time: an operation reaches the store, a POST is made, a wait ends, a signal arrives, a
//! node starts, or time passes. What follows from a move without anybody else noticing (an answer on its way back, an
//! arrival) happens in the same move: an order that nobody can observe is not tried twice.
//!
//! Time stands still while anybody can act. When nobody can, it passes for free to the next deadline (a lease's end, a due
//! instant, a wait); while somebody could, that costs one of the bound's pauses.

use std::collections::BTreeSet;

use restante_core::machine::Reply;
use restante_core::plan::{Depth, View};
use restante_core::record::{Record, SweepState};
use restante_core::{Command, Outcome};
use restante_engine::{Decider, EventId, SimTime, Violation};
use restante_kv::{Guard, Mutation, Txn, Write};

use super::choices::{Choices, Script};
use super::event::{Event, Incident};
use super::node::Role;
use super::{EPOCH_MS, RunOptions, World, alias};
use crate::mutant::Mutant;
use crate::scenario::Scenario;

/// Most moves of a look at whether the world goes in circles.
const CIRCLE_MOVES_MAX: usize = 2_000;

/// Something that can happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Move {
    /// This event.
    Event(EventId),
    /// Time passes to this deadline.
    Tick { to: SimTime, is_pause: bool },
}

impl<'s> World<'s> {
    /// The world at the beginning of an exploration: the workers have just started, and everything is accepted unless the bound
    /// lets sends meet workers.
    pub(crate) fn explored(scenario: &'s Scenario, mutant: Option<Mutant>, trace: bool) -> Self {
        let options = RunOptions { mutant, trace, ..RunOptions::default() };
        let mut world = Self::new(scenario, Decider::new(0), &options);
        world.decider = Choices::Explored(Script::default());
        world.ambiguous_left = 0;
        world.crashes_left = 0;
        if !scenario.bound.sweeps {
            world.skip_sweeps();
        }
        for is_producer in [true, false] {
            for node in 0..world.nodes.len() {
                if matches!(world.nodes[node].role, Role::Producer(_)) == is_producer {
                    world.on_start(node);
                }
            }
            if is_producer && !scenario.bound.sends_meet_workers {
                while let Some((_, event)) = world.timeline.pop() {
                    world.happen(event);
                }
            }
        }
        world.settle();
        world.ambiguous_left = scenario.bound.ambiguous_count;
        world.crashes_left = scenario.faults.process.crashes_max;
        world.pauses_left = scenario.bound.pauses_count;
        if scenario.bound.sweeps {
            world.push_losses();
        }
        world
    }

    /// Index rows that may vanish at any time. (Which one, where there are several: the first.)
    fn push_losses(&mut self) {
        let store = &self.scenario.faults.store;
        let rows = (0..store.lost_due_rows_count).map(|number| Incident::LoseDueRow { number });
        let pointers = (0..store.lost_pointers_count).map(|number| Incident::LosePointer { number });
        for incident in rows.chain(pointers).collect::<Vec<_>>() {
            self.push_in(0, 0, Event::Incident(incident));
        }
    }

    /// A sweep has just been completed: within the bound none is due, and discovery stands alone.
    fn skip_sweeps(&mut self) {
        let state = SweepState {
            owner: alias::owner_id(usize::from(u8::MAX), 0),
            taken_until: restante_kv::StoreTime::default(),
            started_at: self.store_now(),
            completed: true,
            completed_from: self.store_now(),
            place: None,
        };
        let write = Write { key: self.env.keys.sweep(), mutation: Mutation::Put(state.encode()), guard: Guard::Idempotent };
        if let Err(error) = self.store.commit(&Txn { checks: Vec::new(), writes: vec![write] }) {
            self.auditor.harness_error(&format!("the sweep's record cannot be written: {error}"));
        }
    }

    /// An event happens, and is counted. (No state is told from another by their number.)
    fn happen(&mut self, event: Event) {
        self.events += 1;
        self.handle(event);
    }

    fn is_timer(event: &Event) -> bool {
        matches!(event, Event::Reply { act, reply: Reply::Slept, .. } if matches!(act.about.what, "idle" | "sweep-idle"))
    }

    /// Whether a move is one that somebody inside makes: nobody waits for what comes from outside.
    fn is_from_inside(&self, a_move: Move) -> bool {
        match a_move {
            Move::Event(id) => !matches!(self.timeline.get(id), Some(Event::Incident(_))),
            Move::Tick { .. } => false,
        }
    }

    /// Whether an event is part of the move that caused it.
    fn is_immediate(&self, event: &Event) -> bool {
        match event {
            Event::Reply { .. } => !Self::is_timer(event),
            Event::Arrive { .. } => true,
            // A scan is a hint that proves nothing: unless the bound asks for it, when it is read is not a move of its own.
            Event::Store { act, .. } => self.is_hint(act.about.what),
            Event::Produce { .. } => !self.scenario.bound.sends_meet_workers,
            Event::LateCommit { .. }
            | Event::PostBegin { .. }
            | Event::Wake { .. }
            | Event::Start { .. }
            | Event::Cron { .. }
            | Event::Operate { .. }
            | Event::OldMessage { .. }
            | Event::OldQueue { .. }
            | Event::OldReply { .. }
            | Event::OldExposed { .. }
            | Event::Incident(_)
            | Event::Heal
            | Event::Check => false,
        }
    }

    fn is_hint(&self, what: &str) -> bool {
        !self.scenario.bound.hints_are_moves
            && matches!(what, "scan-pointers" | "read-destinations" | "scan-due" | "load-recipients" | "expand-probe")
    }

    /// Whether an event can have no effect any more, or is outside the bound.
    fn is_void(&self, event: &Event) -> bool {
        match event {
            Event::Reply { act, .. } if act.about.what == "sweep-idle" && !self.scenario.bound.sweeps => true,
            Event::Reply { origin, .. } | Event::PostBegin { origin, .. } => !self.is_alive(*origin),
            Event::Store { origin, op, .. } => !self.is_alive(*origin) && !matches!(op, super::event::StoreOp::Commit(_)),
            Event::Wake { node, life } => !self.nodes[*node].up || self.nodes[*node].life != *life,
            _ => false,
        }
    }

    /// Lets happen what follows from a move, and drops what can have no effect.
    fn settle(&mut self) {
        while self.auditor.violation.is_none() {
            let next = self.timeline.iter().find(|(_, _, event)| self.is_void(event) || self.is_immediate(event));
            let Some((id, _, event)) = next else { return };
            let is_void = self.is_void(event);
            if let Some(event) = self.timeline.cancel(id)
                && !is_void
            {
                self.happen(event);
            }
        }
    }

    /// Everything that can happen next, in a fixed order.
    pub(crate) fn moves(&self) -> Vec<Move> {
        let now = self.now();
        let mut moves: Vec<Move> = self
            .timeline
            .iter()
            .filter(|(_, at, event)| !Self::is_timer(event) || *at <= now)
            .map(|(id, _, _)| Move::Event(id))
            .collect();
        let is_pause = moves.iter().any(|a_move| self.is_from_inside(*a_move));
        if (!is_pause || self.pauses_left > 0)
            && let Some(to) = self.next_deadline()
        {
            moves.push(Move::Tick { to, is_pause });
        }
        moves
    }

    fn next_deadline(&self) -> Option<SimTime> {
        let now = self.now();
        let waits = self.timeline.iter().filter(|(_, at, event)| Self::is_timer(event) && *at > now).map(|(_, at, _)| at);
        let vests = self.auditor.vests(&self.store).into_iter().filter_map(|at| {
            let at = SimTime::from_ms(at.as_ms().checked_sub(EPOCH_MS)?);
            (at > now).then_some(at)
        });
        waits.chain(vests).min()
    }

    /// Takes a move; questions are answered by `answers`, and benignly past their end.
    pub(crate) fn take(&mut self, a_move: Move, answers: &[usize]) {
        self.decider = Choices::Explored(Script { answers: answers.to_vec(), asked: Vec::new() });
        match a_move {
            Move::Tick { to, is_pause } => {
                self.pauses_left -= u32::from(is_pause);
                self.timeline.advance(to);
            }
            Move::Event(id) => {
                if let Some(event) = self.timeline.cancel(id) {
                    self.happen(event);
                }
            }
        }
        self.settle();
    }

    /// What the move taken last asked: for each question, the alternatives.
    pub(crate) fn asked(&mut self) -> Vec<Vec<&'static str>> {
        match &mut self.decider {
            Choices::Explored(script) => std::mem::take(&mut script.asked),
            Choices::Seeded(_) => Vec::new(),
        }
    }

    fn name_of(&self, event: &Event) -> String {
        match event {
            Event::Store { act, .. } => format!("store: {}", act.label),
            Event::LateCommit { act, .. } => format!("late: {}", act.label),
            Event::PostBegin { act, .. } => format!("post: {}", act.label),
            Event::Reply { origin, act, .. } if act.about.what == "sweep-idle" => {
                format!("wait for a sweep ends: {}", self.nodes[origin.node].name)
            }
            Event::Reply { origin, .. } => format!("wait ends: {}", self.nodes[origin.node].name),
            Event::Wake { node, .. } => format!("signal: {}", self.nodes[*node].name),
            Event::Start { node } => format!("start: {}", self.nodes[*node].name),
            other => format!("{other:?}"),
        }
    }

    /// The name of a move that is possible now, for schedules.
    pub(crate) fn name_of_move(&self, a_move: Move) -> String {
        match a_move {
            Move::Tick { to, .. } => format!("time passes to {} ms", to.as_ms()),
            Move::Event(id) => self.timeline.get(id).map_or(String::new(), |event| self.name_of(event)),
        }
    }

    /// Whether everything is delivered or given up and nothing is in flight that could change it.
    pub(crate) fn is_drained(&self) -> bool {
        self.left().is_none() && !self.timeline.iter().any(|(_, _, event)| !Self::is_timer(event))
    }

    /// Checks what must hold whenever nobody can act, and that somebody still can if anything is left.
    pub(crate) fn check_at_rest(&mut self, moves: &[Move]) {
        if moves.iter().any(|a_move| self.is_from_inside(*a_move)) {
            return;
        }
        let at = self.now();
        if let Some(what) = self.left()
            && self.is_stuck(moves)
        {
            self.auditor.violate(at, "drains-after-heal", vec![what]);
        }
        let (keys, depth) = (self.env.keys.all_counters(), Command::Depth(Depth {}));
        let mut read = vec![self.env.keys.intake()];
        read.extend(keys);
        let Ok(records) = self.store.get_many(&read) else { return };
        let view = View { at: self.store_now(), records: read.into_iter().zip(records).collect() };
        if let Ok(plan) = depth.plan(&self.env, &view, false)
            && let Outcome::Depth(report) = plan.outcome
        {
            self.auditor.check_depth(&self.store, report, at);
        }
    }

    /// Whether nothing can change any more: nobody waits for anything, or everybody has looked once more and found nothing.
    fn is_stuck(&self, moves: &[Move]) -> bool {
        let is_tick = |a_move: &&Move| matches!(a_move, Move::Tick { .. });
        let Some(tick) = moves.iter().find(is_tick) else { return true };
        if self.scenario.bound.sweeps {
            return self.goes_in_circles(*tick);
        }
        let as_they_are = self.as_they_are();
        let mut later = self.clone();
        later.take(*tick, &[]);
        while let Some(a_move @ Move::Event(id)) = later.moves().first().copied() {
            if !later.timeline.get(id).is_some_and(Self::is_timer) {
                return false;
            }
            later.take(a_move, &[]);
        }
        later.fingerprint(&as_they_are) == self.fingerprint(&as_they_are)
    }

    /// Whether the world comes back to where it is, again and again, if nothing goes wrong any more and everything that can be done
    /// is done. Where workers sweep, there is always something to do; it must come to something.
    fn goes_in_circles(&self, tick: Move) -> bool {
        let as_they_are = self.as_they_are();
        let mut later = self.clone();
        let mut seen = BTreeSet::from([self.fingerprint(&as_they_are)]);
        later.take(tick, &[]);
        for _ in 0..CIRCLE_MOVES_MAX {
            let moves = later.moves();
            let next = moves.iter().find(|a_move| later.is_from_inside(**a_move));
            if next.is_none() && !seen.insert(later.fingerprint(&as_they_are)) {
                return true;
            }
            let Some(next) = next.or(moves.iter().find(|a_move| matches!(a_move, Move::Tick { .. }))) else { return true };
            later.take(*next, &[]);
            // What it comes to is explored, and judged, on its own.
            if later.auditor.violation.is_some() || later.left().is_none() {
                return false;
            }
        }
        false
    }

    /// The first thing that is left. Chunks that nobody needs any more are for the sweep, where there is one.
    fn left(&self) -> Option<(&'static str, String)> {
        self.auditor.first_left(&self.store, self.scenario.bound.sweeps)
    }

    fn as_they_are(&self) -> Vec<Vec<u8>> {
        vec![(0..self.nodes.len() as u8).collect()]
    }

    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.auditor.violation.as_ref()
    }

    /// A move panicked. What it had changed until then stays half done: nothing but the end comes after it.
    pub(crate) fn panicked(&mut self, violation: Violation, place: &str, message: &str) {
        self.row("unknown", "panic", format_args!(""), format_args!("{place}: {message}"));
        self.auditor.violation.get_or_insert(violation);
    }

    pub(crate) fn instant(&self) -> SimTime {
        self.now()
    }
}
