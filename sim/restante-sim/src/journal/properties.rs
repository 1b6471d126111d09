//! What must be true of a journal whoever decided it. Each property looks at one process's record: what other processes did
//! is seen only through reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use restante_core::Env;
use restante_core::atoms::{EntryId, Fence};
use restante_core::keys::Kind;
use restante_core::record::{Entry, Record as _, WaitReason};
use restante_journal::{CheckRecord, Event, IoRecord, ReplyRecord, WriteRecord, to_key};
use restante_kv::{Key, StoreTime};

use super::{JournalViolation, Wrong};

/// Names and what they say.
pub const JOURNAL_PROPERTIES: [(&str, &str); 7] = [
    ("time-runs-forward", "the process's clock and the store's clock never run backwards, and run at one speed"),
    ("one-version-one-value", "one version of a key has one value, in every read and every commit"),
    ("replaced-is-not-read", "what a commit replaced is not read by whoever asks after its answer"),
    (
        "writes-keep-their-rules",
        "every write of a commit is checked, under a record that is checked and written, or an idempotent put",
    ),
    ("fences-rise", "a commit leaves a delivery's fencing token as it is, or raises it by one"),
    ("no-post-after-retention", "no attempt begins after the delivery's retention"),
    ("order-per-lane", "first attempts of one lane begin in the order of its places"),
];

/// How far two clocks of one machine may drift apart within a journal, beside what asking and answering take.
const DRIFT_MS: u64 = 1_000;

struct Asked {
    about: String,
    io: IoRecord,
    local_ms: u64,
    line: u64,
    /// Latest store time that was known then.
    store_ms: u64,
}

pub(super) struct Properties {
    env: Arc<Env>,
    /// Latest time of each operation by the process's clock.
    local_ms: BTreeMap<u64, u64>,
    /// The latest of all.
    latest_ms: u64,
    store_ms: u64,
    /// The store's clock less the process's lies in here, if it is a clock at all.
    offset_min: i128,
    offset_max: i128,
    open: BTreeMap<(u64, u32), Asked>,
    /// Fingerprint of the value of each (key, version).
    values: BTreeMap<(String, String), u128>,
    /// Line at which a version of a key was known to be replaced.
    replaced: BTreeMap<(String, String), u64>,
    entries: BTreeMap<EntryId, Entry>,
    /// Token of each version of an entry's record.
    fences: BTreeMap<(String, String), Fence>,
    /// Highest place of each lane whose first attempt began.
    lanes: BTreeMap<(Arc<str>, Arc<str>), u64>,
}

