//! The store as the world runs it: pristine data in a [`Model`](restante_kv::Model), faults as an overlay on its answers.

use restante_core::keys::Kind;
use restante_core::machine::Reply;
use restante_core::record::{DeadIntent, DeadLetter, Entry, Intent, Quarantined};
use restante_engine::SimTime;
use restante_kv::{Key, KeyRange, Mutation, Page, StoreError, StoreTime, Txn, Write};

use super::event::{Act, Event, Origin, StoreOp};
use super::{EPOCH_MS, Perturbation, World, alias, build};
use crate::Mutant;
use crate::scenario::Span;

impl World<'_> {
    /// An operation reaches the store.
    pub(super) fn on_store(&mut self, origin: Origin, act: Act, op: StoreOp, fate: &'static str, back_ms: u64) {
        let in_outage = self.now() < self.outage_until && !self.healed;
        if in_outage {
            self.faults.delivered("store.outage");
        } else if fate == "store.unavailable" || fate == "store.slow" || fate == "store.refused-anew" {
            self.faults.delivered(fate);
        }
        let refused = in_outage || fate == "store.unavailable" || fate == "store.refused-anew";
        let mut note = String::new();
        let unavailable = || StoreError::Unavailable("simulated".into());
        let reply = match op {
            StoreOp::Read(keys) => {
                let result = if refused { Err(unavailable()) } else { self.read(origin, &act, &keys) };
                Reply::Snapshot { result, at: self.store_now() }
            }
            StoreOp::Scan { range, limit } => {
                let result = if refused { Err(unavailable()) } else { self.scan(origin, &act, &range, limit, fate) };
                let entropy = if act.about.what == "scan-due" {
                    self.decider.draw("core.window", format_args!("{}", act.label))
                } else {
                    0
                };
                Reply::Page { result, at: self.store_now(), entropy }
            }
            StoreOp::Commit(txn) => {
                let result = if refused { Err(unavailable()) } else { self.commit(origin, &act, &txn, fate) };
                if self.trace.is_on() {
                    note = self.describe(&txn);
                }
                Reply::Committed(result)
            }
        };
        self.trace_store(&act, &reply, &note);
        let tie = self.decider.tie(format_args!("reply {}", act.label));
        self.push_in(back_ms, tie, Event::Reply { origin, act, reply, resumed: false });
    }

    fn trace_store(&mut self, act: &Act, reply: &Reply, note: &str) {
        let (event, note) = match reply {
            Reply::Snapshot { result: Ok(_), .. } => ("read", ""),
            Reply::Page { result: Ok(_), .. } => ("scan", ""),
            Reply::Committed(Ok(_)) => ("commit", note),
            Reply::Committed(Err(StoreError::Conflict { .. })) => ("commit-conflict", ""),
            Reply::Committed(Err(StoreError::Ambiguous(why))) => ("commit-ambiguous", why.as_str()),
            Reply::Committed(Err(_)) => ("commit-refused", ""),
            _ => ("store-refused", ""),
        };
        let subject = alias::SubjectAlias(&act.about.subject);
        let dash = if note.is_empty() { "" } else { ": " };
        self.row("store", event, format_args!("{subject}"), format_args!("{}{dash}{note}", act.label));
    }

    /// What a transaction does to entries, for a reader.
    fn describe(&self, txn: &Txn) -> String {
        let seconds = |at: StoreTime| SimTime::from_ms(at.since_ms(StoreTime::from_ms(EPOCH_MS))).to_string();
        let describe = |write: &Write| {
            let kind = self.env.keys.kind_of(&write.key)?;
            if let Kind::Intent | Kind::DeadIntent = kind {
                return self.describe_intent(kind, write);
            }
            let id = self.env.keys.read_entry(kind, &write.key).ok()?;
            let alias = alias::EntryAlias(id);
            match (kind, &write.mutation) {
                (Kind::Entry, Mutation::Delete) => Some(format!("{alias} goes")),
                (Kind::Entry, Mutation::Put(value)) => Some(match build::read::<Entry>(value).ok()? {
                    entry if !entry.active => format!("{alias} waits behind its lane's head"),
                    Entry { lease: Some(lease), fence, .. } => {
                        format!("{alias} leased f{} until {}", fence.get(), seconds(lease.expires_at).trim_start())
                    }
                    entry => format!("{alias} due {} ({:?})", seconds(entry.vest_at).trim_start(), entry.wait),
                }),
                (Kind::DeadLetter, Mutation::Put(value)) => {
                    Some(format!("dead letter: {:?}", build::read::<DeadLetter>(value).ok()?.reason))
                }
                (Kind::Quarantined, Mutation::Put(value)) => {
                    Some(format!("quarantined: {:?}", build::read::<Quarantined>(value).ok()?.reason))
                }
                _ => None,
            }
        };
        txn.writes.iter().filter_map(describe).collect::<Vec<_>>().join(", ")
    }

    fn describe_intent(&self, kind: Kind, write: &Write) -> Option<String> {
        let alias = alias::SendAlias(self.env.keys.read_send(kind, &write.key).ok()?);
        match (kind, &write.mutation) {
            (Kind::Intent, Mutation::Delete) => Some(format!("intent {alias} goes")),
            (Kind::Intent, Mutation::Put(value)) => {
                let Intent { cursor, total, fence, active, .. } = build::read::<Intent>(value).ok()?;
                let waits = if active { "" } else { ", waits behind its order key's head" };
                Some(format!("intent {alias} at {cursor} of {total} f{}{waits}", fence.get()))
            }
            (_, Mutation::Put(value)) => {
                let trace = build::read::<DeadIntent>(value).ok()?;
                Some(format!("given up from {} of {}: {:?}", trace.cursor, trace.total, trace.reason))
            }
            _ => None,
        }
    }

    fn read(&mut self, origin: Origin, act: &Act, keys: &[Key]) -> Result<Vec<Option<restante_kv::Versioned>>, StoreError> {
        let mut records = if self.perturbation == Some(Perturbation::SwappedReads) {
            let swapped: Vec<Key> = keys.iter().rev().cloned().collect();
            self.store.get_many(&swapped)?.into_iter().rev().collect()
        } else {
            self.store.get_many(keys)?
        };
        self.auditor.on_read(origin, &act.about, &self.store, self.timeline.now());
        if let Some(see) = self.eyes(origin) {
            let found = keys.iter().zip(&mut records).filter_map(|(key, record)| Some((key, record.as_mut()?)));
            found.for_each(|(key, record)| see(&self.env, key, record));
        }
        if let Some(mutant) = self.mutant {
            mutant.on_records(origin, &act.about, keys, &mut records, &self.env, self.store_now());
        }
        Ok(records)
    }

    fn scan(
        &mut self,
        origin: Origin,
        act: &Act,
        range: &KeyRange,
        limit: usize,
        fate: &'static str,
    ) -> Result<Page, StoreError> {
        let mut page = self.store.scan(range, limit)?;
        let now = self.store_now();
        self.auditor.on_look(&act.about, now);
        if fate == "store.short-page" && !page.entries.is_empty() {
            // A short page is legal as long as it says that more follows, and brings its reader further even if it is empty.
            let kept = page.entries.len() / 2;
            let next = page.entries[kept].0.clone();
            if kept > 0 || next > range.start {
                page.next = Some(next);
                page.entries.truncate(kept);
                self.faults.delivered(fate);
            }
        }
        if let Some(see) = self.eyes(origin) {
            page.entries.iter_mut().for_each(|(key, record)| see(&self.env, key, record));
        }
        Ok(page)
    }

    /// What makes of a record what somebody sees, if that is not what lies there.
    fn eyes(&self, origin: Origin) -> Option<build::Eyes> {
        match self.mutant {
            _ if self.is_newer(origin) => Some(build::seen_by_newer),
            Some(Mutant::UnknownVersionGuessed) => Some(build::seen_by_newer),
            Some(Mutant::UnknownTakenForDamaged) => Some(build::seen_as_damaged),
            _ => None,
        }
    }

    fn commit(&mut self, origin: Origin, act: &Act, txn: &Txn, fate: &'static str) -> Result<restante_kv::Committed, StoreError> {
        match fate {
            "store.conflict" => {
                self.faults.delivered(fate);
                Err(StoreError::Conflict { failed: Vec::new() })
            }
            "store.ambiguous-committed" => {
                let result = self.apply(origin, act, txn);
                if result.is_ok() {
                    self.faults.delivered(fate);
                }
                Err(StoreError::Ambiguous(if result.is_ok() { "it happened".into() } else { "it did not happen".into() }))
            }
            "store.ambiguous-lost" => {
                self.faults.delivered(fate);
                Err(StoreError::Ambiguous("it did not happen".into()))
            }
            "store.ambiguous-late" => {
                let late_ms = self.span("kv.commit-late", format_args!("{}", act.label), Span::ms(5, 400));
                let tie = self.decider.tie(format_args!("late {}", act.label));
                self.push_in(late_ms, tie, Event::LateCommit { origin, act: act.clone(), txn: txn.clone() });
                Err(StoreError::Ambiguous("it may happen later".into()))
            }
            _ => self.apply(origin, act, txn),
        }
    }

    pub(super) fn on_late_commit(&mut self, origin: Origin, act: &Act, txn: &Txn) {
        let result = self.apply(origin, act, txn);
        if result.is_ok() {
            self.faults.delivered("store.ambiguous-late");
        }
        let event = if result.is_ok() { "late-commit" } else { "late-commit-conflict" };
        let subject = alias::SubjectAlias(&act.about.subject);
        self.row("store", event, format_args!("{subject}"), format_args!("{}", act.label));
    }

    /// Commits, and tells the auditor what changed.
    fn apply(&mut self, origin: Origin, act: &Act, txn: &Txn) -> Result<restante_kv::Committed, StoreError> {
        let before: Vec<_> = txn.writes.iter().map(|write| self.store.get(&write.key).cloned()).collect();
        let committed = self.store.commit(txn)?;
        let at = self.timeline.now();
        let now = self.store_now();
        if !self.is_newer(origin) {
            self.auditor.on_older_commit(txn, &before, &self.store, at);
        }
        self.auditor.on_commit(origin, &act.about, txn, &before, &self.store, at, now);
        self.digest.u64(txn.writes.len() as u64);
        if let Some((after_ms, txn)) = self.mutant.and_then(|mutant| mutant.replayed(&act.about, txn, &self.env)) {
            let nobody = act.about.clone();
            let act = Act { about: restante_core::machine::About { what: "replay", ..nobody }, label: act.label.clone() };
            self.push_in(after_ms, 0, Event::LateCommit { origin, act, txn });
        }
        Ok(committed)
    }
}
