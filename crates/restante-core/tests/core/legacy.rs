//! Messages of an old queue: the gate's one marker, adoption, and what a listener does with a message.

use std::sync::Arc;

use restante_core::atoms::{Bytes, Sealed};
use restante_core::keys::Kind;
use restante_core::machine::{
    FanoutChoice, HandOver, HandOverError, HandOverStep, Io, LegacyEnd, LegacyIo, LegacyMode, LegacyReply, LegacyRunReport,
    LegacySettings, LegacyStep, Listener, OldDelivery, OldMessage, OtherEnd, PostResult, QueueFailure, Reply, SendError,
    SendRequest, WorkId,
};
use restante_core::plan::{Accept, Adopt, HoldNotice, LegacyAnswer, LegacyGate, SetHold, SetIntake};
use restante_core::record::{Body, Intent, Marker, MarkerState, Record};
use restante_core::{Command, Outcome, Rejection, machine::Failure};

use crate::bed::{Bed, Fault, keyed, recipient, send_id, status};

fn delivery(failure_count: u32) -> OldDelivery {
    OldDelivery {
        id: "old-1".into(),
        to: recipient("a.example/inbox"),
        order_key: None,
        failure_count,
        payload: Bytes::from(&b"an activity"[..]),
    }
}

fn gate(bed: &mut Bed, send: u8, old: &OldDelivery) -> LegacyAnswer {
    let gate = LegacyGate {
        send: send_id(send),
        idempotency_key: old.idempotency_key(),
        destination: old.to.destination.clone(),
        failure_count: old.failure_count,
    };
    match bed.run(Command::LegacyGate(gate)) {
        Ok((Outcome::Legacy(answer), _)) => answer,
        other => panic!("the gate came to {other:?}"),
    }
}

fn hold(bed: &mut Bed) {
    let notice = HoldNotice::Hold { from: None, until: None };
    let destination = recipient("a.example/inbox").destination;
    bed.run(Command::SetHold(SetHold { destination, notice })).expect("held");
}

fn release(bed: &mut Bed) {
    let destination = recipient("a.example/inbox").destination;
    bed.run(Command::SetHold(SetHold { destination, notice: HoldNotice::Release { from: None } })).expect("released");
}

fn set_intake(bed: &mut Bed, open: bool) {
    bed.run(Command::SetIntake(SetIntake { open })).expect("set");
}

fn adopt(bed: &mut Bed, send: u8, old: &OldDelivery) -> Result<Outcome, Failure> {
    let accept = Accept {
        send: send_id(send),
        idempotency_key: old.idempotency_key(),
        recipients: vec![old.to.clone()],
        order_key: old.order_key.clone(),
        body: Body::Inline(old.payload.clone()),
        payload_digest: Accept::digest_payload(&old.payload),
        signing: Sealed::default(),
        slot: 0,
    };
    let adopt = Adopt { accept, failure_count: old.failure_count };
    bed.run(Command::Adopt(Box::new(adopt))).map(|(outcome, _)| outcome)
}

#[test]
fn adopted_is_an_entry_with_its_attempts_and_owned_from_now_on() {
    let (mut bed, old) = (Bed::default(), delivery(3));
    hold(&mut bed);
    let answer = gate(&mut bed, 1, &old);
    assert!(matches!(answer, LegacyAnswer::Held { intake_open: true, is_tried: false, .. }), "{answer:?}");
    bed.now_ms += 1_000;
    assert_eq!(adopt(&mut bed, 1, &old), Ok(Outcome::Accepted { send: send_id(1), duplicate: false }));
    let entry = bed.entry(1, 0).expect("adopted");
    assert_eq!((entry.failure_count, entry.origin), (3, bed.now()), "retention runs from the adoption");
    assert_eq!(bed.sizes("legacy-gate"), [], "a gate that finds a hold commits nothing");
    bed.assert_counted();
    bed.assert_discoverable();
    release(&mut bed);
    assert_eq!(gate(&mut bed, 2, &old), LegacyAnswer::Owned(send_id(1)), "also when nothing is held any more");
}

