//! Large payloads: staged, published, read back in order, collected.

use restante_core::atoms::Bytes;
use restante_core::keys::Kind;
use restante_core::machine::{DeliveryEnd, Failure, SendError, SendRequest};
use restante_core::plan::{Settled, StageBegin, StageChunk};
use restante_core::record::DropReason;
use restante_core::{Command, Config, Rejection};

use crate::bed::{Bed, Fault, config, entry_id, keyed, send, send_id, status};

fn small_chunks() -> Config {
    Config { inline_bytes_max: 4, chunk_bytes: 10, ..config() }
}

/// A payload of `len` bytes that differ from place to place.
fn large(number: u8, len: usize, inboxes: &[&str]) -> SendRequest {
    let payload: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
    SendRequest { payload: Bytes::from(payload), ..send(number, inboxes) }
}

#[test]
fn a_large_payload_is_staged_in_chunks_and_published_by_one_commit_that_deletes_the_stage() {
    let mut bed = Bed::new(small_chunks());
    bed.accept(large(1, 25, &["a.example/inbox"]));
    let names: Vec<_> = bed.commits.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["stage-begin", "stage-chunk", "stage-chunk", "stage-chunk", "accept"]);
    assert_eq!(bed.sizes("accept"), [(4, 7)]);
    assert_eq!((bed.all(Kind::Stage).len(), bed.all(Kind::PayloadChunk).len(), bed.all(Kind::Member).len()), (0, 3, 1));
}

#[test]
fn a_staged_payload_arrives_whole_whatever_its_length() {
    for len in [5, 10, 11, 80, 81, 205] {
        let mut bed = Bed::new(small_chunks());
        let request = large(1, len, &["a.example/inbox"]);
        bed.accept(request.clone());
        bed.once(1, 1);
        assert_eq!(bed.posts[0].payload, request.payload, "{len} bytes");
        assert_eq!(bed.all(Kind::Member).len(), 0);
    }
}

#[test]
fn a_staged_keyed_accept_with_the_most_recipients_fits_the_smallest_store() {
    let mut bed = Bed::new(Config { recipients_max: 5, ..small_chunks() });
    let hosts = ["a.example/1", "b.example/1", "c.example/1", "d.example/1", "e.example/1"];
    bed.accept(SendRequest { order_key: Some("thread".into()), ..large(1, 25, &hosts) });
    assert_eq!(bed.sizes("accept")[0].0, 10);
    assert!(Config { recipients_max: 6, ..small_chunks() }.validate(&restante_kv::Limits::FLOOR).is_err());
    assert!(keyed(1, "thread", &hosts).order_key.is_some());
}

#[test]
fn chunks_stay_while_a_member_needs_them_and_go_with_the_last_one() {
    let mut bed = Bed::new(small_chunks());
    bed.answers.extend([status(200), status(500)]);
    bed.accept(large(1, 25, &["a.example/inbox", "b.example/inbox"]));
    bed.once(1, 2);
    bed.now_ms += 60_000;
    assert_eq!((bed.all(Kind::Entry).len(), bed.all(Kind::PayloadChunk).len()), (1, 3));
    bed.answers.push_back(status(500));
    // The other one keeps retrying; sweeps pass by.
    for _ in 0..3 {
        bed.answers.push_back(status(500));
        bed.once(1, 10);
        bed.now_ms += 60_000;
        assert_eq!(bed.all(Kind::PayloadChunk).len(), 3);
    }
    bed.answers.clear();
    bed.once(1, 10);
    bed.now_ms += 60_000;
    bed.once(1, 10);
    assert_eq!((bed.all(Kind::Entry).len(), bed.all(Kind::PayloadChunk).len()), (0, 0));
    assert!(bed.posts.iter().all(|post| post.payload.len() == 25));
}

#[test]
fn an_unpublished_payload_is_collected_and_a_late_publish_is_refused() {
    let mut bed = Bed::new(small_chunks());
    // The sender stops right before it publishes, until the stage's deadline has passed and a sweep came by.
    bed.before("accept", |bed| {
        bed.now_ms += 600_000;
        bed.once(9, 10);
        assert_eq!((bed.all(Kind::Stage).len(), bed.all(Kind::PayloadChunk).len()), (0, 0));
    });
    let result = bed.send(large(1, 25, &["a.example/inbox"])).map(|_| ());
    assert_eq!(result, Err(SendError::NotAccepted(Failure::Rejected(Rejection::StageGone))));
    assert_eq!(bed.depth().entries, 0);
}

