//! The key layout: which record lies where. Every key is built and taken apart here and nowhere else.
//!
//! | tag | elements | record |
//! |---|---|---|
//! | `i` | | [`Intake`](crate::record::Intake) |
//! | `s` | idempotency key | [`Marker`](crate::record::Marker) |
//! | `g` | send | [`Stage`](crate::record::Stage) |
//! | `b` | send, chunk number | [`PayloadChunk`](crate::record::PayloadChunk) |
//! | `m` | send, index | [`Member`](crate::record::Member) |
//! | `e` | send, index | [`Entry`](crate::record::Entry) |
//! | `k` | order key | [`OrderKeyQueue`](crate::record::OrderKeyQueue) |
//! | `l` | order key, destination | [`Lane`](crate::record::Lane) |
//! | `q` | order key, destination, position | [`LaneSlot`](crate::record::LaneSlot) |
//! | `d` | destination, vest instant, send, index | [`DueRow`](crate::record::DueRow) |
//! | `p` | shard, vest bucket, destination | [`Pointer`](crate::record::Pointer) |
//! | `h` | destination | [`Destination`](crate::record::Destination) |
//! | `c` | slot | [`Counters`](crate::record::Counters) |
//! | `w` | | [`SweepState`](crate::record::SweepState) |
//! | `x` | send, index | [`Quarantined`](crate::record::Quarantined) |
//! | `z` | send, index | [`DeadLetter`](crate::record::DeadLetter) |
//! | `f` | send | [`Intent`](crate::record::Intent) |
//! | `a` | send, chunk number | [`RecipientChunk`](crate::record::RecipientChunk) |
//! | `t` | order key, position | [`IntentSlot`](crate::record::IntentSlot) |
//! | `y` | send | [`DeadIntent`](crate::record::DeadIntent) |
//!
//! An intent's due row and pointer stand under [`EXPANSIONS`], a destination that no inbox has, and its due row and its
//! quarantined record under the index that [`EntryId::of_intent`] names: what finds, repairs and puts aside entries does the
//! same for intents. Kinds that are swept together (an entry and an intent, a lane and an order key's FIFO, ...) have
//! neighbouring tags, so that one range holds both.

use std::hash::Hasher;
use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::tuple::{KeyBuilder, KeyReader, TupleError};
use restante_kv::{Key, KeyRange, StoreTime};
use siphasher::sip::SipHasher13;

use crate::atoms::{EntryId, Position, SendId};
use crate::config::Config;

/// Kinds of records, as the tag of their keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "each variant is the record of the same name")]
#[repr(u8)]
pub enum Kind {
    Intake = b'i',
    Marker = b's',
    Stage = b'g',
    PayloadChunk = b'b',
    Member = b'm',
    Entry = b'e',
    OrderKeyQueue = b'k',
    Lane = b'l',
    LaneSlot = b'q',
    DueRow = b'd',
    Pointer = b'p',
    Destination = b'h',
    Counters = b'c',
    SweepState = b'w',
    Quarantined = b'x',
    DeadLetter = b'z',
    Intent = b'f',
    RecipientChunk = b'a',
    IntentSlot = b't',
    DeadIntent = b'y',
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 20] = [
        Self::Intake,
        Self::Marker,
        Self::Stage,
        Self::PayloadChunk,
        Self::Member,
        Self::Entry,
        Self::OrderKeyQueue,
        Self::Lane,
        Self::LaneSlot,
        Self::DueRow,
        Self::Pointer,
        Self::Destination,
        Self::Counters,
        Self::SweepState,
        Self::Quarantined,
        Self::DeadLetter,
        Self::Intent,
        Self::RecipientChunk,
        Self::IntentSlot,
        Self::DeadIntent,
    ];
}

/// The destination under which intents are discovered. No inbox has it: a destination has at least one byte.
pub const EXPANSIONS: &str = "";

