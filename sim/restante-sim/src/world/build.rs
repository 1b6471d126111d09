//! Two builds at once. The newer one writes entries in a format that the older one, which is production code as it is, does not
//! know. The store holds what was written; each build reads what it would.

use restante_core::Env;
use restante_core::keys::Kind;
use restante_core::record::{Entry, Quarantined, Record, Unreadable};
use restante_kv::{Key, Mutation, Txn, Value, Versioned};

/// Marks the format byte of an entry that the newer build wrote. How it is counted stands behind it as ever.
const NEWER: u8 = 0x80;

/// Whether the newer build wrote these bytes.
pub(crate) fn is_newer(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|format| format & NEWER != 0)
}

fn flipped(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(format) = bytes.first_mut() {
        *format ^= NEWER;
    }
    bytes
}

/// An entry, whichever build wrote it.
///
/// # Errors
/// Those of [`Entry::decode`].
pub(crate) fn read_entry(value: &Value) -> Result<Entry, Unreadable> {
    if is_newer(value.as_bytes()) { Entry::decode(&flipped(value.as_bytes()).into()) } else { Entry::decode(value) }
}

/// What the newer build reads where this record lies.
pub(super) fn seen_by_newer(env: &Env, key: &Key, record: &mut Versioned) {
    match env.keys.kind_of(key) {
        Some(Kind::Entry) if is_newer(record.value.as_bytes()) => record.value = flipped(record.value.as_bytes()).into(),
        Some(Kind::Quarantined) => {
            if let Ok(aside) = Quarantined::decode(&record.value)
                && is_newer(aside.record.as_slice())
            {
                let inner = flipped(aside.record.as_slice());
                record.value = Quarantined { record: inner.into(), ..aside }.encode();
            }
        }
        _ => {}
    }
}

/// What the newer build writes where the older one would commit this.
pub(super) fn written_by_newer(env: &Env, txn: &mut Txn) {
    for write in &mut txn.writes {
        if let (Some(Kind::Entry), Mutation::Put(value)) = (env.keys.kind_of(&write.key), &mut write.mutation) {
            *value = flipped(value.as_bytes()).into();
        }
    }
}