#[test]
fn an_adoption_that_is_late_finds_that_the_message_went_the_other_way() {
    let (mut bed, old) = (Bed::default(), delivery(2));
    assert_eq!(gate(&mut bed, 2, &old), LegacyAnswer::Attempt);
    hold(&mut bed);
    // Whoever still has it as it was then: its gate says so, and an adoption that did not ask again is refused.
    assert!(matches!(gate(&mut bed, 1, &old), LegacyAnswer::Held { is_tried: true, .. }));
    for older in [delivery(2), delivery(1), delivery(0)] {
        assert_eq!(adopt(&mut bed, 1, &older), Err(Failure::Rejected(Rejection::Aborted)));
    }
    assert_eq!(bed.depth().entries, 0);
    // The attempt failed, and the message says so: it may be adopted now.
    let next = delivery(3);
    assert!(matches!(gate(&mut bed, 3, &next), LegacyAnswer::Held { is_tried: false, .. }));
    assert_eq!(adopt(&mut bed, 3, &next), Ok(Outcome::Accepted { send: send_id(3), duplicate: false }));
    assert_eq!(gate(&mut bed, 4, &old), LegacyAnswer::Owned(send_id(3)), "also for who has it as it was");
}

#[test]
fn an_attempt_is_fenced_once() {
    let (mut bed, old) = (Bed::default(), delivery(2));
    assert_eq!(gate(&mut bed, 1, &old), LegacyAnswer::Attempt);
    assert_eq!(bed.sizes("legacy-gate"), [(2, 1)]);
    assert_eq!(gate(&mut bed, 2, &old), LegacyAnswer::Attempt, "received again");
    assert_eq!(gate(&mut bed, 3, &delivery(1)), LegacyAnswer::Attempt);
    assert_eq!(bed.sizes("legacy-gate"), [(2, 1)], "that it was tried is known");
}

#[test]
fn an_adoption_whose_commit_is_late_is_met_by_the_next_look() {
    let (mut bed, old) = (Bed::default(), delivery(0));
    hold(&mut bed);
    gate(&mut bed, 1, &old);
    for _ in 0..crate::bed::config().tries_max {
        bed.fault("adopt", Fault::Lost);
    }
    assert_eq!(adopt(&mut bed, 1, &old), Err(Failure::Unknown));
    // One of them is still on its way.
    let late = bed.commits.iter().rfind(|(what, _)| *what == "adopt").expect("it was sent").1.clone();
    release(&mut bed);
    assert_eq!(gate(&mut bed, 2, &old), LegacyAnswer::Attempt);
    assert!(bed.model.commit(&late).is_err(), "it does not commit any more");
}

#[test]
fn a_closed_intake_adopts_nothing() {
    let (mut bed, old) = (Bed::default(), delivery(0));
    hold(&mut bed);
    gate(&mut bed, 1, &old);
    set_intake(&mut bed, false);
    assert_eq!(adopt(&mut bed, 1, &old), Err(Failure::Rejected(Rejection::IntakeClosed)));
    assert!(matches!(gate(&mut bed, 1, &old), LegacyAnswer::Held { intake_open: false, .. }));
    assert!(bed.depth().is_drained());
}

#[test]
fn the_same_message_adopted_twice_is_one_send() {
    let (mut bed, old) = (Bed::default(), delivery(0));
    hold(&mut bed);
    adopt(&mut bed, 1, &old).expect("adopted");
    assert_eq!(adopt(&mut bed, 2, &old), Ok(Outcome::Accepted { send: send_id(1), duplicate: true }));
    assert_eq!(bed.depth().entries, 1);
}

#[test]
fn what_waits_behind_earlier_sends_of_its_key_keeps_its_attempts() {
    let mut bed = Bed::default();
    bed.accept(SendRequest { fanout: FanoutChoice::Force, ..keyed(1, "thread", &["b.example/inbox"]) });
    let old = OldDelivery { order_key: Some("thread".into()), ..delivery(7) };
    hold(&mut bed);
    adopt(&mut bed, 2, &old).expect("adopted");
    let intents = bed.all(Kind::Intent);
    let waiting = intents.iter().map(|(_, value)| Intent::decode(value).expect("readable")).find(|intent| !intent.active);
    assert_eq!(waiting.expect("it waits").failure_count, 7);
    bed.assert_counted();
}

