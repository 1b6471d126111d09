//! What is known of destinations.

use restante_core::machine::{DestinationPage, DestinationRow};
use restante_core::record::{CircuitState, HoldInterval};
use serde::{Deserialize, Serialize};

use super::{BlockView, instant, write_cursor};

/// A time in which a destination wants no deliveries.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldView {
    /// When it begins, or began.
    pub from: String,
    /// When it ends; if nobody said when, at the latest, unless it is said again.
    pub until: String,
    /// Whether somebody said when it ends.
    pub end_known: bool,
}

impl HoldView {
    fn new(hold: HoldInterval) -> Self {
        Self { from: instant(hold.from), until: instant(hold.until), end_known: !hold.is_open }
    }
}

/// How a circuit stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CircuitView {
    /// `closed`, `open`, `half_open` (its probe is under way) or `probeable` (the next attempt is its probe).
    pub state: String,
    /// Failures that count while it is closed.
    pub failure_count: u64,
    /// Since when it has not been closed; while it counts failures, since the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// When it admits a probe: an open one its first, a half-open one another in the place of the one under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_at: Option<String>,
}

impl CircuitView {
    fn of(row: &DestinationRow) -> Self {
        let (state, probe_at) = match row.circuit {
            CircuitState::Closed => ("closed", None),
            CircuitState::Open(until) => ("open", Some(until)),
            CircuitState::Probing(until) => ("half_open", Some(until)),
            CircuitState::Probeable => ("probeable", None),
        };
        Self {
            state: state.to_owned(),
            failure_count: row.failure_count as u64,
            since: row.circuit_since.map(instant),
            probe_at: probe_at.map(instant),
        }
    }
}

/// What is known of one destination.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DestinationView {
    /// Scheme, host and a port that is not the default one.
    pub destination: String,
    /// What keeps back all that goes there, at the moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<BlockView>,
    /// The hold that lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HoldView>,
    /// Holds that have not begun yet.
    pub holds_to_come: Vec<HoldView>,
    /// When the pause ends that it asked for (Retry-After), if one lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paced_until: Option<String>,
    /// Its circuit.
    pub circuit: CircuitView,
}

impl DestinationView {
    pub(crate) fn new(row: &DestinationRow) -> Self {
        Self {
            destination: row.destination.to_string(),
            blocked: BlockView::of(row),
            held: row.held.map(HoldView::new),
            holds_to_come: row.holds_to_come.iter().copied().map(HoldView::new).collect(),
            paced_until: row.paced_until.map(instant),
            circuit: CircuitView::of(row),
        }
    }
}

/// A destination whose record this version cannot read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnreadableDestinationView {
    /// Which.
    pub destination: String,
    /// Why.
    pub why: String,
}

/// One page of destinations of which something is known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DestinationsView {
    /// Those that can be read.
    pub destinations: Vec<DestinationView>,
    /// Those that cannot.
    pub unreadable: Vec<UnreadableDestinationView>,
    /// Where the next page begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl DestinationsView {
    pub(crate) fn new(page: &DestinationPage) -> Self {
        let unreadable = page
            .unreadable
            .iter()
            .map(|(destination, why)| UnreadableDestinationView { destination: destination.to_string(), why: why.to_string() });
        Self {
            destinations: page.rows.iter().map(DestinationView::new).collect(),
            unreadable: unreadable.collect(),
            next_cursor: page.next.as_ref().map(write_cursor),
        }
    }
}
