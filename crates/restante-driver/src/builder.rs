//! How a backlog is put together.

use std::sync::Arc;

use opentelemetry::metrics::Meter;
use restante_core::machine::LegacySettings;
use restante_core::{Config, ConfigError, Env};
use restante_journal::{Event, FORMAT, Journal};
use restante_kv::{AtomicKv, Durability};
use restante_legacy::{Keyring, LegacyQueue};
use tokio::time::Instant;

use crate::Backlog;
use crate::attempts::Attempts;
use crate::legacy::LegacySide;
use crate::sender::{DynSender, Sender};
use crate::shared::Shared;
use crate::slots::SlotPool;
use crate::telemetry::Telemetry;
use crate::wakes::Wakes;

/// Why a backlog is not built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BuildError {
    /// The settings contradict each other, or the store is too small for them.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store forgets acknowledged commits.
    #[error(
        "the store is {durability:?}: what it acknowledges can be lost, and accepted work with it; \
         use a durable store, or call allow_volatile_store() where losing work is fine (in tests)"
    )]
    NotDurable {
        /// What the store says of itself.
        durability: Durability,
    },
    /// Clocks that judge the same lease may differ by an unknown amount.
    #[error("the store has no clock of its own: say how far the clocks of its users may lie apart (max_clock_skew_ms)")]
    NoClock,
    /// A message of the old queue could be handed out again in the middle of its attempt.
    #[error(
        "messages of the legacy queue are kept from others for {visible_ms} ms, but an attempt and its margin need more than \
         {needed_ms}: lengthen visible_ms or shorten request_timeout_ms"
    )]
    VisibilityTooShort {
        /// For how long.
        visible_ms: u64,
        /// What it must exceed.
        needed_ms: u64,
    },
}

/// Options of a backlog; made by [`Backlog::builder`].
#[must_use = "call build()"]
pub struct Builder {
    store: Arc<dyn AtomicKv>,
    config: Config,
    sender: Arc<dyn DynSender>,
    volatile_allowed: bool,
    meter: Option<Meter>,
    journal: Option<Journal>,
    legacy: Option<LegacySide>,
}

impl Builder {
    pub(crate) fn new(store: Arc<dyn AtomicKv>, config: Config, sender: impl Sender) -> Self {
        Self { store, config, sender: Arc::new(sender), volatile_allowed: false, meter: None, journal: None, legacy: None }
    }

    /// Accepts a store that loses acknowledged commits, such as one in memory.
    pub fn allow_volatile_store(mut self) -> Self {
        self.volatile_allowed = true;
        self
    }

    /// Where metrics go; the global meter named `restante` unless set.
    pub fn meter(mut self, meter: Meter) -> Self {
        self.meter = Some(meter);
        self
    }

    /// Records what is asked for and answered, for `restante-sim replay --journal`. Off unless set.
    pub fn journal(mut self, journal: Journal) -> Self {
        self.journal = Some(journal);
        self
    }

    /// An old queue beside the backlog. While intake is closed, sends go there; [`Backlog::work_off`] empties it. The settings are
    /// those of the listener: `LegacySettings::new(LegacyMode::Drain)`, or `AdoptOnHold`.
    pub fn legacy_queue(mut self, queue: Arc<dyn LegacyQueue>, settings: LegacySettings, keyring: Arc<dyn Keyring>) -> Self {
        self.legacy = Some(LegacySide { queue, settings, keyring });
        self
    }

    /// Checks everything and builds the backlog. Nothing is asked of the store here, and nothing before the
    /// first call.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build(self) -> Result<Backlog, BuildError> {
        let limits = self.store.limits();
        match limits.durability {
            Durability::Fsync | Durability::Quorum => {}
            durability @ (Durability::Volatile | Durability::Lazy { .. }) if !self.volatile_allowed => {
                return Err(BuildError::NotDurable { durability });
            }
            Durability::Volatile | Durability::Lazy { .. } => {}
        }
        if !limits.has_clock && self.config.max_clock_skew_ms == 0 {
            return Err(BuildError::NoClock);
        }
        self.config.validate(&limits)?;
        if let Some(LegacySide { settings, .. }) = &self.legacy {
            let needed_ms = self.config.request_timeout_ms.saturating_add(self.config.lease_margin_ms);
            let visible_ms = settings.visible_ms;
            if visible_ms <= needed_ms {
                return Err(BuildError::VisibilityTooShort { visible_ms, needed_ms });
            }
        }
        if let Some(journal) = &self.journal {
            let (version, config) = (env!("CARGO_PKG_VERSION").to_owned(), Box::new(self.config.clone()));
            journal.record(|| Event::Opened { format: FORMAT, version, config });
        }
        let meter = self.meter.unwrap_or_else(|| opentelemetry::global::meter("restante"));
        let slots = SlotPool::new(self.config.counter_slots, rand::random_range(0..self.config.counter_slots));
        Ok(Backlog::new(Shared {
            env: Arc::new(Env::new(self.config)),
            store: self.store,
            sender: self.sender,
            attempts: Attempts::default(),
            slots,
            wakes: Wakes::default(),
            telemetry: Telemetry::new(&meter),
            journal: self.journal.map(Arc::new),
            legacy: self.legacy,
            epoch: Instant::now(),
        }))
    }
}
