//! Holds, circuits and shares: what notices said and attempts came to, beside what the records of destinations say.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use restante_core::atoms::{EntryId, Fence};
use restante_core::machine::{About, Post};
use restante_core::plan::HoldNotice;
use restante_core::record::{Breaker, Circuit, CircuitState, Destination, Entry, Probe};
use restante_core::{Env, Subject};
use restante_engine::SimTime;
use restante_kv::{StoreTime, Txn, Value};

use super::judged::judged;
use super::{Auditor, Evidence};
use crate::world::alias::{EntryAlias, SubjectAlias};
use crate::world::build::read;
use crate::world::{EPOCH_MS, Origin, Task};

/// Most rows that anything which happens to a destination as a whole may write.
const ROWS_MAX: usize = 2;

/// A notice that was committed.
#[derive(Clone, Copy, Debug)]
enum Said {
    Held { from: StoreTime, until: StoreTime, is_open: bool },
    Released { from: StoreTime },
}

/// An attempt under way.
#[derive(Clone, Debug)]
struct GhostPost {
    node: usize,
    life: u32,
    entry: EntryId,
    fence: Fence,
    began_at: StoreTime,
    claimed_at: StoreTime,
    is_probe: bool,
}

/// The truth about a destination.
#[derive(Clone, Debug, Default)]
pub(super) struct GhostDestination {
    said: Vec<Said>,
    /// Failures that its circuit was told of since it was closed for certain.
    failed_at: Vec<StoreTime>,
    /// The probe that was admitted last, until it is told off.
    probe: Option<Probe>,
    /// Since when its circuit has not been closed, as it was committed.
    shut_since: Option<StoreTime>,
    /// When a circuit that is not closed is forgotten, which closes it as well.
    shut_until: StoreTime,
    closed_at: StoreTime,
    posts: Vec<GhostPost>,
    looked_at: StoreTime,
}

impl GhostDestination {
    /// Whether an instant lies under a hold, going by the first `count` notices; open ends are taken `slack_ms` earlier.
    fn is_held(&self, at: StoreTime, count: usize, slack_ms: u64) -> bool {
        let covers = |held: bool, said: &Said| match *said {
            Said::Held { from, until, is_open } => {
                let until = if is_open { until.minus_ms(slack_ms) } else { until };
                held || from <= at && at < until
            }
            Said::Released { from } => held && at < from,
        };
        self.said[..count.min(self.said.len())].iter().fold(false, covers)
    }

    /// Instants at which it may begin or cease to be held.
    fn boundaries(&self) -> Vec<StoreTime> {
        let of = |said: &Said| match *said {
            Said::Held { from, until, .. } => [from, until],
            Said::Released { from } => [from, from],
        };
        let mut all: Vec<StoreTime> = self.said.iter().flat_map(of).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// What lies under a hold between two instants: at the first, at the last, and wherever it may change between them.
    fn is_held_within(&self, (from, to): (StoreTime, StoreTime), count: usize, slack_ms: u64) -> Vec<bool> {
        let between = self.boundaries().into_iter().filter(|at| from < *at && *at < to);
        between.chain([from, to]).map(|at| self.is_held(at, count, slack_ms)).collect()
    }

    /// How much of a time lies under holds.
    fn credit_ms(&self, from: StoreTime, to: StoreTime, count: usize) -> u64 {
        let mut cuts = self.boundaries();
        cuts.extend([from, to]);
        cuts.retain(|at| from <= *at && *at <= to);
        cuts.sort_unstable();
        let held = |pair: &&[StoreTime]| self.is_held(pair[0], count, 0);
        cuts.windows(2).filter(held).map(|pair| pair[1].since_ms(pair[0])).sum()
    }

    /// The latest instant up to `now` at which a hold ended.
    fn hold_ended_at(&self, now: StoreTime) -> Option<StoreTime> {
        let count = self.said.len();
        let ended = |at: &StoreTime| self.is_held(at.minus_ms(1), count, 0) && !self.is_held(*at, count, 0);
        self.boundaries().into_iter().filter(|at| *at <= now).rfind(ended)
    }

    /// Forgets a circuit whose time is over.
    fn forget(&mut self, now: StoreTime) {
        if self.shut_since.is_some() && self.shut_until <= now {
            (self.shut_since, self.closed_at) = (None, self.shut_until);
        }
    }

    /// Which attempts are under way for all that anybody knows.
    fn under_way(&mut self, now: StoreTime, timeout_ms: u64) -> &[GhostPost] {
        self.posts.retain(|post| now < post.began_at.plus_ms(timeout_ms));
        &self.posts
    }
}

/// What a gate saw, had it read what was there.
#[derive(Clone, Copy, Debug)]
pub(super) struct GateSeen {
    fence: Fence,
    at: StoreTime,
    /// Notices committed before.
    said_count: usize,
    circuit: CircuitState,
    /// Whether the circuit is forgotten by the latest instant that the gate may have taken for the snapshot's.
    is_soon_closed: bool,
    failure_count: u32,
}

impl Auditor {
    fn ghost_of(&mut self, destination: &Arc<str>) -> &mut GhostDestination {
        self.destinations.entry(destination.clone()).or_default()
    }