#[test]
fn ids_payloads_inboxes_and_keys_tell_messages_apart() {
    let one = delivery(0);
    let others = [
        OldDelivery { id: "old-2".into(), ..one.clone() },
        OldDelivery { to: recipient("b.example/inbox"), ..one.clone() },
        OldDelivery { order_key: Some("thread".into()), ..one.clone() },
        OldDelivery { payload: Bytes::from(&b"another"[..]), ..one.clone() },
    ];
    assert_eq!(one.idempotency_key(), OldDelivery { failure_count: 9, ..one.clone() }.idempotency_key());
    for other in others {
        assert_ne!(one.idempotency_key(), other.idempotency_key(), "{other:?}");
    }
}

// The listener.

/// A listener with one message in its hands, and what it did with it.
struct Story {
    bed: Bed,
    listener: Listener,
    step: LegacyStep,
    done: Vec<LegacyIo>,
}

impl Story {
    fn of(mode: LegacyMode, message: OldMessage, before: impl FnOnce(&mut Bed)) -> Self {
        let mut bed = Bed::default();
        before(&mut bed);
        let settings = LegacySettings { concurrency: 1, ..LegacySettings::new(mode) };
        let (mut listener, step) = Listener::serve(bed.env.clone(), settings, 0, bed.local());
        assert!(matches!(step.actions[..], [(WorkId::LISTENER, _, LegacyIo::Receive { .. })]));
        let received = LegacyReply::Received(Ok(Some((message, send_id(9)))));
        let step = listener.step(WorkId::LISTENER, received, bed.local());
        Self { bed, listener, step, done: Vec::new() }
    }

    /// Goes on until the message ends; the old queue and the destination answer as told.
    fn until_the_end(mut self, answer: PostResult, queue: &[Result<(), QueueFailure>]) -> (Bed, Vec<LegacyIo>, LegacyEnd) {
        let mut queue = queue.iter();
        loop {
            if let Some((_, end)) = self.step.ended.pop() {
                return (self.bed, self.done, end);
            }
            let (work, about, io) = self.step.actions.remove(0);
            let reply = match io.clone() {
                LegacyIo::Store(io) => LegacyReply::Store(self.bed.execute(&about, io)),
                LegacyIo::Attempt { .. } => LegacyReply::Attempted { result: answer, entropy: 0 },
                LegacyIo::Seal => LegacyReply::Sealed(Some(Sealed::default())),
                LegacyIo::Other => LegacyReply::Other(OtherEnd::Done),
                LegacyIo::Expand | LegacyIo::Complete | LegacyIo::PutBack { .. } => {
                    LegacyReply::Queue(queue.next().copied().unwrap_or(Ok(())))
                }
                LegacyIo::Receive { .. } => panic!("one message at a time"),
            };
            if !matches!(io, LegacyIo::Store(_)) {
                self.done.push(io);
            }
            self.step = self.listener.step(work, reply, self.bed.local());
        }
    }
}

fn one(failure_count: u32) -> OldMessage {
    OldMessage::Delivery(Box::new(delivery(failure_count)))
}

fn attempt(bed_timeout_ms: u64) -> LegacyIo {
    LegacyIo::Attempt { timeout_ms: bed_timeout_ms }
}

#[test]
fn what_arrives_is_completed_and_what_does_not_is_put_back_by_the_old_policy() {
    let timeout_ms = crate::bed::config().request_timeout_ms;
    for mode in [LegacyMode::Drain, LegacyMode::AdoptOnHold] {
        let story = |failures, answer| Story::of(mode, one(failures), |_| {}).until_the_end(answer, &[]);
        let (_, done, end) = story(0, status(202));
        assert_eq!((done, end), (vec![attempt(timeout_ms), LegacyIo::Complete], LegacyEnd::Delivered));
        let (_, done, end) = story(2, status(500));
        let back = LegacyIo::PutBack { delay_ms: 4_000, failure_count: Some(3) };
        assert_eq!((done, end), (vec![attempt(timeout_ms), back], LegacyEnd::Retried));
        let (_, done, end) = story(2, PostResult::Status { code: 429, retry_after_ms: Some(7) });
        let back = LegacyIo::PutBack { delay_ms: 7, failure_count: Some(3) };
        assert_eq!((done, end), (vec![attempt(timeout_ms), back], LegacyEnd::Retried));
        assert!(matches!(story(10, status(500)).2, LegacyEnd::GivenUp(_)), "eleven attempts");
        assert!(matches!(story(0, status(410)).2, LegacyEnd::GivenUp(_)));
    }
}

