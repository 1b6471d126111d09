//! Claims, leases and the gate.

use restante_core::atoms::Fence;
use restante_core::machine::{DeliveryEnd, Failure};
use restante_core::plan::{Claim, Gate, GateAnswer, Renew, Settle, Settled, Verdict};
use restante_core::record::{Destination, DropReason, Entry, Record};
use restante_core::{Command, Config, Outcome, Rejection};
use restante_kv::{StoreTime, Value};

use crate::bed::{Bed, Fault, config, entry_id, owner, retry_after, send, status};

pub(crate) fn claim(bed: &mut Bed, who: u8) -> Result<Entry, Failure> {
    let command = Claim { id: entry_id(1, 0), owner: owner(who), slot: 0 };
    bed.run(Command::Claim(command)).map(|(outcome, _)| match outcome {
        Outcome::Claimed(claimed) => claimed.entry,
        other => panic!("a claim came to {other:?}"),
    })
}

pub(crate) fn settle_command(who: u8, fence: u64, verdict: Verdict) -> Settle {
    let (id, owner) = (entry_id(1, 0), owner(who));
    Settle { id, owner, fence: Fence::new(fence), wake_seen: 0, verdict, entropy: 0, slot: 0 }
}

pub(crate) fn settle(bed: &mut Bed, who: u8, fence: u64, verdict: Verdict) -> Result<Settled, Failure> {
    bed.run(Command::Settle(settle_command(who, fence, verdict))).map(|(outcome, _)| match outcome {
        Outcome::Settled(settled) => settled,
        other => panic!("a settle came to {other:?}"),
    })
}

fn gate(bed: &mut Bed, who: u8, fence: u64) -> Result<GateAnswer, Failure> {
    let destination = "https://a.example".into();
    let command = Gate { id: entry_id(1, 0), owner: owner(who), fence: Fence::new(fence), destination };
    bed.run(Command::Gate(command)).map(|(outcome, _)| match outcome {
        Outcome::Gate(answer) => answer,
        other => panic!("the gate came to {other:?}"),
    })
}

fn one_sent() -> Bed {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    bed
}

#[test]
fn a_claim_makes_two_checks_and_moves_the_due_row_to_the_end_of_its_lease() {
    let mut bed = one_sent();
    let entry = claim(&mut bed, 1).expect("due");
    assert_eq!(bed.sizes("claim"), [(2, 5)]);
    assert_eq!((entry.fence, entry.vest_at), (Fence::new(1), bed.now().plus_ms(60_000)));
    bed.assert_counted();
    bed.assert_discoverable();
}

#[test]
fn nothing_is_claimed_before_it_vests() {
    let mut bed = one_sent();
    claim(&mut bed, 1).expect("due");
    settle(&mut bed, 1, 1, crate::settle::retry()).expect("held");
    bed.now_ms += 999;
    assert_eq!(claim(&mut bed, 2), Err(Failure::Rejected(Rejection::NotDue)));
    bed.now_ms += 1;
    assert_eq!(claim(&mut bed, 2).expect("due").fence, Fence::new(2));
}

#[test]
fn an_expired_lease_is_claimed_again_under_a_higher_fence_and_the_older_claim_writes_nothing() {
    let mut bed = one_sent();
    claim(&mut bed, 1).expect("due");
    bed.now_ms += 59_999;
    assert_eq!(claim(&mut bed, 2), Err(Failure::Rejected(Rejection::NotDue)));
    bed.now_ms += 1;
    assert_eq!(claim(&mut bed, 2).expect("the lease ended").fence, Fence::new(2));
    let before = bed.commits.len();
    for verdict in [Verdict::Delivered, crate::settle::retry(), Verdict::Drop(DropReason::Permanent(410))] {
        assert_eq!(settle(&mut bed, 1, 1, verdict), Err(Failure::Rejected(Rejection::LeaseLost)));
    }
    let renew = Renew { id: entry_id(1, 0), owner: owner(1), fence: Fence::new(1) };
    assert_eq!(bed.run(Command::Renew(renew)), Err(Failure::Rejected(Rejection::LeaseLost)));
    assert_eq!(gate(&mut bed, 1, 1), Err(Failure::Rejected(Rejection::LeaseLost)));
    assert_eq!(bed.commits.len(), before, "a stale token writes nothing");
    bed.assert_counted();
}

#[test]
fn a_lease_that_expired_unclaimed_still_settles() {
    let mut bed = one_sent();
    claim(&mut bed, 1).expect("due");
    bed.now_ms += 600_000;
    assert_eq!(settle(&mut bed, 1, 1, Verdict::Delivered), Ok(Settled::Delivered));
    bed.assert_counted();
}

/// Sequence: a claim of mine ended without a settle, its lease ran out, and my next claim's commit is lost. The old lease must
/// not pass for the new claim: two attempts would share a token.
#[test]
fn an_old_lease_of_the_same_owner_is_no_witness_of_a_new_claim() {
    let mut bed = one_sent();
    claim(&mut bed, 1).expect("due");
    bed.now_ms += 60_000;
    bed.fault("claim", Fault::Lost);
    assert_eq!(claim(&mut bed, 1).expect("the lease ended").fence, Fence::new(2));
    bed.assert_counted();
}