    /// From when to when the instant of a snapshot may lie to who uses it.
    fn around(&self, at: StoreTime) -> (StoreTime, StoreTime) {
        (at.minus_ms(self.tolerance_ms), at.plus_ms(self.ahead_ms))
    }

    fn of_destination(destination: &Arc<str>) -> Evidence {
        vec![("destination", SubjectAlias(&Subject::Destination(destination.clone())).to_string())]
    }

    /// An operator is about to pass on a notice.
    pub(crate) fn on_notice(&mut self, task: Task, notice: HoldNotice) {
        self.notices.insert(task, notice);
    }

    /// A gate reads its snapshot.
    pub(super) fn on_gate_read(&mut self, id: EntryId, about: &About, store: &restante_kv::Model, now: StoreTime) {
        let Some(destination) = self.entries.get(&id).map(|ghost| ghost.destination.clone()) else { return };
        let known = read_destination(&self.env, store, &destination);
        let entry = store.get(&self.env.keys.entry(id)).and_then(|found| read::<Entry>(&found.value).ok());
        let said_count = self.destinations.get(&destination).map_or(0, |ghost| ghost.said.len());
        let seen = GateSeen {
            fence: about.fence,
            at: now,
            said_count,
            circuit: known.circuit_at(now),
            is_soon_closed: known.circuit_at(self.around(now).1) == CircuitState::Closed,
            failure_count: entry.map_or(0, |entry| entry.failure_count),
        };
        if let Some(ghost) = self.entries.get_mut(&id) {
            ghost.gate_seen = Some(seen);
        }
    }

    /// Somebody looks at what is due at a destination.
    pub(crate) fn on_look(&mut self, about: &About, now: StoreTime) {
        if let ("scan-due", Subject::Destination(destination)) = (about.what, &about.subject) {
            self.ghost_of(destination).looked_at = now;
        }
    }

    /// A transaction that has to do with a destination as a whole was applied.
    pub(super) fn on_destination_commit(&mut self, origin: Origin, about: &About, txn: &Txn, at: SimTime, now: StoreTime) {
        if !matches!(about.what, "set-hold" | "count-attempt" | "gate") {
            return;
        }
        judged!(self, "destination-changes-touch-few-rows");
        if txn.writes.len() > ROWS_MAX {
            self.violate(at, "destination-changes-touch-few-rows", vec![("command", about.what.to_owned())]);
        }
        if let ("set-hold", Subject::Destination(destination)) = (about.what, &about.subject)
            && let Some(notice) = self.notices.get(&origin.task).copied()
        {
            let cap_ms = self.env.config.hold_cap_ms;
            let said = match notice {
                HoldNotice::Hold { from, until } => {
                    let from = from.unwrap_or(now);
                    let until_if_open = now.max(from).plus_ms(cap_ms);
                    Said::Held { from, until: until.unwrap_or(until_if_open), is_open: until.is_none() }
                }
                HoldNotice::Release { from } => Said::Released { from: from.unwrap_or(now) },
            };
            self.ghost_of(&destination.clone()).said.push(said);
        }
    }