#[test]
fn a_held_destination_only_delays_when_draining_and_adopts_when_told_to() {
    let (bed, done, end) = Story::of(LegacyMode::Drain, one(4), hold).until_the_end(status(202), &[]);
    assert_eq!(end, LegacyEnd::Held);
    assert!(matches!(done[..], [LegacyIo::PutBack { failure_count: None, .. }]), "{done:?}");
    assert_eq!(bed.all(Kind::Entry).len(), 0);

    let (bed, done, end) = Story::of(LegacyMode::AdoptOnHold, one(4), hold).until_the_end(status(202), &[]);
    assert_eq!(end, LegacyEnd::Adopted { send: send_id(9), duplicate: false });
    assert_eq!(done, [LegacyIo::Seal, LegacyIo::Complete], "owned first, completed then");
    assert_eq!(bed.entry(9, 0).expect("owned").failure_count, 4);
}

#[test]
fn an_adoption_of_unknown_outcome_completes_nothing() {
    let before = |bed: &mut Bed| {
        hold(bed);
        for _ in 0..crate::bed::config().tries_max {
            bed.fault("adopt", Fault::Lost);
        }
    };
    let (_, done, end) = Story::of(LegacyMode::AdoptOnHold, one(0), before).until_the_end(status(202), &[]);
    assert_eq!(end, LegacyEnd::AdoptionUnknown);
    assert!(matches!(done[..], [LegacyIo::Seal, LegacyIo::PutBack { failure_count: None, .. }]), "{done:?}");
}

#[test]
fn a_closed_intake_leaves_the_message_where_it_is() {
    let before = |bed: &mut Bed| {
        hold(bed);
        set_intake(bed, false);
    };
    let (_, done, end) = Story::of(LegacyMode::AdoptOnHold, one(0), before).until_the_end(status(202), &[]);
    assert_eq!(end, LegacyEnd::IntakeClosed);
    assert!(matches!(done[..], [LegacyIo::PutBack { .. }]), "{done:?}");
}

#[test]
fn a_large_message_is_staged_and_adopted() {
    let payload = Bytes::from(vec![7; crate::bed::config().inline_bytes_max + 1]);
    let large = OldMessage::Delivery(Box::new(OldDelivery { payload, ..delivery(1) }));
    let (bed, _, end) = Story::of(LegacyMode::AdoptOnHold, large, hold).until_the_end(status(202), &[]);
    assert_eq!(end, LegacyEnd::Adopted { send: send_id(9), duplicate: false });
    let entry = bed.entry(9, 0).expect("owned");
    assert!(matches!(entry.body, Body::Staged { .. }));
    assert_eq!(entry.failure_count, 1);
}

#[test]
fn a_completion_is_repeated_until_it_is_certain_or_somebody_elses() {
    let unknown = Err(QueueFailure::Unknown);
    let (_, done, end) =
        Story::of(LegacyMode::Drain, one(0), |_| {}).until_the_end(status(202), &[unknown, Err(QueueFailure::Unavailable)]);
    assert_eq!(end, LegacyEnd::Delivered);
    assert_eq!(done.iter().filter(|io| **io == LegacyIo::Complete).count(), 3);
    let (_, _, end) =
        Story::of(LegacyMode::Drain, one(0), |_| {}).until_the_end(status(202), &[unknown, Err(QueueFailure::Outdated)]);
    assert_eq!(end, LegacyEnd::Left);
    let all = vec![Err(QueueFailure::Unavailable); 100];
    assert_eq!(Story::of(LegacyMode::Drain, one(0), |_| {}).until_the_end(status(202), &all).2, LegacyEnd::Left);
}

