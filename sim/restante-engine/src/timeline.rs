//! Everything in flight, as data.

use std::{cmp::Ordering, collections::BinaryHeap};

use crate::SimTime;

/// Names one event in flight. A timeline never reuses an id; a clone goes on from the same ids, each for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// Count of events pushed before this one.
    sequence: u64,
    slot: u32,
}

/// The events in flight, ordered by time, then tie, then insertion.
///
/// Contract: popping moves [`now`](Self::now) to the event's time; time never goes back; an event pushed into the past
/// happens now. The order is total and depends on nothing but the calls made.
///
/// Push and pop cost O(log n), cancel O(1) amortised: a cancelled event leaves its place in the queue, which is swept when
/// such places outnumber the events.
///
/// ```
/// use restante_engine::{SimTime, Timeline};
///
/// let mut timeline = Timeline::new();
/// timeline.push(SimTime::from_ms(5), 0, "reply");
/// let retry = timeline.push(SimTime::from_ms(60), 0, "retry");
/// assert_eq!(timeline.pop(), Some((SimTime::from_ms(5), "reply")));
/// assert_eq!(timeline.cancel(retry), Some("retry"));
/// assert!(timeline.is_empty());
/// assert_eq!(timeline.now(), SimTime::from_ms(5));
/// ```
#[derive(Clone, Debug)]
pub struct Timeline<E> {
    now: SimTime,
    pushed: u64,
    live: usize,
    queue: BinaryHeap<Place>,
    slots: Vec<Slot<E>>,
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Slot<E> {
    sequence: u64,
    event: Option<E>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    at: SimTime,
    tie: u64,
    id: EventId,
}

impl Ord for Place {
    /// Reversed, since [`BinaryHeap`] yields its greatest element first.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |place: &Self| (u128::from(place.at.as_us()) << 64) | u128::from(place.tie);
        rank(other).cmp(&rank(self)).then_with(|| other.id.sequence.cmp(&self.id.sequence))
    }
}

impl PartialOrd for Place {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Default for Timeline<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Timeline<E> {
    /// An empty timeline at [`SimTime::ZERO`].
    pub fn new() -> Self {
        Self { now: SimTime::ZERO, pushed: 0, live: 0, queue: BinaryHeap::new(), slots: Vec::new(), free: Vec::new() }
    }

    /// The time of the last event popped, or the time last advanced to.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// How many events are in flight.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The event named by `id`, if it is still in flight.
    pub fn get(&self, id: EventId) -> Option<&E> {
        let slot = self.slots.get(id.slot as usize)?;
        if slot.sequence == id.sequence { slot.event.as_ref() } else { None }
    }

    /// When the next event happens, or `None` when nothing is in flight.
    pub fn next_at(&self) -> Option<SimTime> {
        self.queue.peek().map(|place| place.at)
    }

    /// All events in flight, in the order in which they would be popped. Costs a sort.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (EventId, SimTime, &E)> {
        let mut places: Vec<(&Place, &E)> =
            self.queue.iter().filter_map(|place| self.get(place.id).map(|event| (place, event))).collect();
        places.sort_unstable_by(|a, b| b.0.cmp(a.0));
        places.into_iter().map(|(place, event)| (place.id, place.at, event))
    }

    /// The events in flight that are due until `at`, with their ties, in the order in which they would be popped.
    pub fn until(&self, at: SimTime) -> Vec<(EventId, SimTime, u64)> {
        let is_live = |place: &&Place| self.slots[place.id.slot as usize].sequence == place.id.sequence;
        let mut places: Vec<&Place> = self.queue.iter().filter(|place| place.at <= at).filter(is_live).collect();
        places.sort_unstable_by(|a, b| b.cmp(a));
        places.into_iter().map(|place| (place.id, place.at, place.tie)).collect()
    }

