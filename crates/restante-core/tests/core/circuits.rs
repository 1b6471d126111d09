//! The circuit breaker: it opens, admits one probe, closes; nothing hangs on its own transaction. Shares and ramps beside it.

use restante_core::keys::Kind;
use restante_core::machine::{DeliveryEnd, NotSent, PostResult, Slots, Worker};
use restante_core::plan::{CountAttempt, Gate, GateAnswer, Reach, Settled};
use restante_core::record::{
    Block, Breaker, Circuit, CircuitState, DeadLetter, Destination, DropReason, HoldInterval, WaitReason, look_again_at,
};
use restante_core::{CircuitChange, Command, Config, Effect, Observation, Outcome, Subject};
use restante_kv::StoreTime;

use crate::bed::{Bed, Fault, config, entry_id, owner, send, status};

const HOST: &str = "https://a.example";
const RECOVERY_MS: u64 = 1_800_000;

fn bed() -> Bed {
    Bed::new(Config { breaker_failures: 5, backoff_initial_ms: 10_000, backoff_max_ms: 10_000, ..config() })
}

fn state(bed: &Bed) -> CircuitState {
    known(bed).circuit_at(bed.now())
}

fn known(bed: &Bed) -> Destination {
    bed.read(&bed.env.keys.destination(HOST)).unwrap_or_default()
}

/// Five sends meet a server that is out of order.
fn opened() -> Bed {
    let mut bed = bed();
    for number in 1..=5 {
        bed.accept(send(number, &[&format!("a.example/{number}")]));
    }
    bed.answers.extend([status(500); 5]);
    bed.once(1, 5);
    assert_eq!(state(&bed), CircuitState::Open(bed.now().plus_ms(RECOVERY_MS)));
    bed
}

#[test]
fn five_failures_open_it_and_it_is_one_row_whatever_waits() {
    let mut bed = bed();
    for number in 1..=8 {
        bed.accept(send(number, &[&format!("a.example/{number}")]));
    }
    bed.answers.extend([status(500); 5]);
    let before = bed.commits.len();
    bed.once(1, 5);
    let counts: Vec<_> = bed.commits[before..].iter().filter(|(name, _)| *name == "count-attempt").collect();
    assert!(counts.len() >= 5, "some meet each other, and count in their next try");
    assert!(counts.iter().all(|(_, txn)| txn.writes.len() == 1 && txn.checks.len() == 1));
    // Nobody is claimed before it recovers.
    bed.now_ms += 20_000;
    let ran = bed.once(1, 10);
    assert_eq!((ran.report.processed, bed.posts.len()), (0, 5));
}

#[test]
fn failures_that_are_too_old_do_not_count() {
    let mut bed = bed();
    for number in 1..=6 {
        bed.accept(send(number, &[&format!("a.example/{number}")]));
        bed.answers.push_back(status(500));
        bed.once(1, 1);
        bed.now_ms += 180_000;
    }
    assert_eq!(state(&bed), CircuitState::Closed);
}

#[test]
fn an_ordinary_delivery_costs_nothing_more_and_one_that_arrives_forgets_the_failures() {
    let mut bed = bed();
    bed.accept(send(1, &["a.example/1"]));
    bed.once(1, 1);
    assert!(bed.actions.iter().all(|what| *what != "count-attempt"), "{:?}", bed.actions);
    for (number, answer) in [(2, status(500)), (3, PostResult::Unknown), (4, PostResult::NotSent(NotSent::Connect))] {
        bed.accept(send(number, &["a.example/1"]));
        bed.answers.push_back(answer);
        bed.once(1, 1);
    }
    let breaker = known(&bed).breaker.expect("it counts");
    assert!(matches!(&breaker.circuit, Circuit::Counting(failures) if failures.len() == 3), "{breaker:?}");
    bed.accept(send(5, &["a.example/1"]));
    bed.answers.push_back(status(404));
    bed.once(1, 1);
    assert_eq!(bed.all(Kind::Destination).len(), 0, "a refusal is an answer");
}