#[test]
fn a_fanout_is_completed_once_its_deliveries_are_in_and_others_are_the_callers() {
    let (_, done, end) = Story::of(LegacyMode::Drain, OldMessage::Fanout, |_| {})
        .until_the_end(status(202), &[Err(QueueFailure::Unknown), Ok(()), Ok(())]);
    assert_eq!((done, end), (vec![LegacyIo::Expand, LegacyIo::Expand, LegacyIo::Complete], LegacyEnd::Expanded));
    let (_, done, end) = Story::of(LegacyMode::Drain, OldMessage::Other, |_| {}).until_the_end(status(202), &[]);
    assert_eq!((done, end), (vec![LegacyIo::Other, LegacyIo::Complete], LegacyEnd::Other));
}

#[test]
fn an_attempt_that_could_outlast_its_receipt_is_not_begun() {
    let mut story = Story::of(LegacyMode::Drain, one(0), |_| {});
    story.bed.now_ms += 50_000;
    let (bed, done, end) = story.until_the_end(status(202), &[]);
    assert_eq!((done, end), (vec![LegacyIo::PutBack { delay_ms: 0, failure_count: None }], LegacyEnd::Yielded));
    let marker = bed.all(Kind::Marker).pop().map(|(_, value)| Marker::decode(&value).expect("readable").state);
    assert_eq!(marker, Some(MarkerState::Tried { failure_count: 0 }));
}

#[test]
fn a_listener_stops_when_its_hands_are_empty() {
    let bed = Bed::default();
    let settings = LegacySettings::new(LegacyMode::Drain);
    let (mut listener, _) = Listener::serve(bed.env.clone(), settings, 0, bed.local());
    let step = listener.step(WorkId::LISTENER, LegacyReply::Received(Ok(None)), bed.local());
    assert!(matches!(step.actions[..], [(WorkId::LISTENER, _, LegacyIo::Store(_))]), "it waits");
    assert!(listener.stop().finished.is_some());

    let (mut listener, _) = Listener::serve(bed.env.clone(), LegacySettings::new(LegacyMode::Drain), 0, bed.local());
    assert_eq!(listener.stop().finished, None, "a message may be on its way");
    let received = LegacyReply::Received(Ok(Some((OldMessage::Other, send_id(1)))));
    let step = listener.step(WorkId::LISTENER, received, bed.local());
    let work = step.received.expect("it is taken care of");
    assert_eq!(listener.step(work, LegacyReply::Other(OtherEnd::Done), bed.local()).finished, None);
    let finished = listener.step(work, LegacyReply::Queue(Ok(())), bed.local()).finished;
    assert_eq!(finished, Some(LegacyRunReport { processed: 1, more: true }), "a listener that is stopped proves nothing");
}

// The bounded run.

/// A bounded run that is handed messages nobody but it knows, and what it asked the queue.
struct Run {
    bed: Bed,
    listener: Listener,
    receives: usize,
    under_way: Vec<WorkId>,
    waits: usize,
    finished: Option<LegacyRunReport>,
}

impl Run {
    fn of(limit: u64) -> Self {
        let bed = Bed::default();
        let settings = LegacySettings { concurrency: 2, ..LegacySettings::new(LegacyMode::Drain) };
        let (listener, step) = Listener::once(bed.env.clone(), settings, 0, limit, bed.local());
        let mut run = Self { bed, listener, receives: 0, under_way: Vec::new(), waits: 0, finished: None };
        run.follow(step);
        run
    }

    fn follow(&mut self, step: LegacyStep) {
        for (_, _, io) in &step.actions {
            self.receives += usize::from(matches!(io, LegacyIo::Receive { .. }));
            self.waits += usize::from(matches!(io, LegacyIo::Store(Io::Sleep { .. })));
        }
        self.under_way.extend(step.received);
        self.finished = step.finished;
    }

    fn step(&mut self, work: WorkId, reply: LegacyReply) {
        let step = self.listener.step(work, reply, self.bed.local());
        self.follow(step);
    }

    fn answer(&mut self, answer: Result<bool, QueueFailure>) {
        let message = answer.map(|is_there| is_there.then(|| (OldMessage::Other, send_id(1))));
        self.step(WorkId::LISTENER, LegacyReply::Received(message));
    }

    fn end_one(&mut self) {
        let work = self.under_way.remove(0);
        self.step(work, LegacyReply::Other(OtherEnd::Done));
        self.step(work, LegacyReply::Queue(Ok(())));
    }
}

