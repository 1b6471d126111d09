//! Outcomes that nobody waited for, and what a definite answer means.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use restante_kv::{AtomicKv, Key, StoreError, Txn, Version};

use crate::Check;
use crate::bed::{Bed, absent, delete, is, put, put_blind, sent};
use crate::breach::{Breach, Held, breach, conflicts, ensure, equal, missing, show, won};

pub(super) const CHECKS: &[Check] = &[
    Check::required(
        "nothing-is-sent-before-the-first-poll",
        "A future that was never polled does nothing, whatever becomes of it.",
        "what was planned and given up did not happen",
        nothing_is_sent_before_the_first_poll,
    ),
    Check::required(
        "a-dropped-transaction-happens-whole-or-not-at-all",
        "A transaction whose future was dropped after its first poll writes all or nothing, and the store goes on.",
        "a caller that vanished leaves no half accept",
        a_dropped_transaction_happens_whole_or_not_at_all,
    ),
    Check::required(
        "a-repeat-settles-a-dropped-transaction",
        "The identical transaction again commits, or conflicts because the first had committed; either way it happened once.",
        "an accept happens once",
        a_repeat_settles_a_dropped_transaction,
    ),
    Check::required(
        "a-newer-version-shuts-out-a-dropped-transaction",
        "Once the record that it checks has moved on, a dropped transaction does not happen later.",
        "a late settle does not undo a newer claim",
        a_newer_version_shuts_out_a_dropped_transaction,
    ),
    Check::required(
        "an-abort-marker-settles-a-dropped-transaction",
        "Whoever creates the marker that both need decides; a transaction aborted so never happens.",
        "a send that was reported as not owned is never delivered",
        an_abort_marker_settles_a_dropped_transaction,
    ),
    Check::required(
        "a-conflict-means-nothing-happened",
        "A transaction answered with a conflict wrote nothing, and one whose checks hold is not answered with one.",
        "no delivery is claimed twice because its first claim was called lost",
        a_conflict_means_nothing_happened,
    ),
    Check::required(
        "a-refused-caller-wrote-nothing",
        "Among callers that compete for one record, exactly those that were told so have written it.",
        "only who holds the lease acts on it",
        a_refused_caller_wrote_nothing,
    ),
];

const ROUNDS: u8 = 25;

/// Sends a transaction and drops its future: at once, or a little later.
fn send_and_drop(kv: &dyn AtomicKv, txn: Txn, round: u8) {
    let sent = sent(kv.cas_many(txn));
    if round % 3 == 1 {
        thread::yield_now();
    }
    if round % 3 == 2 {
        thread::sleep(Duration::from_micros(50));
    }
    drop(sent);
}

fn nothing_is_sent_before_the_first_poll(bed: &Bed) -> Held {
    let key = bed.key("k");
    let kv = bed.kv();
    let unpolled = kv.cas_many(Txn { checks: vec![absent(&key)], writes: vec![put(&key, "x")] });
    drop(kv.cas_many(Txn { checks: vec![absent(&key)], writes: vec![put(&key, "y")] }));
    bed.must("another transaction", vec![], vec![put_blind(&bed.key("o"), "x")])?;
    missing("before the first poll", bed.get(&key)?.as_ref())?;
    let answer = bed.wait(unpolled)?;
    ensure(answer.is_ok(), "a commit, once it is polled", format!("{answer:?}"))
}

fn a_dropped_transaction_happens_whole_or_not_at_all(bed: &Bed) -> Held {
    let kv = bed.kv();
    let keys = |round: u8| -> Vec<Key> { (0..3).map(|i| bed.key([round, i])).collect() };
    let is_whole = |round: u8| -> Held {
        let found = bed.snapshot(&keys(round))?.values.iter().flatten().count();
        ensure(found == 0 || found == 3, "all 3 records of a dropped transaction, or none", format!("{found} of them"))
    };
    for round in 0..ROUNDS {
        let keys = keys(round);
        let checks = keys.iter().map(absent).collect();
        send_and_drop(&*kv, Txn { checks, writes: keys.iter().map(|key| put(key, "x")).collect() }, round);
        bed.must("after a dropped transaction", vec![], vec![put_blind(&bed.key("o"), [round])])?;
        is_whole(round)?;
    }
    // One that happened late happened whole as well.
    (0..ROUNDS).try_for_each(is_whole)
}

fn a_repeat_settles_a_dropped_transaction(bed: &Bed) -> Held {
    let kv = bed.kv();
    let (counter, mut expected) = (bed.key("counter"), 0u8);
    let mut version = bed.put(&counter, [0])?;
    for round in 0..ROUNDS {
        let marker = bed.key([b'm', round]);
        expected += 1;
        let txn = Txn {
            checks: vec![absent(&marker), is(&counter, version)],
            writes: vec![put(&marker, [round]), put(&counter, [expected])],
        };
        send_and_drop(&*kv, txn.clone(), round);
        let answer = bed.wait(kv.cas_many(txn))?;
        let found = bed.record(&counter)?;
        won("the identical transaction again", &answer)?;
        let is_once = found.value.as_bytes() == [expected];
        ensure(is_once, format!("[{expected}]: the transaction happened exactly once"), show(Some(&found)))?;
        let marked = bed.record(&marker)?;
        equal("the version of everything that it wrote", marked.version, found.version)?;
        if let Ok(committed) = answer {
            equal("the version of the repeat, which committed", found.version, committed.version)?;
        }
        version = found.version;
    }
    Ok(())
}