    /// What is known of a destination changed.
    pub(super) fn on_known(
        &mut self,
        destination: &Arc<str>,
        about: &About,
        before: Option<&Value>,
        after: Option<&Value>,
        at: SimTime,
        now: StoreTime,
    ) {
        let decoded = |value: Option<&Value>| value.and_then(|value| read::<Destination>(value).ok()).unwrap_or_default();
        let (before, after) = (decoded(before), decoded(after));
        let config = self.env.config.clone();
        let evidence = Self::of_destination(destination);
        let mut broken = None;
        if after.breaker.is_some() || !after.holds.is_empty() {
            judged!(self, "breaker-state-is-bounded");
        }
        if let Some(breaker) = &after.breaker
            && !is_bounded(breaker, now.plus_ms(self.plan_slack_ms), &config)
        {
            broken = Some("breaker-state-is-bounded");
        }
        if after.holds.len() > Destination::HOLDS_MAX || after.canonical_holds() != after.holds {
            broken = Some("breaker-state-is-bounded");
        }
        let circuit = |known: &Destination| known.breaker.as_ref().map(|breaker| breaker.circuit.clone());
        let (was, is) = (circuit(&before), circuit(&after));
        let (tolerance_ms, slack_ms) = (self.tolerance_ms, self.plan_slack_ms);
        match (&was, &is) {
            (Some(Circuit::HalfOpen(first)), Some(Circuit::HalfOpen(second))) if first != second => {
                judged!(self, "one-probe-in-flight");
            }
            (None | Some(Circuit::Counting(_)), Some(Circuit::Open { .. })) | (_, Some(Circuit::Counting(_))) => {
                judged!(self, "circuit-opens-by-its-rule");
            }
            _ => {}
        }
        let ghost = self.ghost_of(destination);
        ghost.forget(now);
        if about.what == "count-attempt" && was != is {
            ghost.failed_at.push(now);
        }
        let within = |window_ms: u64| ghost.failed_at.iter().filter(|failed| now.since_ms(**failed) < window_ms).count();
        let window_ms = config.breaker_window_ms;
        match (&was, &is) {
            (Some(Circuit::HalfOpen(first)), Some(Circuit::HalfOpen(second)))
                if first != second && ghost.probe.is_some_and(|probe| probe.expires_at > now.plus_ms(tolerance_ms)) =>
            {
                broken = broken.or(Some("one-probe-in-flight"));
            }
            (None | Some(Circuit::Counting(_)), Some(Circuit::Open { .. }))
                if within(window_ms.saturating_add(slack_ms)) < config.breaker_failures =>
            {
                broken = broken.or(Some("circuit-opens-by-its-rule"));
            }
            (_, Some(Circuit::Counting(_))) if within(window_ms.saturating_sub(slack_ms)) > config.breaker_failures => {
                broken = broken.or(Some("circuit-opens-by-its-rule"));
            }
            _ => {}
        }
        let is_shut = !matches!(is, None | Some(Circuit::Counting(_)));
        ghost.probe = match is {
            Some(Circuit::HalfOpen(probe)) => Some(probe),
            _ => None,
        };
        if ghost.shut_since.is_some() && !is_shut {
            ghost.closed_at = now;
        }
        ghost.shut_since = is_shut.then(|| ghost.shut_since.unwrap_or(now));
        ghost.shut_until = after.breaker.as_ref().map_or(now, |breaker| breaker.expires_at);
        if is.is_none() || is_shut {
            ghost.failed_at.clear();
        }
        if let Some(probe) = ghost.probe {
            self.probes.insert((probe.entry, probe.fence));
            let (retention_ms, tolerance_ms) = (self.env.config.max_retention_ms, self.tolerance_ms);
            // By the instant of the gate's snapshot: its commit takes its time.
            let is_over = |ghost: &super::ghost::GhostEntry| {
                let seen = ghost.gate_seen.filter(|seen| seen.fence == probe.fence);
                seen.is_some_and(|seen| ghost.origin.plus_ms(retention_ms) <= seen.at.minus_ms(tolerance_ms))
            };
            if was != is {
                judged!(self, "expired-takes-no-probe");
                if self.entries.get(&probe.entry).is_some_and(is_over) {
                    broken = broken.or(Some("expired-takes-no-probe"));
                }
            }
        }
        if let Some(property) = broken {
            self.violate(at, property, evidence);
        }
    }

