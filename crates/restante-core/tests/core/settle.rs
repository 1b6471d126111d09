//! Settles: retries, pacing, wakes, and the ends of a delivery.

use restante_core::atoms::Fence;
use restante_core::machine::{DeliveryEnd, NotSent, PostResult};
use restante_core::plan::{Settled, Verdict, Wake};
use restante_core::record::{DeadLetter, Destination, DropReason, WaitReason};
use restante_core::{Command, Config, Effect, Observation};

use crate::bed::{Bed, DAY_MS, config, entry_id, retry_after, send, status};
use crate::claim::{claim, settle};

pub(crate) fn retry() -> Verdict {
    Verdict::Retry { wait: WaitReason::Backoff, retry_after_ms: None }
}

fn wake(bed: &mut Bed) {
    bed.run(Command::Wake(Wake { id: entry_id(1, 0) })).expect("woken");
}

fn one_sent(config: Config) -> Bed {
    let mut bed = Bed::new(config);
    bed.accept(send(1, &["a.example/inbox"]));
    bed
}

#[test]
fn a_retry_makes_two_checks_and_waits_for_its_backoff() {
    let mut bed = one_sent(config());
    bed.answers.push_back(status(500));
    let ran = bed.once(1, 1);
    assert_eq!(ran.ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Retried))]);
    assert_eq!(bed.sizes("settle"), [(2, 5)]);
    let entry = bed.entry(1, 0).expect("kept");
    assert_eq!((entry.failure_count, entry.wait), (1, WaitReason::Backoff));
    assert_eq!(entry.vest_at, bed.now().plus_ms(1_000));
    bed.assert_counted();
    bed.assert_discoverable();
}

#[test]
fn the_backoff_doubles_with_every_failure() {
    let mut bed = one_sent(config());
    for (failures, delay_ms, why) in [(1, 1_000, NotSent::Dns), (2, 2_000, NotSent::Refused), (3, 4_000, NotSent::Unsigned)] {
        bed.answers.push_back(PostResult::NotSent(why));
        assert_eq!(bed.once(1, 1).report.processed, 1);
        let entry = bed.entry(1, 0).expect("kept");
        assert_eq!((entry.failure_count, entry.vest_at), (failures, bed.now().plus_ms(delay_ms)));
        bed.now_ms += delay_ms;
    }
}

#[test]
fn a_delivery_is_gone_with_all_its_rows() {
    let mut bed = one_sent(config());
    let ran = bed.once(1, 10);
    let delivered = Observation::Delivered { entry: entry_id(1, 0), fence: Fence::new(1) };
    assert!(ran.effects.contains(&Effect::Observed(delivered)));
    // The claim's pointer at the end of its lease leads to nothing any more, and goes when it is looked at.
    bed.now_ms += 61_000;
    bed.once(1, 10);
    let kinds: Vec<_> = bed.model.iter().filter_map(|(key, _)| bed.env.keys.kind_of(key)).collect();
    use restante_core::keys::Kind;
    assert_eq!(kinds, [Kind::Counters, Kind::Counters, Kind::Marker, Kind::SweepState]);
    bed.assert_counted();
}

#[test]
fn a_permanent_code_is_given_up_at_once_and_leaves_a_dead_letter_without_a_payload() {
    let mut bed = one_sent(config());
    bed.answers.push_back(status(410));
    let ran = bed.once(1, 10);
    let reason = DropReason::Permanent(410);
    assert_eq!(ran.ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Dropped(reason)))]);
    assert!(ran.effects.contains(&Effect::Observed(Observation::Dropped { entry: entry_id(1, 0), reason })));
    let letter: DeadLetter = bed.read(&bed.env.keys.dead_letter(entry_id(1, 0))).expect("written in the same commit");
    let DeadLetter { reason: why, fence, inbox, origin, failure_count, expires_at } = letter;
    assert_eq!((why, fence, failure_count), (reason, Fence::new(1), 0));
    assert_eq!((&*inbox, origin, expires_at), ("https://a.example/inbox", bed.now(), bed.now().plus_ms(7 * DAY_MS)));
    bed.assert_counted();
}

#[test]
fn the_last_attempt_that_fails_is_a_dead_letter() {
    let mut bed = one_sent(Config { attempts_max: 2, ..config() });
    bed.answers.extend([status(503), PostResult::Unknown]);
    assert_eq!(bed.once(1, 1).report.processed, 1);
    bed.now_ms += 1_000;
    let ran = bed.once(1, 10);
    let reason = DropReason::AttemptsExhausted;
    assert_eq!(ran.ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Dropped(reason)))]);
    assert_eq!(bed.posts.len(), 2);
    let letter: DeadLetter = bed.read(&bed.env.keys.dead_letter(entry_id(1, 0))).expect("written");
    assert_eq!((letter.reason, letter.failure_count), (reason, 2));
    bed.assert_counted();
}