    /// Puts `event` in flight, to happen at `at` (now, if that has passed). Of events at one time the lowest `tie` goes
    /// first, see [`Decider::tie`](crate::Decider::tie).
    pub fn push(&mut self, at: SimTime, tie: u64, event: E) -> EventId {
        let sequence = self.pushed;
        self.pushed += 1;
        self.live += 1;
        let filled = Slot { sequence, event: Some(event) };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = filled;
                slot
            }
            None => {
                self.slots.push(filled);
                (self.slots.len() - 1) as u32
            }
        };
        let id = EventId { sequence, slot };
        self.queue.push(Place { at: at.max(self.now), tie, id });
        id
    }

    /// Takes the next event and moves the time to it.
    pub fn pop(&mut self) -> Option<(SimTime, E)> {
        let place = self.queue.pop()?;
        self.now = self.now.max(place.at);
        let event = self.take(place.id);
        self.uncover();
        event.map(|event| (self.now, event))
    }

    /// Takes one event out of flight, without moving the time. `None` if it was popped or cancelled before.
    pub fn cancel(&mut self, id: EventId) -> Option<E> {
        let event = self.take(id)?;
        if self.queue.len() > 64 && self.queue.len() > 2 * self.live {
            let slots = &self.slots;
            self.queue.retain(|place| slots[place.id.slot as usize].sequence == place.id.sequence);
        }
        self.uncover();
        Some(event)
    }

    /// Moves the time forward to `at` without an event. Events that were due before then are popped at that time, in
    /// their old order. Does nothing if `at` has passed.
    pub fn advance(&mut self, at: SimTime) {
        self.now = self.now.max(at);
    }

    /// Drops cancelled places from the top of the queue: what is on top is always in flight.
    #[inline]
    fn uncover(&mut self) {
        while self.queue.peek().is_some_and(|place| self.slots[place.id.slot as usize].sequence != place.id.sequence) {
            self.queue.pop();
        }
    }

    #[inline]
    fn take(&mut self, id: EventId) -> Option<E> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        if slot.sequence != id.sequence {
            return None;
        }
        let event = slot.event.take()?;
        slot.sequence = u64::MAX;
        self.free.push(id.slot);
        self.live -= 1;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{EventId, Timeline};
    use crate::SimTime;

    #[derive(Clone, Debug)]
    enum Call {
        Push { in_us: u64, tie: u64 },
        Pop,
        Cancel(prop::sample::Index),
        Advance { by_us: u64 },
    }

    fn calls() -> impl Strategy<Value = Vec<Call>> {
        let call = prop_oneof![
            5 => (0..20_u64, 0..3_u64).prop_map(|(in_us, tie)| Call::Push { in_us, tie }),
            2 => Just(Call::Pop),
            2 => any::<prop::sample::Index>().prop_map(Call::Cancel),
            1 => (0..5_u64).prop_map(|by_us| Call::Advance { by_us }),
        ];
        proptest::collection::vec(call, 0..150)
    }

    proptest! {
        #[test]
        fn behaves_as_a_sorted_list(calls in calls()) {
            let mut timeline = Timeline::new();
            let mut model: Vec<(SimTime, u64, usize)> = Vec::new();
            let mut ids: Vec<EventId> = Vec::new();
            let mut now = SimTime::ZERO;
            for call in calls {
                match call {
                    Call::Push { in_us, tie } => {
                        // Some pushes go into the past, and happen now.
                        let at = SimTime::from_us((now.as_us() + in_us).saturating_sub(2));
                        model.push((at.max(now), tie, ids.len()));
                        ids.push(timeline.push(at, tie, ids.len()));
                    }
                    Call::Pop => {
                        model.sort();
                        let expected = if model.is_empty() { None } else { Some(model.remove(0)) };
                        now = now.max(expected.map_or(now, |(at, ..)| at));
                        prop_assert_eq!(timeline.pop(), expected.map(|(.., event)| (now, event)));
                    }
                    Call::Cancel(index) if !ids.is_empty() => {
                        let event = index.index(ids.len());
                        let expected = model.iter().position(|(.., other)| *other == event).map(|place| model.remove(place).2);
                        prop_assert_eq!(timeline.get(ids[event]).copied(), expected);
                        prop_assert_eq!(timeline.cancel(ids[event]), expected);
                    }
                    Call::Cancel(_) => {}
                    Call::Advance { by_us } => {
                        now = now.plus_us(by_us);
                        timeline.advance(now);
                    }
                }
                model.sort();
                prop_assert_eq!((timeline.now(), timeline.len(), timeline.is_empty()), (now, model.len(), model.is_empty()));
                prop_assert_eq!(timeline.next_at(), model.first().map(|(at, ..)| *at));
                let in_flight: Vec<_> = timeline.iter().map(|(_, at, event)| (at, *event)).collect();
                let expected: Vec<_> = model.iter().map(|(at, _, event)| (*at, *event)).collect();
                prop_assert_eq!(&in_flight, &expected);
                let soon = now.plus_us(6);
                let until: Vec<_> = timeline.until(soon).into_iter().map(|(id, at, _)| (at, timeline.get(id).copied())).collect();
                let expected: Vec<_> =
                    expected.into_iter().filter(|(at, _)| *at <= soon).map(|(at, event)| (at, Some(event))).collect();
                prop_assert_eq!(until, expected);
            }
            let mut clone = timeline.clone();
            while let Some(event) = timeline.pop() {
                prop_assert_eq!(clone.pop(), Some(event));
            }
        }
    }

    #[test]
    fn cancelled_places_are_swept() {
        let mut timeline = Timeline::new();
        timeline.push(SimTime::ZERO, 0, 0);
        for round in 0..10_000 {
            let id = timeline.push(SimTime::from_ms(round), 0, 1);
            timeline.cancel(id);
        }
        assert!(timeline.queue.len() <= 65 && timeline.slots.len() <= 2);
        assert_eq!(timeline.len(), 1);
    }

    #[test]
    fn an_old_id_does_not_name_a_new_event() {
        let mut timeline = Timeline::new();
        let old = timeline.push(SimTime::ZERO, 0, "old");
        timeline.pop();
        timeline.push(SimTime::ZERO, 0, "new");
        assert_eq!(timeline.get(old), None);
        assert_eq!((timeline.cancel(old), timeline.len()), (None, 1));
    }
}
