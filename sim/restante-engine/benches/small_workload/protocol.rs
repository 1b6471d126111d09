//! What both sides share: requests are `id, operation, arguments`, replies `id, results`; all numbers little-endian.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

pub(crate) struct Record {
    version: u64,
    due_ms: u64,
    owner: u64,
    state: u64,
    body: Vec<u8>,
}
pub(crate) const LEASED: u64 = 1;
pub(crate) const SETTLED: u64 = 2;

pub(crate) struct Kv {
    records: BTreeMap<u64, Record>,
    due: BTreeSet<(u64, u64)>,
    pub(crate) unsettled: u32,
}

pub(crate) fn put(bytes: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
}

pub(crate) fn get(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

pub(crate) fn request(id: u64, operation: u8, arguments: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    put(&mut bytes, &[id]);
    bytes.push(operation);
    put(&mut bytes, arguments);
    bytes
}

pub(crate) fn post(id: u64, key: u64) -> Vec<u8> {
    let mut bytes = request(id, b'p', &[key]);
    bytes.resize(17 + BODY_LEN, key as u8);
    bytes
}

pub(crate) fn candidates(reply: &[u8]) -> Vec<(u64, u64)> {
    (16..reply.len()).step_by(16).map(|at| (get(reply, at), get(reply, at + 8))).collect()
}

/// At most four of `candidates`, at random.
pub(crate) fn pick(mut candidates: Vec<(u64, u64)>, mut random: impl FnMut() -> u64) -> Vec<(u64, u64)> {
    for last in (1..candidates.len()).rev() {
        candidates.swap(last, (random() % (last as u64 + 1)) as usize);
    }
    candidates.truncate(4);
    candidates
}

impl Kv {
    pub(crate) fn new() -> Self {
        let record = |key: u64| Record { version: 1, due_ms: 0, owner: 0, state: 0, body: vec![key as u8; BODY_LEN] };
        let keys = 0..u64::from(ENTRIES);
        let records = keys.clone().map(|key| (key, record(key))).collect();
        Self { records, due: keys.map(|key| (0, key)).collect(), unsettled: ENTRIES }
    }

    pub(crate) fn reply(&mut self, request: &[u8]) -> Vec<u8> {
        let mut reply = request[..8].to_vec();
        match request[8] {
            b'g' => {
                let record = &self.records[&get(request, 9)];
                put(&mut reply, &[record.version, record.due_ms, record.owner, record.state]);
                reply.extend_from_slice(&record.body);
            }
            b's' => {
                put(&mut reply, &[u64::from(self.unsettled)]);
                for &(_, key) in self.due.range(..=(get(request, 9), u64::MAX)).take(12) {
                    put(&mut reply, &[key, self.records[&key].version]);
                }
            }
            _ => {
                let [key, version, due_ms, owner, state] = [9, 17, 25, 33, 41].map(|at| get(request, at));
                let record = self.records.get_mut(&key).unwrap();
                if record.version == version {
                    self.due.remove(&(record.due_ms, key));
                    *record = Record { version: version + 1, due_ms, owner, state, body: std::mem::take(&mut record.body) };
                    if state == SETTLED {
                        self.unsettled -= 1;
                    } else {
                        self.due.insert((due_ms, key));
                    }
                    put(&mut reply, &[record.version]);
                } else {
                    put(&mut reply, &[0]);
                }
            }
        }
        reply
    }
}

/// What a run did, and the checks on it.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) messages: u64,
    pub(crate) posts: u64,
    pub(crate) retries: u64,
    pub(crate) boots: u64,
    pub(crate) got: BTreeMap<u64, u32>,
    pub(crate) sim_ms: u64,
    pub(crate) digest: u128,
}

impl Outcome {
    pub(crate) fn check(&self) {
        assert_eq!(self.got.len(), ENTRIES as usize, "an entry was settled without a delivery");
        assert_eq!(self.boots, WORKERS as u64 + 1, "no crash and restart happened");
    }

    pub(crate) fn on_post(&mut self, request: &[u8]) -> Vec<u8> {
        *self.got.entry(get(request, 9)).or_default() += 1;
        self.posts += 1;
        let mut reply = request[..8].to_vec();
        reply.extend_from_slice(b"202");
        reply
    }
}