/// A due row's key, taken apart.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct DueKey {
    /// Where the entry goes.
    pub destination: Arc<str>,
    /// From when it may be claimed.
    pub vest_at: StoreTime,
    /// The entry.
    pub entry: EntryId,
}

/// A pointer's key, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PointerKey {
    /// First instant of its bucket.
    pub bucket_at: StoreTime,
    /// The destination it points to.
    pub destination: Arc<str>,
}

/// Builds and takes apart the keys of one backlog.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Keys {
    prefix: Arc<str>,
    pointer_shards: u64,
    pointer_bucket_ms: u64,
    counter_slots: u64,
}

impl Keys {
    /// The keys of a backlog with these settings.
    pub fn new(config: &Config) -> Self {
        Self {
            prefix: config.prefix.clone(),
            pointer_shards: config.pointer_shards,
            pointer_bucket_ms: config.pointer_bucket_ms,
            counter_slots: config.counter_slots,
        }
    }

    fn build(&self, kind: Kind) -> KeyBuilder {
        KeyBuilder::new(self.prefix.as_bytes()).tag(kind as u8)
    }
    fn of_send(&self, kind: Kind, send: SendId) -> KeyBuilder {
        self.build(kind).raw(send.as_bytes())
    }
    fn of_entry(&self, kind: Kind, id: EntryId) -> Key {
        self.of_send(kind, id.send).u64(id.index.into()).key()
    }

