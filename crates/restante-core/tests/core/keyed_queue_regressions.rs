//! Two defects of an earlier durable keyed queue, as tests that would catch them, on the backlog's lanes. What concerns the
//! queue inside a process (backoff in memory, the report of a stop, a task's value) is tested in `restante-keyed-queue`.

use restante_core::atoms::Fence;
use restante_core::machine::{DeliveryEnd, Failure};
use restante_core::plan::Claim;
use restante_core::record::WaitReason;
use restante_core::{Command, Outcome, Rejection};

use crate::bed::{Bed, entry_id, keyed, owner, status};

const LEASE_MS: u64 = 60_000;

fn two_sent() -> Bed {
    let mut bed = Bed::default();
    for number in 1..=2 {
        bed.accept(keyed(number, "thread", &["a.example/inbox"]));
    }
    bed
}

/// The fencing token that `who` gets for the entry of send `number`.
fn claim(bed: &mut Bed, number: u8, who: u8) -> Result<Fence, Failure> {
    let command = Claim { id: entry_id(number, 0), owner: owner(who), slot: 0 };
    bed.run(Command::Claim(command)).map(|(outcome, _)| match outcome {
        Outcome::Claimed(claimed) => claimed.entry.fence,
        other => panic!("a claim came to {other:?}"),
    })
}

fn posted(bed: &Bed) -> Vec<(u8, u64)> {
    bed.posts.iter().map(|post| (post.entry.send.as_bytes()[0], post.fence.get())).collect()
}

/// A message whose lease had run out matched neither what looked for new work nor what looked for due work, and was never
/// seen again.
#[test]
fn a_head_whose_lease_ran_out_is_found_again_under_a_higher_fence_before_any_later_entry() {
    let mut bed = two_sent();
    assert_eq!(claim(&mut bed, 1, 1), Ok(Fence::new(1)), "then its worker dies");
    assert_eq!(bed.once(2, 10).report.processed, 0, "the lease holds the lane");
    bed.now_ms += LEASE_MS - 1;
    assert_eq!(claim(&mut bed, 1, 2), Err(Failure::Rejected(Rejection::NotDue)));
    bed.now_ms += 1;
    assert_eq!(claim(&mut bed, 2, 2), Err(Failure::Rejected(Rejection::NotDue)), "the later one still waits");
    // Found by an ordinary run, without a sweep's repair.
    assert_eq!(bed.once(2, 10).report.processed, 2);
    assert_eq!(posted(&bed), [(1, 2), (2, 1)]);
    bed.assert_counted();
}

/// The same when even the index row of the leased entry is lost: then the sweep finds it.
#[test]
fn a_head_whose_lease_ran_out_unindexed_is_found_by_the_sweep() {
    let mut bed = two_sent();
    claim(&mut bed, 1, 1).expect("due");
    bed.delete_all(restante_core::keys::Kind::DueRow);
    bed.delete_all(restante_core::keys::Kind::Pointer);
    bed.now_ms += LEASE_MS;
    for _ in 0..3 {
        bed.once(2, 10);
        bed.now_ms += 60_000;
    }
    assert_eq!(posted(&bed), [(1, 2), (2, 1)]);
    bed.assert_counted();
}

/// A failed head was skipped while its delay ran, so that a later message of its key ran first.
#[test]
fn a_head_that_waits_for_its_next_attempt_holds_its_lane() {
    let mut bed = two_sent();
    bed.answers.push_back(status(500));
    assert_eq!(bed.once(1, 10).report.processed, 1, "only the head, and it failed");
    let later = bed.entry(2, 0).expect("waits");
    assert_eq!((later.active, later.wait), (false, WaitReason::Lane));
    assert_eq!(bed.once(1, 10).report.processed, 0, "nothing is due");
    assert_eq!(claim(&mut bed, 2, 1), Err(Failure::Rejected(Rejection::NotDue)));
    bed.now_ms += 10_000;
    let ran = bed.once(1, 10);
    assert!(ran.ended.iter().all(|(_, end)| matches!(end, DeliveryEnd::Settled(_))));
    assert_eq!(posted(&bed), [(1, 1), (1, 2), (2, 1)]);
    bed.assert_counted();
}
