//! Commands whose commit had an unknown outcome: each finds out what happened from what lies in the store.

use restante_core::atoms::Fence;
use restante_core::keys::Kind;
use restante_core::machine::{DeliveryEnd, Failure, SendError};
use restante_core::plan::{AdvanceSweep, BeginSweep, FinishSweep, Renew, SetIntake, Settled, Verdict, Wake};
use restante_core::record::{DropReason, SweepPlace};
use restante_core::{Command, Config, Outcome};

use crate::bed::{Bed, Fault, config, entry_id, owner, retry_after, send, send_id, status};
use crate::claim::{claim, settle};

const AMBIGUOUS: [Fault; 3] = [Fault::Committed, Fault::Lost, Fault::Late];

fn one_sent() -> Bed {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    bed
}

#[test]
fn an_ambiguous_accept_owns_the_send_once_and_tells_of_it_once() {
    for fault in AMBIGUOUS {
        let mut bed = Bed::default();
        bed.fault("accept", fault);
        let (send, duplicate, effects) = bed.send(send(1, &["a.example/inbox"])).expect("accepted");
        assert_eq!((send, duplicate, effects.len()), (send_id(1), false, 2), "{fault:?}");
        bed.assert_counted();
        assert_eq!(bed.depth().entries, 1, "{fault:?}");
    }
}

#[test]
fn an_accept_that_stays_ambiguous_is_unknown_and_its_repetition_finds_out() {
    for fault in AMBIGUOUS {
        let mut bed = Bed::new(Config { tries_max: 1, ..config() });
        bed.fault("accept", fault);
        assert_eq!(bed.send(send(1, &["a.example/inbox"])).map(|_| ()), Err(SendError::Unknown), "{fault:?}");
        bed.land_late();
        let again = bed.send(send(1, &["a.example/inbox"])).expect("decided");
        assert_eq!((again.0, again.1), (send_id(1), fault != Fault::Lost), "{fault:?}");
        assert_eq!(bed.depth().entries, 1, "{fault:?}");
    }
}

#[test]
fn an_ambiguous_claim_is_one_claim() {
    for fault in AMBIGUOUS {
        let mut bed = one_sent();
        bed.fault("claim", fault);
        assert_eq!(claim(&mut bed, 1).expect("won").fence, Fence::new(1), "{fault:?}");
        bed.assert_counted();
        bed.assert_discoverable();
    }
}

#[test]
fn an_ambiguous_claim_that_lost_against_another_worker_is_no_claim() {
    let mut bed = one_sent();
    bed.fault("claim", Fault::Lost);
    // Between the lost commit and the next look, another worker takes it.
    bed.before("claim", |bed| {
        bed.before("claim", |bed| {
            bed.before("claim", |bed| {
                bed.before("claim", |bed| {
                    assert_eq!(claim(bed, 2).expect("due").fence, Fence::new(1));
                })
            })
        })
    });
    let result = claim(&mut bed, 1);
    assert_eq!(result, Err(Failure::Rejected(restante_core::Rejection::NotDue)));
    bed.assert_counted();
}

#[test]
fn an_ambiguous_renew_renews() {
    for fault in AMBIGUOUS {
        let mut bed = one_sent();
        claim(&mut bed, 1).expect("due");
        bed.now_ms += 10_000;
        bed.fault("renew", fault);
        let renew = Renew { id: entry_id(1, 0), owner: owner(1), fence: Fence::new(1) };
        let result = bed.run(Command::Renew(renew));
        assert_eq!(result, Ok((Outcome::Renewed { lease_expires_at: bed.now().plus_ms(60_000) }, vec![])), "{fault:?}");
        assert_eq!(bed.entry(1, 0).expect("held").lease.expect("held").expires_at, bed.now().plus_ms(60_000));
        bed.assert_counted();
        bed.assert_discoverable();
    }
}

#[test]
fn an_ambiguous_settle_settles_once() {
    for fault in AMBIGUOUS {
        for (verdict, definite) in [
            (Verdict::Delivered, Settled::Delivered),
            (Verdict::Drop(DropReason::Permanent(410)), Settled::Dropped(DropReason::Permanent(410))),
            (crate::settle::retry(), Settled::Retried),
            (Verdict::Defer { until: restante_kv::StoreTime::MAX }, Settled::Deferred),
        ] {
            let mut bed = one_sent();
            claim(&mut bed, 1).expect("due");
            bed.fault("settle", fault);
            // A delivery leaves no trace to tell it from a later claim's.
            let witnessed = if definite == Settled::Delivered && fault == Fault::Committed { Settled::Gone } else { definite };
            let settled = settle(&mut bed, 1, 1, verdict);
            // A late commit may land before the repetition reads, or make it conflict and be found then.
            assert!(settled == Ok(witnessed) || (fault == Fault::Late && settled == Ok(Settled::Gone)), "{fault:?} {settled:?}");
            if let Some(entry) = bed.entry(1, 0) {
                assert_eq!(entry.failure_count, u32::from(definite == Settled::Retried), "{fault:?}");
                bed.assert_discoverable();
            }
            bed.assert_counted();
        }
    }
}

