//! Keys, values, transactions and the [`AtomicKv`] trait.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::StoreError;

/// The future an adapter returns; boxed so that [`AtomicKv`] can be used as a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A key: bytes, ordered as unsigned bytes. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<[u8]>);

/// A value: bytes, possibly empty (an empty value is not absence). Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(Arc<[u8]>);

macro_rules! bytes_newtype {
    ($name:ident) => {
        impl $name {
            /// The bytes.
            pub fn as_bytes(&self) -> &[u8] {
                &self.0
            }
            /// Length in bytes.
            pub fn len(&self) -> usize {
                self.0.len()
            }
            /// Whether there are no bytes.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }
        impl From<Vec<u8>> for $name {
            fn from(bytes: Vec<u8>) -> Self {
                Self(bytes.into())
            }
        }
        impl From<&[u8]> for $name {
            fn from(bytes: &[u8]) -> Self {
                Self(bytes.into())
            }
        }
        impl std::borrow::Borrow<[u8]> for $name {
            fn borrow(&self) -> &[u8] {
                &self.0
            }
        }
    };
}
bytes_newtype!(Key);
bytes_newtype!(Value);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.0.escape_ascii())
    }
}

/// Prints the length only: a value may hold what must not be printed.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({} bytes)", self.0.len())
    }
}

/// The version of one record: opaque, for equality only. It has no order on purpose.
///
/// A store never gives the same version to one key twice, not even after the key was deleted and created again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Version(u128);

impl Version {
    /// A version from the adapter's own representation (a store-wide sequence, a revision, a version stamp).
    pub const fn from_raw(raw: u128) -> Self {
        Self(raw)
    }
    /// The adapter's own representation.
    pub const fn to_raw(self) -> u128 {
        self.0
    }
}

/// An instant of the store's clock: milliseconds since the Unix epoch. Arithmetic saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct StoreTime(u64);

impl StoreTime {
    /// The latest instant: "never".
    pub const MAX: Self = Self(u64::MAX);
    /// An instant from milliseconds since the Unix epoch.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }
    /// Milliseconds since the Unix epoch.
    pub const fn as_ms(self) -> u64 {
        self.0
    }
    /// This instant and `ms` milliseconds more.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
    /// This instant less `ms` milliseconds, at least the epoch.
    #[must_use]
    pub const fn minus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms))
    }
    /// Milliseconds from `earlier` to this instant, 0 when it is not earlier.
    pub const fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A record as read: its value and the version a check on it must name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Versioned {
    /// Version of this value.
    pub version: Version,
    /// The bytes.
    pub value: Value,
}

/// What a check expects of a key at commit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Expect {
    /// The key does not exist.
    Absent,
    /// The key exists with exactly this version.
    Version(Version),
}

/// One condition of a transaction.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Check {
    /// The key to look at; it need not be written.
    pub key: Key,
    /// What must hold at commit.
    pub expect: Expect,
}

/// Why a write is safe. Stores ignore it; [`crate::MemoryKv`] in strict mode refuses a transaction that breaks it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Guard {
    /// The written key has a check of its own in the same transaction.
    Checked,
    /// The named key is checked *and* written in the same transaction, and whoever writes this key does the same.
    Under(Key),
    /// A put that may be repeated at any time and carries no check (a pointer, a staged chunk).
    /// Whoever deletes such a key checks its version.
    Idempotent,
}

/// What a write does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Mutation {
    /// Create or replace.
    Put(Value),
    /// Remove; removing what is absent is not an error.
    Delete,
}

/// One write of a transaction.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Write {
    /// The key.
    pub key: Key,
    /// What happens to it.
    pub mutation: Mutation,
    /// Why this is safe.
    pub guard: Guard,
}

/// An atomic transaction: all writes when all checks hold, else nothing.
///
/// A key stands at most once among the checks and at most once among the writes. A transaction with checks and no writes
/// is allowed (it confirms what was read); one with neither is [`StoreError::InvalidRequest`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Txn {
    /// Conditions.
    pub checks: Vec<Check>,
    /// Writes.
    pub writes: Vec<Write>,
}

impl Txn {
    /// Bytes of all keys and values, as counted against [`Limits::txn_bytes_max`].
    pub fn bytes(&self) -> usize {
        let checks: usize = self.checks.iter().map(|c| c.key.len()).sum();
        let writes: usize =
            self.writes.iter().map(|w| w.key.len() + if let Mutation::Put(v) = &w.mutation { v.len() } else { 0 }).sum();
        checks + writes
    }
}

