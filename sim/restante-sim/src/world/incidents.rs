//! What happens to the world from outside: outages, lost and damaged records, clock steps, restarts, healing.

use restante_core::atoms::{Bytes, EntryId, Fence, Sealed, SendId};
use restante_core::keys::Kind;
use restante_core::record::{Body, Counters, Entry, Intent, Record, WaitReason};
use restante_kv::{Guard, Key, Mutation, Txn, Value, Write};

use super::event::{Event, Incident};
use super::node::Role;
use super::{World, alias, build};
use crate::scenario::Span;

/// Size of a clock's step when the scenario gives none.
pub(crate) const CLOCK_STEP: Span = Span::ms(100, 1_000);

impl World<'_> {
    pub(super) fn on_incident(&mut self, incident: Incident) {
        if self.is_skipped(format_args!("{incident:?}")) {
            return;
        }
        let (family, delivered) = match incident {
            Incident::OutageBegins { length_ms } => {
                self.outage_until = self.now().plus_ms(length_ms);
                self.faults.requested("store.outage");
                self.row("store", "outage", format_args!(""), format_args!("for {length_ms} ms"));
                return;
            }
            Incident::LoseDueRow { number } => ("store.lost-due-row", self.lose(Kind::DueRow, "store.lose-which-row", number)),
            Incident::LosePointer { number } => {
                ("store.lost-pointer", self.lose(Kind::Pointer, "store.lose-which-pointer", number))
            }
            Incident::ForeignRecord { number } => ("store.foreign-record", self.rewrite_entry(number, "store.foreign-which", 9)),
            Incident::DamagedRecord { number } => ("store.damaged-record", self.rewrite_entry(number, "store.damage-which", 1)),
            Incident::ForeignIntent { number } => ("store.foreign-intent", self.rewrite_intent(number)),
            Incident::ConflictingEntry { number } => ("store.conflicting-entry", self.put_in_the_way(number)),
            Incident::ClockStep { number } => ("clocks.step", self.step_clock(number)),
            Incident::GracefulRestart { number } => {
                self.faults.requested("process.graceful-restart");
                self.restart_gracefully(number);
                return;
            }
            Incident::Downtime { number } => ("process.downtime", self.nobody_delivers(number)),
            Incident::Upgrade { node } => ("process.upgrade", self.upgrade(node)),
        };
        self.faults.requested(family);
        if delivered {
            self.faults.delivered(family);
        }
    }

    fn set(&mut self, key: Key, mutation: Mutation) {
        let writes = vec![Write { key, mutation, guard: Guard::Idempotent }];
        // The world writes past every rule on purpose; the model refuses only what is too large.
        if let Err(error) = self.store.commit(&Txn { checks: Vec::new(), writes }) {
            self.auditor.harness_error(&format!("the world could not write its incident: {error}"));
        }
    }

    fn lose(&mut self, kind: Kind, site: &'static str, number: u32) -> bool {
        let Ok(page) = self.store.scan(&self.env.keys.all(kind), 64) else { return false };
        let Some(index) = self.decider.draw(site, format_args!("{number}")).checked_rem(page.entries.len() as u64) else {
            return false;
        };
        let key = page.entries[index as usize].0.clone();
        let what = match (self.env.keys.read_due(&key), self.env.keys.read_pointer(&key)) {
            (Ok(due), _) => alias::EntryAlias(due.entry).to_string(),
            (_, Ok(pointer)) => pointer.destination.to_string(),
            _ => String::new(),
        };
        let event = if kind == Kind::DueRow { "lose-due-row" } else { "lose-pointer" };
        self.row("store", event, format_args!("{what}"), format_args!(""));
        self.auditor.on_index_lost(self.env.keys.read_due(&key).ok().map(|due| due.entry), self.timeline.now());
        self.set(key, Mutation::Delete);
        true
    }

    /// Makes an entry one of another format (its counting class stays readable), or damages its body.
    fn rewrite_entry(&mut self, number: u32, site: &'static str, format: u8) -> bool {
        let Some(id) = self.some_entry(site, number).filter(|id| !self.auditor.is_intruder(*id)) else { return false };
        let key = self.env.keys.entry(id);
        let Some(record) = self.store.get(&key) else { return false };
        let mut bytes = record.value.as_bytes().to_vec();
        bytes[0] = format;
        if format == 1 {
            bytes.truncate(bytes.len() / 2);
        }
        let event = if format == 1 { "damage-record" } else { "foreign-record" };
        self.row("store", event, format_args!("{}", alias::EntryAlias(id)), format_args!(""));
        self.set(key, Mutation::Put(Value::from(bytes)));
        true
    }

    /// Some intent, with its record as it is.
    fn some_intent(&mut self, site: &'static str, number: u32, fits: impl Fn(&Intent) -> bool) -> Option<(SendId, Intent)> {
        let page = self.store.scan(&self.env.keys.all(Kind::Intent), 64).ok()?;
        let keys = &self.env.keys;
        let intents = page.entries.iter().filter_map(|(key, found)| {
            Some((keys.read_send(Kind::Intent, key).ok()?, build::read::<Intent>(&found.value).ok()?))
        });
        let intents: Vec<_> = intents.filter(|(_, intent)| fits(intent)).collect();
        let index = self.decider.draw(site, format_args!("{number}")).checked_rem(intents.len() as u64)?;
        intents.into_iter().nth(index as usize)
    }

    /// Makes an intent one of another format; its count of recipients stays readable.
    fn rewrite_intent(&mut self, number: u32) -> bool {
        let Some((send, intent)) = self.some_intent("store.foreign-intent-which", number, |_| true) else { return false };
        let mut bytes = intent.encode().as_bytes().to_vec();
        bytes[0] = 9;
        self.row("store", "foreign-intent", format_args!("{}", alias::SendAlias(send)), format_args!(""));
        self.set(self.env.keys.intent(send), Mutation::Put(Value::from(bytes)));
        true
    }

    /// Puts an entry where an intent that nobody holds would be expanded. Nobody delivers it.
    fn put_in_the_way(&mut self, number: u32) -> bool {
        let fits = |intent: &Intent| intent.lease.is_none() && intent.remaining() > 0;
        let Some((send, intent)) = self.some_intent("store.conflict-which", number, fits) else { return false };
        let offset = self.decider.draw("store.conflict-where", format_args!("{number}")) % u64::from(intent.remaining());
        let id = EntryId { send, index: intent.cursor + offset as u32 };
        if self.auditor.is_intruder(id) {
            return false;
        }
        let entry = Entry {
            inbox: "https://elsewhere.example/inbox".into(),
            destination: "https://elsewhere.example".into(),
            body: Body::Inline(Bytes::default()),
            signing: Sealed::default(),
            origin: self.store_now(),
            failure_count: 0,
            vest_at: self.store_now(),
            lease: None,
            fence: Fence::default(),
            lane: None,
            active: false,
            wait: WaitReason::New,
            wake_gen: 0,
            deadline: None,
        };
        self.row("store", "conflicting-entry", format_args!("{}", alias::EntryAlias(id)), format_args!(""));
        self.set(self.env.keys.entry(id), Mutation::Put(entry.encode()));
        self.count_entries(1);
        self.auditor.on_intruder(id);
        true
    }

    fn count_entries(&mut self, entries: i64) {
        let key = self.env.keys.counters(0);
        let known = self.store.get(&key).and_then(|found| build::read::<Counters>(&found.value).ok()).unwrap_or_default();
        let counted = known.plus(Counters { entries, ..Counters::default() });
        self.set(key, Mutation::Put(counted.encode()));
    }

    fn step_clock(&mut self, number: u32) -> bool {
        let node = self.decider.draw("clock.which", format_args!("{number}")) as usize % self.nodes.len();
        let step = self.scenario.faults.clocks.step.unwrap_or(CLOCK_STEP);
        let size_ms = self.span("clock.step-size", format_args!("{number}"), step) as i64;
        let back = self.decider.draw("clock.step-way", format_args!("{number}")) & 1 == 1;
        let step_ms = if back { -size_ms } else { size_ms };
        self.nodes[node].clock.offset_ms += step_ms;
        let name = self.nodes[node].name.clone();
        self.row(&name, "clock-step", format_args!(""), format_args!("{step_ms} ms"));
        true
    }

    /// Everybody who delivers is gone, and comes back some time later, under other owner ids.
    fn nobody_delivers(&mut self, number: u32) -> bool {
        let length = self.scenario.faults.process.downtime.unwrap_or(Span::ms(5_000, 20_000));
        let length_ms = self.span("process.downtime-length", format_args!("downtime {number}"), length);
        self.row("world", "downtime", format_args!(""), format_args!("for {length_ms} ms"));
        for node in 0..self.nodes.len() {
            if matches!(self.nodes[node].role, Role::Worker | Role::Cron) && self.nodes[node].up {
                self.nodes[node].forget();
                self.push_in(length_ms, node as u64, Event::Start { node });
            }
        }
        true
    }

    /// A process is killed, and comes back as the newer build. One that is down already only comes back as it.
    fn upgrade(&mut self, node: usize) -> bool {
        let name = self.nodes[node].name.clone();
        self.row(&name, "upgrade", format_args!(""), format_args!(""));
        let is_up = self.nodes[node].up;
        if self.nodes[node].role != Role::Operator {
            self.nodes[node].forget();
        }
        self.nodes[node].newer_since = Some(self.nodes[node].life);
        if is_up && self.nodes[node].role != Role::Operator {
            self.push_in(500, node as u64, Event::Start { node });
        }
        true
    }

    fn restart_gracefully(&mut self, number: u32) {
        let workers: Vec<usize> = (0..self.nodes.len()).filter(|node| self.nodes[*node].role == Role::Worker).collect();
        let Some(index) = self.decider.draw("process.restart-which", format_args!("{number}")).checked_rem(workers.len() as u64)
        else {
            return;
        };
        let node = workers[index as usize];
        let Some(worker) = &mut self.nodes[node].worker else { return };
        let step = worker.stop();
        let name = self.nodes[node].name.clone();
        self.row(&name, "stop", format_args!(""), format_args!(""));
        self.follow_worker(node, step);
    }

    /// Faults end; whoever is down or stands still comes back; the check for "drained" begins.
    pub(super) fn on_heal(&mut self) {
        self.healed = true;
        self.outage_until = self.now();
        for id in self.auditor.intruders() {
            self.set(self.env.keys.entry(id), Mutation::Delete);
            self.count_entries(-1);
            self.auditor.on_intruder_gone(id);
        }
        self.row("world", "heal", format_args!(""), format_args!(""));
        self.push_in(1_000, 0, Event::Check);
    }
}