#[test]
fn the_gate_lets_pass_until_the_least_of_freshness_lease_and_retention() {
    let mut bed = one_sent();
    claim(&mut bed, 1).expect("due");
    assert_eq!(gate(&mut bed, 1, 1), Ok(GateAnswer::Pass { post_by: bed.now().plus_ms(2_000), is_counted: false }));
    bed.now_ms += 44_000;
    assert_eq!(
        gate(&mut bed, 1, 1),
        Ok(GateAnswer::Pass { post_by: bed.now().plus_ms(1_000), is_counted: false }),
        "60 s - 10 s - 5 s"
    );
    bed.now_ms += 1_000;
    assert_eq!(gate(&mut bed, 1, 1), Ok(GateAnswer::RenewFirst));
    let renew = Renew { id: entry_id(1, 0), owner: owner(1), fence: Fence::new(1) };
    let lease_expires_at = bed.now().plus_ms(60_000);
    assert_eq!(bed.run(Command::Renew(renew)), Ok((Outcome::Renewed { lease_expires_at }, vec![])));
    assert_eq!(gate(&mut bed, 1, 1), Ok(GateAnswer::Pass { post_by: bed.now().plus_ms(2_000), is_counted: false }));
    bed.assert_discoverable();
}

#[test]
fn retention_ends_at_the_gate_whatever_else_holds() {
    let mut bed = Bed::new(Config { max_retention_ms: 1_000, ..config() });
    bed.accept(send(1, &["a.example/inbox"]));
    claim(&mut bed, 1).expect("due");
    assert_eq!(gate(&mut bed, 1, 1), Ok(GateAnswer::Pass { post_by: bed.now().plus_ms(1_000), is_counted: false }));
    bed.now_ms += 1_000;
    assert_eq!(gate(&mut bed, 1, 1), Ok(GateAnswer::Over(DropReason::Expired)));
    // Not even a destination record that only another version can read keeps the end from being seen.
    let key = bed.env.keys.destination("https://a.example");
    bed.tamper(key, Some(Value::from(&[9][..])));
    assert_eq!(gate(&mut bed, 1, 1), Ok(GateAnswer::Over(DropReason::Expired)));
}

#[test]
fn the_gate_defers_at_a_paced_destination_and_nobody_posts_at_one_that_is_not_understood() {
    let mut bed = one_sent();
    claim(&mut bed, 1).expect("due");
    let (key, until) = (bed.env.keys.destination("https://a.example"), bed.now().plus_ms(5));
    bed.tamper(key.clone(), Some(Destination { paced_until: until, ..Destination::default() }.encode()));
    assert_eq!(gate(&mut bed, 1, 1), Ok(GateAnswer::Defer { until }));
    bed.tamper(key.clone(), Some(Value::from(&[9][..])));
    assert!(matches!(gate(&mut bed, 1, 1), Err(Failure::Inconsistent { .. })));
    bed.tamper(key, Some(Value::from(&[1][..])));
    assert!(matches!(gate(&mut bed, 1, 1), Ok(GateAnswer::Pass { .. })), "damage only loses a pause");
}

/// A pause for one of this version's settles must not erase what another version knows of the destination.
#[test]
fn pacing_leaves_another_versions_destination_alone_and_replaces_a_damaged_one() {
    for (format, replaced) in [(9, false), (1, true)] {
        let mut bed = one_sent();
        bed.answers.push_back(retry_after(5_000));
        let key = bed.env.keys.destination("https://a.example");
        let at = key.clone();
        bed.before("post", move |bed| bed.tamper(at, Some(Value::from(&[format][..]))));
        let ran = bed.once(1, 1);
        assert_eq!(ran.ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Retried))]);
        assert_eq!(Destination::decode(&bed.model.get(&key).expect("kept").value).is_ok(), replaced);
    }
}

#[test]
fn a_post_that_would_begin_too_late_goes_back_to_the_gate() {
    let mut bed = one_sent();
    bed.before("post", |bed| bed.now_ms += 2_000);
    assert_eq!(bed.once(1, 10).report.processed, 1);
    assert_eq!(bed.posts.len(), 1);
    assert_eq!(bed.actions.iter().filter(|what| **what == "post").count(), 2);
}

#[test]
fn a_post_begins_before_the_end_of_retention_or_not_at_all() {
    let mut bed = Bed::new(Config { max_retention_ms: 1_500, ..config() });
    bed.accept(send(1, &["a.example/inbox"]));
    bed.before("post", |bed| bed.now_ms += 1_500);
    let ran = bed.once(1, 10);
    assert_eq!(ran.ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Dropped(DropReason::Expired)))]);
    assert!(bed.posts.is_empty());
}

#[test]
fn a_lease_is_renewed_when_loading_took_long() {
    let mut bed = one_sent();
    bed.before("gate", |bed| bed.now_ms += 50_000);
    let ran = bed.once(1, 10);
    assert_eq!(ran.ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Delivered))]);
    assert!(bed.actions.contains(&"renew"));
}

#[test]
fn a_lease_lost_during_the_post_writes_nothing() {
    let mut bed = one_sent();
    bed.answers.push_back(status(200));
    bed.before("settle", |bed| {
        bed.now_ms += 60_000;
        assert_eq!(claim(bed, 2).expect("expired").fence, Fence::new(2));
    });
    let ran = bed.once(1, 1);
    assert_eq!(ran.ended, [(entry_id(1, 0), DeliveryEnd::LeaseLost)]);
    assert_eq!(bed.entry(1, 0).expect("the other claim's").fence, Fence::new(2));
    bed.assert_counted();
}

#[test]
fn skew_between_judging_clocks_lengthens_the_wait_and_shortens_the_post() {
    let mut bed = Bed::new(Config { max_clock_skew_ms: 1_000, ..config() });
    bed.accept(send(1, &["a.example/inbox"]));
    let entry = claim(&mut bed, 1).expect("due");
    assert_eq!(entry.vest_at.since_ms(entry.lease.expect("held").expires_at), 1_000);
    bed.now_ms += 44_000;
    assert_eq!(gate(&mut bed, 1, 1), Ok(GateAnswer::RenewFirst));
    assert_eq!(StoreTime::from_ms(0).minus_ms(1), StoreTime::from_ms(0));
}
