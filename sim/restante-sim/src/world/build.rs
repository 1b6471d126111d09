//! Two builds at once. The newer one writes records of some kinds in a format that the older one, which is production code as it
//! is, does not know. The store holds what was written; each build reads what it would.

use restante_core::Env;
use restante_core::keys::Kind;
use restante_core::record::{FORMAT, Intent, Quarantined, Record, Unreadable};
use restante_kv::{Key, Mutation, Txn, Value, Versioned};

/// Marks the format byte of a record that the newer build wrote. How entries and intents are counted stands behind it as ever.
const NEWER: u8 = 0x80;

/// Whether the newer build wrote these bytes.
pub(crate) fn is_newer(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|format| is_newer_format(*format))
}

/// Whether this is a format of the newer build's.
pub(crate) const fn is_newer_format(format: u8) -> bool {
    format & NEWER != 0
}

fn flipped(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(format) = bytes.first_mut() {
        *format ^= NEWER;
    }
    bytes
}

/// A record, whichever build wrote it.
///
/// # Errors
/// Those of [`Record::decode`].
pub(crate) fn read<R: Record>(value: &Value) -> Result<R, Unreadable> {
    if is_newer(value.as_bytes()) { R::decode(&flipped(value.as_bytes()).into()) } else { R::decode(value) }
}

/// Makes of a record what somebody sees of it.
pub(super) type Eyes = fn(&Env, &Key, &mut Versioned);

/// What somebody reads who takes for damaged what the newer build wrote. Entries and intents would be put aside either way.
pub(super) fn seen_as_damaged(env: &Env, key: &Key, record: &mut Versioned) {
    if is_newer(record.value.as_bytes()) && !matches!(env.keys.kind_of(key), Some(Kind::Entry | Kind::Intent)) {
        record.value = vec![FORMAT].into();
    }
}

/// What the newer build reads where this record lies.
pub(super) fn seen_by_newer(env: &Env, key: &Key, record: &mut Versioned) {
    if is_newer(record.value.as_bytes()) {
        record.value = flipped(record.value.as_bytes()).into();
    }
    if env.keys.kind_of(key) == Some(Kind::Quarantined)
        && let Ok(aside) = Quarantined::decode(&record.value)
        && is_newer(aside.record.as_slice())
    {
        record.value = Quarantined { record: flipped(aside.record.as_slice()).into(), ..aside }.encode();
    }
}

/// What the newer build, which has its own format of these kinds, writes where the older one would commit this.
pub(super) fn written_by_newer(env: &Env, kinds: &[Kind], txn: &mut Txn) {
    for write in &mut txn.writes {
        let (Some(kind), Mutation::Put(value)) = (env.keys.kind_of(&write.key), &mut write.mutation) else { continue };
        // An intent that it can read and puts aside, it puts aside as it would write it.
        if kind == Kind::Quarantined
            && kinds.contains(&Kind::Intent)
            && env.keys.read_entry(kind, &write.key).is_ok_and(|id| id.is_intent())
            && let Ok(aside) = Quarantined::decode(value)
            && Intent::decode(&aside.record.as_slice().into()).is_ok()
        {
            *value = Quarantined { record: flipped(aside.record.as_slice()).into(), ..aside }.encode();
        }
        if kinds.contains(&kind) {
            *value = flipped(value.as_bytes()).into();
        }
    }
}