#[test]
fn what_ends_on_this_side_says_nothing_of_the_destination() {
    let mut bed = bed();
    bed.accept(send(1, &["a.example/1"]));
    bed.answers.push_back(PostResult::NotSent(NotSent::Unsigned));
    bed.once(1, 1);
    assert!(bed.actions.iter().all(|what| *what != "count-attempt"));
}

#[test]
fn a_half_open_circuit_admits_one_probe_and_parks_the_others() {
    let mut bed = opened();
    bed.now_ms += RECOVERY_MS;
    bed.before("gate", |bed| {
        // Another worker is at another entry of the same destination.
        bed.run(Command::Claim(restante_core::plan::Claim { id: entry_id(5, 0), owner: owner(9), slot: 0 })).expect("claimed");
    });
    bed.answers.push_back(status(202));
    bed.before("count-attempt", |bed| {
        let fence = bed.entry(5, 0).expect("there").fence;
        let gate = Gate { id: entry_id(5, 0), owner: owner(9), fence, destination: HOST.into() };
        let (outcome, _) = bed.run(Command::Gate(gate)).expect("an answer");
        assert_eq!(outcome, Outcome::Gate(GateAnswer::Park(Block::Circuit)));
    });
    let ran = bed.once(1, 1);
    assert_eq!((ran.report.processed, bed.posts.len()), (1, 6), "the first share of a half-open circuit is one");
    assert_eq!(state(&bed), CircuitState::Closed);
    assert_eq!(known(&bed).breaker, None);
    bed.once(2, 10);
    bed.now_ms += 61_000;
    bed.once(3, 10);
    assert_eq!(bed.all(Kind::Entry), []);
    bed.assert_counted();
}

#[test]
fn a_failed_probe_opens_it_again_and_what_was_parked_is_counted() {
    let mut bed = opened();
    bed.now_ms += RECOVERY_MS;
    bed.answers.push_back(status(503));
    bed.once(1, 1);
    assert_eq!(state(&bed), CircuitState::Open(bed.now().plus_ms(RECOVERY_MS)));
    // One that was claimed while it was open is parked.
    bed.run(Command::Claim(restante_core::plan::Claim { id: entry_id(2, 0), owner: owner(9), slot: 0 })).expect("claimed");
    bed.now_ms += 61_000;
    assert_eq!(bed.depth().leased, 1);
    let fence = bed.entry(2, 0).expect("there").fence;
    let verdict = restante_core::plan::Verdict::Park(Block::Circuit);
    let settle =
        restante_core::plan::Settle { id: entry_id(2, 0), owner: owner(9), fence, wake_seen: 0, verdict, entropy: 0, slot: 0 };
    let (outcome, _) = bed.run(Command::Settle(settle)).expect("settled");
    assert_eq!(outcome, Outcome::Settled(Settled::Parked(Block::Circuit)));
    assert_eq!(bed.entry(2, 0).map(|entry| entry.wait), Some(WaitReason::CircuitHeld));
    assert_eq!((bed.depth().circuit_held, bed.depth().held), (1, 0));
    bed.assert_counted();
    bed.assert_discoverable();
}

#[test]
fn a_stale_probe_is_replaced_and_its_late_failure_changes_nothing() {
    let mut bed = opened();
    bed.now_ms += RECOVERY_MS;
    bed.die_after(1, 10);
    let Some(Circuit::HalfOpen(first)) = known(&bed).breaker.map(|breaker| breaker.circuit) else {
        panic!("it took the probe: {:?}", bed.actions)
    };
    assert!(matches!(state(&bed), CircuitState::Probing(_)));
    bed.now_ms += bed.env.config.lease_ms;
    assert_eq!(state(&bed), CircuitState::Probeable);
    let posts = bed.posts.len();
    bed.before("count-attempt", move |bed| {
        let late = CountAttempt {
            destination: HOST.into(),
            id: first.entry,
            owner: first.owner,
            fence: first.fence,
            reach: Reach::Failed,
        };
        assert!(bed.run(Command::CountAttempt(late)).is_err(), "not its probe any more");
    });
    bed.once(2, 1);
    assert_eq!((bed.posts.len(), state(&bed)), (posts + 1, CircuitState::Closed));
}