    /// A POST begins: what its gate saw must have let it pass.
    pub(super) fn on_post_to_destination(&mut self, origin: Origin, post: &Post, at: SimTime, now: StoreTime) {
        let config = self.env.config.clone();
        let is_probe = self.probes.contains(&(post.entry, post.fence));
        let Some(entry) = self.entries.get(&post.entry) else { return };
        let looked_at = self.passes.get(&(origin.node, origin.life)).copied().unwrap_or_default();
        let (created_at, claimed_at) = (entry.origin, entry.claimed_at);
        let seen = entry.gate_seen.filter(|seen| seen.fence == post.fence);
        let (steady, tolerance_ms, slack_ms) = (self.is_steady, self.tolerance_ms, self.plan_slack_ms);
        let around = self.around(seen.map_or(now, |seen| seen.at));
        let ghost = self.destinations.entry(post.destination.clone()).or_default();
        ghost.forget(now);
        let mut broken = None;
        if let Some(seen) = seen {
            if seen.said_count > 0 {
                judged!(self, "no-post-under-a-hold");
            }
            if seen.circuit != CircuitState::Closed {
                judged!(self, "open-circuit-passes-only-probes");
            }
            let passes = match seen.circuit {
                CircuitState::Closed => true,
                CircuitState::Open(_) | CircuitState::Probing(_) | CircuitState::Probeable => is_probe || seen.is_soon_closed,
            };
            if !ghost.is_held_within(around, seen.said_count, slack_ms).contains(&false) {
                broken = Some("no-post-under-a-hold");
            } else if !passes {
                broken = Some("open-circuit-passes-only-probes");
            }
            let age_ms = seen.at.since_ms(created_at).saturating_sub(ghost.credit_ms(created_at, seen.at, seen.said_count));
            let is_limited = config.retry_age_max_ms > 0 && seen.failure_count > 0;
            if is_limited {
                judged!(self, "hold-credit-is-the-union");
            }
            if is_limited && age_ms > config.retry_age_max_ms + slack_ms {
                broken = broken.or(Some("hold-credit-is-the-union"));
            }
        }
        let released_at = ghost.hold_ended_at(now).unwrap_or_default().max(ghost.closed_at);
        let others = ghost.under_way(now, config.request_timeout_ms.saturating_sub(tolerance_ms));
        if is_probe {
            judged!(self, "one-probe-in-flight");
        }
        if is_probe && others.iter().any(|other| other.is_probe) {
            broken = broken.or(Some("one-probe-in-flight"));
        }
        let own = || others.iter().filter(|other| (other.node, other.life) == (origin.node, origin.life));
        if own().next().is_some() && config.share_per_destination() < config.concurrency {
            judged!(self, "destination-keeps-to-its-share");
        }
        if own().count() >= config.share_per_destination() {
            broken = broken.or(Some("destination-keeps-to-its-share"));
        }
        if let Some(steps) = now.since_ms(released_at).checked_div(config.ramp_step_ms)
            && steady
        {
            // What was claimed before the release is over soon, and was never part of the ramp.
            let since = released_at.plus_ms(500);
            let resumed = own().filter(|other| other.claimed_at > since).count() as u64;
            // A pass that looked at the destination before goes by what it saw then, to its end.
            let claimed_at = if looked_at < released_at { released_at } else { claimed_at };
            if claimed_at > since && released_at > StoreTime::default() {
                judged!(self, "released-is-resumed-step-by-step");
            }
            if claimed_at > since && resumed > steps {
                broken = broken.or(Some("released-is-resumed-step-by-step"));
            }
        }
        let (node, life, entry, fence) = (origin.node, origin.life, post.entry, post.fence);
        ghost.posts.push(GhostPost { node, life, entry, fence, began_at: now, claimed_at, is_probe });
        if let Some(property) = broken {
            self.violate(at, property, vec![("entry", EntryAlias(post.entry).to_string())]);
        }
    }