#[test]
fn a_bounded_run_proves_the_queue_empty_only_with_empty_hands() {
    let mut run = Run::of(10);
    run.answer(Ok(true));
    run.answer(Ok(false));
    assert_eq!((run.finished, run.receives), (None, 2), "what is in hand may have others of its key behind it");
    run.end_one();
    assert_eq!((run.finished, run.receives), (None, 3), "it asks once more");
    run.answer(Ok(false));
    assert_eq!(run.finished, Some(LegacyRunReport { processed: 1, more: false }));
}

#[test]
fn an_answer_that_is_older_than_the_end_of_a_message_proves_nothing() {
    let mut run = Run::of(10);
    run.answer(Ok(true));
    run.end_one();
    run.answer(Ok(false));
    assert_eq!((run.finished, run.receives), (None, 3), "it was asked while a message was in hand");
    run.answer(Ok(true));
    run.end_one();
    run.answer(Ok(false));
    run.answer(Ok(false));
    assert_eq!(run.finished, Some(LegacyRunReport { processed: 2, more: false }));
}

#[test]
fn a_receive_of_unknown_outcome_may_have_hidden_a_message_from_all() {
    let mut run = Run::of(10);
    run.answer(Err(QueueFailure::Unknown));
    run.step(WorkId::LISTENER, LegacyReply::Store(Reply::Slept));
    run.answer(Ok(false));
    assert_eq!(run.finished, Some(LegacyRunReport { processed: 0, more: true }));
}

#[test]
fn a_bounded_run_takes_no_more_than_its_limit() {
    let mut run = Run::of(1);
    run.answer(Ok(true));
    assert_eq!((run.finished, run.receives), (None, 1));
    run.end_one();
    assert_eq!((run.finished, run.receives), (Some(LegacyRunReport { processed: 1, more: true }), 1));
    assert_eq!(Run::of(0).finished, Some(LegacyRunReport { processed: 0, more: true }));
}

#[test]
fn a_bounded_run_gives_up_a_queue_that_does_not_answer_and_proves_nothing() {
    let mut run = Run::of(10);
    run.answer(Ok(true));
    let tries_max = run.bed.env.config.tries_max;
    for number in 1..=tries_max {
        assert_eq!(run.finished, None);
        run.answer(Err(if number % 2 == 0 { QueueFailure::Unknown } else { QueueFailure::Unavailable }));
        if number < tries_max {
            run.step(WorkId::LISTENER, LegacyReply::Store(Reply::Slept));
        }
    }
    assert_eq!((run.finished, run.waits, run.receives), (None, tries_max as usize - 1, tries_max as usize + 1));
    run.end_one();
    assert_eq!(run.finished, Some(LegacyRunReport { processed: 1, more: true }), "what it had in hand was brought to its end");
}

// Handing over.

fn closed() -> SendError {
    SendError::NotAccepted(Failure::Rejected(Rejection::IntakeClosed))
}

#[test]
fn only_what_a_closed_intake_certainly_refused_is_handed_over() {
    assert!(HandOver::after(&SendError::Unknown).is_none(), "it may be the backlog's already");
    assert!(HandOver::after(&SendError::NotAccepted(Failure::Contention)).is_none());
    let env = Arc::clone(&Bed::default().env);
    let (mut hand_over, first) = HandOver::after(&closed()).expect("refused for certain");
    assert_eq!(first, HandOverStep::Enqueue);
    assert_eq!(hand_over.enqueued(&env, Ok(())), HandOverStep::Done(Ok(())));
}

#[test]
fn a_hand_over_that_may_have_happened_never_counts_as_refused() {
    let env = Arc::clone(&Bed::default().env);
    let run = |first: QueueFailure| {
        let (mut hand_over, _) = HandOver::after(&closed()).expect("refused for certain");
        let mut step = hand_over.enqueued(&env, Err(first));
        loop {
            step = match step {
                HandOverStep::Enqueue => hand_over.enqueued(&env, Err(QueueFailure::Unavailable)),
                HandOverStep::Sleep(_) => hand_over.slept(),
                HandOverStep::Done(result) => return result,
            }
        }
    };
    assert_eq!(run(QueueFailure::Unavailable), Err(HandOverError::Refused));
    assert_eq!(run(QueueFailure::Unknown), Err(HandOverError::Unknown));
}