/// Answer of a successful [`AtomicKv::cas_many`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Committed {
    /// The version that every put of this transaction now has.
    pub version: Version,
}

/// Answer of [`AtomicKv::get_many`]: one point in time.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Snapshot {
    /// One answer a key, in request order; a key asked twice is answered twice.
    pub values: Vec<Option<Versioned>>,
    /// The store's clock at that point, for stores that have one.
    pub at: Option<StoreTime>,
}

/// A range of keys: from `start` (included) to `end` (excluded; `None` is the end of the key space).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct KeyRange {
    /// First key that may be in the range.
    pub start: Key,
    /// First key past the range.
    pub end: Option<Key>,
}

impl KeyRange {
    /// All keys that begin with `prefix`.
    pub fn prefix(prefix: &[u8]) -> Self {
        let mut end = prefix.to_vec();
        while let Some(last) = end.last_mut() {
            if *last < 0xFF {
                *last += 1;
                break;
            }
            end.pop();
        }
        Self { start: Key::from(prefix), end: (!end.is_empty()).then(|| Key::from(end)) }
    }
    /// Whether `key` is in the range.
    pub fn contains(&self, key: &Key) -> bool {
        *key >= self.start && self.end.as_ref().is_none_or(|end| key < end)
    }
}

/// One page of a scan.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Page {
    /// Records in unsigned byte order of their keys. May be short or empty although more follow.
    pub entries: Vec<(Key, Versioned)>,
    /// Where the next page begins (a first key to ask for); only `None` means that the range was read to its end.
    pub next: Option<Key>,
    /// The store's clock when the page was read, for stores that have one.
    pub at: Option<StoreTime>,
}

/// What an acknowledged commit survives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Durability {
    /// Nothing: the process's memory.
    Volatile,
    /// Power loss of the machine.
    Fsync,
    /// Loss of a minority of machines.
    Quorum,
    /// Acknowledged commits of the last `window_ms` milliseconds may be lost.
    Lazy {
        /// Width of the window in milliseconds.
        window_ms: u64,
    },
}

/// What a store can do. The engine plans within it and refuses a store below its floor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Limits {
    /// Longest key, in bytes.
    pub key_bytes_max: usize,
    /// Longest value, in bytes.
    pub value_bytes_max: usize,
    /// Most checks in a transaction.
    pub txn_checks_max: usize,
    /// Most writes in a transaction.
    pub txn_writes_max: usize,
    /// Most bytes of keys and values in a transaction ([`Txn::bytes`]).
    pub txn_bytes_max: usize,
    /// Most keys in one [`AtomicKv::get_many`].
    pub get_keys_max: usize,
    /// Most records in one page of a scan; a larger `limit` is answered by a page of this size.
    pub scan_page_max: usize,
    /// What an acknowledged commit survives.
    pub durability: Durability,
    /// Whether snapshots and pages carry the store's own clock.
    pub has_clock: bool,
}

impl Limits {
    /// The smallest store Restante is designed for (the published limits of Deno KV): 10 checks a transaction, 10 keys a
    /// snapshot, 64 KiB a value, 800 KiB and 1,000 writes a transaction, 2 KiB a key.
    pub const FLOOR: Self = Self {
        key_bytes_max: 2 * 1024,
        value_bytes_max: 64 * 1024,
        txn_checks_max: 10,
        txn_writes_max: 1000,
        txn_bytes_max: 800 * 1024,
        get_keys_max: 10,
        scan_page_max: 1000,
        durability: Durability::Volatile,
        has_clock: true,
    };
}

/// All that a store must provide. See the [crate documentation](crate) for the contract.
pub trait AtomicKv: Send + Sync {
    /// What this store can do; the same answer for as long as it is open.
    fn limits(&self) -> Limits;

    /// Reads all keys at one point in time.
    ///
    /// # Errors
    /// [`StoreError::LimitExceeded`] for too many or too long keys, [`StoreError::Unavailable`]. Never ambiguous.
    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>>;

    /// Reads one page of at most `limit` records (at least 1) of `range`.
    ///
    /// # Errors
    /// [`StoreError::InvalidRequest`] for a limit of 0, [`StoreError::Unavailable`]. Never ambiguous.
    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>>;

    /// Applies `txn` atomically when all its checks hold.
    ///
    /// Dropping the future after it was first polled leaves the outcome ambiguous.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when a check failed, [`StoreError::InvalidRequest`], [`StoreError::LimitExceeded`],
    /// [`StoreError::Unavailable`] (nothing was sent), and [`StoreError::Ambiguous`] for everything else.
    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>>;
}
