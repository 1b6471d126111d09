//! From arguments and configuration to a backlog that can be used.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use restante_core::machine::{NotSent, Post, PostResult};
use restante_driver::Backlog;
use restante_http::{HttpSender, IpNet};
use restante_journal::Journal;
use restante_kv::AtomicKv;
use restante_signing::{MasterKey, MasterKeyError, MasterKeys, Vault, VaultSigner};

use crate::fault::{Code, Fault};
use crate::settings::{SenderSettings, Settings, SigningSettings};
use crate::store::{OpenOptions, StoreUrl, check_layout};

/// The environment variable that may hold master key 1, where the configuration names none.
pub const MASTER_KEY_VARIABLE: &str = "RESTANTE_MASTER_KEY";

/// Where the backlog is, and how it is configured.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The store's URL.
    pub store: String,
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// How long an entry may live; goes before the configuration.
    pub max_retention_ms: Option<u64>,
    /// What opening may do.
    pub options: OpenOptions,
    /// Where to record what is asked of the store and answered, and most bytes of it.
    pub journal: Option<(PathBuf, u64)>,
}

/// What is to be done there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// To deliver: a retention and a sender are needed.
    Deliver,
    /// Everything else.
    Operate,
}

/// A backlog in its store.
#[derive(Clone, Debug)]
pub struct Site {
    /// The backlog.
    pub backlog: Backlog,
    /// Its settings.
    pub settings: Settings,
}

fn misconfigured(message: impl Into<String>, what_to_do: impl Into<String>) -> Fault {
    Fault::new(Code::Configuration, message, what_to_do)
}

impl Site {
    /// Opens the store and puts the backlog together.
    ///
    /// # Errors
    /// A [`Fault`]; nothing was changed then, except that a file may have been created where that was allowed.
    pub async fn open(place: &Place, purpose: Purpose) -> Result<Self, Fault> {
        let settings = place.settings()?;
        if purpose == Purpose::Deliver && settings.max_retention_ms.is_none() {
            return Err(misconfigured(
                "nobody says how long a delivery may live",
                "set max_retention = \"7d\" in the configuration file, or give --max-retention 7d; the same for every process",
            ));
        }
        // Before anything is opened: what cannot be sent is not to be found out with a new file on the disk.
        let masters = master_keys(&settings.signing)?;
        if purpose == Purpose::Deliver && masters.is_none() && !settings.sender.allow_unsigned {
            return Err(misconfigured(
                "there is no master key, so nothing can be signed, and unsigned requests are not allowed",
                format!("set {MASTER_KEY_VARIABLE} or [signing], or allow_unsigned = true under [sender]"),
            ));
        }
        let store = place.open_store(&settings)?;
        let builder = match purpose {
            Purpose::Deliver => {
                let vault = masters.map(|masters| Arc::new(vault(&settings.signing, Arc::clone(&store), masters)));
                let sender = sender(&settings, vault)?;
                Backlog::builder(Arc::clone(&store), settings.config.clone(), sender)
            }
            Purpose::Operate => Backlog::builder(Arc::clone(&store), settings.config.clone(), tower::service_fn(send_nothing)),
        };
        let builder = if place.options.allow_volatile { builder.allow_volatile_store() } else { builder };
        let builder = match &place.journal {
            Some((path, bytes_max)) => builder.journal(journal(path, *bytes_max)?),
            None => builder,
        };
        let backlog = builder.build()?;
        check_layout(&*store, backlog.env()).await?;
        Ok(Self { backlog, settings })
    }

    /// Whether entries can be shown with the end of their retention.
    pub fn knows_retention(&self) -> bool {
        self.settings.max_retention_ms.is_some()
    }
}

impl Place {
    pub(crate) fn with_journal(self, journal: Option<(PathBuf, u64)>) -> Self {
        Self { journal, ..self }
    }

    fn settings(&self) -> Result<Settings, Fault> {
        let mut settings = Settings::load(self.config.as_deref())?;
        if self.max_retention_ms.is_some() {
            settings.set_max_retention(self.max_retention_ms);
        }
        settings.check()?;
        Ok(settings)
    }

    fn open_store(&self, settings: &Settings) -> Result<Arc<dyn AtomicKv>, Fault> {
        StoreUrl::parse(&self.store)?.open(&settings.sqlite, self.options)
    }