#[test]
fn an_ambiguous_pause_of_a_destination_is_made_once() {
    for fault in AMBIGUOUS {
        let mut bed = one_sent();
        bed.answers.push_back(retry_after(5_000));
        bed.fault("settle", fault);
        assert_eq!(bed.once(1, 1).ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Retried))], "{fault:?}");
        assert_eq!(bed.entry(1, 0).expect("kept").failure_count, 1, "{fault:?}");
    }
}

/// The settle's answer was lost and it is still on its way; the entry is taken again under a higher token meanwhile.
#[test]
fn a_settle_that_lands_after_another_claim_does_nothing() {
    let mut bed = Bed::new(Config { tries_max: 1, ..config() });
    bed.accept(send(1, &["a.example/inbox"]));
    claim(&mut bed, 1).expect("due");
    bed.fault("settle", Fault::Late);
    assert_eq!(settle(&mut bed, 1, 1, Verdict::Delivered), Err(Failure::Unknown));
    let late = bed.take_late();
    bed.now_ms += 60_000;
    assert_eq!(claim(&mut bed, 2).expect("the lease ended").fence, Fence::new(2));
    for txn in late {
        assert!(bed.model.commit(&txn).is_err(), "it checks the version that it read");
    }
    assert_eq!(settle(&mut bed, 2, 2, Verdict::Delivered), Ok(Settled::Delivered));
    bed.assert_counted();
}

#[test]
fn an_ambiguous_change_of_intake_changes_it_once() {
    for fault in AMBIGUOUS {
        let mut bed = Bed::default();
        bed.fault("set-intake", fault);
        let result = bed.run(Command::SetIntake(SetIntake { open: false }));
        assert_eq!(result, Ok((Outcome::Intake { open: false, epoch: 1 }, vec![])), "{fault:?}");
    }
}

#[test]
fn an_ambiguous_sweep_record_is_one_sweep() {
    for fault in AMBIGUOUS {
        let mut bed = Bed::default();
        bed.fault("begin-sweep", fault);
        let begun = bed.run(Command::BeginSweep(BeginSweep { owner: owner(1) }));
        assert_eq!(begun, Ok((Outcome::Sweep(None), vec![])), "{fault:?}");
        let place = SweepPlace { next: bed.env.keys.all(Kind::Marker).start, skipped: false };
        bed.fault("advance-sweep", fault);
        let advance = |number| Command::AdvanceSweep(AdvanceSweep { owner: owner(number), place: place.clone() });
        assert_eq!(bed.run(advance(1)), Ok((Outcome::Done, vec![])), "{fault:?}");
        assert_eq!(bed.run(advance(2)), Err(Failure::Rejected(restante_core::Rejection::Taken)), "{fault:?}");
        let taken = bed.run(Command::BeginSweep(BeginSweep { owner: owner(2) }));
        assert_eq!(taken, Err(Failure::Rejected(restante_core::Rejection::Taken)), "{fault:?}");
        bed.fault("finish-sweep", fault);
        let finished = bed.run(Command::FinishSweep(FinishSweep { owner: owner(1), complete: true }));
        assert_eq!(finished, Ok((Outcome::Done, vec![])), "{fault:?}");
        let fresh = bed.run(Command::BeginSweep(BeginSweep { owner: owner(2) }));
        assert_eq!(fresh, Err(Failure::Rejected(restante_core::Rejection::NotDue)), "{fault:?}");
    }
}

#[test]
fn an_ambiguous_wake_is_harmless() {
    for fault in AMBIGUOUS {
        let mut bed = one_sent();
        bed.fault("wake", fault);
        bed.run(Command::Wake(Wake { id: entry_id(1, 0) })).expect("woken");
        bed.assert_discoverable();
        bed.assert_counted();
    }
}

#[test]
fn definite_errors_are_tried_again_and_then_told_as_what_they_are() {
    for (fault, last) in [(Fault::Conflict, None), (Fault::Unavailable, Some(()))] {
        let mut bed = one_sent();
        for _ in 0..7 {
            bed.fault("claim", fault);
        }
        assert!(claim(&mut bed, 1).is_ok(), "the eighth try succeeds");
        let mut bed = one_sent();
        for _ in 0..8 {
            bed.fault("claim", fault);
        }
        let failure = claim(&mut bed, 1).expect_err("eight tries are all");
        assert_eq!(matches!(failure, Failure::Store(_)), last.is_some(), "{failure:?}");
        assert!(bed.entry(1, 0).expect("untouched").lease.is_none());
    }
}

#[test]
fn a_run_survives_every_fault_at_every_commit_of_a_delivery() {
    for what in ["claim", "settle"] {
        for fault in [Fault::Conflict, Fault::Unavailable, Fault::Committed, Fault::Lost, Fault::Late] {
            for answer in [status(200), status(410), status(500)] {
                let mut bed = one_sent();
                bed.answers.push_back(answer);
                bed.fault(what, fault);
                assert_eq!(bed.once(1, 10).report.processed, 1, "{what} {fault:?} {answer:?}");
                assert_eq!(bed.posts.len(), 1, "{what} {fault:?} {answer:?}: no second attempt");
                bed.assert_counted();
                bed.assert_discoverable();
            }
        }
    }
}
