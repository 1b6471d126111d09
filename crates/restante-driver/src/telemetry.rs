//! What an operator sees: `tracing` events that name ids, and OpenTelemetry metrics whose only label that grows is the host.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter, UpDownCounter};
use restante_core::atoms::EntryId;
use restante_core::machine::{DeliveryEnd, Failure, PostResult};
use restante_core::plan::{DepthReport, Settled};
use restante_core::{Effect, Observation};
use restante_kv::StoreError;

use crate::shared::Shared;

/// The instruments of one backlog. Names and meanings are those that federated servers use already.
pub(crate) struct Telemetry {
    sent: Counter<u64>,
    permanent_failure: Counter<u64>,
    duration: Histogram<f64>,
    activities: Counter<u64>,
    enqueued: Counter<u64>,
    started: Counter<u64>,
    completed: Counter<u64>,
    failed: Counter<u64>,
    in_flight: UpDownCounter<i64>,
    depth: Gauge<i64>,
    recipients: Histogram<u64>,
    circuit_changes: Counter<u64>,
}

/// An attempt under way.
pub(crate) struct InFlight<'t>(&'t UpDownCounter<i64>);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.add(-1, &[]);
    }
}

impl Telemetry {
    pub(crate) fn new(meter: &Meter) -> Self {
        Self {
            sent: meter
                .u64_counter("activitypub.delivery.sent")
                .with_description("Attempts to deliver, by host and success")
                .build(),
            permanent_failure: meter
                .u64_counter("activitypub.delivery.permanent_failure")
                .with_description("Deliveries that were given up")
                .build(),
            duration: meter
                .f64_histogram("activitypub.delivery.duration")
                .with_unit("ms")
                .with_description("How long attempts took")
                .build(),
            activities: meter
                .u64_counter("activitypub.outbox.activity")
                .with_description("Deliveries queued, retried and abandoned")
                .build(),
            enqueued: meter.u64_counter("fedify.queue.task.enqueued").with_description("Sends that were accepted").build(),
            started: meter.u64_counter("fedify.queue.task.started").with_description("Attempts that began").build(),
            completed: meter.u64_counter("fedify.queue.task.completed").with_description("Deliveries that arrived").build(),
            failed: meter.u64_counter("fedify.queue.task.failed").with_description("Claims that ended otherwise").build(),
            recipients: meter
                .u64_histogram("activitypub.fanout.recipients")
                .with_description("Recipients that became deliveries in one commit")
                .build(),
            in_flight: meter.i64_up_down_counter("fedify.queue.task.in_flight").with_description("Attempts under way").build(),
            depth: meter
                .i64_gauge("fedify.queue.depth")
                .with_description("What the backlog owned when it was last asked")
                .build(),
            circuit_changes: meter
                .u64_counter("activitypub.circuit_breaker.state_change")
                .with_description("Circuits that opened, half-opened and closed, by host and state")
                .build(),
        }
    }

    pub(crate) fn depth(&self, report: &DepthReport) {
        let state = |name: &'static str| [KeyValue::new("fedify.queue.depth.state", name)];
        self.depth.record(report.entries, &state("queued"));
        self.depth.record(report.leased, &state("leased"));
        self.depth.record(report.quarantined, &state("quarantined"));
    }