#[test]
fn a_stage_is_not_collected_before_its_deadline() {
    let mut bed = Bed::new(small_chunks());
    bed.before("accept", |bed| {
        bed.now_ms += 599_999;
        bed.once(9, 10);
    });
    bed.accept(large(1, 25, &["a.example/inbox"]));
    assert_eq!(bed.once(1, 1).ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Delivered))]);
}

/// Sequence: the sweep looks for members of a send that is not published yet and finds none; the publish commits; the sweep
/// finds the stage gone and takes the chunks for garbage. The stage must be seen gone first.
#[test]
fn a_publish_in_the_middle_of_a_sweep_does_not_lose_its_payload() {
    for moment in ["sweep-stage", "sweep-count", "prune"] {
        let mut bed = Bed::new(small_chunks());
        let request = large(1, 25, &["a.example/inbox"]);
        bed.run(Command::StageBegin(StageBegin { send: send_id(1) })).expect("staged");
        for (number, bytes) in request.payload.as_slice().chunks(10).enumerate() {
            let chunk = StageChunk { send: send_id(1), number: number as u32, bytes: Bytes::from(bytes) };
            bed.run(Command::StageChunk(chunk)).expect("staged");
        }
        let accept = restante_core::plan::Accept {
            send: send_id(1),
            idempotency_key: "key-1".into(),
            recipients: request.recipients.clone(),
            order_key: None,
            body: restante_core::record::Body::Staged { chunk_count: 3 },
            payload_digest: restante_core::plan::Accept::digest_payload(&request.payload),
            signing: request.signing.clone(),
            slot: 0,
        };
        bed.before(moment, move |bed| _ = bed.run(Command::Accept(accept)).expect("published"));
        bed.once(9, 0);
        if bed.all(Kind::Entry).is_empty() {
            continue; // This sweep has no such moment while the stage exists.
        }
        assert_eq!(bed.all(Kind::PayloadChunk).len(), 3, "published before {moment}");
        assert_eq!(bed.once(1, 1).ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Delivered))]);
    }
}

/// A caller that repeats a published send stages it again; the second stage is nobody's and is collected, the first's chunks stay.
#[test]
fn repeating_a_published_send_loses_nothing_and_leaves_nothing_behind() {
    let mut bed = Bed::new(small_chunks());
    let request = large(1, 25, &["a.example/inbox"]);
    bed.accept(request.clone());
    assert_eq!(bed.send(request.clone()).map(|(_, duplicate, _)| duplicate), Ok(true));
    assert_eq!(bed.all(Kind::Stage).len(), 1);
    bed.answers.push_back(status(500));
    bed.once(1, 10);
    bed.now_ms += 600_000;
    bed.answers.push_back(status(500));
    bed.once(1, 10);
    assert_eq!((bed.all(Kind::Stage).len(), bed.all(Kind::PayloadChunk).len()), (0, 3));
    bed.now_ms += 60_000;
    bed.once(1, 10);
    bed.now_ms += 60_000;
    bed.once(1, 10);
    assert_eq!(bed.posts.last().map(|post| post.payload.clone()), Some(request.payload));
    assert!(bed.all(Kind::PayloadChunk).is_empty());
}

#[test]
fn a_payload_that_is_gone_is_a_dead_letter_and_not_an_endless_retry() {
    let mut bed = Bed::new(small_chunks());
    bed.accept(large(1, 25, &["a.example/inbox"]));
    bed.tamper(bed.env.keys.chunk(send_id(1), 1), None);
    let reason = DropReason::PayloadUnreadable;
    assert_eq!(bed.once(1, 1).ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Dropped(reason)))]);
    assert!(bed.posts.is_empty());
    bed.assert_counted();
}

#[test]
fn a_store_that_refuses_a_chunk_is_asked_again() {
    let mut bed = Bed::new(small_chunks());
    bed.accept(large(1, 25, &["a.example/inbox"]));
    bed.fault("load-payload", Fault::Unavailable);
    assert_eq!(bed.once(1, 1).ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Delivered))]);
}

#[test]
fn an_ambiguous_stage_or_publish_is_accepted_once() {
    for what in ["stage-begin", "stage-chunk", "accept"] {
        for fault in [Fault::Committed, Fault::Lost, Fault::Late, Fault::Conflict, Fault::Unavailable] {
            let mut bed = Bed::new(small_chunks());
            bed.fault(what, fault);
            bed.accept(large(1, 25, &["a.example/inbox"]));
            assert_eq!(bed.depth().entries, 1, "{what} {fault:?}");
            bed.once(1, 10);
            assert_eq!((bed.posts.len(), bed.posts[0].payload.len()), (1, 25), "{what} {fault:?}");
        }
    }
}