    /// The intake record.
    pub fn intake(&self) -> Key {
        self.build(Kind::Intake).key()
    }
    /// The marker of an accept.
    pub fn marker(&self, idempotency_key: &str) -> Key {
        self.build(Kind::Marker).str(idempotency_key).key()
    }
    /// The stage of a large payload.
    pub fn stage(&self, send: SendId) -> Key {
        self.of_send(Kind::Stage, send).key()
    }
    /// A chunk of a large payload.
    pub fn chunk(&self, send: SendId, number: u32) -> Key {
        self.of_send(Kind::PayloadChunk, send).u64(number.into()).key()
    }
    /// The membership of an entry in a send with a staged payload.
    pub fn member(&self, id: EntryId) -> Key {
        self.of_entry(Kind::Member, id)
    }
    /// All memberships of a send.
    pub fn members(&self, send: SendId) -> KeyRange {
        self.of_send(Kind::Member, send).range()
    }
    /// An entry.
    pub fn entry(&self, id: EntryId) -> Key {
        self.of_entry(Kind::Entry, id)
    }
    /// The intents of an order key.
    pub fn order_key(&self, order_key: &str) -> Key {
        self.build(Kind::OrderKeyQueue).str(order_key).key()
    }
    /// The lane of an order key and a destination.
    pub fn lane(&self, order_key: &str, destination: &str) -> Key {
        self.build(Kind::Lane).str(order_key).str(destination).key()
    }
    /// A place in a lane.
    pub fn lane_slot(&self, order_key: &str, destination: &str, position: Position) -> Key {
        self.build(Kind::LaneSlot).str(order_key).str(destination).u64(position.get()).key()
    }
    /// The due row of an entry.
    pub fn due(&self, destination: &str, vest_at: StoreTime, id: EntryId) -> Key {
        let key = self.build(Kind::DueRow).str(destination).u64(vest_at.as_ms());
        key.raw(id.send.as_bytes()).u64(id.index.into()).key()
    }
    /// All due rows of a destination, earliest first.
    pub fn due_rows(&self, destination: &str) -> KeyRange {
        self.build(Kind::DueRow).str(destination).range()
    }
    /// The pointer that makes a due row of `destination` at `vest_at` discoverable.
    pub fn pointer(&self, destination: &str, vest_at: StoreTime) -> Key {
        let bucket = vest_at.as_ms() / self.pointer_bucket_ms;
        self.build(Kind::Pointer).u64(self.shard_of(destination)).u64(bucket).str(destination).key()
    }
    /// All pointers of a shard, earliest bucket first.
    pub fn pointers(&self, shard: u64) -> KeyRange {
        self.build(Kind::Pointer).u64(shard).range()
    }
    /// Number of pointer shards.
    pub const fn pointer_shards(&self) -> u64 {
        self.pointer_shards
    }
    fn shard_of(&self, destination: &str) -> u64 {
        stable_hash(&[destination.as_bytes()]) % self.pointer_shards
    }
    /// What is known of a destination.
    pub fn destination(&self, destination: &str) -> Key {
        self.build(Kind::Destination).str(destination).key()
    }
    /// A counter slot; slots count modulo their number.
    pub fn counters(&self, slot: u64) -> Key {
        self.build(Kind::Counters).u64(slot % self.counter_slots).key()
    }
    /// All counter slots.
    pub fn all_counters(&self) -> Vec<Key> {
        (0..self.counter_slots).map(|slot| self.counters(slot)).collect()
    }
    /// The sweep's state.
    pub fn sweep(&self) -> Key {
        self.build(Kind::SweepState).key()
    }
    /// A quarantined entry.
    pub fn quarantined(&self, id: EntryId) -> Key {
        self.of_entry(Kind::Quarantined, id)
    }
    /// The dead letter of an entry.
    pub fn dead_letter(&self, id: EntryId) -> Key {
        self.of_entry(Kind::DeadLetter, id)
    }
    /// An intent.
    pub fn intent(&self, send: SendId) -> Key {
        self.of_send(Kind::Intent, send).key()
    }
    /// A chunk of a send's recipients.
    pub fn recipients(&self, send: SendId, number: u32) -> Key {
        self.of_send(Kind::RecipientChunk, send).u64(number.into()).key()
    }
    /// A place in the FIFO of an order key.
    pub fn intent_slot(&self, order_key: &str, position: Position) -> Key {
        self.build(Kind::IntentSlot).str(order_key).u64(position.get()).key()
    }
    /// The trace of an intent that was given up.
    pub fn dead_intent(&self, send: SendId) -> Key {
        self.of_send(Kind::DeadIntent, send).key()
    }
    /// What makes an intent discoverable: its due row.
    pub fn intent_due(&self, send: SendId, vest_at: StoreTime) -> Key {
        self.due(EXPANSIONS, vest_at, EntryId::of_intent(send))
    }
    /// The entries of a send from index `from` to before `to`.
    pub fn entries(&self, send: SendId, from: u32, to: u32) -> KeyRange {
        KeyRange { start: self.entry(EntryId { send, index: from }), end: Some(self.entry(EntryId { send, index: to })) }
    }
    /// All records of the backlog.
    pub fn everything(&self) -> KeyRange {
        KeyRange::prefix(self.prefix.as_bytes())
    }
    /// All records of two kinds with neighbouring tags.
    pub fn all_of_both(&self, first: Kind, second: Kind) -> KeyRange {
        debug_assert!(first as u8 + 1 == second as u8, "{first:?} and {second:?} are no neighbours");
        KeyRange { end: self.all(second).end, ..self.all(first) }
    }
    /// All records of a kind.
    pub fn all(&self, kind: Kind) -> KeyRange {
        self.build(kind).range()
    }

