//! [`Vault`]: private keys in a store, each sealed for its own name under a key that the store does not have.

mod cache;
mod envelope;
mod error;
mod master;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use restante_kv::tuple::{KeyBuilder, KeyReader};
use restante_kv::{AtomicKv, Check, Expect, Guard, Key, KeyRange, Mutation, StoreError, Txn, Value, Versioned, Write};
use zeroize::Zeroizing;

pub use self::cache::CacheLimits;
pub use self::error::VaultError;
pub use self::master::{MasterKey, MasterKeyError, MasterKeys};
use crate::key::prepare_plaintext;
use crate::{KeyName, PrivateKey, SigningKey};
use cache::Cache;
use envelope::Header;

/// How often a change is tried again when others change the same record.
const TRIES_MAX: u32 = 8;

/// Records read at once when all are read.
const PAGE: usize = 100;

/// The tag of sealed keys behind the vault's prefix: room for other kinds of records beside them.
const KEY_TAG: u8 = b'k';

/// Private keys in a store. See the [crate documentation](crate) for what is sealed with what.
pub struct Vault {
    store: Arc<dyn AtomicKv>,
    prefix: Arc<[u8]>,
    masters: MasterKeys,
    cache: Mutex<Cache>,
}

/// What [`Vault::put`] did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Put {
    /// There was no key of that name.
    Created,
    /// There was one, and it is gone.
    Replaced,
}

/// A key as [`Vault::list`] tells of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ListedKey {
    /// Its name.
    pub name: KeyName,
    /// The number of the master key it is sealed with; `None` when its record cannot be read at all.
    pub master_key: Option<u32>,
}

/// What [`Vault::rotate`] came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rotation {
    /// Records that are sealed with the sealing key now and were not before.
    pub resealed: usize,
    /// Records that were sealed with it already.
    pub current: usize,
    /// Records that are not, and why. An ambiguous one may be.
    pub left: Vec<(KeyName, VaultError)>,
}

impl Rotation {
    /// Whether every record that was there is sealed with the sealing key: the other master keys open nothing any more.
    pub fn is_complete(&self) -> bool {
        self.left.is_empty()
    }
}

impl Vault {
    /// The vault whose records lie under `prefix` of `store`. Nothing is read yet.
    ///
    /// The prefix must be the vault's own, and no other prefix in use may begin with it or be a beginning of it.
    pub fn new(store: Arc<dyn AtomicKv>, prefix: impl Into<Vec<u8>>, masters: MasterKeys) -> Self {
        let prefix = prefix.into().into();
        Self { store, prefix, masters, cache: Mutex::new(Cache::new(CacheLimits::default())) }
    }

    /// With other limits for parsed keys that are kept.
    #[must_use]
    pub fn with_cache(mut self, limits: CacheLimits) -> Self {
        self.cache = Mutex::new(Cache::new(limits));
        self
    }

    /// Seals `key` and keeps it under `name`, in the place of the key that was there.
    ///
    /// # Errors
    /// [`VaultError::Store`], [`VaultError::Contention`], [`VaultError::NoEntropy`]. After an ambiguous one, putting the key again
    /// is safe.
    pub async fn put(&self, name: &KeyName, key: &PrivateKey) -> Result<Put, VaultError> {
        let plaintext = key.to_plaintext();
        for _ in 0..TRIES_MAX {
            let found = self.read(name).await?;
            let put = if found.is_some() { Put::Replaced } else { Put::Created };
            if self.write(name, found.as_ref(), Some(&plaintext)).await? {
                return Ok(put);
            }
        }
        Err(VaultError::Contention { name: name.clone() })
    }

    /// The key of that name, ready to sign; from the cache where it is young enough.
    ///
    /// # Errors
    /// Every [`VaultError`] except contention; never an ambiguous one.
    pub async fn get(&self, name: &KeyName) -> Result<Arc<SigningKey>, VaultError> {
        let generation = {
            let mut cache = self.cache();
            if let Some(key) = cache.get(name, Instant::now()) {
                return Ok(key);
            }
            cache.generation()
        };
        // From before the read: what is kept is never older than it looks.
        let asked_at = Instant::now();
        let found = self.read(name).await?.ok_or_else(|| VaultError::UnknownKey { name: name.clone() })?;
        let plaintext = self.open(name, &found.value)?;
        let key = prepare_plaintext(&plaintext).map_err(|why| VaultError::Key { name: name.clone(), why })?;
        let key = Arc::new(key);
        self.cache().put(name, key.clone(), asked_at, generation);
        Ok(key)
    }

    /// The names of all keys, in order, each with the number of its master key. Not one point in time.
    ///
    /// # Errors
    /// [`VaultError::Store`], never ambiguous.
    pub async fn list(&self) -> Result<Vec<ListedKey>, VaultError> {
        let mut listed = Vec::new();
        let mut range = Some(self.all());
        while let Some(asked) = range {
            let (records, next) = self.page(asked).await?;
            listed.extend(records.into_iter().map(|(name, found)| {
                let master_key = Header::read(&found.value).ok().map(|header| header.number);
                ListedKey { name, master_key }
            }));
            range = next;
        }
        Ok(listed)
    }

