//! Parsed keys that were used last: bounded in number and in age.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{KeyName, SigningKey};

/// How many parsed keys are kept, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheLimits {
    /// Most keys kept; 0 keeps none. At first 256.
    pub keys_max: usize,
    /// How long a key is used without another look at its record: by then at the latest, a key that another process removed
    /// or replaced is no longer used here. At first five minutes.
    pub age_max: Duration,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { keys_max: 256, age_max: Duration::from_secs(300) }
    }
}

struct Cached {
    key: Arc<SigningKey>,
    loaded_at: Instant,
    /// The cache's count of uses at the last one.
    used: u64,
}

pub(super) struct Cache {
    limits: CacheLimits,
    keys: BTreeMap<KeyName, Cached>,
    uses: u64,
    /// Rises with every invalidation: a key that was read before one is not put in after it.
    generation: u64,
}

impl Cache {
    pub(super) fn new(limits: CacheLimits) -> Self {
        Self { limits, keys: BTreeMap::new(), uses: 0, generation: 0 }
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn get(&mut self, name: &KeyName, now: Instant) -> Option<Arc<SigningKey>> {
        self.uses += 1;
        let cached = self.keys.get_mut(name)?;
        if now.saturating_duration_since(cached.loaded_at) >= self.limits.age_max {
            self.keys.remove(name);
            return None;
        }
        cached.used = self.uses;
        Some(cached.key.clone())
    }

    pub(super) fn put(&mut self, name: &KeyName, key: Arc<SigningKey>, now: Instant, generation: u64) {
        if self.limits.keys_max == 0 || generation != self.generation {
            return;
        }
        if self.keys.len() >= self.limits.keys_max && !self.keys.contains_key(name) {
            // A walk over all of them: cheap beside the read and the parsing that made room necessary.
            let oldest = self.keys.iter().min_by_key(|(_, cached)| cached.used).map(|(name, _)| name.clone());
            oldest.map(|oldest| self.keys.remove(&oldest));
        }
        self.keys.insert(name.clone(), Cached { key, loaded_at: now, used: self.uses });
    }

    pub(super) fn forget(&mut self, name: &KeyName) {
        self.generation += 1;
        self.keys.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PrivateKey;

    fn key() -> Arc<SigningKey> {
        let pem = include_str!("../../tests/keys/ed25519.pem");
        Arc::new(PrivateKey::from_pem(pem).and_then(|key| key.prepare()).expect("a key"))
    }

    fn name(text: &str) -> KeyName {
        KeyName::new(text).expect("a name")
    }

    #[test]
    fn the_key_that_was_used_longest_ago_makes_room() {
        let now = Instant::now();
        let mut cache = Cache::new(CacheLimits { keys_max: 2, ..CacheLimits::default() });
        cache.put(&name("a"), key(), now, 0);
        cache.put(&name("b"), key(), now, 0);
        assert!(cache.get(&name("a"), now).is_some());
        cache.put(&name("c"), key(), now, 0);
        assert!(cache.get(&name("b"), now).is_none());
        assert!(cache.get(&name("a"), now).is_some() && cache.get(&name("c"), now).is_some());
    }

    #[test]
    fn an_old_key_is_looked_up_again() {
        let now = Instant::now();
        let limits = CacheLimits::default();
        let mut cache = Cache::new(limits);
        cache.put(&name("a"), key(), now, 0);
        assert!(cache.get(&name("a"), now + limits.age_max - Duration::from_millis(1)).is_some());
        assert!(cache.get(&name("a"), now + limits.age_max).is_none());
    }

    #[test]
    fn what_was_read_before_a_change_does_not_come_back_after_it() {
        let now = Instant::now();
        let mut cache = Cache::new(CacheLimits::default());
        let before = cache.generation();
        cache.forget(&name("a"));
        cache.put(&name("a"), key(), now, before);
        assert!(cache.get(&name("a"), now).is_none());
    }
}