#[test]
fn a_probe_whose_answer_was_lost_is_still_its_takers() {
    for fault in [Fault::Committed, Fault::Lost, Fault::Conflict] {
        let mut bed = opened();
        bed.now_ms += RECOVERY_MS;
        bed.fault("gate", fault);
        let ran = bed.once(1, 1);
        assert_eq!((ran.report.processed, bed.posts.len(), state(&bed)), (1, 6, CircuitState::Closed), "{fault:?}");
    }
}

#[test]
fn an_entry_whose_time_is_over_takes_no_probe() {
    let mut bed = opened();
    bed.now_ms += bed.env.config.max_retention_ms;
    bed.once(1, 1);
    assert!(!bed.commits.iter().any(|(name, _)| *name == "gate"), "nothing was committed at a gate");
    assert_eq!(bed.posts.len(), 5);
}

#[test]
fn trouble_with_its_own_transaction_neither_stops_nor_repeats_a_delivery() {
    for fault in [Fault::Unavailable, Fault::Conflict, Fault::Lost, Fault::Committed] {
        let mut bed = bed();
        bed.accept(send(1, &["a.example/1", "a.example/2"]));
        bed.answers.extend([status(500), status(202)]);
        for _ in 0..9 {
            bed.fault("count-attempt", fault);
        }
        let ran = bed.once(1, 2);
        assert_eq!(ran.report.processed, 2, "{fault:?}");
        let delivered = ran.ended.iter().filter(|(_, end)| *end == DeliveryEnd::Settled(Settled::Delivered)).count();
        assert_eq!((delivered, bed.posts.len()), (1, 2));
        bed.assert_counted();
    }
}

#[test]
fn what_a_circuit_keeps_back_for_too_long_is_given_up_with_that_reason() {
    let mut bed = Bed::new(Config { circuit_held_max_ms: 4_000_000, max_retention_ms: u64::MAX / 4, ..bed().env.config.clone() });
    for number in 1..=6 {
        bed.accept(send(number, &[&format!("a.example/{number}")]));
    }
    bed.answers.extend([status(500); 9]);
    bed.once(1, 5);
    for _ in 0..3 {
        bed.now_ms += RECOVERY_MS;
        bed.once(2, 1);
    }
    let letters = bed.all(Kind::DeadLetter);
    assert!(!letters.is_empty());
    for (_, value) in letters {
        let letter = <DeadLetter as restante_core::record::Record>::decode(&value).expect("readable");
        assert_eq!(letter.reason, DropReason::CircuitHeld);
    }
    bed.assert_counted();
}

#[test]
fn a_circuit_that_was_open_when_the_breaker_was_switched_off_goes_with_its_next_attempt() {
    for answer in [status(500), status(202)] {
        let mut bed = opened();
        bed.now_ms += RECOVERY_MS;
        let config = Config { breaker_failures: 0, ..bed.env.config.clone() };
        bed.env = std::sync::Arc::new(restante_core::Env::new(config));
        bed.answers.push_back(answer);
        bed.once(1, 1);
        assert_eq!(known(&bed).breaker, None);
    }
}

/// An old claim that nobody settled is no older than what waited before it.
#[test]
fn a_reclaimed_entry_comes_after_what_was_due_before_its_lease_ended() {
    let mut bed = Bed::new(Config { window: 4, concurrency: 1, ..config() });
    bed.accept(send(99, &["a.example/1"]));
    bed.run(Command::Claim(restante_core::plan::Claim { id: entry_id(99, 0), owner: owner(9), slot: 0 })).expect("claimed");
    bed.now_ms += 1_000;
    for number in 1..=9 {
        bed.accept(send(number, &["a.example/1"]));
    }
    bed.now_ms += 100_000;
    bed.once(1, 5);
    assert!(bed.posts.iter().all(|post| post.entry != entry_id(99, 0)), "the first window is of those that waited longer");
    bed.once(1, 10);
    assert_eq!(bed.posts.len(), 10);
}