    /// Removes a key; whether there was one. Other processes may sign with it until it leaves their cache.
    ///
    /// # Errors
    /// [`VaultError::Store`], [`VaultError::Contention`]. After an ambiguous one, removing it again is safe.
    pub async fn remove(&self, name: &KeyName) -> Result<bool, VaultError> {
        for _ in 0..TRIES_MAX {
            let Some(found) = self.read(name).await? else {
                self.cache().forget(name);
                return Ok(false);
            };
            if self.write(name, Some(&found), None).await? {
                return Ok(true);
            }
        }
        Err(VaultError::Contention { name: name.clone() })
    }

    /// Seals every record with the sealing key that is not sealed with it yet, one commit a record.
    ///
    /// It may be broken off anywhere and repeated: what is done is recognised. A record that cannot be sealed anew does not keep
    /// it from the others; [`Rotation::left`] tells why.
    ///
    /// # Errors
    /// [`VaultError::Store`] when the records cannot be read, never ambiguous.
    pub async fn rotate(&self) -> Result<Rotation, VaultError> {
        let mut rotation = Rotation::default();
        let mut range = Some(self.all());
        while let Some(asked) = range {
            let (records, next) = self.page(asked).await?;
            for (name, found) in records {
                match self.reseal(&name, found).await {
                    Ok(true) => rotation.resealed += 1,
                    Ok(false) => rotation.current += 1,
                    Err(error) => rotation.left.push((name, error)),
                }
            }
            range = next;
        }
        Ok(rotation)
    }

    /// Whether the record was sealed anew; `false` when there was nothing to do, be it because it is gone.
    async fn reseal(&self, name: &KeyName, found: Versioned) -> Result<bool, VaultError> {
        let mut found = Some(found);
        for _ in 0..TRIES_MAX {
            let Some(record) = &found else { return Ok(false) };
            if Header::read(&record.value).is_ok_and(|header| header.is_of(self.masters.sealing())) {
                return Ok(false);
            }
            let plaintext = self.open(name, &record.value)?;
            if self.write(name, found.as_ref(), Some(&plaintext)).await? {
                return Ok(true);
            }
            found = self.read(name).await?;
        }
        Err(VaultError::Contention { name: name.clone() })
    }

    /// Replaces what was `found` by what seals `plaintext`, or by nothing. `false` is a conflict.
    async fn write(
        &self,
        name: &KeyName,
        found: Option<&Versioned>,
        plaintext: Option<&Zeroizing<Vec<u8>>>,
    ) -> Result<bool, VaultError> {
        let key = self.key(name);
        let sealed = match plaintext {
            Some(plaintext) => {
                let sealed = envelope::seal(self.masters.sealing(), &key, plaintext);
                Some(sealed.ok_or_else(|| VaultError::NoEntropy { name: name.clone() })?)
            }
            None => None,
        };
        let expect = found.map_or(Expect::Absent, |found| Expect::Version(found.version));
        let mutation = sealed.clone().map_or(Mutation::Delete, Mutation::Put);
        let txn = Txn {
            checks: vec![Check { key: key.clone(), expect }],
            writes: vec![Write { key, mutation, guard: Guard::Checked }],
        };
        let committed = self.store.cas_many(txn).await;
        // Whatever came of it: the next one who asks looks at the record.
        self.cache().forget(name);
        match committed {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(StoreError::Ambiguous(why)) => {
                // The record is its own witness: no other commit seals with this nonce, and one that is gone needs no removing. If
                // it is as it was, the commit may still come.
                let is_there = match self.read(name).await {
                    Ok(now) => now.map(|now| now.value) == sealed,
                    Err(_) => false,
                };
                if is_there { Ok(true) } else { Err(StoreError::Ambiguous(why).into()) }
            }
            Err(error) => Err(error.into()),
        }
    }

    fn open(&self, name: &KeyName, record: &Value) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        envelope::open(&self.masters, &self.key(name), record)
            .map_err(|why| VaultError::unopened(name, why, self.masters.numbers()))
    }

    async fn read(&self, name: &KeyName) -> Result<Option<Versioned>, VaultError> {
        Ok(self.store.get_many(vec![self.key(name)]).await?.values.pop().flatten())
    }

    /// The records of one page and the range that is left. Keys that no vault writes are passed over.
    async fn page(&self, range: KeyRange) -> Result<(Vec<(KeyName, Versioned)>, Option<KeyRange>), VaultError> {
        let end = range.end.clone();
        let page = self.store.scan(range, PAGE).await?;
        let records = page.entries.into_iter().filter_map(|(key, found)| Some((self.name_of(&key)?, found))).collect();
        Ok((records, page.next.map(|start| KeyRange { start, end })))
    }

    fn all(&self) -> KeyRange {
        KeyBuilder::new(&self.prefix).tag(KEY_TAG).range()
    }

    fn key(&self, name: &KeyName) -> Key {
        KeyBuilder::new(&self.prefix).tag(KEY_TAG).str(name.as_str()).key()
    }

    fn name_of(&self, key: &Key) -> Option<KeyName> {
        let mut reader = KeyReader::new(key.as_bytes());
        reader.strip(&self.prefix).ok()?;
        reader.strip(&[KEY_TAG]).ok()?;
        let name = KeyName::new(&reader.str().ok()?).ok()?;
        reader.end().ok()?;
        Some(name)
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        // Nothing in there is left half-done by a panic.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vault(prefix {}, {:?})", self.prefix.escape_ascii(), self.masters)
    }
}