    /// A worker learns how its POST ended.
    pub(super) fn on_post_ended(&mut self, id: EntryId, fence: Fence) {
        if let Some(destination) = self.entries.get(&id).map(|ghost| ghost.destination.clone()) {
            self.ghost_of(&destination).posts.retain(|post| (post.entry, post.fence) != (id, fence));
        }
    }

    /// A settle parks an entry as held.
    pub(super) fn parked_as_held_for_nothing(&self, id: EntryId, fence: Fence) -> bool {
        let Some(entry) = self.entries.get(&id) else { return false };
        let Some(ghost) = self.destinations.get(&entry.destination) else { return true };
        entry
            .gate_seen
            .filter(|seen| seen.fence == fence)
            .is_some_and(|seen| !ghost.is_held_within(self.around(seen.at), seen.said_count, 0).contains(&true))
    }

    /// A delivery is given up for its age: it must have that age, time under holds not counted.
    pub(super) fn dropped_for_age_too_early(&self, id: EntryId) -> bool {
        let Some(entry) = self.entries.get(&id) else { return false };
        let Some(seen) = entry.gate_seen else { return false };
        let ghost = self.destinations.get(&entry.destination);
        let credit_ms = ghost.map_or(0, |ghost| ghost.credit_ms(entry.origin, seen.at, seen.said_count));
        let age_ms = seen.at.since_ms(entry.origin).saturating_sub(credit_ms);
        age_ms + self.plan_slack_ms < self.env.config.retry_age_max_ms
    }

