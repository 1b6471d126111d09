//! Which of the events that lie close to each other happens first.
//!
//! Latencies say when an event is due, and how close two events come is a matter of milliseconds that nothing guarantees. So
//! another schedule than `timed` may hold any event back, for `reorder_within` at most, in favour of one that is due later. No
//! event happens before its time, and none is held back for longer: whatever is promised in simulated time is promised to a
//! world that is that much slower.

use std::collections::BTreeMap;

use restante_engine::{EventId, Quantity, SimTime};
use restante_kv::{Key, KeyRange, Txn};

use super::World;
use super::event::{Event, StoreOp, Task};
use crate::scenario::Schedule;

/// Most changes of priorities in a run under [`Schedule::Pct`].
const CHANGES_MAX: u64 = 12;

/// Who is at work: what has one priority under [`Schedule::Pct`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Actor {
    /// The world itself: incidents, the end of faults.
    World,
    /// A destination.
    Host(u32),
    /// What reaches a life of a node from outside: its start, a signal, what its users ask for.
    Node(usize, u32),
    /// A task of a life of a node, and the store at work for it.
    Task(usize, u32, Task),
    /// A commit that nobody waits for any more.
    Late(usize),
}

/// The schedule of a run.
#[derive(Clone, Debug)]
pub(super) enum Order {
    Timed,
    Pct(Pct),
    Pos(Pos),
}

/// Priorities of actors; at some instants, whoever is first becomes the last.
#[derive(Clone, Debug)]
pub(super) struct Pct {
    /// Instants of the changes, the next one last.
    changes: Vec<SimTime>,
    priorities: BTreeMap<Actor, u64>,
    /// The priority of whoever is lowered next: less than all that were drawn.
    lowest: u64,
}

/// Priorities of events, drawn anew whenever one loses a race.
#[derive(Clone, Debug, Default)]
pub(super) struct Pos {
    /// How often an event's priority was drawn anew.
    lost: BTreeMap<EventId, u32>,
}

impl World<'_> {
    /// The schedule, as the scenario has it and the seed decides.
    pub(super) fn draw_order(&mut self) -> Order {
        let within_ms = self.scenario.world.reorder_within.0;
        match self.scenario.world.schedule {
            Schedule::Timed => Order::Timed,
            Schedule::Pct => {
                let count =
                    self.decider.quantity("schedule.changes", format_args!("count"), Quantity::uniform(0, CHANGES_MAX, 1));
                let range = Quantity::uniform(1, self.scenario.world.heal_at.0.max(1), 1);
                let mut changes: Vec<SimTime> = (0..count)
                    .map(|number| SimTime::from_ms(self.decider.quantity("schedule.change", format_args!("{number}"), range)))
                    .collect();
                changes.sort_unstable_by(|one, other| other.cmp(one));
                let instants: Vec<String> = changes.iter().rev().map(|at| at.to_string().trim_start().to_owned()).collect();
                self.note("schedule", format_args!("pct within {within_ms} ms; changes at {}", instants.join(", ")));
                // Half of all numbers are drawn from, the others are left for who is lowered.
                Order::Pct(Pct { changes, priorities: BTreeMap::new(), lowest: u64::MAX >> 1 })
            }
            Schedule::Pos => {
                self.note("schedule", format_args!("pos within {within_ms} ms"));
                Order::Pos(Pos::default())
            }
        }
    }

    /// Takes the event that happens next, and moves the time to it.
    pub(super) fn next_event(&mut self) -> Option<(SimTime, Event)> {
        if let Order::Timed = self.order {
            return self.timeline.pop();
        }
        let first = self.timeline.next_at()?;
        let within = self.timeline.until(first.plus_ms(self.scenario.world.reorder_within.0));
        let id = match within[..] {
            [(id, ..)] => id,
            _ => self.first_of(&within),
        };
        let at = within.iter().find(|(known, ..)| *known == id).map(|(_, at, _)| *at)?;
        self.timeline.advance(at);
        let event = self.timeline.cancel(id)?;
        Some((self.timeline.now(), event))
    }

    /// Whose turn it is, of these.
    fn first_of(&mut self, within: &[(EventId, SimTime, u64)]) -> EventId {
        let mut order = std::mem::replace(&mut self.order, Order::Timed);
        let id = match &mut order {
            Order::Timed => within[0].0,
            Order::Pct(pct) => self.first_by_actor(pct, within),
            Order::Pos(pos) => self.first_by_event(pos, within),
        };
        self.order = order;
        id
    }

    fn first_by_actor(&mut self, pct: &mut Pct, within: &[(EventId, SimTime, u64)]) -> EventId {
        loop {
            let mut first: Option<(u64, EventId, Actor)> = None;
            for (id, ..) in within {
                let Some(actor) = self.timeline.get(*id).map(|event| self.actor_of(event)) else { continue };
                let priority = match pct.priorities.get(&actor) {
                    Some(priority) => *priority,
                    None => {
                        let drawn = self.decider.draw("schedule.priority", format_args!("{}", self.name_of_actor(actor)));
                        *pct.priorities.entry(actor).or_insert(drawn | 1 << 63)
                    }
                };
                // Of one actor's events, the earliest.
                if first.is_none_or(|(highest, ..)| priority > highest) {
                    first = Some((priority, *id, actor));
                }
            }
            let Some((_, id, actor)) = first else { return within[0].0 };
            if pct.changes.last().is_none_or(|at| *at > self.now()) {
                return id;
            }
            pct.changes.pop();
            pct.priorities.insert(actor, pct.lowest);
            pct.lowest -= 1;
        }
    }

    fn first_by_event(&mut self, pos: &mut Pos, within: &[(EventId, SimTime, u64)]) -> EventId {
        let priority = |pos: &Pos, (id, at, tie): &(EventId, SimTime, u64)| {
            let lost = pos.lost.get(id).copied().unwrap_or(0);
            self.decider.tie(format_args!("pos {tie} {} {lost}", at.as_us()))
        };
        let first = within.iter().max_by_key(|place| priority(pos, place)).unwrap_or(&within[0]).0;
        pos.lost.remove(&first);
        if let Some(chosen) = self.timeline.get(first) {
            for (id, ..) in within.iter().filter(|(id, ..)| *id != first) {
                if self.timeline.get(*id).is_some_and(|other| is_race(chosen, other)) {
                    *pos.lost.entry(*id).or_default() += 1;
                }
            }
        }
        first
    }

    fn actor_of(&self, event: &Event) -> Actor {
        let life = |node: usize| Actor::Node(node, self.nodes[node].life);
        match event {
            Event::Store { origin, .. }
            | Event::Reply { origin, .. }
            | Event::PostBegin { origin, .. }
            | Event::OldQueue { origin, .. }
            | Event::OldReply { origin, .. } => Actor::Task(origin.node, origin.life, origin.task),
            Event::LateCommit { origin, .. } => Actor::Late(origin.node),
            Event::Arrive { destination, .. } => Actor::Host(*destination),
            Event::Wake { node, .. } | Event::Start { node } | Event::Cron { node, .. } | Event::Produce { node, .. } => {
                life(*node)
            }
            Event::Operate { .. } => life(self.nodes.len() - 1),
            Event::Incident(_) | Event::Heal | Event::Check | Event::OldMessage { .. } | Event::OldExposed { .. } => Actor::World,
        }
    }

    fn name_of_actor(&self, actor: Actor) -> String {
        let name = |node: usize| &self.nodes[node].name;
        match actor {
            Actor::World => "world".to_owned(),
            Actor::Host(number) => format!("host-{number}"),
            Actor::Node(node, life) => format!("{}#{life}", name(node)),
            Actor::Task(node, life, task) => format!("{}#{life} {task:?}", name(node)),
            Actor::Late(node) => format!("{} late", name(node)),
        }
    }
}

