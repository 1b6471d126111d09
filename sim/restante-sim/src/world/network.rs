//! POSTs on their way, and the destinations that answer them.

use restante_core::atoms::{Bytes, EntryId, Fence};
use restante_core::machine::{NotSent, Post, PostResult, Reply};

use super::alias::{self, EntryAlias};
use super::event::{Act, Event, Origin};
use super::{World, faults::FaultSites};
use crate::scenario::{Ms, Span};

/// How long a flapping host is up, and down, when the scenario does not say.
const FLAP_EVERY: Ms = Ms(5_000);

impl World<'_> {
    /// A node executes a POST it decided on: unless it stood still for too long since.
    pub(super) fn on_post_begin(&mut self, origin: Origin, act: Act, post: Box<Post>) {
        if !self.is_alive(origin) {
            return;
        }
        if let Some(again_ms) = self.stands_still(origin.node) {
            self.push_in(again_ms, 0, Event::PostBegin { origin, act, post });
            return;
        }
        let name = self.nodes[origin.node].name.clone();
        if self.nodes[origin.node].clock.local(self.now()) >= post.post_by {
            self.auditor.mark("post-too-late-is-not-begun");
            self.row(&name, "post-too-late", format_args!("{}", EntryAlias(post.entry)), format_args!("{}", act.label));
            self.deliver(origin, act, Reply::PostTooLate);
            return;
        }
        if self.crashes(origin.node, |sites| &sites.crash_before_post, &act) {
            return;
        }
        let (entry, fence) = (post.entry, post.fence);
        self.row(&name, "post", format_args!("{}", EntryAlias(entry)), format_args!("to {} f{}", post.inbox, fence.get()));
        self.auditor.on_post_begin(origin, &post, self.timeline.now(), self.store_now());

        let destination = alias::destination_index(&post.destination);
        let ailment = self.ailment(destination);
        if let Some(family) = ailment {
            self.faults.requested(family);
            self.faults.delivered(family);
        }
        let is_silent = matches!(ailment, Some("receiver.dead-host" | "receiver.flapping-host"));
        let fate = if is_silent {
            "network.lost-request"
        } else {
            self.fault(|sites: &FaultSites| &sites.post, format_args!("{}", act.label))
        };
        if fate != "ok" && !is_silent {
            self.faults.delivered(fate);
        }
        let mut trip_ms = self.span("net.latency", format_args!("{}", act.label), self.scenario.latency.network);
        if ailment == Some("receiver.slow-host") {
            trip_ms = trip_ms.max(post.timeout_ms / 10 * 9);
        }
        let there_ms = trip_ms.div_ceil(2);
        let timeout_ms = post.timeout_ms;
        let arrives = |answer_to| Event::Arrive { entry, fence, destination, payload: post.payload.clone(), answer_to };
        let tie = self.decider.tie(format_args!("post {}", act.label));
        let back = (origin, act.clone(), trip_ms - there_ms);
        // How the attempt looks to the sender when no answer comes, and after how long.
        let (result, after_ms) = match fate {
            "network.lost-request" => (PostResult::Unknown, timeout_ms),
            "network.lost-response" => {
                self.push_in(there_ms, tie, arrives(None));
                (PostResult::Unknown, timeout_ms)
            }
            "network.late" => {
                let late_ms = self.span("net.late", format_args!("{}", act.label), Span::ms(1, 2 * self.scenario.config.lease.0));
                self.push_in(timeout_ms + late_ms, tie, arrives(None));
                (PostResult::Unknown, timeout_ms)
            }
            "network.reset" => {
                if self.decider.draw("net.reset-arrives", format_args!("{}", act.label)) & 1 == 1 {
                    self.push_in(there_ms, tie, arrives(None));
                }
                (PostResult::Unknown, trip_ms)
            }
            "network.refused" => (PostResult::NotSent(NotSent::Connect), there_ms),
            "network.dns" => (PostResult::NotSent(NotSent::Dns), there_ms),
            "network.tls" => (PostResult::NotSent(NotSent::Tls), trip_ms),
            _ if trip_ms > timeout_ms => {
                self.push_in(there_ms, tie, arrives(None));
                (PostResult::Unknown, timeout_ms)
            }
            fate => {
                if fate == "network.duplicated" {
                    self.push_in(there_ms + 1, tie, arrives(None));
                }
                self.push_in(there_ms, tie, arrives(Some(back)));
                return;
            }
        };
        self.push_answer(after_ms, origin, act, result);
    }

    fn push_answer(&mut self, after_ms: u64, origin: Origin, act: Act, result: PostResult) {
        let entropy = self.decider.draw("core.backoff", format_args!("{}", act.label));
        let tie = self.decider.tie(format_args!("answer {}", act.label));
        self.push_in(after_ms, tie, Event::Reply { origin, act, reply: Reply::Posted { result, entropy }, resumed: false });
    }

    /// A request reaches a destination.
    pub(super) fn on_arrive(
        &mut self,
        entry: EntryId,
        fence: Fence,
        destination: u32,
        payload: &Bytes,
        answer_to: Option<(Origin, Act, u64)>,
    ) {
        let alias = EntryAlias(entry);
        let second = if answer_to.is_some() { "" } else { " unanswered" };
        let fate = self.fault(|sites| &sites.answer, format_args!("{alias} f{}{second}", fence.get()));
        if fate != "ok" {
            self.faults.delivered(fate);
        }
        let bits = if fate == "ok" { 0 } else { self.decider.draw("receiver.code", format_args!("{alias} f{}", fence.get())) };
        let (code, retry_after_ms) = code_of(fate, bits);
        let name = format!("host-{destination}");
        self.row(&name, "arrive", format_args!("{alias}"), format_args!("f{} -> {code}{second}", fence.get()));
        self.auditor.on_arrive(entry, fence, payload, code, self.timeline.now());
        if let Some((origin, act, back_ms)) = answer_to {
            self.push_answer(back_ms, origin, act, PostResult::Status { code, retry_after_ms });
        }
    }

    /// What is wrong with a host now, if anything is.
    pub(super) fn ailment(&self, destination: u32) -> Option<&'static str> {
        let faults = &self.scenario.faults.receiver;
        let (dead, flapping, slow) = (faults.dead_hosts_count, faults.flapping_hosts_count, faults.slow_hosts_count);
        match destination {
            _ if self.healed => None,
            host if host < dead => Some("receiver.dead-host"),
            host if host < dead + flapping => {
                let phase = self.now().as_ms() / faults.flap_every.unwrap_or(FLAP_EVERY).0.max(1) + u64::from(host);
                phase.is_multiple_of(2).then_some("receiver.flapping-host")
            }
            host if host < dead + flapping + slow => Some("receiver.slow-host"),
            _ => None,
        }
    }
}

/// The status code and Retry-After with which a destination that `fate` befell answers; 64 bits choose between two codes.
fn code_of(fate: &str, bits: u64) -> (u16, Option<u64>) {
    let pick = |codes: [u16; 2]| codes[(bits & 1) as usize];
    match fate {
        "receiver.server-error" => (pick([500, 502]), None),
        "receiver.rate-limited" => (pick([429, 503]), Some(500 + (bits >> 8) % 4_000)),
        "receiver.gone" => (pick([404, 410]), None),
        "receiver.refused" => (pick([401, 301]), None),
        _ => (202, None),
    }
}

/// The answer of a destination that `fate` befell.
pub(super) fn status_of(fate: &str, bits: u64) -> PostResult {
    let (code, retry_after_ms) = code_of(fate, bits);
    PostResult::Status { code, retry_after_ms }
}