fn a_newer_version_shuts_out_a_dropped_transaction(bed: &Bed) -> Held {
    let kv = bed.kv();
    let key = bed.key("k");
    for round in 0..ROUNDS {
        let version = bed.put(&key, "armed")?;
        send_and_drop(&*kv, Txn { checks: vec![is(&key, version)], writes: vec![put(&key, "late")] }, round);
        // The newer claim takes what is there now, whichever that is.
        let newer = loop_until_won(bed, &key, b"newer")?;
        for _ in 0..3 {
            let found = bed.record(&key)?;
            let stays = found.version == newer && found.value.as_bytes() == b"newer";
            ensure(stays, format!("\"newer\", {newer:?}, to stay"), show(Some(&found)))?;
        }
    }
    Ok(())
}

fn loop_until_won(bed: &Bed, key: &Key, value: &[u8]) -> Result<Version, Breach> {
    let deadline = bed.deadline();
    loop {
        deadline.check("a claim of the current version wins")?;
        let current = bed.record(key)?;
        match bed.commit(vec![is(key, current.version)], vec![put(key, value)])? {
            Ok(committed) => return Ok(committed.version),
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(breach("a commit or a conflict", error.to_string())),
        }
    }
}

fn an_abort_marker_settles_a_dropped_transaction(bed: &Bed) -> Held {
    let kv = bed.kv();
    let mut aborted = Vec::new();
    for round in 0..ROUNDS {
        let (marker, data) = (bed.key([b'm', round]), bed.key([b'd', round]));
        let txn = Txn { checks: vec![absent(&marker)], writes: vec![put(&marker, "committed"), put_blind(&data, "x")] };
        send_and_drop(&*kv, txn.clone(), round);
        let abort = bed.commit(vec![absent(&marker)], vec![put(&marker, "aborted")])?;
        let won = won("the abort", &abort)?;
        let says = bed.record(&marker)?;
        let data_is = bed.get(&data)?;
        let expected = if won { (&b"aborted"[..], false) } else { (&b"committed"[..], true) };
        let found = (says.value.as_bytes(), data_is.is_some());
        let sentence = format!("a marker and data that agree with the abort, which {}", if won { "won" } else { "lost" });
        ensure(found == expected, sentence, format!("{}; data: {}", show(Some(&says)), show(data_is.as_ref())))?;
        if won {
            conflicts("the aborted transaction again", &bed.wait(kv.cas_many(txn))?)?;
            aborted.push(data);
        }
    }
    aborted.iter().try_for_each(|data| missing("written by an aborted transaction", bed.get(data)?.as_ref()))
}

fn a_conflict_means_nothing_happened(bed: &Bed) -> Held {
    // By itself: nothing competes, so nothing may conflict.
    let key = bed.key("k");
    for i in 0..30u8 {
        let version = bed.must("the key is absent", vec![absent(&key)], vec![put(&key, [i])])?;
        bed.must("the version is current", vec![is(&key, version)], vec![delete(&key)])?;
    }
    // Beside others that write other keys: still nothing may conflict.
    bed.deadline()
        .at_once(4, |caller| {
            (0..15u8).try_for_each(|i| {
                let key = bed.key([b'c', caller as u8, i]);
                bed.must("nobody else names this key", vec![absent(&key)], vec![put(&key, "x")]).map(|_| ())
            })
        })
        .map(|_| ())
}

fn a_refused_caller_wrote_nothing(bed: &Bed) -> Held {
    let key = bed.key("k");
    bed.put(&key, "")?;
    let told = Mutex::new(Vec::new());
    let deadline = bed.deadline();
    deadline.at_once(4, |caller| {
        let kv = bed.another()?;
        let (mut done, mut token) = (0, 0u8);
        while done < 8 {
            deadline.check("every caller wins some rounds")?;
            let record = bed.get_on(&*kv, &key)?.ok_or_else(|| breach("the record", "none"))?;
            token = token.wrapping_add(1);
            let mine = [caller as u8, token];
            let write = put(&key, [record.value.as_bytes(), &mine].concat());
            if won("a token", &bed.commit_on(&*kv, vec![is(&key, record.version)], vec![write])?)? {
                done += 1;
                told.lock().expect("no caller panics while it holds this").push(mine);
            }
        }
        Ok(())
    })?;
    let mut told = told.into_inner().expect("no caller panicked");
    let mut written: Vec<[u8; 2]> = bed.record(&key)?.value.as_bytes().chunks_exact(2).map(|c| [c[0], c[1]]).collect();
    told.sort_unstable();
    written.sort_unstable();
    equal("the tokens in the record: those that were acknowledged", written, told)
}
