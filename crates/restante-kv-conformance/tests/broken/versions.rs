//! Faults of versions: records are given other names than the model's.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use restante_kv::{Check, Committed, Expect, Key, Mutation, StoreError, Txn, Value, Version, Versioned};

use super::{Broken, Fault};

/// For each record the model's version and the one that is shown.
pub(super) type Names = BTreeMap<Key, (Version, Version)>;

impl Broken {
    /// Commits, and names the puts as the fault says.
    pub(super) fn named(&self, txn: Txn) -> Result<Committed, StoreError> {
        // Held throughout: names and records change together.
        let mut state = self.state();
        let translate = |check: &Check| {
            let expect = match (check.expect, state.names.get(&check.key)) {
                (Expect::Version(shown), Some((inner, name))) if shown == *name => Expect::Version(*inner),
                (Expect::Version(_), _) => Expect::Version(Version::from_raw(u128::MAX)),
                (Expect::Absent, _) => Expect::Absent,
            };
            Check { key: check.key.clone(), expect }
        };
        let checks = txn.checks.iter().map(translate).collect();
        let committed = self.plain(Txn { checks, writes: txn.writes.clone() })?;
        let mut answer = Committed { version: Version::from_raw(0) };
        let of_handle = self.next_of_handle();
        for write in &txn.writes {
            let Mutation::Put(value) = &write.mutation else {
                state.names.remove(&write.key);
                continue;
            };
            let name = match self.fault {
                Fault::VersionsOfAHandle => u128::from(of_handle),
                Fault::VersionsOfTheBytes => of_bytes(value),
                _ => state.names.get(&write.key).map_or(1, |(_, name)| name.to_raw() + 1),
            };
            answer.version = Version::from_raw(name);
            state.names.insert(write.key.clone(), (committed.version, answer.version));
        }
        Ok(answer)
    }

    /// The version that is shown of a record.
    pub(super) fn shown(&self, key: &Key, record: &mut Versioned) {
        if matches!(self.fault, Fault::VersionsOfAKey | Fault::VersionsOfAHandle | Fault::VersionsOfTheBytes)
            && let Some((_, name)) = self.state().names.get(key)
        {
            record.version = *name;
        }
    }
}

fn of_bytes(value: &Value) -> u128 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    u128::from(hasher.finish())
}
