//! Rewriting records in transactions and replies.

use restante_core::keys::EXPANSIONS;
use restante_core::keys::Kind;
use restante_core::machine::About;
use restante_core::record::{Destination, DueRow, Entry, Intent, Pointer, Record, SweepState};
use restante_core::{Env, Subject};
use restante_kv::{Guard, Key, Mutation, Txn, Value, Versioned, Write};

pub(super) fn rewrite<R: Record>(record: &mut Option<Versioned>, change: impl FnOnce(&mut R)) {
    if let Some(found) = record
        && let Ok(mut decoded) = R::decode(&found.value)
    {
        change(&mut decoded);
        found.value = decoded.encode();
    }
}

pub(super) fn rewrite_sweep(txn: &mut Txn, env: &Env, change: impl Fn(&mut SweepState)) {
    for write in txn.writes.iter_mut().filter(|write| write.key == env.keys.sweep()) {
        if let Mutation::Put(value) = &mut write.mutation
            && let Ok(mut state) = SweepState::decode(value)
        {
            change(&mut state);
            *value = state.encode();
        }
    }
}

pub(super) fn rewrite_destinations(txn: &mut Txn, env: &Env, change: impl Fn(&mut Destination)) {
    for write in &mut txn.writes {
        if let (Some(Kind::Destination), Mutation::Put(value)) = (env.keys.kind_of(&write.key), &mut write.mutation)
            && let Ok(mut known) = Destination::decode(value)
        {
            change(&mut known);
            *value = known.encode();
        }
    }
}

pub(super) fn entry_puts<'t>(txn: &'t mut Txn, env: &'t Env) -> impl Iterator<Item = (&'t Key, &'t mut Value)> {
    txn.writes.iter_mut().filter_map(|write| match &mut write.mutation {
        Mutation::Put(value) if env.keys.kind_of(&write.key) == Some(Kind::Entry) => Some((&write.key, value)),
        _ => None,
    })
}

/// Whether the key is that of the entry the action is about.
pub(super) fn is_own(about: &About, key: &Key, env: &Env) -> bool {
    matches!(&about.subject, Subject::Entry(id) if env.keys.entry(*id) == *key)
}

pub(super) fn rewrite_own_entry(about: &About, txn: &mut Txn, env: &Env, change: impl FnOnce(&mut Entry)) {
    if let Some((_, value)) = entry_puts(txn, env).find(|(key, _)| is_own(about, key, env))
        && let Ok(mut entry) = Entry::decode(value)
    {
        change(&mut entry);
        *value = entry.encode();
    }
}

pub(super) fn rewrite_intents(txn: &mut Txn, env: &Env, mut change: impl FnMut(&mut Intent)) {
    for write in &mut txn.writes {
        if let (Some(Kind::Intent), Mutation::Put(value)) = (env.keys.kind_of(&write.key), &mut write.mutation)
            && let Ok(mut intent) = Intent::decode(value)
        {
            change(&mut intent);
            *value = intent.encode();
        }
    }
}

/// Makes every intent that is put claimable, with its index rows.
pub(super) fn activate_intents(txn: &mut Txn, env: &Env) {
    let mut rows = Vec::new();
    rewrite_intents(txn, env, |intent| intent.active = true);
    for write in &txn.writes {
        if let (Ok(send), Mutation::Put(value)) = (env.keys.read_send(Kind::Intent, &write.key), &write.mutation)
            && let Ok(intent) = Intent::decode(value)
        {
            rows.push((env.keys.intent_due(send, intent.vest_at), DueRow { lane: intent.place.clone() }.encode()));
            rows.push((env.keys.pointer(EXPANSIONS, intent.vest_at), Pointer {}.encode()));
        }
    }
    put_rows(txn, rows);
}

fn put_rows(txn: &mut Txn, rows: Vec<(Key, Value)>) {
    for (key, value) in rows {
        txn.writes.retain(|write| write.key != key);
        txn.writes.push(Write { key, mutation: Mutation::Put(value), guard: Guard::Idempotent });
    }
}

pub(super) fn drop_writes(txn: &mut Txn, env: &Env, kind: Kind) {
    txn.writes.retain(|write| env.keys.kind_of(&write.key) != Some(kind));
    txn.checks.retain(|check| env.keys.kind_of(&check.key) != Some(kind));
}

pub(super) fn lose_last_recipient(txn: &mut Txn, env: &Env) {
    let entries = |write: &Write| env.keys.kind_of(&write.key) == Some(Kind::Entry);
    if txn.writes.iter().filter(|write| entries(write)).count() < 2 {
        return;
    }
    let Some(at) = txn.writes.iter().rposition(entries) else { return };
    let Ok(lost) = env.keys.read_entry(Kind::Entry, &txn.writes[at].key) else { return };
    txn.writes.remove(at);
    txn.writes.retain(|write| env.keys.read_due(&write.key).map(|due| due.entry) != Ok(lost));
}

pub(super) fn activate_successors(txn: &mut Txn, env: &Env) {
    for (_, value) in entry_puts(txn, env) {
        if let Ok(entry) = Entry::decode(value) {
            *value = Entry { active: true, ..entry }.encode();
        }
    }
    index_entries(txn, env);
}

/// Adds the index rows of every entry that is put.
pub(super) fn index_entries(txn: &mut Txn, env: &Env) {
    let mut rows = Vec::new();
    for (key, value) in entry_puts(txn, env) {
        if let (Ok(entry), Ok(id)) = (Entry::decode(value), env.keys.read_entry(Kind::Entry, key)) {
            rows.push((env.keys.due(&entry.destination, entry.vest_at, id), DueRow { lane: entry.lane.clone() }.encode()));
            rows.push((env.keys.pointer(&entry.destination, entry.vest_at), Pointer {}.encode()));
        }
    }
    put_rows(txn, rows);
}