#[test]
fn changes_are_told_to_whoever_listens() {
    let mut bed = opened();
    let count = |bed: &mut Bed, reach| {
        let command = CountAttempt {
            destination: HOST.into(),
            id: entry_id(1, 0),
            owner: owner(1),
            fence: restante_core::atoms::Fence::new(1),
            reach,
        };
        bed.run(Command::CountAttempt(command)).map(|(_, effects)| effects)
    };
    assert!(count(&mut bed, Reach::Failed).is_err(), "an open circuit ignores further failures");
    let effects = count(&mut bed, Reach::Reached).expect("it closes");
    let change = CircuitChange::Closed;
    assert!(effects.contains(&Effect::Observed(Observation::CircuitChanged { destination: HOST.into(), change })));
    assert!(effects.contains(&Effect::Wake { destination: HOST.into() }));
}

#[test]
fn no_more_than_its_share_is_under_way_to_a_destination() {
    let mut bed = Bed::new(Config { concurrency_per_destination: 3, ..config() });
    for number in 1..=9 {
        bed.accept(send(number, &["a.example/1", "b.example/1"]));
    }
    let (mut worker, step) = Worker::once(bed.env.clone(), owner(1), Slots::All, 100, bed.local());
    // Discovery goes on as far as it can while nothing that it hands out gets anywhere.
    let (mut actions, mut under_way) = (step.actions, [0, 0]);
    while let Some((task, about, io)) = actions.pop() {
        match &about.subject {
            Subject::Entry(id) => under_way[id.index as usize] += 1,
            _ => {
                let reply = bed.execute(&about, io);
                actions.extend(worker.step(task, reply, bed.local()).actions);
            }
        }
    }
    assert_eq!(under_way, [3, 3]);
}

#[test]
fn a_released_destination_is_resumed_step_by_step() {
    let bed = Bed::new(Config { concurrency_per_destination: 3, ramp_step_ms: 1_000, ..config() });
    let (config, at) = (&bed.env.config, |ms: u64| StoreTime::from_ms(1_000_000 + ms));
    let hold = HoldInterval { from: at(0), until: at(10_000), is_open: false };
    // Nobody tried for so long that it was forgotten: that releases what waited as well.
    let open = Breaker { circuit: Circuit::Open { recovers_at: at(5_000) }, since: at(0), expires_at: at(10_000) };
    for known in [
        Destination { breaker: Some(open), ..Destination::default() },
        Destination { holds: vec![hold], ..Destination::default() },
        Destination { paced_until: at(10_000), ..Destination::default() },
        Destination { resumed_at: at(10_000), ..Destination::default() },
    ] {
        let shares = [10_000, 10_999, 11_000, 12_000, 60_000].map(|ms| known.share_at(at(ms), config));
        assert_eq!(shares, [1, 1, 2, 3, 3], "{known:?}");
        assert!(!known.is_over(at(12_999), config));
    }
    assert_eq!(Destination::default().share_at(at(0), config), 3);
}

#[test]
fn a_failure_after_a_circuit_was_forgotten_leaves_the_ramp_as_it_is() {
    let mut bed = opened();
    let expires_at = known(&bed).breaker.expect("it is open").expires_at;
    bed.now_ms += expires_at.since_ms(bed.now());
    let reach = Reach::Failed;
    let (destination, id) = (HOST.into(), entry_id(9, 0));
    bed.run(Command::CountAttempt(CountAttempt { destination, id, owner: owner(1), fence: Default::default(), reach }))
        .expect("it counts");
    assert_eq!((known(&bed).resumed_at, state(&bed)), (expires_at, CircuitState::Closed));
}

#[test]
fn destinations_that_are_released_together_are_not_looked_at_together() {
    let config = Config { resume_jitter_ms: 1_000, ..config() };
    let at = StoreTime::from_ms(1_000_000);
    let looks: std::collections::BTreeSet<_> =
        (0..50).map(|n| look_again_at(&format!("https://h{n}.example"), at, &config)).collect();
    assert!(looks.len() > 40 && looks.iter().all(|look| *look >= at && look.since_ms(at) < 1_000), "{looks:?}");
}
