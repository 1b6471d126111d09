//! What a POST may and may not do, checked when it begins and when it arrives.

use restante_core::Subject;
use restante_core::atoms::{Bytes, EntryId, Fence};
use restante_core::machine::{About, Post, PostResult};
use restante_engine::SimTime;
use restante_kv::StoreTime;

use super::Auditor;
use super::judged::judged;
use crate::world::Origin;
use crate::world::alias::{EntryAlias, read_send_id};

impl Auditor {
    pub(crate) fn on_post_begin(&mut self, origin: Origin, post: &Post, at: SimTime, now: StoreTime) {
        let evidence = vec![("entry", EntryAlias(post.entry).to_string())];
        let tolerance_ms = self.tolerance_ms;
        let Some(ghost) = self.entries.get_mut(&post.entry) else {
            self.violate(at, "told-owned-is-owned", evidence);
            return;
        };
        let mut broken = None;
        judged!(self, "one-post-per-token", "no-post-after-retention", "post-begins-under-lease");
        if !ghost.posted.insert(post.fence) {
            broken = Some("one-post-per-token");
        }
        let retention_end = ghost.origin.plus_ms(self.env.config.max_retention_ms);
        if now.minus_ms(tolerance_ms) > ghost.deadline.map_or(retention_end, |deadline| deadline.min(retention_end)) {
            broken = Some("no-post-after-retention");
        }
        let lease_end = ghost.lease.filter(|lease| lease.fence == post.fence).map(|lease| lease.expires_at);
        if lease_end.is_none_or(|end| now.minus_ms(tolerance_ms) >= end) {
            broken = Some("post-begins-under-lease");
        }
        if let (Some((fence, read_at)), Some((paced_at, until))) = (ghost.gate_read_at, self.paced.get(&ghost.destination))
            && fence == post.fence
            && read_at > *paced_at
        {
            judged!(self, "pause-is-honoured");
            if now.plus_ms(tolerance_ms) < *until {
                broken = Some("pause-is-honoured");
            }
        }
        if let Some(queue) = ghost.lane.as_ref().and_then(|lane| self.lanes.get(lane))
            && ghost.end.is_none()
        {
            if queue.len() > 1 {
                judged!(self, "lane-order");
            }
            if queue.front().is_some_and(|head| *head != post.entry) {
                broken = Some("lane-order");
            }
        }
        if let Some(property) = broken {
            self.violate(at, property, evidence);
        }
        self.on_post_to_destination(origin, post, at, now);
    }

    pub(crate) fn on_arrive(&mut self, entry: EntryId, fence: Fence, payload: &Bytes, code: u16, at: SimTime) {
        judged!(self, "payload-arrives-whole");
        let whole = self.sends.get(&read_send_id(entry.send).0).is_some_and(|send| send.payload == *payload);
        if !whole {
            self.violate(at, "payload-arrives-whole", vec![("entry", EntryAlias(entry).to_string())]);
        }
        let Some(ghost) = self.entries.get_mut(&entry) else { return };
        let twice = !ghost.accepted.is_empty();
        if (200..300).contains(&code) {
            ghost.accepted.insert(fence);
        }
        if twice {
            self.mark("posted-twice");
        }
    }

    /// A worker learns how its POST ended.
    pub(crate) fn on_answer(&mut self, about: &About, result: PostResult, now: StoreTime) {
        let Subject::Entry(id) = &about.subject else { return };
        self.on_post_ended(*id, about.fence);
        let Some(ghost) = self.entries.get_mut(id) else { return };
        let holds = ghost.fence_max == about.fence;
        if holds && matches!(result, PostResult::Status { code: 200..=299, .. }) {
            ghost.told.insert(about.fence);
        }
        if !holds || ghost.lease.is_some_and(|lease| lease.expires_at <= now) {
            self.mark("lease-ended-during-post");
        }
    }
}
