//! An old queue beside the backlog: what is put into it, who works it off, and what goes wrong there.

use std::collections::BTreeMap;
use std::sync::Arc;

use restante_core::Subject;
use restante_core::atoms::{Bytes, Fence, Sealed, SendId};
use restante_core::machine::{
    About, HandOver, HandOverError, HandOverStep, Io, LegacyIo, LegacyReply, LegacyRunReport, LegacyStep, Listener, NotSent,
    OldMessage, OtherEnd, PostResult, QueueFailure, Reply, SendError, WorkId,
};
use restante_core::plan::Recipient;
use restante_legacy::codec::{LegacyMessage, decode};
use restante_legacy::{Draft, HandedOver, QueueModel, Receipt, deliveries_of, message_of, old_message};

use super::alias::{self, SendAlias, SendKey};
use super::event::{Act, Event, OldOp, Origin, Task};
use super::{World, network};
use crate::scenario::Span;

/// What a node holds of a received message.
#[derive(Clone, Debug)]
pub(crate) struct InHand {
    pub(crate) id: Arc<str>,
    receipt: Receipt,
    body: Bytes,
    message: LegacyMessage,
}

/// A send on its way into the old queue.
#[derive(Clone, Debug)]
pub(crate) struct HandingOver {
    attempt: u16,
    machine: HandOver,
    draft: Draft,
}

/// The old queue, lossless, and what was received from it.
#[derive(Clone, Debug, Default)]
pub(crate) struct OldQueue {
    pub(crate) model: QueueModel,
    /// How often each message was handed out: every adoption is a send of its own.
    received: BTreeMap<Arc<str>, u16>,
    /// Messages that are still to be put in.
    pub(crate) to_come: u32,
}

/// Scheme and host, as the world's inboxes have them.
fn recipient_of(inbox: &str) -> Option<Recipient> {
    let destination = inbox.split("/users/").next().filter(|destination| destination.starts_with("https://"))?;
    Some(Recipient { inbox: inbox.into(), destination: destination.into(), deadline: None })
}

/// The id that a message has, if it is one of those that are adopted or expanded.
fn id_of(message: &LegacyMessage) -> Arc<str> {
    match message {
        LegacyMessage::Outbox(outbox) => outbox.id().clone(),
        LegacyMessage::Fanout(fanout) => fanout.id().clone(),
        LegacyMessage::Other { kind } => kind.as_str().into(),
    }
}

