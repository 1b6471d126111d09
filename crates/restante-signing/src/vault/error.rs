//! What a vault can answer instead.

use restante_kv::StoreError;
use thiserror::Error;

use super::envelope::Unopened;
use crate::{KeyError, KeyName};

/// Why a vault did not do what it was asked. Nothing of any key is in it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum VaultError {
    /// No key has this name.
    #[error("the vault has no key {name}: put it there, or refer to another one")]
    UnknownKey {
        /// The name.
        name: KeyName,
    },
    /// The record needs a master key that is not there.
    #[error(
        "key {name} is sealed with master key {needed}, which is not among those given ({given:?}): add it as an opening key"
    )]
    MasterKeyMissing {
        /// The name.
        name: KeyName,
        /// The number of the master key that opens it.
        needed: u32,
        /// The numbers of those that were given.
        given: Vec<u32>,
    },
    /// The master key of that number is not the one that sealed.
    #[error("key {name} is sealed with master key {needed}, but another key was given under that number: give the right one")]
    MasterKeyDiffers {
        /// The name.
        name: KeyName,
        /// The number.
        needed: u32,
    },
    /// The record was altered, cut, or lay under another name.
    #[error("the record of key {name} was altered, or was sealed for another name: put the key anew")]
    Tampered {
        /// The name.
        name: KeyName,
    },
    /// Another version wrote the record.
    #[error("the record of key {name} has format {format}, which this version does not read")]
    UnknownFormat {
        /// The name.
        name: KeyName,
        /// The format.
        format: u8,
    },
    /// The record opens, but what is in it does not sign.
    #[error("key {name}: {why}")]
    Key {
        /// The name.
        name: KeyName,
        /// What is wrong with it.
        why: KeyError,
    },
    /// The record changed under every try.
    #[error("the record of key {name} is being changed by others all the time: nothing was written, try again")]
    Contention {
        /// The name.
        name: KeyName,
    },
    /// The system gives no random numbers.
    #[error("key {name} was not sealed: the system gave no random numbers")]
    NoEntropy {
        /// The name.
        name: KeyName,
    },
    /// The store. An ambiguous error stays one: what was asked for may have happened, and may still.
    #[error("the vault's store: {0}")]
    Store(#[from] StoreError),
}

impl VaultError {
    /// Whether nothing was written, for certain.
    pub fn is_definite(&self) -> bool {
        match self {
            Self::Store(error) => error.is_definite(),
            Self::UnknownKey { .. }
            | Self::MasterKeyMissing { .. }
            | Self::MasterKeyDiffers { .. }
            | Self::Tampered { .. }
            | Self::UnknownFormat { .. }
            | Self::Key { .. }
            | Self::Contention { .. }
            | Self::NoEntropy { .. } => true,
        }
    }

    pub(super) fn unopened(name: &KeyName, why: Unopened, given: Vec<u32>) -> Self {
        let name = name.clone();
        match why {
            Unopened::Format(format) => Self::UnknownFormat { name, format },
            Unopened::NoMasterKey(needed) => Self::MasterKeyMissing { name, needed, given },
            Unopened::OtherMasterKey(needed) => Self::MasterKeyDiffers { name, needed },
            Unopened::Tampered => Self::Tampered { name },
        }
    }
}
