//! The same, longer.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;

use restante_kv::Key;

use super::races::increment;
use crate::Check;
use crate::bed::{Bed, absent, delete, is, number, put};
use crate::breach::{Breach, Held, ensure, equal, won};
use crate::program::run_many;
use crate::random::Random;

pub(super) const CHECKS: &[Check] = &[
    Check::stress(
        "many-random-programs-answer-as-the-model-does",
        "So do many more random programs.",
        "what holds in the simulation holds on this store",
        many_random_programs_answer_as_the_model_does,
    ),
    Check::stress(
        "transfers-keep-their-sum",
        "Transfers between accounts by many callers at once, with readers beside them, never change the sum.",
        "recipients are neither lost nor made up",
        transfers_keep_their_sum,
    ),
    Check::stress(
        "a-lease-has-one-holder-at-a-time",
        "Callers that take and give back a lease by compare-and-set never hold it together, and its token always rises.",
        "one worker posts at a time",
        a_lease_has_one_holder_at_a_time,
    ),
    Check::stress(
        "many-increments-are-not-lost",
        "Many callers that count in one record lose nothing.",
        "fences rise and counters are true",
        many_increments_are_not_lost,
    ),
];

fn many_random_programs_answer_as_the_model_does(bed: &Bed) -> Held {
    // Programs of its own, not the first ones of the required check.
    let seed = bed.random().next();
    run_many(bed, Random::new(seed), 50 * bed.stress())
}

fn many_increments_are_not_lost(bed: &Bed) -> Held {
    increment(bed, &bed.key("k"), 12, 8 * bed.stress()).map(|_| ())
}

fn transfers_keep_their_sum(bed: &Bed) -> Held {
    const ACCOUNTS: usize = 5;
    const EACH: u64 = 100;
    let keys: Vec<Key> = (0..ACCOUNTS as u8).map(|i| bed.key([i])).collect();
    for key in &keys {
        bed.put(key, EACH.to_be_bytes())?;
    }
    let sum = |amounts: &[u64]| -> Held {
        let expected = EACH * ACCOUNTS as u64;
        ensure(amounts.iter().sum::<u64>() == expected, format!("amounts that sum to {expected}"), format!("{amounts:?}"))
    };
    let transfers = 20 * bed.stress();
    let deadline = bed.deadline();
    deadline.at_once(6, |caller| {
        let kv = bed.another()?;
        let mut random = Random::new(bed.random().next() ^ caller as u64);
        let mut done = 0;
        while done < transfers {
            deadline.check("every caller makes its transfers")?;
            let records = bed.snapshot_on(&*kv, &keys)?.values;
            let amounts: Vec<u64> = records.iter().flatten().map(number).collect::<Result<_, Breach>>()?;
            sum(&amounts)?;
            let from = random.below(ACCOUNTS);
            let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
            let amount = amounts[from].div_ceil(3);
            let versions: Vec<_> = records.iter().flatten().map(|record| record.version).collect();
            let checks = vec![is(&keys[from], versions[from]), is(&keys[to], versions[to])];
            let writes = vec![
                put(&keys[from], (amounts[from] - amount).to_be_bytes()),
                put(&keys[to], (amounts[to] + amount).to_be_bytes()),
            ];
            done += usize::from(won("a transfer", &bed.commit_on(&*kv, checks, writes)?)?);
        }
        Ok(())
    })?;
    let amounts = bed.snapshot(&keys)?.values.iter().flatten().map(number).collect::<Result<Vec<u64>, _>>()?;
    equal("the number of accounts", amounts.len(), ACCOUNTS)?;
    sum(&amounts)
}

fn a_lease_has_one_holder_at_a_time(bed: &Bed) -> Held {
    let (lease, fence) = (bed.key("lease"), bed.key("fence"));
    bed.put(&fence, 0u64.to_be_bytes())?;
    let (holders, newest) = (AtomicI64::new(0), AtomicU64::new(0));
    let times = 8 * bed.stress();
    let deadline = bed.deadline();
    deadline
        .at_once(6, |caller| {
            let kv = bed.another()?;
            let mut done = 0;
            while done < times {
                deadline.check("every caller gets the lease")?;
                let records = bed.snapshot_on(&*kv, &[lease.clone(), fence.clone()])?.values;
                let [None, Some(current)] = &records[..] else {
                    thread::yield_now();
                    continue;
                };
                let token = number(current)? + 1;
                let checks = vec![absent(&lease), is(&fence, current.version)];
                let writes = vec![put(&lease, [caller as u8]), put(&fence, token.to_be_bytes())];
                let Ok(taken) = bed.commit_on(&*kv, checks, writes)? else { continue };
                let beside = holders.fetch_add(1, Ordering::AcqRel);
                ensure(beside == 0, "no other holder of the lease", format!("{beside} beside this one"))?;
                let before = newest.swap(token, Ordering::AcqRel);
                ensure(token > before, format!("a token above {before}"), token.to_string())?;
                holders.fetch_sub(1, Ordering::AcqRel);
                let back = bed.commit_on(&*kv, vec![is(&lease, taken.version)], vec![delete(&lease)])?;
                ensure(back.is_ok(), "the holder gives its lease back", format!("{back:?}"))?;
                done += 1;
            }
            Ok(())
        })
        .map(|_| ())
}
