//! What is asked of the backlog: producers that send and do not give up, operators that look, wake, open and close.

use std::sync::Arc;

use restante_core::atoms::{Bytes, EntryId, Sealed};
use restante_core::keys::Kind;
use restante_core::machine::{Failure, FanoutChoice, SendError, SendRequest, Sending, SendingStep};
use restante_core::plan::{Depth, HoldNotice, Recipient, Revive, SetHold, SetIntake, Wake};
use restante_core::{Command, Effect, Outcome, Rejection};
use restante_kv::StoreTime;

use super::alias::{self, SendKey};
use super::event::{Event, Operation, Origin, Task};
use super::node::Role;
use super::{EPOCH_MS, World};
use crate::audit::judged::judged;
use crate::scenario::{Ms, Span};

/// What a producer knows of one of its sends, durably: it remembers across its own crashes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum SendState {
    /// To be handed over, as this attempt.
    Pending { attempt: u16 },
    /// The backlog said that it owns it.
    Owned,
    /// The old queue owns it.
    HandedOver,
    /// Given up: intake was closed.
    Refused,
}

impl World<'_> {
    pub(super) fn send_key(&self, node: usize, number: u32) -> Option<SendKey> {
        match self.nodes[node].role {
            Role::Producer(producer) => Some(SendKey { producer, number }),
            Role::Worker | Role::Cron | Role::Listener | Role::CronListener | Role::Operator => None,
        }
    }

    /// A producer starts: it goes on with what it had not handed over, and with its next send.
    pub(super) fn resume_producer(&mut self, node: usize, producer: u8) {
        let first = SendKey { producer, number: 1 };
        let last = SendKey { producer, number: u32::MAX };
        let pending: Vec<(u32, u16)> = self
            .sends
            .range(first..=last)
            .filter_map(|(key, state)| match state {
                // The attempt under way died with the process; whether it was accepted is what the next one finds out.
                SendState::Pending { attempt } => Some((key.number, attempt + 1)),
                SendState::Owned | SendState::HandedOver | SendState::Refused => None,
            })
            .collect();
        for (number, attempt) in pending {
            self.push_in(1, u64::from(number), Event::Produce { node, number, attempt });
        }
        if self.sends.range(first..=last).next().is_none() {
            self.schedule_send(node, producer, 1);
        }
    }

    fn schedule_send(&mut self, node: usize, producer: u8, number: u32) {
        if number > self.scenario.workload.sends_count {
            return;
        }
        let key = SendKey { producer, number };
        let gap_ms = self.span("load.gap", format_args!("{key}"), self.scenario.workload.gap);
        let tie = self.decider.tie(format_args!("produce {key}"));
        self.push_in(gap_ms, tie, Event::Produce { node, number, attempt: 0 });
    }

    /// A producer hands a send over, for the first time or again.
    pub(super) fn on_produce(&mut self, node: usize, number: u32, attempt: u16) {
        let Some(key) = self.send_key(node, number) else { return };
        if attempt == 0 && !self.sends.contains_key(&key) {
            self.sends.insert(key, SendState::Pending { attempt });
            self.schedule_send(node, key.producer, number + 1);
            if self.is_skipped(format_args!("{key}")) {
                self.sends.insert(key, SendState::Refused);
            }
        }
        // Whoever knows what became of it does not hand it over again; what does so on purpose comes another way.
        if !matches!(self.sends.get(&key), Some(SendState::Pending { .. })) {
            return;
        }
        let is_under_way = self.nodes[node].sends.contains_key(&number) || self.nodes[node].handing_over.contains_key(&number);
        if !self.nodes[node].up || is_under_way {
            return;
        }
        match self.sends.get_mut(&key) {
            // An attempt is made once: one that was scheduled before a crash may have been overtaken by one made after it.
            Some(SendState::Pending { attempt: known }) if attempt > 0 && attempt <= *known => return,
            Some(SendState::Pending { attempt: known }) => *known = attempt,
            _ => {}
        }
        let request = self.request(key, attempt, false);
        self.hand_over(node, number, attempt, request);
    }

    fn hand_over(&mut self, node: usize, number: u32, attempt: u16, request: SendRequest) {
        let name = self.nodes[node].name.clone();
        let alias = alias::SendAlias(request.send);
        self.row(&name, "send", format_args!("{alias}"), format_args!("{} recipients", request.recipients.len()));
        self.note_request(&request, attempt);
        self.auditor.on_send(&request);
        let slot = node as u64;
        let (sending, step) = Sending::begin(&self.env, request, slot, self.local(node));
        self.nodes[node].sends.insert(number, (attempt, sending));
        self.follow_sending(node, number, attempt, step);
    }

    /// What kind of a request it is, for the count of what was reached.
    fn note_request(&mut self, request: &SendRequest, attempt: u16) {
        let is_large = request.payload.len() > self.env.config.inline_bytes_max;
        let is_fanout = request.fanout == FanoutChoice::Force;
        self.reached(if is_fanout { "send.fanout" } else { "send.direct" });
        for (operation, is_so) in [
            ("send.keyed", request.order_key.is_some()),
            ("send.staged", is_large),
            ("send.several-recipients", !is_fanout && request.recipients.len() > 1),
            ("send.handed-over-again", attempt > 0),
        ] {
            if is_so {
                self.reached(operation);
            }
        }
    }

    /// The request of a send: the same every time, except its id. `misused` is another request under the same key.
    pub(super) fn request(&mut self, key: SendKey, attempt: u16, misused: bool) -> SendRequest {
        let load = &self.scenario.workload;
        let most = load.recipients_max;
        let is_fanout = self.chance("load.fanout", format_args!("{key}"), load.fanout);
        let count = if is_fanout {
            let span = Span::ms(u64::from(load.fanout_recipients_min), u64::from(load.fanout_recipients_max));
            self.span("load.fanout-recipients", format_args!("{key}"), span)
        } else {
            self.span("load.recipients", format_args!("{key}"), Span { min: Ms(1), max: Ms(u64::from(most)) })
        };
        let destinations = u64::from(self.scenario.world.destinations);
        let first = self.span("load.destination", format_args!("{key}"), Span::ms(0, destinations - 1));
        let is_deadlined = self.chance("load.deadlined", format_args!("{key}"), load.deadlined);
        let deadline = is_deadlined.then(|| {
            let after_ms = self.span("load.deadline", format_args!("{key}"), load.deadline);
            StoreTime::from_ms(EPOCH_MS + after_ms)
        });
        let recipients = (0..count)
            .map(|n| {
                let destination = alias::destination(((first + n) % destinations) as u32);
                let user = if is_fanout { format!("u{n}") } else { char::from(b'a' + n as u8).to_string() };
                let inbox: Arc<str> = format!("{destination}/users/{user}/inbox").into();
                Recipient { inbox, destination, deadline }
            })
            .collect();
        let is_keyed = self.chance("load.keyed", format_args!("{key}"), load.keyed);
        let order_keys = u64::from(load.order_keys);
        let order_key = is_keyed.then(|| {
            let index = self.span("load.order-key", format_args!("{key}"), Span::ms(0, order_keys - 1));
            Arc::from(format!("object-{index}"))
        });
        let is_large = self.chance("load.large", format_args!("{key}"), load.large);
        let bytes = if is_large { self.scenario.config.inline_max.0 * 2 } else { 40 };
        let text = format!("{{\"type\":\"Create\",\"id\":\"{key}\",\"misused\":{misused}");
        let (pad, end) = (",\"pad\":\"", "\"}");
        let payload = match bytes.checked_sub(text.len() + pad.len() + end.len()) {
            Some(missing) => format!("{text}{pad}{}{end}", "x".repeat(missing)),
            None => format!("{text}}}"),
        };
        SendRequest {
            send: alias::send_id(key, attempt),
            idempotency_key: key.to_string().into(),
            recipients,
            order_key,
            payload: Bytes::from(payload.into_bytes()),
            signing: Sealed::new(&b"sealed-key-1"[..]),
            fanout: if is_fanout { FanoutChoice::Force } else { FanoutChoice::Auto },
        }
    }

    pub(super) fn follow_sending(&mut self, node: usize, number: u32, attempt: u16, step: SendingStep) {
        match step {
            SendingStep::Do(io) => {
                let Some((_, sending)) = self.nodes[node].sends.get(&number) else { return };
                let (about, life) = (sending.about(), self.nodes[node].life);
                self.issue(Origin { node, life, task: Task::Send(number) }, about, io);
            }
            SendingStep::Done(mut result) => {
                self.nodes[node].sends.remove(&number);
                if let (Some(mutant), Some(key)) = (self.mutant, self.send_key(node, number)) {
                    mutant.on_send_result(alias::send_id(key, attempt), &mut result);
                }
                self.on_sent(node, number, attempt, result);
            }
        }
    }

    fn on_sent(
        &mut self,
        node: usize,
        number: u32,
        attempt: u16,
        result: Result<(restante_core::atoms::SendId, bool, Vec<Effect>), SendError>,
    ) {
        let Some(key) = self.send_key(node, number) else { return };
        let name = self.nodes[node].name.clone();
        let id = alias::send_id(key, attempt);
        let at = self.timeline.now();
        match result {
            Ok((owned, duplicate, effects)) => {
                let note = if duplicate { "owned already" } else { "owned" };
                self.row(&name, "sent", format_args!("{}", alias::SendAlias(id)), format_args!("{note}"));
                self.auditor.on_told_owned(key, owned, duplicate, at);
                let was_pending = matches!(self.sends.get(&key), Some(SendState::Pending { .. }));
                self.sends.insert(key, SendState::Owned);
                if self.signal(node, effects) && was_pending {
                    self.again_on_purpose(node, key, attempt);
                }
            }
            Err(SendError::Unknown) => {
                self.row(&name, "sent-unknown", format_args!("{}", alias::SendAlias(id)), format_args!(""));
                self.auditor.mark("accept-outcome-stayed-unknown");
                self.push_in(500, u64::from(number), Event::Produce { node, number, attempt: attempt + 1 });
            }
            Err(SendError::NotAccepted(failure)) => {
                self.row(&name, "sent-not", format_args!("{}", alias::SendAlias(id)), format_args!("{failure}"));
                self.auditor.on_told_not_owned(key, id, &failure, at);
                if self.hand_over_to_legacy(node, key, attempt, &SendError::NotAccepted(failure.clone())) {
                    return;
                }
                self.on_refused(node, key, attempt, &failure);
            }
        }
    }

    fn on_refused(&mut self, node: usize, key: SendKey, attempt: u16, failure: &Failure) {
        let number = key.number;
        match failure {
            Failure::Rejected(Rejection::IntakeClosed) if self.scenario.workload.open_intake_at.is_none() => {
                self.sends.insert(key, SendState::Refused);
            }
            Failure::Rejected(Rejection::IdempotencyConflict(_)) => {}
            _ => {
                let after_ms = if matches!(failure, Failure::Rejected(_)) { 2_000 } else { 500 };
                self.push_in(after_ms, u64::from(number), Event::Produce { node, number, attempt: attempt + 1 });
            }
        }
    }

    /// Some requests are repeated although they were accepted, some keys used again for another request.
    fn again_on_purpose(&mut self, node: usize, key: SendKey, attempt: u16) {
        let load = &self.scenario.workload;
        if self.nodes[node].sends.contains_key(&key.number) {
            return;
        }
        let repeats = self.chance("load.repeated", format_args!("{key}"), load.repeated);
        let misuses = !repeats && self.chance("load.misused", format_args!("{key}"), load.misused);
        if repeats || misuses {
            self.reached(if repeats { "send.repeated" } else { "send.misused" });
            let mut request = self.request(key, attempt + 1, misuses);
            if misuses {
                request.payload = Bytes::from(format!("another request under {key}").into_bytes());
            }
            self.hand_over(node, key.number, attempt + 1, request);
        }
    }

    // Operators.

    fn operator(&self) -> usize {
        self.nodes.len() - 1
    }

    pub(super) fn on_operate(&mut self, number: u32, what: Operation) {
        let name = match &what {
            Operation::Run(command) | Operation::Extend(command) => command.name(),
            Operation::WakeSome => "wake-some",
        };
        if !self.ending && self.is_skipped(format_args!("{name} {number}")) {
            return;
        }
        let command = match what {
            Operation::Run(command) => *command,
            Operation::Extend(command) => {
                self.reached("operator.hold-extended");
                *command
            }
            Operation::WakeSome => {
                let Some(id) = self.some_entry("operator.wake-which", number) else { return };
                Command::Wake(Wake { id })
            }
        };
        if let Command::SetIntake(wanted) = &command {
            self.intake_wanted = Some(wanted.open);
        }
        self.begin_command(self.operator(), command);
    }

    /// Some entry that exists now.
    pub(super) fn some_entry(&mut self, site: &'static str, number: u32) -> Option<EntryId> {
        let range = self.env.keys.all(Kind::Entry);
        let page = self.store.scan(&range, 64).ok()?;
        let count = page.entries.len() as u64;
        let index = self.decider.draw(site, format_args!("{number}")).checked_rem(count)?;
        self.env.keys.read_entry(Kind::Entry, &page.entries[index as usize].0).ok()
    }

    pub(super) fn on_command_done(
        &mut self,
        node: usize,
        number: u32,
        command: &Command,
        result: Result<(Outcome, Vec<Effect>), Failure>,
    ) {
        let name = command.name();
        match result {
            Ok((outcome, effects)) => {
                self.row("operator", name, format_args!(""), format_args!("{outcome:?}"));
                self.note_command(command);
                if let Outcome::Depth(report) = outcome {
                    let at = self.timeline.now();
                    self.auditor.on_depth(Task::Operate(number), report, at);
                    if self.ending {
                        self.auditor.check_healthy(self.scenario.world.healthy_p99, at);
                    }
                    self.ended = self.ending;
                }
                self.signal(node, effects);
            }
            Err(failure) => {
                self.auditor.on_failure(&failure);
                self.row("operator", name, format_args!(""), format_args!("failed: {failure}"));
                // Operators repeat what did not come through for want of a store.
                let is_outdated = matches!(command, Command::SetIntake(wanted) if Some(wanted.open) != self.intake_wanted);
                if (!matches!(failure, Failure::Rejected(_)) || self.ending) && !is_outdated {
                    let what = Operation::Run(Box::new(command.clone()));
                    self.push_in(1_000, 0, Event::Operate { number: 0, what });
                }
            }
        }
    }

    /// The first record that lies aside, if an operator means to bring it back.
    fn first_to_revive(&self) -> Option<(&'static str, String)> {
        if !self.scenario.workload.revives {
            return None;
        }
        let page = self.store.scan(&self.env.keys.all(Kind::Quarantined), 1).ok()?;
        let id = self.env.keys.read_entry(Kind::Quarantined, &page.entries.first()?.0).ok()?;
        Some(("aside", alias::EntryAlias(id).to_string()))
    }

    fn revive_what_lies_aside(&mut self) {
        let Ok(page) = self.store.scan(&self.env.keys.all(Kind::Quarantined), 64) else { return };
        for (key, _) in page.entries {
            let Ok(id) = self.env.keys.read_entry(Kind::Quarantined, &key) else { continue };
            self.reached("operator.revive");
            self.begin_command(self.operator(), Command::Revive(Revive { id, slot: 0 }));
        }
    }

    /// What an operator did, for the count of what was reached.
    fn note_command(&mut self, command: &Command) {
        match command {
            Command::Depth(_) => self.reached("operator.depth"),
            Command::Wake(_) => self.reached("operator.wake"),
            Command::SetIntake(SetIntake { open: false }) => self.reached("operator.close-intake"),
            Command::SetIntake(SetIntake { open: true }) => self.reached("operator.open-intake"),
            Command::SetHold(SetHold { notice, .. }) => match notice {
                HoldNotice::Hold { until: Some(_), .. } => self.reached("operator.hold"),
                HoldNotice::Hold { until: None, .. } => self.reached("operator.hold-without-end"),
                HoldNotice::Release { .. } => self.reached("operator.hold-released"),
            },
            _ => {}
        }
    }

    /// Is everything drained? Then a last look at the depth ends the run.
    pub(super) fn on_check(&mut self) {
        if self.ending {
            return;
        }
        let load = &self.scenario.workload;
        let all_sent = self.sends.len() as u32 == load.producers * load.sends_count
            && self.sends.values().all(|state| !matches!(state, SendState::Pending { .. }))
            && self.nodes.iter().all(|node| node.sends.is_empty());
        let left = self.auditor.first_left(&self.store, true).or_else(|| self.first_to_revive());
        let left = left.or_else(|| Some(("old-message", self.old.model.ids().next()?.to_string())));
        if all_sent && left.is_none() && self.old_is_done() {
            self.ending = true;
            judged!(self.auditor, "drains-after-heal");
            self.begin_command(self.operator(), Command::Depth(Depth {}));
            return;
        }
        if self.scenario.workload.revives {
            self.revive_what_lies_aside();
        }
        let heal_at = self.scenario.world.heal_at.0;
        let (at, now, calm_since) = (self.now(), self.store_now(), heal_at.max(self.last_start.as_ms()));
        self.auditor.check_bounds(&self.store, StoreTime::from_ms(EPOCH_MS + calm_since), at, now);
        if self.now().as_ms() > heal_at + self.scenario.world.settle_within.0 {
            judged!(self.auditor, "drains-after-heal");
            let what = left.unwrap_or_else(|| ("send", "not handed over".to_owned()));
            self.auditor.violate(self.timeline.now(), "drains-after-heal", vec![what]);
            return;
        }
        self.push_in(1_000, 0, Event::Check);
    }
}