    /// Counts an attempt as under way until what is returned is dropped, however it ends.
    pub(crate) fn post_began(&self) -> InFlight<'_> {
        self.started.add(1, &[]);
        self.in_flight.add(1, &[]);
        InFlight(&self.in_flight)
    }

    pub(crate) fn post_ended(&self, entry: EntryId, destination: &Arc<str>, result: PostResult, took: Duration) {
        let host = KeyValue::new("activitypub.remote.host", Arc::clone(destination));
        let success = matches!(result, PostResult::Status { code: 200..=299, .. });
        let took_ms = took.as_secs_f64() * 1_000.0;
        self.sent.add(1, &[host.clone(), KeyValue::new("activitypub.delivery.success", success)]);
        self.duration.record(took_ms, &[host]);
        tracing::debug!(%entry, %destination, ?result, took_ms, "attempt ended");
    }

    pub(crate) fn claim_ended(&self, entry: EntryId, end: &DeliveryEnd) {
        match end {
            // Gone after a settle of unknown outcome: nobody delivers it again, and a drop would have left a dead letter.
            DeliveryEnd::Settled(Settled::Delivered | Settled::Gone) => self.completed.add(1, &[]),
            DeliveryEnd::NotClaimed => return,
            DeliveryEnd::Settled(Settled::Retried) => {
                self.failed.add(1, &[]);
                self.activities.add(1, &[KeyValue::new("result", "retried")]);
            }
            DeliveryEnd::Settled(Settled::Parked(block)) => {
                self.failed.add(1, &[]);
                tracing::debug!(name: "circuit_breaker.held", %entry, ?block, "kept back");
            }
            DeliveryEnd::Yielded(failure) => {
                self.failed.add(1, &[]);
                // A store that refuses is the operator's to see.
                tracing::warn!(%entry, why = %why(failure), "given up for now: the lease's end brings it back");
            }
            DeliveryEnd::Settled(Settled::Deferred | Settled::Dropped(_)) | DeliveryEnd::LeaseLost | DeliveryEnd::Quarantined => {
                self.failed.add(1, &[]);
            }
        }
        tracing::debug!(%entry, end = name_of(end), "claim ended");
    }

    /// Passes on what was committed: wakes to this process's workers, the rest to whoever listens.
    pub(crate) fn observe(&self, shared: &Shared, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Wake { .. } => shared.wakes.wake(),
                Effect::Observed(observation) => self.observed(&observation),
            }
        }
    }

    /// By a settle, by the sweep, or before they were deliveries.
    fn given_up(&self, count: u64) {
        self.permanent_failure.add(count, &[]);
        self.activities.add(count, &[KeyValue::new("result", "abandoned")]);
    }

    fn observed(&self, observation: &Observation) {
        match observation {
            Observation::Accepted { send } => {
                self.enqueued.add(1, &[]);
                self.activities.add(1, &[KeyValue::new("result", "queued")]);
                tracing::debug!(%send, "accepted");
            }
            Observation::Delivered { entry, fence } => tracing::debug!(%entry, fence = fence.get(), "delivered"),
            Observation::Dropped { entry, reason } => {
                self.given_up(1);
                tracing::warn!(%entry, %reason, "dropped: a dead letter tells more");
            }
            Observation::Quarantined { entry, reason } => {
                tracing::error!(%entry, %reason, "quarantined: it cannot be read by this version");
            }
            Observation::QuarantineDropped { entry } => tracing::warn!(%entry, "dropped at the end of its quarantine"),
            Observation::IndexRepaired { entry } => tracing::warn!(%entry, "a missing index row was put back"),
            Observation::CircuitChanged { destination, change } => {
                let host = KeyValue::new("activitypub.remote.host", Arc::clone(destination));
                let state = KeyValue::new("activitypub.circuit_breaker.state", change.name());
                self.circuit_changes.add(1, &[host, state]);
                tracing::info!(name: "circuit_breaker.state_change", %destination, state = change.name(), "a circuit changed");
            }
            Observation::HoldSet { destination, until } => {
                tracing::info!(%destination, until_ms = until.as_ms(), "a destination is held");
            }
            Observation::HoldReleased { destination } => tracing::info!(%destination, "a destination is not held any more"),
            Observation::LaneRepaired { destination } => tracing::warn!(%destination, "a lane was moved past a lost head"),
            Observation::Expanded { send, recipient_count } => {
                self.recipients.record(u64::from(*recipient_count), &[]);
                tracing::debug!(%send, recipient_count, "expanded");
            }
            Observation::IntentDropped { send, recipient_count, reason } => {
                self.given_up(u64::from(*recipient_count));
                tracing::warn!(%send, recipient_count, %reason, "dropped before they were expanded: a trace tells more");
            }
            // Order keys name people.
            Observation::QueueRepaired { order_key: _ } => tracing::warn!("intents of an order key were moved past a lost head"),
        }
    }
}

/// How a claim ended, in a word.
fn name_of(end: &DeliveryEnd) -> &'static str {
    match end {
        DeliveryEnd::Settled(Settled::Delivered) => "delivered",
        DeliveryEnd::Settled(Settled::Dropped(_)) => "dropped",
        DeliveryEnd::Settled(Settled::Retried) => "retried",
        DeliveryEnd::Settled(Settled::Deferred) => "deferred",
        DeliveryEnd::Settled(Settled::Parked(_)) => "parked",
        DeliveryEnd::Settled(Settled::Gone) => "gone",
        DeliveryEnd::NotClaimed => "not claimed",
        DeliveryEnd::LeaseLost => "lease lost",
        DeliveryEnd::Quarantined => "quarantined",
        DeliveryEnd::Yielded(_) => "yielded",
    }
}

/// Why a claim was given up for now. The failure's own text may name keys of the store, and those name people.
fn why(failure: &Failure) -> Cow<'static, str> {
    match failure {
        Failure::Rejected(_) => "refused by what it found".into(),
        Failure::Inconsistent { why, .. } => format!("a record cannot be used: {why}").into(),
        Failure::Contention => "every try conflicted".into(),
        Failure::Store(StoreError::Unavailable(what)) => format!("the store is unavailable: {what}").into(),
        Failure::Store(StoreError::Ambiguous(what)) => format!("the outcome of a commit is unknown: {what}").into(),
        Failure::Store(StoreError::Conflict { .. } | StoreError::LimitExceeded { .. } | StoreError::InvalidRequest(_)) => {
            "the store refuses what it is asked".into()
        }
        Failure::Unknown => "the outcome of a commit is unknown".into(),
    }
}