type Broken = (&'static str, String);

impl Properties {
    pub(super) fn new(env: Arc<Env>) -> Self {
        Self {
            env,
            local_ms: BTreeMap::new(),
            latest_ms: 0,
            store_ms: 0,
            offset_min: i128::MIN,
            offset_max: i128::MAX,
            open: BTreeMap::new(),
            values: BTreeMap::new(),
            replaced: BTreeMap::new(),
            entries: BTreeMap::new(),
            fences: BTreeMap::new(),
            lanes: BTreeMap::new(),
        }
    }

    pub(super) fn step(&mut self, line: u64, event: &Event) -> Result<(), JournalViolation> {
        let (op, about, result) = match event {
            Event::Began { op, local_ms, .. } => (*op, "began".to_owned(), self.local_time(*op, *local_ms)),
            Event::Asked { op, task, about, io } => {
                let result = self.on_asked(io);
                let asked = Asked {
                    about: about.clone(),
                    io: io.clone(),
                    local_ms: self.local_ms.get(op).copied().unwrap_or_default(),
                    line,
                    store_ms: self.store_ms,
                };
                self.open.insert((*op, *task), asked);
                (*op, about.clone(), result)
            }
            Event::Answered { op, task, local_ms, reply } => {
                let asked = self.open.remove(&(*op, *task));
                let about = asked.as_ref().map_or_else(String::new, |asked| asked.about.clone());
                let result = self.local_time(*op, *local_ms).and_then(|()| match asked {
                    Some(asked) => self.on_answered(line, *local_ms, &asked, reply),
                    None => Ok(()),
                });
                (*op, about, result)
            }
            Event::Opened { .. } | Event::Woken { .. } | Event::Stopped { .. } | Event::Full {} => return Ok(()),
        };
        result.map_err(|(property, what)| JournalViolation { property, wrong: Wrong { line, op, about, what } })
    }

    fn local_time(&mut self, op: u64, local_ms: u64) -> Result<(), Broken> {
        let before = self.local_ms.insert(op, local_ms).unwrap_or_default();
        // Operations read the clock before they write their line: between two of them the lines may be a little out of order.
        if local_ms < before || local_ms.saturating_add(DRIFT_MS) < self.latest_ms {
            let what = format!("the process's clock runs back from {} to {local_ms} ms", before.max(self.latest_ms));
            return Err(("time-runs-forward", what));
        }
        self.latest_ms = self.latest_ms.max(local_ms);
        Ok(())
    }

    fn store_time(&mut self, at_ms: u64, local_ms: u64, asked: &Asked) -> Result<(), Broken> {
        // A store without a clock is read by the process's wall clock, which may be set back.
        let slack_ms = self.env.config.max_clock_skew_ms;
        if at_ms.saturating_add(slack_ms) < asked.store_ms {
            let what = format!("the store's clock runs back from {} to {at_ms} ms", asked.store_ms);
            return Err(("time-runs-forward", what));
        }
        let slack = i128::from(DRIFT_MS.saturating_add(slack_ms));
        let at = i128::from(at_ms);
        // The store's clock was read between asking and answering.
        let (low, high) = (at - i128::from(local_ms), at - i128::from(asked.local_ms));
        if low > self.offset_max.saturating_add(slack) || high < self.offset_min.saturating_sub(slack) {
            let what =
                format!("the store's clock says {at_ms} ms, which is not between asking and answering by the process's clock");
            return Err(("time-runs-forward", what));
        }
        self.offset_min = self.offset_min.max(low);
        self.offset_max = self.offset_max.min(high);
        self.store_ms = self.store_ms.max(at_ms);
        Ok(())
    }

    fn on_asked(&mut self, io: &IoRecord) -> Result<(), Broken> {
        match io {
            IoRecord::Commit { checks, writes } => {
                self.forget_ended_lanes(writes);
                writes_keep_their_rules(checks, writes)
            }
            IoRecord::Post { entry, fence, .. } => self.on_post(*entry, Fence::new(*fence)),
            IoRecord::Read { .. } | IoRecord::Scan { .. } | IoRecord::Sleep { .. } => Ok(()),
        }
    }

    /// A lane that ends and begins again counts its places anew.
    fn forget_ended_lanes(&mut self, writes: &[WriteRecord]) {
        for deleted in writes.iter().filter(|write| write.put.is_none()) {
            let Ok(key) = to_key(&deleted.key) else { continue };
            if self.env.keys.kind_of(&key) == Some(Kind::Lane)
                && let Ok(lane) = self.env.keys.read_lane(&key)
            {
                self.lanes.remove(&lane);
            }
        }
    }

    fn on_post(&mut self, id: EntryId, fence: Fence) -> Result<(), Broken> {
        let Some(entry) = self.entries.get(&id) else { return Ok(()) };
        let ends_at = entry.origin.plus_ms(self.env.config.max_retention_ms);
        if StoreTime::from_ms(self.store_ms) > ends_at {
            let what = format!("{id} is attempted at {} ms, its retention ended at {} ms", self.store_ms, ends_at.as_ms());
            return Err(("no-post-after-retention", what));
        }
        // An operator's revive puts an entry in front; its first attempt is out of order on purpose.
        if let (Some(lane), true, false) = (&entry.lane, fence == Fence::new(1), entry.wait == WaitReason::Woken) {
            let place = lane.position.get();
            let highest = self.lanes.entry((lane.order_key.clone(), entry.destination.clone())).or_insert(place);
            if place < *highest {
                let what = format!("{id} at place {place} is first attempted after place {highest}");
                return Err(("order-per-lane", what));
            }
            *highest = place;
        }
        Ok(())
    }

    fn on_answered(&mut self, line: u64, local_ms: u64, asked: &Asked, reply: &ReplyRecord) -> Result<(), Broken> {
        match (&asked.io, reply) {
            (IoRecord::Read { keys }, ReplyRecord::Snapshot { at_ms, records }) => {
                self.store_time(*at_ms, local_ms, asked)?;
                for (key, found) in keys.iter().zip(records) {
                    if let Some(found) = found {
                        self.on_read(key, &found.version, &found.value, asked)?;
                    }
                }
                Ok(())
            }
            (IoRecord::Scan { .. }, ReplyRecord::Page { at_ms, entries, .. }) => {
                self.store_time(*at_ms, local_ms, asked)?;
                entries.iter().try_for_each(|(key, found)| self.on_read(key, &found.version, &found.value, asked))
            }
            (IoRecord::Commit { checks, writes }, ReplyRecord::Committed { version }) => {
                self.on_committed(line, checks, writes, version)
            }
            _ => Ok(()),
        }
    }

    fn on_read(&mut self, key: &str, version: &str, value: &str, asked: &Asked) -> Result<(), Broken> {
        self.one_value(key, version, value)?;
        let place = (key.to_owned(), version.to_owned());
        if let Some(replaced) = self.replaced.get(&place).filter(|replaced| **replaced < asked.line) {
            let what = format!("{key} is read at version {version}, which line {replaced} replaced");
            return Err(("replaced-is-not-read", what));
        }
        self.on_entry(key, version, value)
    }

    fn one_value(&mut self, key: &str, version: &str, value: &str) -> Result<(), Broken> {
        let mut digest = restante_engine::Digest::new();
        digest.str(value);
        let known = *self.values.entry((key.to_owned(), version.to_owned())).or_insert(digest.value());
        if known != digest.value() {
            return Err(("one-version-one-value", format!("{key} has two values at version {version}")));
        }
        Ok(())
    }

    fn on_committed(&mut self, line: u64, checks: &[CheckRecord], writes: &[WriteRecord], version: &str) -> Result<(), Broken> {
        for write in writes {
            if let Some(before) = checks.iter().find(|check| check.key == write.key).and_then(|check| check.version.clone()) {
                self.replaced.insert((write.key.clone(), before), line);
            }
            if let Some(value) = &write.put {
                self.one_value(&write.key, version, value)?;
                self.on_entry(&write.key, version, value)?;
                let before = checks.iter().find(|check| check.key == write.key).and_then(|check| check.version.clone());
                let fence_at = |at: &str| self.fences.get(&(write.key.clone(), at.to_owned())).copied();
                if let (Some(before), Some(after)) = (before.and_then(|before| fence_at(&before)), fence_at(version))
                    && after != before
                    && after != before.next()
                {
                    let what = format!("{} goes from fence {} to {}", write.key, before.get(), after.get());
                    return Err(("fences-rise", what));
                }
            }
        }
        Ok(())
    }

    /// Learns an entry's state.
    fn on_entry(&mut self, key: &str, version: &str, value: &str) -> Result<(), Broken> {
        let Some((id, entry)) = self.read_entry(key, value) else { return Ok(()) };
        self.fences.insert((key.to_owned(), version.to_owned()), entry.fence);
        if self.entries.get(&id).is_some_and(|before| before.origin != entry.origin) {
            return Err(("no-post-after-retention", format!("the origin of {id} changed")));
        }
        self.entries.insert(id, entry);
        Ok(())
    }

    fn read_entry(&self, key: &str, value: &str) -> Option<(EntryId, Entry)> {
        let key: Key = to_key(key).ok()?;
        if self.env.keys.kind_of(&key) != Some(Kind::Entry) {
            return None;
        }
        let id = self.env.keys.read_entry(Kind::Entry, &key).ok()?;
        let entry = Entry::decode(&restante_journal::to_value(value).ok()?).ok()?;
        Some((id, entry))
    }
}

fn writes_keep_their_rules(checks: &[CheckRecord], writes: &[WriteRecord]) -> Result<(), Broken> {
    let is_checked = |key: &str| checks.iter().any(|check| check.key == key);
    let is_written = |key: &str| writes.iter().any(|write| write.key == key);
    for write in writes {
        let safe = match write.guard.as_str() {
            "checked" => is_checked(&write.key),
            "idempotent" => write.put.is_some(),
            guard => guard.strip_prefix("under ").is_some_and(|under| is_checked(under) && is_written(under)),
        };
        if !safe {
            return Err(("writes-keep-their-rules", format!("the write of {} is not {}", write.key, write.guard)));
        }
    }
    Ok(())
}