    /// Opens the signing keys of the store.
    ///
    /// # Errors
    /// A [`Fault`], also when there is no master key.
    pub fn open_vault(&self) -> Result<Vault, Fault> {
        let settings = self.settings()?;
        let masters = master_keys(&settings.signing)?.ok_or_else(|| {
            misconfigured(
                "there is no master key to seal keys with",
                format!("set {MASTER_KEY_VARIABLE} to 32 random bytes (openssl rand -hex 32), or configure [signing]"),
            )
        })?;
        Ok(vault(&settings.signing, self.open_store(&settings)?, masters))
    }
}

/// What delivers where nothing is to be delivered.
async fn send_nothing(_post: Post) -> Result<PostResult, Infallible> {
    Ok(PostResult::NotSent(NotSent::Refused))
}

fn journal(path: &Path, bytes_max: u64) -> Result<Journal, Fault> {
    Journal::create(path, bytes_max).map_err(|error| {
        misconfigured(format!("the journal {path:?} cannot be begun ({error})"), "name a file that does not exist yet")
    })
}

fn vault(settings: &SigningSettings, store: Arc<dyn AtomicKv>, masters: MasterKeys) -> Vault {
    Vault::new(store, settings.prefix.clone(), masters)
}

fn sender(settings: &Settings, vault: Option<Arc<Vault>>) -> Result<HttpSender, Fault> {
    let SenderSettings {
        connect_timeout_ms,
        allow_private_addresses,
        allow_networks,
        allow_http,
        allow_unsigned,
        user_agent,
        content_type,
        tls_roots_files,
    } = &settings.sender;
    let mut builder = HttpSender::builder()
        .connect_timeout(Duration::from_millis(*connect_timeout_ms))
        .total_timeout(Duration::from_millis(settings.config.request_timeout_ms))
        .allow_private_addresses(*allow_private_addresses)
        .allow_http(*allow_http)
        .allow_unsigned(*allow_unsigned);
    for network in allow_networks {
        let network: IpNet = network.parse().map_err(|_| {
            misconfigured(format!("allow_networks: {network:?} is no network"), "write it as in \"10.0.0.0/8\" or \"fd00::/8\"")
        })?;
        builder = builder.allow_network(network);
    }
    for path in tls_roots_files {
        let pem = std::fs::read(path).map_err(|error| {
            misconfigured(format!("tls_roots_files: {path:?} cannot be read ({error})"), "correct the path, or make it readable")
        })?;
        builder = builder.tls_roots_pem(&pem);
    }
    if !user_agent.is_empty() {
        builder = builder.user_agent(user_agent);
    }
    if !content_type.is_empty() {
        builder = builder.content_type(content_type);
    }
    if let Some(vault) = vault {
        builder = builder.signer(Arc::new(VaultSigner::new(vault)));
    }
    builder
        .build()
        .map_err(|error| misconfigured(error.to_string(), "correct [sender] and request_timeout in the configuration file"))
}

/// The master keys that the configuration names, or else the one in the environment, or none.
fn master_keys(settings: &SigningSettings) -> Result<Option<MasterKeys>, Fault> {
    let refused = |error: MasterKeyError| misconfigured(error.to_string(), "see [signing] in the configuration file");
    if settings.master_keys.is_empty() {
        return match std::env::var_os(MASTER_KEY_VARIABLE) {
            Some(_) => Ok(Some(MasterKeys::new(MasterKey::from_env(1, MASTER_KEY_VARIABLE).map_err(refused)?))),
            None => Ok(None),
        };
    }
    let mut sealing = None;
    let mut opening = Vec::new();
    for source in &settings.master_keys {
        let key = match source.file() {
            Some(path) => MasterKey::from_file(source.number, Path::new(&path)),
            None => MasterKey::from_env(source.number, &source.env),
        };
        let key = key.map_err(refused)?;
        if source.number == settings.sealing && sealing.is_none() { sealing = Some(key) } else { opening.push(key) }
    }
    let sealing = sealing.ok_or_else(|| {
        misconfigured(
            format!("[signing] seals with master key {}, which is not among its master_keys", settings.sealing),
            "set sealing to the number of one of them",
        )
    })?;
    let mut keys = MasterKeys::new(sealing);
    for key in opening {
        keys = keys.opening(key).map_err(refused)?;
    }
    Ok(Some(keys))
}
