//! The store as the world runs it: pristine data in a [`Model`](restante_kv::Model), faults as an overlay on its answers.

use restante_core::machine::Reply;
use restante_kv::{Key, KeyRange, Page, StoreError, Txn};

use super::event::{Act, Event, Origin, StoreOp};
use super::{World, alias};
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
        let unavailable = || StoreError::Unavailable("simulated".into());
        let reply = match op {
            StoreOp::Read(keys) => {
                let result = if refused { Err(unavailable()) } else { self.read(origin, &act, &keys) };
                Reply::Snapshot { result, at: self.store_now() }
            }
            StoreOp::Scan { range, limit } => {
                let result = if refused { Err(unavailable()) } else { self.scan(&act, &range, limit, fate) };
                let entropy = if act.about.what == "scan-due" {
                    self.decider.draw("core.window", format_args!("{}", act.label))
                } else {
                    0
                };
                Reply::Page { result, at: self.store_now(), entropy }
            }
            StoreOp::Commit(txn) => {
                let result = if refused { Err(unavailable()) } else { self.commit(origin, &act, &txn, fate) };
                Reply::Committed(result)
            }
        };
        self.trace_store(&act, &reply);
        let tie = self.decider.tie(format_args!("reply {}", act.label));
        self.push_in(back_ms, tie, Event::Reply { origin, act, reply });
    }

    fn trace_store(&mut self, act: &Act, reply: &Reply) {
        let (event, outcome): (&'static str, &str) = match reply {
            Reply::Snapshot { result: Ok(_), .. } => ("read", ""),
            Reply::Page { result: Ok(_), .. } => ("scan", ""),
            Reply::Committed(Ok(_)) => ("commit", ""),
            Reply::Committed(Err(StoreError::Conflict { .. })) => ("commit-conflict", ""),
            Reply::Committed(Err(StoreError::Ambiguous(why))) => ("commit-ambiguous", why.as_str()),
            Reply::Committed(Err(_)) => ("commit-refused", ""),
            _ => ("store-refused", ""),
        };
        let subject = alias::SubjectAlias(&act.about.subject);
        self.row("store", event, format_args!("{subject}"), format_args!("{} {outcome}", act.label));
    }

    fn read(&mut self, origin: Origin, act: &Act, keys: &[Key]) -> Result<Vec<Option<restante_kv::Versioned>>, StoreError> {
        let mut records = self.store.get_many(keys)?;
        self.auditor.on_read(origin.task, &act.about, &self.store, self.timeline.now());
        if let Some(mutant) = self.mutant {
            mutant.on_records(origin, &act.about, keys, &mut records, &self.env, self.store_now());
        }
        Ok(records)
    }

    fn scan(&mut self, _act: &Act, range: &KeyRange, limit: usize, fate: &'static str) -> Result<Page, StoreError> {
        let mut page = self.store.scan(range, limit)?;
        if fate == "store.short-page" && !page.entries.is_empty() {
            // A short page is legal as long as it says that more follows.
            let kept = page.entries.len() / 2;
            page.next = Some(page.entries[kept].0.clone());
            page.entries.truncate(kept);
            self.faults.delivered(fate);
        }
        Ok(page)
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
        self.auditor.on_commit(origin, &act.about, txn, &before, at, self.store_now());
        self.digest.u64(txn.writes.len() as u64);
        Ok(committed)
    }
}
