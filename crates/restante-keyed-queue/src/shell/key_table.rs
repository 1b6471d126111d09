//! Keys by number: the core knows only numbers.

use hashbrown::HashTable;

use crate::core::KeyId;

/// The keys that are in use, each with a number that is used again once the key is not.
///
/// Hashes come in from outside and are kept, so that no code of the key's type runs while the table is being changed: `eq`
/// and `clone` run before, `drop` after.
pub(crate) struct KeyTable<K> {
    by_hash: HashTable<u32>,
    entries: Vec<Entry<K>>,
    free: Vec<u32>,
}

struct Entry<K> {
    hash: u64,
    /// `None` if the number is free.
    key: Option<K>,
}

impl<K: Eq + Clone> KeyTable<K> {
    pub(crate) fn new() -> Self {
        Self { by_hash: HashTable::new(), entries: Vec::new(), free: Vec::new() }
    }

    /// The number of `key`, if it is in use.
    pub(crate) fn find(&self, hash: u64, key: &K) -> Option<KeyId> {
        let number = self.by_hash.find(hash, |number| self.entries[*number as usize].is(hash, key));
        number.copied().map(KeyId::new)
    }

    /// The number of `key`, which is in use from here on.
    pub(crate) fn intern(&mut self, hash: u64, key: &K) -> KeyId {
        if let Some(known) = self.find(hash, key) {
            return known;
        }
        let entry = Entry { hash, key: Some(key.clone()) };
        let number = match self.free.pop() {
            Some(number) => {
                self.entries[number as usize] = entry;
                number
            }
            None => {
                self.entries.push(entry);
                u32::try_from(self.entries.len() - 1).expect("memory ends before 2^32 keys are in use")
            }
        };
        self.by_hash.insert_unique(hash, number, |number| self.entries[*number as usize].hash);
        KeyId::new(number)
    }

    /// Takes a key out of use.
    pub(crate) fn free(&mut self, id: KeyId) -> Option<K> {
        let entry = &mut self.entries[id.number() as usize];
        let key = entry.key.take();
        let found = self.by_hash.find_entry(entry.hash, |number| *number == id.number());
        if let Ok(found) = found {
            found.remove();
            self.free.push(id.number());
        }
        key
    }

    /// The key of that number.
    pub(crate) fn key(&self, id: KeyId) -> Option<&K> {
        self.entries.get(id.number() as usize).and_then(|entry| entry.key.as_ref())
    }

    /// How many keys are in use.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.by_hash.len()
    }
}

impl<K: Eq> Entry<K> {
    fn is(&self, hash: u64, key: &K) -> bool {
        self.hash == hash && self.key.as_ref() == Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::KeyTable;
    use crate::core::KeyId;

    #[test]
    fn numbers_are_used_again_and_hashes_may_collide() {
        let mut table = KeyTable::new();
        let numbers = ["a", "b", "c"].map(|key| table.intern(7, &key));
        assert_eq!(numbers, [0, 1, 2].map(KeyId::new));
        assert_eq!(table.intern(7, &"b"), KeyId::new(1));
        assert_eq!((table.free(KeyId::new(1)), table.free(KeyId::new(1))), (Some("b"), None));
        assert_eq!((table.find(7, &"b"), table.key(KeyId::new(1)), table.len()), (None, None, 2));
        assert_eq!(table.intern(9, &"d"), KeyId::new(1));
        assert_eq!((table.find(7, &"c"), table.find(7, &"d")), (Some(KeyId::new(2)), None));
    }
}