#[test]
fn an_expired_lease_spends_no_attempt() {
    let mut bed = one_sent(config());
    for _ in 0..5 {
        claim(&mut bed, 1).expect("due");
        bed.now_ms += 60_000;
    }
    let entry = bed.entry(1, 0).expect("kept");
    assert_eq!((entry.failure_count, entry.fence), (0, Fence::new(5)));
}

#[test]
fn a_wake_while_waiting_makes_due_at_once() {
    let mut bed = one_sent(config());
    bed.answers.push_back(status(500));
    bed.once(1, 1);
    wake(&mut bed);
    let entry = bed.entry(1, 0).expect("kept");
    assert_eq!((entry.vest_at, entry.wait), (bed.now(), WaitReason::Woken));
    bed.assert_discoverable();
    assert_eq!(bed.once(1, 10).report.processed, 1);
    assert_eq!(bed.posts.len(), 2);
}

#[test]
fn a_wake_during_the_lease_is_seen_by_the_settle() {
    let mut bed = one_sent(config());
    bed.answers.push_back(status(500));
    bed.before("post", wake);
    let ran = bed.once(1, 1);
    let entry = bed.entry(1, 0).expect("kept");
    assert_eq!((entry.vest_at, entry.wait, entry.failure_count), (bed.now(), WaitReason::Woken, 1));
    assert!(ran.effects.contains(&Effect::Wake { destination: "https://a.example".into() }));
    assert_eq!(bed.once(1, 10).report.processed, 1);
}

#[test]
fn a_wake_that_comes_twice_is_one() {
    let mut bed = one_sent(config());
    wake(&mut bed);
    wake(&mut bed);
    bed.assert_discoverable();
    assert_eq!(bed.once(1, 10).report.processed, 1);
    assert_eq!(bed.posts.len(), 1);
}

#[test]
fn due_is_clipped_to_the_end_of_retention_so_that_the_end_is_seen() {
    let mut bed = one_sent(Config { max_retention_ms: 500, ..config() });
    bed.answers.push_back(status(500));
    bed.once(1, 1);
    assert_eq!(bed.entry(1, 0).expect("kept").vest_at, bed.now().plus_ms(500));
    bed.now_ms += 500;
    let ran = bed.once(1, 10);
    assert_eq!(ran.ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Dropped(DropReason::Expired)))]);
    assert_eq!(bed.posts.len(), 1, "no attempt begins after the end");
}

#[test]
fn a_retry_after_replaces_the_delay_but_not_the_end_of_attempts() {
    let mut bed = one_sent(Config { attempts_max: 2, ..config() });
    bed.answers.extend([retry_after(5_000), retry_after(5_000)]);
    bed.once(1, 1);
    let entry = bed.entry(1, 0).expect("kept");
    assert_eq!((entry.vest_at, entry.wait), (bed.now().plus_ms(5_000), WaitReason::RateLimited));
    let known: Destination = bed.read(&bed.env.keys.destination("https://a.example")).expect("paced");
    assert_eq!(known.paced_until, bed.now().plus_ms(5_000));
    bed.now_ms += 5_000;
    bed.once(1, 1);
    assert!(bed.entry(1, 0).is_none(), "given up");
}

/// A destination that asks for an endless pause must not keep what waits for it beyond any bound.
#[test]
fn an_absurd_pause_is_bounded_and_what_waits_for_it_is_given_up_observed() {
    let mut bed = one_sent(config());
    bed.answers.push_back(retry_after(u64::MAX));
    bed.once(1, 1);
    bed.accept(send(2, &["a.example/inbox"]));
    bed.once(1, 10);
    bed.now_ms += 7 * DAY_MS;
    let mut ran = bed.once(1, 10);
    ran.ended.sort_by_key(|(id, _)| *id);
    let expired = DeliveryEnd::Settled(Settled::Dropped(DropReason::Expired));
    assert_eq!(ran.ended, [(entry_id(1, 0), expired.clone()), (entry_id(2, 0), expired)]);
    assert_eq!(bed.posts.len(), 1);
    bed.assert_counted();
}

#[test]
fn a_settle_of_a_token_of_somebody_else_is_refused() {
    let mut bed = one_sent(config());
    claim(&mut bed, 1).expect("due");
    assert!(settle(&mut bed, 2, 1, Verdict::Delivered).is_err(), "another owner");
    assert!(settle(&mut bed, 1, 2, Verdict::Delivered).is_err(), "another token");
    assert_eq!(settle(&mut bed, 1, 1, Verdict::Delivered), Ok(Settled::Delivered));
    assert!(settle(&mut bed, 1, 1, Verdict::Delivered).is_err(), "twice");
    bed.assert_counted();
}
