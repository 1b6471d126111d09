//! A queue as plain data: what the contract means, without a clock or a disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use restante_core::atoms::Bytes;

use crate::contract::{Draft, QueueDepth, QueueError, Receipt, Received};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Message {
    id: Arc<str>,
    body: Bytes,
    order_key: Option<Arc<str>>,
    /// From when on it may be handed out.
    visible_at_ms: u64,
    /// Of the latest time it was handed out; 0 if it was not since it was put in or put back.
    receipt: u64,
    received_count: u32,
}

impl Message {
    fn is_kept(&self, now_ms: u64) -> bool {
        self.receipt > 0 && self.visible_at_ms > now_ms
    }
}

/// The contract as plain data: every operation is told the time, in milliseconds of any one clock.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct QueueModel {
    /// By place: enqueued order, those put back behind.
    messages: BTreeMap<u64, Message>,
    places: u64,
    receipts: u64,
}

impl QueueModel {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    fn next_place(&mut self) -> u64 {
        self.places += 1;
        self.places
    }

    fn place_of(&self, receipt: &Receipt) -> Result<u64, QueueError> {
        let number: u64 = receipt.as_str().parse().map_err(|_| QueueError::Outdated)?;
        let found = self.messages.iter().find(|(_, message)| number > 0 && message.receipt == number);
        found.map(|(place, _)| *place).ok_or(QueueError::Outdated)
    }

    /// Puts messages in; those whose id is there already are not put in twice.
    pub fn enqueue(&mut self, drafts: Vec<Draft>, now_ms: u64) {
        for Draft { id, body, delay, order_key } in drafts {
            if self.contains(&id) {
                continue;
            }
            let visible_at_ms = now_ms.saturating_add(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
            let place = self.next_place();
            self.messages.insert(place, Message { id, body, order_key, visible_at_ms, receipt: 0, received_count: 0 });
        }
    }

    /// Hands out the first message that may be, and keeps it from others for `visible_after_ms`.
    pub fn receive(&mut self, visible_after_ms: u64, now_ms: u64) -> Option<Received> {
        let is_behind = |place: u64, message: &Message| {
            message.order_key.is_some()
                && self.messages.iter().any(|(other_place, other)| {
                    let is_earlier = *other_place < place && other.visible_at_ms <= now_ms;
                    other.order_key == message.order_key && *other_place != place && (other.is_kept(now_ms) || is_earlier)
                })
        };
        let may = |(place, message): &(&u64, &Message)| message.visible_at_ms <= now_ms && !is_behind(**place, message);
        let place = *self.messages.iter().find(may)?.0;
        self.receipts += 1;
        let receipts = self.receipts;
        let message = self.messages.get_mut(&place)?;
        message.receipt = receipts;
        message.visible_at_ms = now_ms.saturating_add(visible_after_ms.max(1));
        message.received_count = message.received_count.saturating_add(1);
        let receipt = Receipt::new(receipts.to_string());
        Some(Received { receipt, body: message.body.clone(), received_count: message.received_count })
    }

    /// Removes a message for good.
    ///
    /// # Errors
    /// [`QueueError::Outdated`].
    pub fn complete(&mut self, receipt: &Receipt) -> Result<(), QueueError> {
        let place = self.place_of(receipt)?;
        self.messages.remove(&place);
        Ok(())
    }

    /// Gives a message back, behind the others.
    ///
    /// # Errors
    /// [`QueueError::Outdated`].
    pub fn put_back(&mut self, receipt: &Receipt, delay_ms: u64, body: Bytes, now_ms: u64) -> Result<(), QueueError> {
        let place = self.place_of(receipt)?;
        let Some(message) = self.messages.remove(&place) else { return Err(QueueError::Outdated) };
        let visible_at_ms = now_ms.saturating_add(delay_ms);
        let place = self.next_place();
        self.messages.insert(place, Message { body, visible_at_ms, receipt: 0, received_count: 0, ..message });
        Ok(())
    }

    /// Whether a message of this id is in the queue, handed out or not.
    pub fn contains(&self, id: &str) -> bool {
        self.messages.values().any(|message| &*message.id == id)
    }

    /// Ends the time for which a message is kept from others, as if it had passed. Returns whether there was one.
    pub fn expose(&mut self, receipt: &Receipt, now_ms: u64) -> bool {
        let place = self.place_of(receipt).ok();
        let message = place.and_then(|place| self.messages.get_mut(&place)).filter(|message| message.is_kept(now_ms));
        message.map(|message| message.visible_at_ms = now_ms).is_some()
    }

    /// The ids of everything in it, in the order of their places.
    pub fn ids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.messages.values().map(|message| &message.id)
    }

    /// How much lies in it.
    pub fn depth(&self, now_ms: u64) -> QueueDepth {
        let mut depth = QueueDepth::default();
        for message in self.messages.values() {
            match message {
                message if message.is_kept(now_ms) => depth.received += 1,
                message if message.visible_at_ms > now_ms => depth.delayed += 1,
                _ => depth.ready += 1,
            }
        }
        depth
    }
}
