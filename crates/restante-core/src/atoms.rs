//! Identities and ordered quantities, each a newtype, and the visitor that finds them inside any value.
//!
//! A checker renames identities and ranks ordered quantities; it can only do so when no record hides one in a plain integer.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use restante_kv::{Expect, Key, KeyRange, Mutation, StoreError, StoreTime, Txn, Value, Version, Versioned};
use serde::{Deserialize, Serialize};

use crate::machine::LocalTime;

/// Visits every identity and ordered quantity of a value in place, in a fixed order.
pub trait VisitAtoms {
    /// Calls `visitor` for each atom.
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor);
}

/// What to do with each kind of atom. Every method may replace the atom.
pub trait AtomVisitor {
    /// The identity of a send.
    fn send_id(&mut self, id: &mut SendId);
    /// The identity of a lease owner.
    fn owner_id(&mut self, id: &mut OwnerId);
    /// A fencing token.
    fn fence(&mut self, fence: &mut Fence);
    /// A position in a lane or an order key's queue.
    fn position(&mut self, position: &mut Position);
    /// An instant of the store's clock.
    fn store_time(&mut self, at: &mut StoreTime);
    /// A store version whose key is not at hand.
    fn version(&mut self, version: &mut Version);
    /// A version of what lies under `key`.
    fn version_of(&mut self, _key: &Key, version: &mut Version) {
        self.version(version);
    }
    /// A key: it may hold an instant (due rows, pointers).
    fn key(&mut self, _key: &mut Key) {}
    /// The bytes of a record under `key`: they may hold atoms of every kind.
    fn record(&mut self, _key: &Key, _value: &mut Value) {}
    /// An instant of a process's monotonic clock.
    fn local_time(&mut self, _at: &mut LocalTime) {}
    /// A count that only a report reads.
    fn tally(&mut self, _count: &mut u64) {}
}

macro_rules! id_16 {
    ($(#[$doc:meta])* $name:ident, $visit:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name([u8; 16]);

        impl $name {
            /// An id from 16 bytes that nobody used before (random, or derived from something unique).
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }
            /// The 16 bytes.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
        impl VisitAtoms for $name {
            fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
                visitor.$visit(self);
            }
        }
    };
}

id_16!(
    /// One accepted send: one payload and its recipients.
    SendId,
    send_id
);
id_16!(
    /// Who holds a lease. Unique per start of a worker: a process that restarts is another owner.
    OwnerId,
    owner_id
);

/// One delivery: recipient number `index` of a send.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct EntryId {
    /// The send.
    pub send: SendId,
    /// Position in the send's recipient list, from 0.
    pub index: u32,
}

impl EntryId {
    /// The place that stands for the intent of a send where a row names a delivery: no send has that many recipients.
    pub const fn of_intent(send: SendId) -> Self {
        Self { send, index: u32::MAX }
    }
    /// Whether it stands for the intent of its send.
    pub const fn is_intent(&self) -> bool {
        self.index == u32::MAX
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.send, self.index)
    }
}

impl VisitAtoms for EntryId {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        self.send.visit_atoms(visitor);
    }
}

macro_rules! ordered_u64 {
    ($(#[$doc:meta])* $name:ident, $visit:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
        pub struct $name(u64);

        impl $name {
            /// From its number.
            pub const fn new(number: u64) -> Self {
                Self(number)
            }
            /// Its number.
            pub const fn get(self) -> u64 {
                self.0
            }
            /// The next one; saturates.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }
        impl VisitAtoms for $name {
            fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
                visitor.$visit(self);
            }
        }
    };
}

ordered_u64!(
    /// The fencing token of an entry: rises by one with every claim for as long as the record lives, and never restarts.
    Fence,
    fence
);
ordered_u64!(
    /// A place in a lane or in an order key's queue; dense.
    Position,
    position
);

impl Position {
    /// The first place of a lane; before it there is room for what an operator puts in front.
    pub const FIRST: Self = Self(1 << 32);

    /// The one before; `None` before the very first.
    pub const fn previous(self) -> Option<Self> {
        match self.0.checked_sub(1) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }
}

impl VisitAtoms for StoreTime {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        visitor.store_time(self);
    }
}

impl VisitAtoms for Version {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        visitor.version(self);
    }
}

macro_rules! no_atoms {
    ($($name:ty),*) => { $(impl VisitAtoms for $name {
        fn visit_atoms(&mut self, _visitor: &mut dyn AtomVisitor) {}
    })* };
}
no_atoms!(bool, u8, u16, u32, u64, i64, usize, String, Arc<str>, Bytes, Sealed, StoreError);

impl<T: VisitAtoms> VisitAtoms for Option<T> {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        self.iter_mut().for_each(|item| item.visit_atoms(visitor));
    }
}

impl<T: VisitAtoms> VisitAtoms for Vec<T> {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        self.iter_mut().for_each(|item| item.visit_atoms(visitor));
    }
}

impl VisitAtoms for Key {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        visitor.key(self);
    }
}

impl VisitAtoms for KeyRange {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        self.start.visit_atoms(visitor);
        self.end.visit_atoms(visitor);
    }
}

impl VisitAtoms for Txn {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        for check in &mut self.checks {
            if let Expect::Version(version) = &mut check.expect {
                visitor.version_of(&check.key, version);
            }
            visitor.key(&mut check.key);
        }
        for write in &mut self.writes {
            if let Mutation::Put(value) = &mut write.mutation {
                visitor.record(&write.key, value);
            }
            visitor.key(&mut write.key);
        }
    }
}

/// A key and what was read under it.
impl VisitAtoms for (Key, Option<Versioned>) {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        if let Some(found) = &mut self.1 {
            visitor.version_of(&self.0, &mut found.version);
            visitor.record(&self.0, &mut found.value);
        }
        visitor.key(&mut self.0);
    }
}

impl<T: VisitAtoms> VisitAtoms for VecDeque<T> {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        self.iter_mut().for_each(|item| item.visit_atoms(visitor));
    }
}

impl<T: VisitAtoms> VisitAtoms for Box<T> {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        (**self).visit_atoms(visitor);
    }
}

/// Opaque bytes, cheap to clone; printed as their length.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(Arc<[u8]>);

impl Bytes {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes::from(bytes))
            }
        }
        deserializer.deserialize_bytes(Visitor)
    }
}

/// A sealed signing reference: what the sender needs to find or open its key. It cannot be printed and no inspection type
/// has a field for it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Sealed(Bytes);

impl Sealed {
    /// Wraps bytes that are already sealed (encrypted or a mere reference); Restante never opens them.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }
    /// The sealed bytes, for the sender that can open them.
    pub fn expose(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed(..)")
    }
}