/// Whether it can make a difference which of the two happens first.
fn is_race(one: &Event, other: &Event) -> bool {
    match (touched(one), touched(other)) {
        (Some(one), Some(other)) => one.meets(&other) || other.meets(&one),
        (None, None) => node_of(one).is_some() && node_of(one) == node_of(other),
        _ => false,
    }
}

/// The node that an event reaches.
fn node_of(event: &Event) -> Option<usize> {
    match event {
        Event::Reply { origin, .. } | Event::PostBegin { origin, .. } | Event::OldReply { origin, .. } => Some(origin.node),
        Event::Wake { node, .. } | Event::Start { node } | Event::Cron { node, .. } | Event::Produce { node, .. } => Some(*node),
        Event::Store { .. }
        | Event::LateCommit { .. }
        | Event::Arrive { .. }
        | Event::Operate { .. }
        | Event::Incident(_)
        | Event::Heal
        | Event::OldMessage { .. }
        | Event::OldQueue { .. }
        | Event::OldExposed { .. }
        | Event::Check => None,
    }
}

/// What an event has to do with records.
enum Touched<'e> {
    Keys(&'e [Key]),
    Range(&'e KeyRange),
    Commit(&'e Txn),
}

fn touched(event: &Event) -> Option<Touched<'_>> {
    match event {
        Event::Store { op: StoreOp::Read(keys), .. } => Some(Touched::Keys(keys)),
        Event::Store { op: StoreOp::Scan { range, .. }, .. } => Some(Touched::Range(range)),
        Event::Store { op: StoreOp::Commit(txn), .. } | Event::LateCommit { txn, .. } => Some(Touched::Commit(txn)),
        _ => None,
    }
}

impl Touched<'_> {
    /// Whether this writes what the other reads, checks or writes.
    fn meets(&self, other: &Self) -> bool {
        let Self::Commit(txn) = self else { return false };
        txn.writes.iter().any(|write| match other {
            Self::Keys(keys) => keys.contains(&write.key),
            Self::Range(range) => range.start <= write.key && range.end.as_ref().is_none_or(|end| write.key < *end),
            Self::Commit(other) => {
                other.checks.iter().any(|check| check.key == write.key) || other.writes.iter().any(|also| also.key == write.key)
            }
        })
    }
}
