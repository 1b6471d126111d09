//! Callers that want the same thing at once.

use restante_kv::{Key, Txn};

use crate::Check;
use crate::bed::{Bed, absent, is, number, put, put_blind, sent};
use crate::breach::{Breach, Held, breach, conflicts, ensure, equal, holds, missing, won};

pub(super) const CHECKS: &[Check] = &[
    Check::required(
        "one-of-64-creators-wins",
        "Of many that create one key at once, exactly one commits, and its bytes stay.",
        "a claim is exclusive",
        one_of_64_creators_wins,
    ),
    Check::required(
        "no-increment-is-lost",
        "Read, check and write by many callers at once loses no update.",
        "fences rise and counters are true",
        no_increment_is_lost,
    ),
    Check::required(
        "every-caller-of-a-hot-key-gets-its-turn",
        "Callers that try again after a conflict all succeed in the end.",
        "one busy lane does not starve a worker",
        every_caller_of_a_hot_key_gets_its_turn,
    ),
    Check::required(
        "opposite-key-orders-do-not-deadlock",
        "Transactions that name the same keys in opposite orders all come to an answer.",
        "one accept never waits for another for ever",
        opposite_key_orders_do_not_deadlock,
    ),
    Check::required(
        "a-conflict-leaves-its-neighbours-alone",
        "Of transactions sent together, those whose checks hold commit although others conflict.",
        "one caller's conflict is not another's",
        a_conflict_leaves_its_neighbours_alone,
    ),
    Check::required(
        "an-unfinished-reader-does-not-hold-up-a-writer",
        "Reads that were begun and not finished, or dropped, do not stop commits.",
        "inspection does not stop deliveries",
        an_unfinished_reader_does_not_hold_up_a_writer,
    ),
];

fn one_of_64_creators_wins(bed: &Bed) -> Held {
    for round in 0..3u8 {
        let key = bed.key([round]);
        let handles = [bed.kv(), bed.another()?];
        let answers = bed.deadline().at_once(64, |i| {
            won("creating what is absent", &bed.commit_on(&*handles[i % 2], vec![absent(&key)], vec![put(&key, [i as u8])])?)
        })?;
        let winners: Vec<usize> = (0..64).filter(|i| answers[*i]).collect();
        ensure(winners.len() == 1, "one of 64 creators wins", format!("{winners:?} won"))?;
        holds("the winner's record", bed.get(&key)?.as_ref(), &[winners[0] as u8])?;
    }
    Ok(())
}

/// Each of `callers` adds 1 `times` times; answers the most attempts that one needed.
pub(super) fn increment(bed: &Bed, key: &Key, callers: usize, times: usize) -> Result<usize, Breach> {
    bed.put(key, 0u64.to_be_bytes())?;
    let deadline = bed.deadline();
    let attempts = deadline.at_once(callers, |_| {
        let kv = bed.another()?;
        let (mut done, mut attempts) = (0, 0);
        while done < times {
            deadline.check("every caller makes its increments")?;
            attempts += 1;
            let record = bed.get_on(&*kv, key)?.ok_or_else(|| breach("the counter", "no record"))?;
            let write = put(key, (number(&record)? + 1).to_be_bytes());
            done += usize::from(won("an increment", &bed.commit_on(&*kv, vec![is(key, record.version)], vec![write])?)?);
        }
        Ok(attempts)
    })?;
    equal("the sum of all increments", number(&bed.record(key)?)?, (callers * times) as u64)?;
    Ok(attempts.into_iter().max().unwrap_or_default())
}

fn no_increment_is_lost(bed: &Bed) -> Held {
    increment(bed, &bed.key("k"), 6, 15).map(|_| ())
}

fn every_caller_of_a_hot_key_gets_its_turn(bed: &Bed) -> Held {
    increment(bed, &bed.key("k"), 12, 3).map(|_| ())
}

fn opposite_key_orders_do_not_deadlock(bed: &Bed) -> Held {
    let keys = bed.fill((0..4u8).map(|i| [i]))?;
    let handles = [bed.kv(), bed.another()?];
    let mut backwards = keys.clone();
    backwards.reverse();
    let orders = [&keys, &backwards];
    let answers = bed.deadline().at_once(4, |caller| {
        let (kv, order) = (&handles[caller / 2], orders[caller % 2]);
        let mut commits = 0;
        for i in 0..15u8 {
            let records = bed.snapshot_on(&**kv, order)?.values;
            let checks = order.iter().zip(&records).filter_map(|(key, r)| r.as_ref().map(|r| is(key, r.version))).collect();
            let writes = order.iter().map(|key| put(key, [i])).collect();
            commits += usize::from(won("one order or the other", &bed.commit_on(&**kv, checks, writes)?)?);
        }
        Ok(commits)
    })?;
    ensure(answers.iter().sum::<usize>() > 0, "some transaction commits", "all conflicted")
}

fn a_conflict_leaves_its_neighbours_alone(bed: &Bed) -> Held {
    let taken = bed.key("taken");
    bed.put(&taken, "x")?;
    let kv = bed.kv();
    for round in 0..8u8 {
        let names: Vec<Key> = (0..12u8).map(|i| bed.key([round, i])).collect();
        let txn = |i: usize, key: &Key| {
            let check = if i % 3 == 1 { vec![absent(key), absent(&taken)] } else { vec![absent(key)] };
            Txn { checks: check, writes: vec![put(key, key.as_bytes())] }
        };
        // All are sent before any is waited for: a store that commits groups puts them into few.
        let waiting: Vec<_> = names.iter().enumerate().map(|(i, key)| sent(kv.cas_many(txn(i, key)))).collect();
        for (i, answer) in waiting.into_iter().enumerate() {
            let answer = bed.wait(answer)?;
            let found = bed.get(&names[i])?;
            if i % 3 == 1 {
                conflicts("a check does not hold", &answer)?;
                missing("written by none", found.as_ref())?;
            } else {
                ensure(answer.is_ok(), "a commit, as its own checks hold", format!("{answer:?}"))?;
                holds("committed beside conflicts", found.as_ref(), names[i].as_bytes())?;
            }
        }
    }
    Ok(())
}

fn an_unfinished_reader_does_not_hold_up_a_writer(bed: &Bed) -> Held {
    let keys = bed.fill((0..20u8).map(|i| [i]))?;
    let kv = bed.kv();
    let asked = keys[..keys.len().min(bed.limits().get_keys_max)].to_vec();
    let readers: Vec<_> = (0..8).map(|_| sent(kv.get_many(asked.clone()))).collect();
    let scanners: Vec<_> = (0..8).map(|_| sent(kv.scan(bed.range(), 3))).collect();
    let deadline = bed.deadline();
    for (i, key) in keys.iter().enumerate() {
        bed.must("beside unfinished readers", vec![], vec![put_blind(key, [i as u8])])?;
        deadline.check("commits beside unfinished readers")?;
    }
    drop(readers);
    for scanner in scanners {
        let page = bed.wait(scanner)?;
        ensure(page.is_ok(), "a page that was asked for before", format!("{page:?}"))?;
    }
    bed.must("after readers were dropped", vec![], vec![put_blind(&keys[0], "last")])?;
    holds("read again", bed.get(&keys[0])?.as_ref(), b"last")
}
