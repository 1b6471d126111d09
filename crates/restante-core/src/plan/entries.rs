//! New entries, of a direct send or of an expansion: the record, its membership, its place in a lane, its index rows.

use std::sync::Arc;

use restante_kv::{Guard, Key, StoreTime};

use super::{Planner, Stop};
use crate::atoms::{EntryId, Fence, Position, Sealed};
use crate::record::{Body, Entry, Lane, LaneRef, LaneSlot, Member, Recipient, WaitReason};

/// What the entries of a send have in common.
pub(super) struct Like {
    pub(super) body: Body,
    pub(super) signing: Sealed,
    pub(super) origin: StoreTime,
    /// Attempts that failed before the backlog owned it.
    pub(super) failure_count: u32,
}

/// The lanes of one order key that a plan takes places in.
pub(super) struct Lanes {
    order_key: Arc<str>,
    joined: Vec<(Key, Lane)>,
}

impl Lanes {
    pub(super) fn of(order_key: Arc<str>) -> Self {
        Self { order_key, joined: Vec::new() }
    }

    /// Takes the last place of a lane. Returns the place and whether it is the head.
    pub(super) fn join(
        &mut self,
        p: &mut Planner<'_>,
        key: Key,
        id: EntryId,
        destination: &str,
    ) -> Result<(LaneRef, bool), Stop> {
        let at = match self.joined.iter().position(|(joined, _)| *joined == key) {
            Some(at) => at,
            None => {
                let lane = p.guard::<Lane>(&key)?;
                let empty = Lane { head: Position::FIRST, head_entry: id, next: Position::FIRST };
                self.joined.push((key, lane.unwrap_or(empty)));
                self.joined.len() - 1
            }
        };
        let (key, lane) = &mut self.joined[at];
        let position = lane.next;
        lane.next = position.next();
        let is_head = position == lane.head;
        if !is_head {
            let slot = p.env.keys.lane_slot(&self.order_key, destination, position);
            p.put(slot, &LaneSlot { entry: id }, Guard::Under(key.clone()));
        }
        Ok((LaneRef { order_key: self.order_key.clone(), position }, is_head))
    }

    /// Writes the lanes back.
    pub(super) fn put(self, p: &mut Planner<'_>) {
        for (key, lane) in self.joined {
            p.put(key, &lane, Guard::Checked);
        }
    }
}

/// Writes an entry that never was, under a record that the plan checks and writes.
pub(super) fn put_entry(
    p: &mut Planner<'_>,
    under: &Key,
    id: EntryId,
    recipient: &Recipient,
    lane: Option<(LaneRef, bool)>,
    like: &Like,
) {
    let guard = Guard::Under(under.clone());
    let (lane, active) = match lane {
        Some((lane, is_head)) => (Some(lane), is_head),
        None => (None, true),
    };
    let entry = Entry {
        inbox: recipient.inbox.clone(),
        destination: recipient.destination.clone(),
        body: like.body.clone(),
        signing: like.signing.clone(),
        origin: like.origin,
        failure_count: like.failure_count,
        vest_at: p.now(),
        lease: None,
        fence: Fence::default(),
        lane,
        active,
        wait: if active { WaitReason::New } else { WaitReason::Lane },
        wake_gen: 0,
        deadline: recipient.deadline,
    };
    p.put(p.env.keys.entry(id), &entry, guard.clone());
    if matches!(like.body, Body::Staged { .. }) {
        p.put(p.env.keys.member(id), &Member {}, guard.clone());
    }
    if active {
        p.put_due(id, &entry, guard);
    }
}
