//! The configuration file: TOML, every field optional, no field unknown.
//!
//! ```
//! use restante::settings::Settings;
//!
//! let settings = Settings::from_toml("max_retention = \"7d\"\n[sender]\nallow_http = true")?;
//! assert_eq!(settings.max_retention_ms, Some(604_800_000));
//!
//! let error = Settings::from_toml("leese = \"60s\"").unwrap_err();
//! assert_eq!(error.to_string(), "line 1: there is no field leese; did you mean lease?");
//! # Ok::<(), restante::settings::Problem>(())
//! ```

mod duration;
mod fields;
mod fill;

use std::path::{Path, PathBuf};

use restante_core::Config;
use restante_kv::Limits;
use toml::de::DeTable;

pub(crate) use duration::format_duration_ms;
pub use duration::{InvalidDuration, parse_duration_ms};
pub use fill::Problem;

use crate::fault::{Code, Fault};

/// Counter slots unless the file says otherwise. An SQLite snapshot holds a thousand keys, and the more slots there are, the
/// fewer transactions meet in one.
const COUNTER_SLOTS: u64 = 128;

/// Everything that can be configured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The backlog's. Its `max_retention_ms` is the largest number unless [`max_retention_ms`](Self::max_retention_ms) is set.
    pub config: Config,
    /// How long an entry may live; `None` when nobody said so. There is no default: a process with a shorter one than the
    /// others would drop what is theirs.
    pub max_retention_ms: Option<u64>,
    /// `[sender]`.
    pub sender: SenderSettings,
    /// `[sqlite]`.
    pub sqlite: SqliteSettings,
    /// `[signing]`.
    pub signing: SigningSettings,
}

/// How attempts are sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SenderSettings {
    /// How long resolving, connecting and TLS may take.
    pub connect_timeout_ms: u64,
    /// Whether addresses that are not public are connected to.
    pub allow_private_addresses: bool,
    /// Networks that are connected to although they are not public.
    pub allow_networks: Vec<String>,
    /// Whether `http` inboxes are sent to.
    pub allow_http: bool,
    /// Whether entries without a signing reference are sent.
    pub allow_unsigned: bool,
    /// The `User-Agent`; the sender's own when empty.
    pub user_agent: String,
    /// The `Content-Type`; the sender's own when empty.
    pub content_type: String,
    /// PEM files with roots that are trusted beside the system's.
    pub tls_roots_files: Vec<String>,
}

/// How the SQLite file is used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SqliteSettings {
    /// How long to wait for another process that writes.
    pub busy_timeout_ms: u64,
    /// Most transactions that share one commit; 0 leaves it to the store.
    pub group_max: usize,
    /// Connections for reading; 0 leaves it to the store.
    pub readers: usize,
}

/// Where the keys that sign are, and what opens them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SigningSettings {
    /// First bytes of the vault's keys in the store.
    pub prefix: String,
    /// The number of the master key that seals.
    pub sealing: u32,
    /// Where each master key is.
    pub master_keys: Vec<MasterKeySource>,
}

/// Where a master key is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MasterKeySource {
    /// Its number.
    pub number: u32,
    /// A file that holds it; or, when empty, see `env`.
    pub file: String,
    /// An environment variable that holds it.
    pub env: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            config: Config { counter_slots: COUNTER_SLOTS, ..Config::new(u64::MAX) },
            max_retention_ms: None,
            sender: SenderSettings {
                connect_timeout_ms: 5_000,
                allow_private_addresses: false,
                allow_networks: Vec::new(),
                allow_http: false,
                allow_unsigned: false,
                user_agent: String::new(),
                content_type: String::new(),
                tls_roots_files: Vec::new(),
            },
            sqlite: SqliteSettings { busy_timeout_ms: 5_000, group_max: 0, readers: 0 },
            signing: SigningSettings { prefix: "vault/".to_owned(), sealing: 0, master_keys: Vec::new() },
        }
    }
}

impl Settings {
    /// Reads a configuration.
    ///
    /// # Errors
    /// The first [`Problem`] in it.
    pub fn from_toml(text: &str) -> Result<Self, Problem> {
        let table = DeTable::parse(text).map_err(|error| Problem::syntax(&error, text))?;
        let mut settings = Self::default();
        fields::read(&mut settings, table.get_ref(), text)?;
        settings.set_max_retention(settings.max_retention_ms);
        Ok(settings)
    }

    /// Reads the file, or takes the defaults when there is none to read.
    ///
    /// # Errors
    /// A [`Fault`] that names the file.
    pub fn load(path: Option<&Path>) -> Result<Self, Fault> {
        let Some(path) = path else { return Ok(Self::default()) };
        let refused = |message, what_to_do: &str| Fault::new(Code::Configuration, message, what_to_do);
        let text = std::fs::read_to_string(path).map_err(|error| {
            refused(format!("the configuration file {path:?} cannot be read ({error})"), "correct the path, or make it readable")
        })?;
        Self::from_toml(&text)
            .map_err(|problem| refused(format!("the configuration file {path:?}, {problem}"), "correct the file"))
    }

    /// Sets how long an entry may live.
    pub fn set_max_retention(&mut self, max_retention_ms: Option<u64>) {
        self.max_retention_ms = max_retention_ms;
        self.config.max_retention_ms = max_retention_ms.unwrap_or(u64::MAX);
    }

    /// What can be checked before a store is there: the settings against each other.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let refused = |message, what_to_do| Err(Fault::new(Code::Configuration, message, what_to_do));
        if let Err(error) = self.config.validate(&BOUNDLESS) {
            return refused(error.to_string(), "correct the configuration file");
        }
        let (vault, backlog) = (&self.signing.prefix, &*self.config.prefix);
        if vault.starts_with(backlog) || backlog.starts_with(vault.as_str()) {
            let message = format!("the prefix {backlog:?} and the prefix {vault:?} of [signing] overlap");
            return refused(message, "give each a beginning of its own");
        }
        Ok(())
    }
}

/// A store that can do anything.
const BOUNDLESS: Limits = Limits {
    key_bytes_max: usize::MAX,
    value_bytes_max: usize::MAX,
    txn_checks_max: usize::MAX,
    txn_writes_max: usize::MAX,
    txn_bytes_max: usize::MAX,
    get_keys_max: usize::MAX,
    scan_page_max: usize::MAX,
    ..Limits::FLOOR
};

impl MasterKeySource {
    pub(crate) fn file(&self) -> Option<PathBuf> {
        (!self.file.is_empty()).then(|| PathBuf::from(&self.file))
    }
}

#[cfg(test)]
mod tests;