    /// What must have happened by now wherever nothing hinders it any more since `calm_since`.
    pub(crate) fn check_bounds(&mut self, store: &restante_kv::Model, calm_since: StoreTime, at: SimTime, now: StoreTime) {
        let config = self.env.config.clone();
        let sweeps_ms = 2 * config.sweep_interval_ms + self.look_slack_ms;
        // What has lost its index rows is the sweep's to find.
        let found_anew_ms = if self.index_lost_at_all { sweeps_ms } else { 0 };
        let held_ms = config.held_recheck_interval_ms
            + config.poll_interval_ms
            + config.resume_jitter_ms
            + self.look_slack_ms
            + found_anew_ms;
        let found_ms = config.poll_interval_ms + self.pass_ms + self.look_slack_ms;
        // What index rows are missing of is the sweep's to find, and what hosts keep waiting is judged by how long it takes.
        let is_found = self.is_served && !self.index_lost_at_all && self.ailing_count == 0;
        let mut broken: Option<(&'static str, Evidence)> = None;
        let keys = &self.env.keys;
        for (key, record) in store.iter() {
            let Ok(id) = keys.read_entry(restante_core::keys::Kind::Entry, key) else { continue };
            let Ok(entry) = read::<Entry>(&record.value) else { continue };
            let since = |instant: StoreTime| now.since_ms(instant.max(calm_since));
            let evidence = || vec![("entry", EntryAlias(id).to_string())];
            // What waited in a lane is the sweep's from when it became its head.
            if entry.active && since(entry.ends_at(config.max_retention_ms).max(entry.vest_at)) > 0 {
                judged!(self, "what-is-over-goes");
            }
            if entry.active && since(entry.ends_at(config.max_retention_ms).max(entry.vest_at)) > sweeps_ms {
                broken = broken.or_else(|| Some(("what-is-over-goes", evidence())));
            }
            let nothing = GhostDestination::default();
            let ghost = self.destinations.get(&entry.destination).unwrap_or(&nothing);
            let known = read_destination(&self.env, store, &entry.destination);
            if let Some(shut) = ghost.shut_since
                && known.circuit_at(now) != CircuitState::Closed
                && entry.active
            {
                judged!(self, "circuit-holds-end");
                if since(shut.max(entry.origin)) > config.circuit_held_max_ms + config.breaker_recovery_ms + sweeps_ms {
                    broken = broken.or_else(|| Some(("circuit-holds-end", evidence())));
                }
            }
            let ended_at = ghost.hold_ended_at(now).map(|ended| ended.max(calm_since));
            let is_clear = !ghost.is_held(now, ghost.said.len(), 0) && ghost.shut_since.is_none();
            if let Some(ended_at) = ended_at
                && is_clear
                && self.is_served
                && entry.active
                && entry.lease.is_none()
                && entry.vest_at <= ended_at
                && known.paced_until <= ended_at
            {
                judged!(self, "held-work-is-looked-at");
                if now.since_ms(ended_at) > held_ms && ghost.looked_at < ended_at {
                    broken = broken.or_else(|| Some(("held-work-is-looked-at", evidence())));
                }
            }
            let changed_at = self.entries.get(&id).map_or(0, |ghost| ghost.changed_at.as_ms());
            let due_at = entry.vest_at.max(calm_since).max(StoreTime::from_ms(EPOCH_MS + changed_at));
            let is_kept_back = ghost.shut_since.is_some() || !ghost.said.is_empty() || known.paced_until > calm_since;
            if is_found && entry.active && entry.lease.is_none() && !is_kept_back && due_at >= ghost.closed_at && due_at <= now {
                judged!(self, "due-work-is-found");
                if now.since_ms(due_at) > found_ms && ghost.looked_at < due_at {
                    broken = broken.or_else(|| Some(("due-work-is-found", evidence())));
                }
            }
        }
        if let Some((property, evidence)) = broken {
            self.violate(at, property, evidence);
        }
    }

    pub(super) fn hash_destinations(&self, hasher: &mut impl Hasher, now: StoreTime) {
        for (destination, ghost) in &self.destinations {
            let is_shut = ghost.shut_since.is_some();
            if !ghost.failed_at.is_empty() || is_shut {
                let probe = |probe: Probe| (probe.entry.send, probe.entry.index, probe.fence, probe.expires_at.since_ms(now));
                (destination, ghost.failed_at.len(), ghost.probe.map(probe), is_shut).hash(hasher);
            }
            for post in ghost.posts.iter().filter(|post| post.is_probe) {
                (post.node, post.entry.send, post.entry.index, post.fence).hash(hasher);
            }
        }
    }
}

fn read_destination(env: &Env, store: &restante_kv::Model, destination: &str) -> Destination {
    let found = store.get(&env.keys.destination(destination));
    found.and_then(|found| read::<Destination>(&found.value).ok()).unwrap_or_default()
}

fn is_bounded(breaker: &Breaker, now: StoreTime, config: &restante_core::Config) -> bool {
    let (few, outlives) = match &breaker.circuit {
        Circuit::Counting(failures) => (failures.len() < config.breaker_failures.max(1), true),
        Circuit::Open { .. } => (true, true),
        Circuit::HalfOpen(probe) => (true, probe.expires_at <= breaker.expires_at),
    };
    let longest_ms = config.breaker_life_ms(false).max(config.breaker_life_ms(true));
    few && outlives && breaker.expires_at <= now.plus_ms(longest_ms)
}
