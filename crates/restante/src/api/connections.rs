//! The connections there are, and which of them have shown the token.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Connections of one server, by number: a lower one is older.
#[derive(Debug)]
pub(super) struct Connections {
    count_max: usize,
    state: Mutex<State>,
    /// One has ended.
    room: Notify,
}

#[derive(Debug, Default)]
struct State {
    next_number: u64,
    open: BTreeMap<u64, Arc<Known>>,
}

/// What is known of one connection.
#[derive(Debug)]
pub(super) struct Known {
    number: u64,
    /// Whether a request came over it with the right token.
    has_token: AtomicBool,
    away: Notify,
}

/// Takes a connection out when it has ended.
#[derive(Debug)]
pub(super) struct Ended {
    connections: Arc<Connections>,
    number: u64,
}

impl Connections {
    /// At most `count_max` at a time, and one that was just accepted.
    pub(super) fn new(count_max: usize) -> Self {
        Self { count_max, state: Mutex::default(), room: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while every place is taken by a connection that has shown the token.
    pub(super) async fn room(&self) {
        loop {
            let ended = self.room.notified();
            if self.lock().open.values().filter(|known| known.has_token()).count() < self.count_max {
                return;
            }
            ended.await;
        }
    }

    /// Notes a new connection. If there are too many now, the oldest one without the token is sent away.
    pub(super) fn begin(&self) -> Arc<Known> {
        let mut state = self.lock();
        let number = state.next_number;
        state.next_number += 1;
        let known = Arc::new(Known { number, has_token: AtomicBool::new(false), away: Notify::new() });
        if state.open.len() >= self.count_max
            && let Some(oldest) = state.open.values().find(|known| !known.has_token()).map(|known| known.number)
            && let Some(known) = state.open.remove(&oldest)
        {
            known.away.notify_one();
        }
        state.open.insert(number, Arc::clone(&known));
        known
    }

    /// For a connection to hold until it ends.
    pub(super) fn ended(self: &Arc<Self>, number: u64) -> Ended {
        Ended { connections: Arc::clone(self), number }
    }

    /// Sends those away that have not shown the token.
    pub(super) fn send_unknown_away(&self) {
        self.lock().open.values().filter(|known| !known.has_token()).for_each(|known| known.away.notify_one());
    }

    /// Sends all away, and returns how many of them had shown the token.
    pub(super) fn send_all_away(&self) -> usize {
        let state = self.lock();
        state.open.values().for_each(|known| known.away.notify_one());
        state.open.values().filter(|known| known.has_token()).count()
    }
}

impl Known {
    /// Its number.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
    /// A request came over it with the right token.
    pub(super) fn note_token(&self) {
        self.has_token.store(true, Ordering::Relaxed);
    }
    fn has_token(&self) -> bool {
        self.has_token.load(Ordering::Relaxed)
    }
    /// Returns when it has to go.
    pub(super) async fn sent_away(&self) {
        self.away.notified().await;
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.connections.lock().open.remove(&self.number);
        self.connections.room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(connections: &Connections) -> Vec<u64> {
        connections.lock().open.keys().copied().collect()
    }

    #[tokio::test]
    async fn the_oldest_without_the_token_makes_room_and_one_with_it_stays() {
        let connections = Connections::new(3);
        let first = connections.begin();
        first.note_token();
        let second = connections.begin();
        connections.begin();
        connections.begin();
        second.sent_away().await;
        assert_eq!(open(&connections), [0, 2, 3]);
    }

    #[tokio::test]
    async fn where_all_have_the_token_the_next_waits_until_one_ends() {
        let connections = Arc::new(Connections::new(2));
        let both = [connections.begin(), connections.begin()];
        both.iter().for_each(|known| known.note_token());
        let mut room = Box::pin(connections.room());
        let short = std::time::Duration::from_millis(20);
        assert!(tokio::time::timeout(short, &mut room).await.is_err());
        drop(connections.ended(both[0].number()));
        room.await;
        assert_eq!(open(&connections), [1]);
    }
}
