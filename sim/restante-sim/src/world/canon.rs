//! Canonical states: two worlds that no future can tell apart have one fingerprint.
//!
//! Versions become current-or-stale, instants differences to now, owner ids the number of their node (or "nobody" when their
//! life is over), counts that only reports read vanish; a permutation of the workers is part of the canonical form.

use std::hash::{Hash, Hasher};

use restante_core::atoms::{AtomVisitor, Fence, OwnerId, Position, SendId, VisitAtoms};
use restante_core::keys::Kind;
use restante_core::machine::{About, LocalTime};
use restante_core::record::{DeadIntent, DeadLetter, Destination, Entry, Intent, Marker, Record, SweepState};
use restante_engine::Digest;
use restante_kv::{Key, StoreTime, Value, Version};

use super::event::{Event, Origin, StoreOp};
use super::{EPOCH_MS, World};

/// A [`Hasher`] over [`Digest`]: the same on every machine, 128 bits wide.
#[derive(Default)]
pub(crate) struct StateHasher(Digest);

impl Hasher for StateHasher {
    fn finish(&self) -> u64 {
        self.0.value() as u64
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0.bytes(bytes);
    }
    fn write_u8(&mut self, value: u8) {
        self.0.u64(value.into());
    }
    fn write_u32(&mut self, value: u32) {
        self.0.u64(value.into());
    }
    fn write_u64(&mut self, value: u64) {
        self.0.u64(value);
    }
    fn write_usize(&mut self, value: usize) {
        self.0.u64(value as u64);
    }
}

fn hash_of(value: &impl Hash) -> u128 {
    let mut hasher = StateHasher::default();
    value.hash(&mut hasher);
    hasher.0.value()
}

/// Rewrites atoms to their canonical form.
pub(crate) struct Canonical<'w, 's> {
    world: &'w World<'s>,
    /// For each node, the number it goes by.
    names: &'w [u8],
    now: StoreTime,
}

/// What lies further ahead than this never comes within a bound with sweeps.
const FAR_MS: u64 = 7 * 24 * 3_600_000;

/// The name of an owner whose life is over.
const NOBODY: u8 = u8::MAX;

impl Canonical<'_, '_> {
    fn rewrite<R: Record + VisitAtoms>(&mut self, value: &mut Value) {
        if let Ok(mut record) = R::decode(value) {
            record.visit_atoms(self);
            *value = record.encode();
        }
    }

    /// How far ahead an instant lies; the past is one instant. Where time goes on for as long as anybody sweeps, so is what lies
    /// further ahead than any bound lasts.
    fn ahead_ms(&self, at: StoreTime) -> u64 {
        let ms = at.since_ms(self.now);
        if self.world.scenario.bound.sweeps { ms.min(FAR_MS) } else { ms }
    }

    /// The past is not one instant to who asks whether a sweep is due.
    fn rewrite_sweep(&mut self, value: &mut Value) {
        if let Ok(mut state) = SweepState::decode(value) {
            let interval_ms = self.world.env.config.sweep_interval_ms;
            let age = |at: StoreTime| StoreTime::from_ms(self.now.since_ms(at).min(interval_ms));
            let (started_at, completed_from) = (age(state.started_at), age(state.completed_from));
            state.visit_atoms(self);
            *value = SweepState { started_at, completed_from, ..state }.encode();
        }
    }

    fn name_of(&self, node: usize, life: u32) -> u8 {
        match self.world.nodes.get(node) {
            Some(known) if known.life == life && known.up => self.names[node],
            _ => NOBODY,
        }
    }
}

impl AtomVisitor for Canonical<'_, '_> {
    fn send_id(&mut self, _id: &mut SendId) {}
    fn owner_id(&mut self, id: &mut OwnerId) {
        let bytes = id.as_bytes();
        let life = u32::from_be_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]);
        *id = OwnerId::from_bytes([self.name_of(usize::from(bytes[0]), life); 16]);
    }
    fn fence(&mut self, _fence: &mut Fence) {}
    fn position(&mut self, _position: &mut Position) {}
    fn store_time(&mut self, at: &mut StoreTime) {
        *at = StoreTime::from_ms(self.ahead_ms(*at));
    }
    fn version(&mut self, version: &mut Version) {
        *version = Version::from_raw(0);
    }
    fn version_of(&mut self, key: &Key, version: &mut Version) {
        let is_current = self.world.store.get(key).is_some_and(|record| record.version == *version);
        *version = Version::from_raw(u128::from(is_current));
    }
    fn key(&mut self, key: &mut Key) {
        let keys = &self.world.env.keys;
        let from_now = |at: StoreTime| StoreTime::from_ms(self.ahead_ms(at));
        if let Ok(due) = keys.read_due(key) {
            *key = keys.due(&due.destination, from_now(due.vest_at), due.entry);
        } else if let Ok(pointer) = keys.read_pointer(key) {
            *key = keys.pointer(&pointer.destination, from_now(pointer.bucket_at));
        }
    }
    fn record(&mut self, key: &Key, value: &mut Value) {
        match self.world.env.keys.kind_of(key) {
            Some(Kind::Entry) => self.rewrite::<Entry>(value),
            Some(Kind::SweepState) if self.world.scenario.bound.sweeps => self.rewrite_sweep(value),
            Some(Kind::SweepState) => self.rewrite::<SweepState>(value),
            Some(Kind::Destination) => self.rewrite::<Destination>(value),
            Some(Kind::Marker) => self.rewrite::<Marker>(value),
            Some(Kind::DeadLetter) => self.rewrite::<DeadLetter>(value),
            Some(Kind::Intent) => self.rewrite::<Intent>(value),
            Some(Kind::DeadIntent) => self.rewrite::<DeadIntent>(value),
            _ => {}
        }
    }
    fn local_time(&mut self, at: &mut LocalTime) {
        *at = LocalTime::from_ms(at.as_ms().saturating_sub(self.world.now().as_ms()));
    }
    fn tally(&mut self, count: &mut u64) {
        *count = 0;
    }
}