    fn read<'k>(&self, kind: Kind, key: &'k Key) -> Result<KeyReader<'k>, TupleError> {
        let mut reader = KeyReader::new(key.as_bytes());
        reader.strip(self.prefix.as_bytes())?;
        reader.strip(&[kind as u8])?;
        Ok(reader)
    }

    /// The kind of record under `key`; `None` for a key of something else.
    pub fn kind_of(&self, key: &Key) -> Option<Kind> {
        let tag = *key.as_bytes().strip_prefix(self.prefix.as_bytes())?.first()?;
        Kind::ALL.into_iter().find(|kind| *kind as u8 == tag)
    }

    /// Takes the key of a record of one delivery (`e`, `m`, `x`, `z`) apart.
    ///
    /// # Errors
    /// [`TupleError`] when it is not such a key.
    pub fn read_entry(&self, kind: Kind, key: &Key) -> Result<EntryId, TupleError> {
        let mut reader = self.read(kind, key)?;
        let id = read_entry_id(&mut reader)?;
        reader.end()?;
        Ok(id)
    }

    /// Takes the key of a stage or the beginning of a chunk's key apart.
    ///
    /// # Errors
    /// [`TupleError`] when it is not such a key.
    pub fn read_send(&self, kind: Kind, key: &Key) -> Result<SendId, TupleError> {
        Ok(SendId::from_bytes(self.read(kind, key)?.raw::<16>()?))
    }

    /// Takes an order key's key apart.
    ///
    /// # Errors
    /// [`TupleError`] when it is not such a key.
    pub fn read_order_key(&self, key: &Key) -> Result<Arc<str>, TupleError> {
        let mut reader = self.read(Kind::OrderKeyQueue, key)?;
        let order_key = reader.str()?.into();
        reader.end()?;
        Ok(order_key)
    }

    /// Takes a due row's key apart.
    ///
    /// # Errors
    /// [`TupleError`] when it is not such a key.
    pub fn read_due(&self, key: &Key) -> Result<DueKey, TupleError> {
        let mut reader = self.read(Kind::DueRow, key)?;
        let destination = reader.str()?.into();
        let vest_at = StoreTime::from_ms(reader.u64()?);
        let entry = read_entry_id(&mut reader)?;
        reader.end()?;
        Ok(DueKey { destination, vest_at, entry })
    }

    /// Takes a pointer's key apart.
    ///
    /// # Errors
    /// [`TupleError`] when it is not such a key.
    pub fn read_pointer(&self, key: &Key) -> Result<PointerKey, TupleError> {
        let mut reader = self.read(Kind::Pointer, key)?;
        let _shard = reader.u64()?;
        let bucket_at = StoreTime::from_ms(reader.u64()?.saturating_mul(self.pointer_bucket_ms));
        let destination = reader.str()?.into();
        reader.end()?;
        Ok(PointerKey { bucket_at, destination })
    }

    /// Takes a destination's key apart.
    ///
    /// # Errors
    /// [`TupleError`] when it is not such a key.
    pub fn read_destination(&self, key: &Key) -> Result<Arc<str>, TupleError> {
        let mut reader = self.read(Kind::Destination, key)?;
        let destination = reader.str()?.into();
        reader.end()?;
        Ok(destination)
    }

    /// Takes a lane's key apart: order key and destination.
    ///
    /// # Errors
    /// [`TupleError`] when it is not such a key.
    pub fn read_lane(&self, key: &Key) -> Result<(Arc<str>, Arc<str>), TupleError> {
        let mut reader = self.read(Kind::Lane, key)?;
        let lane = (reader.str()?.into(), reader.str()?.into());
        reader.end()?;
        Ok(lane)
    }
}

fn read_entry_id(reader: &mut KeyReader<'_>) -> Result<EntryId, TupleError> {
    let send = SendId::from_bytes(reader.raw::<16>()?);
    // No builder writes a longer number here. The reader does not tell where it stands; the error's place is not used.
    let index = u32::try_from(reader.u64()?).map_err(|_| TupleError::NotANumber { at: 0 })?;
    Ok(EntryId { send, index })
}

/// A hash that is the same in every build and on every machine, for shards and for telling requests apart.
/// Not for use against an adversary.
pub(crate) fn stable_hash(parts: &[&[u8]]) -> u64 {
    let mut hasher = SipHasher13::new();
    for part in parts {
        hasher.write(&(part.len() as u64).to_le_bytes());
        hasher.write(part);
    }
    hasher.finish()
}
