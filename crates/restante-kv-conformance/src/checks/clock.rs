//! The store's clock, for stores that have one.

use std::thread;
use std::time::Duration;

use restante_kv::StoreTime;

use crate::Check;
use crate::bed::Bed;
use crate::breach::{Breach, Held, breach, ensure, equal};

pub(super) const CHECKS: &[Check] = &[
    Check::required(
        "answers-carry-a-clock-exactly-if-limits-say-so",
        "Snapshots and pages carry an instant when, and only when, the limits claim a clock.",
        "a lease is measured by one clock",
        answers_carry_a_clock_exactly_if_limits_say_so,
    ),
    Check::with_clock(
        "the-clock-does-not-run-backwards",
        "One caller never reads an earlier instant than before.",
        "a lease that was seen to have ended has ended",
        the_clock_does_not_run_backwards,
    ),
    Check::with_clock(
        "the-clock-goes-on",
        "The clock advances while nothing is written.",
        "a lease of a dead worker ends",
        the_clock_goes_on,
    ),
];

fn answers_carry_a_clock_exactly_if_limits_say_so(bed: &Bed) -> Held {
    let claimed = bed.limits().has_clock;
    equal("an instant in a snapshot", bed.snapshot(&[bed.key("k")])?.at.is_some(), claimed)?;
    equal("an instant in a page", bed.page(&bed.range(), 1)?.at.is_some(), claimed)
}

fn now(bed: &Bed, by_scan: bool) -> Result<StoreTime, Breach> {
    let at = if by_scan { bed.page(&bed.range(), 1)?.at } else { bed.snapshot(&[bed.key("k")])?.at };
    at.ok_or_else(|| breach("an instant, as limits() claim a clock", "none"))
}

fn the_clock_does_not_run_backwards(bed: &Bed) -> Held {
    let mut latest = now(bed, false)?;
    for i in 0..60 {
        if i % 10 == 0 {
            bed.put(&bed.key("k"), [i])?;
        }
        let at = now(bed, i % 2 == 0)?;
        ensure(at >= latest, format!("{latest:?} or later"), format!("{at:?}"))?;
        latest = at;
    }
    Ok(())
}

fn the_clock_goes_on(bed: &Bed) -> Held {
    let first = now(bed, false)?;
    let deadline = bed.deadline();
    while now(bed, false)? <= first {
        deadline.check("an instant later than the first")?;
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