impl World<'_> {
    /// The least fingerprint under the given permutations of the workers.
    pub(crate) fn fingerprint(&self, permutations: &[Vec<u8>]) -> u128 {
        permutations.iter().map(|names| self.fingerprint_as(names)).min().unwrap_or_default()
    }

    fn fingerprint_as(&self, names: &[u8]) -> u128 {
        let mut canonical = Canonical { world: self, names, now: self.store_now() };
        let mut hasher = StateHasher::default();
        (self.crashes_left, self.ambiguous_left, self.pauses_left).hash(&mut hasher);
        let mut records = 0_u128;
        for (key, record) in self.store.iter() {
            let (mut name, mut value) = (key.clone(), record.value.clone());
            canonical.record(key, &mut value);
            canonical.key(&mut name);
            records = records.wrapping_add(hash_of(&(name, value)));
        }
        records.hash(&mut hasher);
        self.sends.hash(&mut hasher);
        let mut nodes: Vec<(u8, u128)> = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let mut worker = node.worker.clone();
            worker.visit_atoms(&mut canonical);
            let mut sends = 0_u128;
            for (number, (attempt, sending)) in &node.sends {
                let mut sending = sending.clone();
                sending.visit_atoms(&mut canonical);
                sends = sends.wrapping_add(hash_of(&(number, attempt, sending)));
            }
            nodes.push((names[index], hash_of(&(node.up, worker, node.wakeable.len(), sends))));
        }
        nodes.sort_unstable();
        nodes.hash(&mut hasher);
        let mut events = 0_u128;
        for (_, at, event) in self.timeline.iter() {
            events = events.wrapping_add(self.hash_event(&mut canonical, at.as_ms(), event));
        }
        events.hash(&mut hasher);
        self.auditor.hash_truth(&mut hasher, self.store_now());
        hasher.0.value()
    }

    fn hash_event(&self, canonical: &mut Canonical<'_, '_>, at_ms: u64, event: &Event) -> u128 {
        let who = |canonical: &Canonical<'_, '_>, origin: &Origin| (canonical.name_of(origin.node, origin.life), origin.task);
        let what = |about: &About| (about.what, about.subject.clone(), about.fence, about.tries);
        match event {
            Event::Store { origin, act, op, fate, .. } => {
                let op = match op.clone() {
                    StoreOp::Read(mut keys) => {
                        keys.visit_atoms(canonical);
                        hash_of(&("read", keys))
                    }
                    StoreOp::Scan { mut range, limit } => {
                        range.visit_atoms(canonical);
                        hash_of(&("scan", range, limit))
                    }
                    StoreOp::Commit(mut txn) => {
                        txn.visit_atoms(canonical);
                        hash_of(&("commit", txn))
                    }
                };
                hash_of(&(who(canonical, origin), what(&act.about), *fate, op))
            }
            Event::LateCommit { act, txn, .. } => {
                let mut txn = txn.clone();
                txn.visit_atoms(canonical);
                hash_of(&("late", what(&act.about), txn))
            }
            Event::PostBegin { origin, act, post } => {
                let mut post = post.clone();
                post.visit_atoms(canonical);
                hash_of(&("post", who(canonical, origin), what(&act.about), post))
            }
            Event::Reply { origin, act, .. } => {
                let after_ms = (EPOCH_MS + at_ms).saturating_sub(self.store_now().as_ms());
                hash_of(&("wait", who(canonical, origin), what(&act.about), after_ms))
            }
            Event::Wake { node, life } => hash_of(&("wake", canonical.name_of(*node, *life))),
            Event::Start { node } => hash_of(&("start", canonical.names[*node])),
            other => hash_of(&format!("{other:?}")),
        }
    }
}