impl World<'_> {
    pub(super) fn begin_legacy(&mut self) {
        let legacy = &self.scenario.legacy;
        let (count, heal_at) = (legacy.messages_count, self.scenario.world.heal_at);
        self.old.to_come = count;
        for number in 1..=count {
            self.push_within("old.put", number, heal_at, |_| Event::OldMessage { number });
        }
    }

    /// The old server puts a message into its queue.
    pub(super) fn on_old_message(&mut self, number: u32) {
        self.old.to_come -= 1;
        if self.is_skipped(format_args!("old {number}")) {
            return;
        }
        self.reached("old-queue.message");
        let legacy = &self.scenario.legacy;
        let (keyed, fanout, others) = (legacy.keyed, legacy.fanout, legacy.others);
        let id = format!("Z{number}");
        let is_keyed = self.chance("old.keyed", format_args!("{id}"), keyed);
        let is_fanout = self.chance("old.fanout", format_args!("{id}"), fanout);
        let is_other = !is_fanout && self.chance("old.other", format_args!("{id}"), others);
        let destinations = u64::from(self.scenario.world.destinations);
        let first = self.span("old.destination", format_args!("{id}"), Span::ms(0, destinations - 1));
        let count = if is_fanout { 2 } else { 1 };
        let recipients: Vec<Recipient> = (0..count)
            .filter_map(|n| recipient_of(&format!("{}/users/a/inbox", alias::destination(((first + n) % destinations) as u32))))
            .collect();
        let order_key: Option<Arc<str>> = (is_keyed && is_fanout).then(|| "old-object".into());
        let payload = Bytes::from(format!("{{\"type\":\"Create\",\"id\":\"{id}\"}}").into_bytes());
        let draft = if is_other {
            Draft::new(id.as_str(), format!("{{\"type\":\"task {number}\"}}").into_bytes())
        } else {
            self.draft(&id, &recipients, order_key.as_ref(), &payload)
        };
        self.row("old-server", "put", format_args!("{id}"), format_args!("{} recipients", recipients.len()));
        self.put(vec![draft]);
    }

    fn draft(&self, id: &str, recipients: &[Recipient], order_key: Option<&Arc<str>>, payload: &Bytes) -> Draft {
        let base_url = "https://here.example/";
        let now_ms = self.store_now().as_ms();
        let send = HandedOver { idempotency_key: id, keys: &[], base_url, recipients, order_key, payload, now_ms };
        message_of(&send).unwrap_or_else(|error| panic!("harness error: {error}"))
    }

    /// Messages are in the old queue from here on.
    fn put(&mut self, drafts: Vec<Draft>) {
        for draft in &drafts {
            if let Ok(message) = decode(draft.body.as_slice()) {
                self.auditor.on_old_put(&draft.id, &old_message(&message, &recipient_of));
            }
        }
        let now_ms = self.store_now().as_ms();
        self.old.model.enqueue(drafts, now_ms);
    }

    // Listeners.

    pub(super) fn start_listener(&mut self, node: usize) {
        self.reached("listener.serve");
        let settings = self.scenario.legacy.settings(&self.scenario.config);
        let (listener, step) = Listener::serve(self.env.clone(), settings, node as u64, self.local(node));
        self.nodes[node].listener = Some(listener);
        self.follow_listener(node, step);
    }

    pub(super) fn begin_listener_run(&mut self, node: usize, limit: u64) {
        self.reached("listener.run-once");
        let settings = self.scenario.legacy.settings(&self.scenario.config);
        let believed = self.mutant.map_or(limit, |mutant| mutant.on_listener_limit(limit));
        let (listener, step) = Listener::once(self.env.clone(), settings, node as u64, believed, self.local(node));
        self.nodes[node].listener = Some(listener);
        self.auditor.on_old_run_began(node, limit);
        self.follow_listener(node, step);
    }

    fn on_listener_run_finished(&mut self, node: usize, report: LegacyRunReport) {
        let (name, at) = (self.nodes[node].name.clone(), self.timeline.now());
        let LegacyRunReport { processed, more } = report;
        self.row(&name, "run-ended", format_args!(""), format_args!("processed {processed}, more {more}"));
        self.auditor.on_old_run_report(node, report, at);
        self.nodes[node].listener = None;
        self.push_next_run(node);
    }

    fn follow_listener(&mut self, node: usize, step: LegacyStep) {
        let life = self.nodes[node].life;
        for (work, end) in &step.ended {
            let Some(in_hand) = self.nodes[node].in_hand.remove(work) else { continue };
            let name = self.nodes[node].name.clone();
            self.row(&name, "old-ended", format_args!("{}", in_hand.id), format_args!("{end:?}"));
            self.auditor.on_old_ended(end);
        }
        if !self.signal(node, step.effects) {
            return;
        }
        for (work, about, io) in step.actions {
            if self.nodes[node].life != life {
                return;
            }
            self.issue_legacy(Origin { node, life, task: Task::Legacy(work) }, work, about, io);
        }
        if let Some(report) = step.finished
            && self.nodes[node].life == life
        {
            self.on_listener_run_finished(node, report);
        }
    }

    fn issue_legacy(&mut self, origin: Origin, work: WorkId, about: About, io: LegacyIo) {
        if let LegacyIo::Store(io) = io {
            self.issue(origin, about, io);
            return;
        }
        let act = self.act(origin, about);
        if let LegacyIo::Receive { visible_ms } = io {
            self.auditor.on_old_asked(origin.node, self.nodes[origin.node].in_hand.is_empty());
            self.push_old(origin, act, OldOp::Receive { visible_ms });
            return;
        }
        let Some(in_hand) = self.nodes[origin.node].in_hand.get(&work).cloned() else { return };
        match io {
            LegacyIo::Seal => {
                let reply = LegacyReply::Sealed(Some(Sealed::new(&b"sealed-key-1"[..])));
                self.push_old_reply(1, origin, act, reply, None);
            }
            LegacyIo::Other => self.push_old_reply(5, origin, act, LegacyReply::Other(OtherEnd::Done), None),
            LegacyIo::Attempt { timeout_ms } => self.old_attempt(origin, act, &in_hand, timeout_ms),
            LegacyIo::Complete => {
                if self.crashes(origin.node, |sites| &sites.crash_before_complete, &act) {
                    return;
                }
                self.push_old(origin, act, OldOp::Complete(in_hand));
            }
            LegacyIo::PutBack { delay_ms, failure_count } => {
                let body = match (&in_hand.message, failure_count) {
                    (LegacyMessage::Outbox(outbox), Some(count)) => outbox.clone().with_attempt(count).encode().into(),
                    _ => in_hand.body.clone(),
                };
                self.push_old(origin, act, OldOp::PutBack { in_hand, delay_ms, body });
            }
            LegacyIo::Expand => {
                let drafts = match &in_hand.message {
                    LegacyMessage::Fanout(fanout) => deliveries_of(fanout, &recipient_of, self.store_now().as_ms()),
                    LegacyMessage::Outbox(_) | LegacyMessage::Other { .. } => Vec::new(),
                };
                self.push_old(origin, act, OldOp::Enqueue { drafts, expands: Some(in_hand.id) });
            }
            LegacyIo::Store(_) | LegacyIo::Receive { .. } => {}
        }
    }

    /// One attempt on the old path. It meets what a POST of the backlog meets.
    fn old_attempt(&mut self, origin: Origin, act: Act, in_hand: &InHand, timeout_ms: u64) {
        let LegacyMessage::Outbox(outbox) = &in_hand.message else { return };
        let id = in_hand.id.clone();
        if self.crashes(origin.node, |sites| &sites.crash_before_post, &act) {
            return;
        }
        let name = self.nodes[origin.node].name.clone();
        self.row(&name, "old-attempt", format_args!("{id}"), format_args!("to {}", outbox.inbox()));
        self.auditor.on_old_attempt(origin, &id, self.timeline.now());
        let destination = recipient_of(outbox.inbox()).map_or(u32::MAX, |to| alias::destination_index(&to.destination));
        let ailment = self.ailment(destination);
        if let Some(family) = ailment {
            self.faults.requested(family);
            self.faults.delivered(family);
        }
        let fate = match ailment {
            Some("receiver.dead-host" | "receiver.flapping-host") => "network.lost-request",
            _ => {
                let fate = self.fault(|sites| &sites.post, format_args!("{}", act.label));
                if fate != "ok" {
                    self.faults.delivered(fate);
                }
                fate
            }
        };
        let trip_ms = self.span("net.latency", format_args!("{}", act.label), self.scenario.latency.network);
        let arrives =
            !matches!(fate, "network.lost-request" | "network.refused" | "network.dns" | "network.tls" | "network.late");
        let answer = if arrives { Some(self.old_answer(&act)) } else { None };
        let (result, after_ms) = match (fate, answer) {
            ("network.refused", _) => (PostResult::NotSent(NotSent::Connect), trip_ms),
            ("network.dns", _) => (PostResult::NotSent(NotSent::Dns), trip_ms),
            ("network.tls", _) => (PostResult::NotSent(NotSent::Tls), trip_ms),
            ("ok" | "network.duplicated", Some(answer)) if trip_ms <= timeout_ms => (answer, trip_ms),
            _ => (PostResult::Unknown, timeout_ms),
        };
        if let Some(PostResult::Status { code, .. }) = answer {
            let host = format!("host-{destination}");
            self.row(&host, "old-arrive", format_args!("{id}"), format_args!("-> {code}"));
        }
        let entropy = self.decider.draw("core.backoff", format_args!("{}", act.label));
        self.push_old_reply(after_ms, origin, act, LegacyReply::Attempted { result, entropy }, None);
    }

    fn old_answer(&mut self, act: &Act) -> PostResult {
        let fate = self.fault(|sites| &sites.answer, format_args!("{}", act.label));
        if fate == "ok" {
            return PostResult::Status { code: 202, retry_after_ms: None };
        }
        self.faults.delivered(fate);
        let bits = self.decider.draw("receiver.code", format_args!("{}", act.label));
        network::status_of(fate, bits)
    }

    // The queue.

    fn push_old(&mut self, origin: Origin, act: Act, op: OldOp) {
        let fate = self.fault(|sites| &sites.old_queue, format_args!("{}", act.label));
        let latency_ms = self.span("old.latency", format_args!("{}", act.label), self.scenario.latency.store);
        let there_ms = latency_ms.div_ceil(2);
        let tie = self.decider.tie(format_args!("old {}", act.label));
        self.push_in(there_ms, tie, Event::OldQueue { origin, act, op, fate, back_ms: latency_ms - there_ms });
    }

    fn push_old_reply(&mut self, after_ms: u64, origin: Origin, act: Act, reply: LegacyReply, in_hand: Option<InHand>) {
        let tie = self.decider.tie(format_args!("old reply {}", act.label));
        self.push_in(after_ms, tie, Event::OldReply { origin, act, reply, in_hand });
    }

    /// An operation reaches the old queue.
    pub(super) fn on_old_queue(&mut self, origin: Origin, act: Act, op: OldOp, fate: &'static str, back_ms: u64) {
        if fate != "ok" {
            self.faults.delivered(fate);
        }
        let is_receive = matches!(op, OldOp::Receive { .. });
        let is_known = fate == "ok";
        let (result, in_hand) = match fate {
            "legacy.unavailable" => (Err(QueueFailure::Unavailable), None),
            "legacy.ambiguous-lost" => (Err(QueueFailure::Unknown), None),
            _ => match self.apply_old(origin, &act, op, is_known) {
                (Ok(()), _) if fate == "legacy.ambiguous-done" => (Err(QueueFailure::Unknown), None),
                applied => applied,
            },
        };
        let reply = match (is_receive, result) {
            (false, result) => LegacyReply::Queue(result),
            (true, Err(failure)) => LegacyReply::Received(Err(failure)),
            (true, Ok(())) => LegacyReply::Received(Ok(in_hand.as_ref().map(|in_hand: &InHand| {
                let times = self.old.received.get(&in_hand.id).copied().unwrap_or_default();
                let send = alias::send_id(alias::old_key(&in_hand.id), times);
                let what = old_message(&in_hand.message, &recipient_of);
                (what, send)
            }))),
        };
        if let LegacyReply::Received(Ok(Some((OldMessage::Delivery(delivery), send)))) = &reply {
            self.auditor.on_old_received(*send, delivery);
        }
        self.push_old_reply(back_ms, origin, act, reply, in_hand);
    }

    fn apply_old(&mut self, origin: Origin, act: &Act, op: OldOp, is_known: bool) -> (Result<(), QueueFailure>, Option<InHand>) {
        let (at, now_ms) = (self.timeline.now(), self.store_now().as_ms());
        match op {
            OldOp::Receive { visible_ms } => {
                let received = self.old.model.receive(visible_ms, now_ms);
                if self.is_alive(origin) {
                    self.auditor.on_old_handed_out(origin.node, received.is_some(), is_known, at);
                }
                let Some(received) = received else { return (Ok(()), None) };
                let message = decode(received.body.as_slice()).unwrap_or_else(|error| panic!("harness error: {error}"));
                let id = id_of(&message);
                let times = self.old.received.entry(id.clone()).or_default();
                *times += 1;
                let label = format!("{id} {times}");
                self.row("old-queue", "receive", format_args!("{id}"), format_args!("time {}", received.received_count));
                if received.received_count > 1 {
                    self.auditor.mark("old-message-came-again");
                }
                let fate = self.fault(|sites| &sites.old_redelivered, format_args!("{label}"));
                if fate != "ok" {
                    let after_ms = self.span("old.redelivered", format_args!("{label}"), Span::ms(1, visible_ms));
                    self.push_in(after_ms, 0, Event::OldExposed { receipt: received.receipt.clone() });
                }
                (Ok(()), Some(InHand { id, receipt: received.receipt, body: received.body, message }))
            }
            OldOp::Complete(in_hand) => {
                let result = self.old.model.complete(&in_hand.receipt).map_err(|error| error.failure());
                if result.is_ok() {
                    self.row("old-queue", "complete", format_args!("{}", in_hand.id), format_args!("{}", act.label));
                    self.auditor.on_old_completed(&in_hand.id, at);
                }
                (result, None)
            }
            OldOp::PutBack { in_hand, delay_ms, body } => {
                let back = self.old.model.put_back(&in_hand.receipt, delay_ms, body.clone(), now_ms);
                if back.is_ok() {
                    self.row("old-queue", "put-back", format_args!("{}", in_hand.id), format_args!("for {delay_ms} ms"));
                    if let Ok(LegacyMessage::Outbox(outbox)) = decode(body.as_slice()) {
                        self.auditor.on_old_put_back(&in_hand.id, outbox.attempt());
                    }
                }
                (back.map_err(|error| error.failure()), None)
            }
            OldOp::Enqueue { drafts, expands } => {
                let ids: Vec<&str> = drafts.iter().map(|draft| &*draft.id).collect();
                self.row("old-queue", "enqueue", format_args!("{}", ids.join(" ")), format_args!("{}", act.label));
                if let Some(fanout) = expands {
                    self.auditor.on_old_expanded(&fanout);
                }
                self.put(drafts);
                (Ok(()), None)
            }
        }
    }

    /// The time is over for which a message is kept from others, sooner than its listener thinks.
    pub(super) fn on_old_exposed(&mut self, receipt: &Receipt) {
        let now_ms = self.store_now().as_ms();
        if self.old.model.expose(receipt, now_ms) {
            self.faults.delivered("legacy.redelivered");
            self.row("old-queue", "exposed", format_args!(""), format_args!("receipt {receipt}"));
        }
    }

    /// An answer of the old side reaches a node.
    pub(super) fn on_old_reply(&mut self, origin: Origin, act: Act, mut reply: LegacyReply, in_hand: Option<InHand>) {
        self.digest.str(&act.label);
        if !self.is_alive(origin) {
            return;
        }
        if let Some(again_ms) = self.stands_still(origin.node) {
            self.push_old_reply(again_ms, origin, act, reply, in_hand);
            return;
        }
        let is_completion = act.about.what == "legacy-complete";
        if is_completion && self.crashes(origin.node, |sites| &sites.crash_after_complete, &act) {
            return;
        }
        if let LegacyReply::Attempted { result, .. } = &reply {
            if self.crashes(origin.node, |sites| &sites.crash_after_post, &act) {
                return;
            }
            if let Task::Legacy(work) = origin.task
                && let Some(held) = self.nodes[origin.node].in_hand.get(&work)
            {
                self.auditor.on_old_answer(&held.id, *result);
            }
        }
        if let Some(mutant) = self.mutant {
            mutant.on_old_reply(&act.about, &mut reply);
        }
        let local = self.local(origin.node);
        match origin.task {
            Task::Legacy(work) => {
                let Some(listener) = &mut self.nodes[origin.node].listener else { return };
                let step = listener.step(work, reply, local);
                if let (Some(id), Some(in_hand)) = (step.received, in_hand) {
                    self.nodes[origin.node].in_hand.insert(id, in_hand);
                }
                self.follow_listener(origin.node, step);
            }
            Task::Send(number) => {
                let Some(handing) = self.nodes[origin.node].handing_over.get_mut(&number) else { return };
                let step = match reply {
                    LegacyReply::Queue(result) => handing.machine.enqueued(&self.env, result),
                    _ => handing.machine.slept(),
                };
                self.follow_hand_over(origin.node, number, act.about.tries + 1, step);
            }
            Task::Worker(_) | Task::Operate(_) | Task::Caller(_) => {}
        }
    }

    /// A reply of the backlog's store to a listener.
    pub(super) fn deliver_to_listener(&mut self, node: usize, work: WorkId, reply: Reply) {
        let local = self.local(node);
        let Some(listener) = &mut self.nodes[node].listener else { return };
        let step = listener.step(work, LegacyReply::Store(reply), local);
        self.follow_listener(node, step);
    }

    // Handing over.

    /// What a closed intake refused goes to the old queue, where there is one. Returns whether it does.
    pub(super) fn hand_over_to_legacy(&mut self, node: usize, key: SendKey, attempt: u16, error: &SendError) -> bool {
        if self.scenario.legacy.mode.is_none() {
            return false;
        }
        let Some((machine, step)) = HandOver::after(error) else { return false };
        let request = self.request(key, attempt, false);
        let draft = self.draft(&key.to_string(), &request.recipients, request.order_key.as_ref(), &request.payload);
        self.nodes[node].handing_over.insert(key.number, HandingOver { attempt, machine, draft });
        self.follow_hand_over(node, key.number, 0, step);
        true
    }

    fn follow_hand_over(&mut self, node: usize, number: u32, tries: u32, step: HandOverStep) {
        let Some(handing) = self.nodes[node].handing_over.get(&number) else { return };
        let (attempt, draft) = (handing.attempt, handing.draft.clone());
        let Some(key) = self.send_key(node, number) else { return };
        let send = alias::send_id(key, attempt);
        let origin = Origin { node, life: self.nodes[node].life, task: Task::Send(number) };
        let what = "hand-over";
        let act = self.act(origin, About { what, subject: Subject::Send(send), fence: Fence::default(), tries });
        match step {
            HandOverStep::Enqueue => self.push_old(origin, act, OldOp::Enqueue { drafts: vec![draft], expands: None }),
            HandOverStep::Sleep(io) => {
                let Io::Sleep { ms, jitter_ms, .. } = io else { return };
                let jitter_ms = self.span("core.jitter", format_args!("{}", act.label), Span::ms(0, jitter_ms));
                self.push_old_reply(ms + jitter_ms, origin, act, LegacyReply::Store(Reply::Slept), None);
            }
            HandOverStep::Done(result) => {
                self.nodes[node].handing_over.remove(&number);
                self.on_handed_over(node, key, send, attempt, result);
            }
        }
    }

    fn on_handed_over(&mut self, node: usize, key: SendKey, send: SendId, attempt: u16, result: Result<(), HandOverError>) {
        let (name, at) = (self.nodes[node].name.clone(), self.timeline.now());
        let alias = SendAlias(send);
        match result {
            Ok(()) => {
                self.row(&name, "handed-over", format_args!("{alias}"), format_args!(""));
                self.auditor.on_told_handed_over(&key.to_string(), at);
                self.sends.insert(key, super::workload::SendState::HandedOver);
            }
            Err(error) => {
                self.row(&name, "handed-over-not", format_args!("{alias}"), format_args!("{error}"));
                if error == HandOverError::Unknown {
                    self.auditor.mark("hand-over-stayed-unknown");
                }
                let again = Event::Produce { node, number: key.number, attempt: attempt + 1 };
                self.push_in(500, u64::from(key.number), again);
            }
        }
    }

    /// Whether the old side is done: nothing is to come, nothing is there.
    pub(super) fn old_is_done(&self) -> bool {
        let is_idle = self.nodes.iter().all(|node| node.handing_over.is_empty());
        is_idle && self.old.to_come == 0 && self.old.model.ids().next().is_none()
    }
}

/// What a listener's settings are, by the scenario's.
impl crate::scenario::Legacy {
    fn settings(&self, config: &crate::scenario::ConfigTable) -> restante_core::machine::LegacySettings {
        use restante_core::machine::{LegacyMode, LegacySettings, OldPolicy};
        LegacySettings {
            concurrency: self.concurrency,
            visible_ms: self.visible.0,
            poll_ms: self.poll.0,
            policy: OldPolicy {
                initial_ms: config.backoff_initial.0,
                max_ms: config.backoff_max.0,
                retries_max: config.attempts_max - 1,
            },
            ..LegacySettings::new(self.mode.unwrap_or(LegacyMode::Drain))
        }
    }
}
