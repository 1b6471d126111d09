//! What can go wrong in a store: definite or ambiguous, never in between.

use thiserror::Error;

/// The limit that a request exceeded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LimitKind {
    /// [`crate::Limits::key_bytes_max`]
    KeyBytes,
    /// [`crate::Limits::value_bytes_max`]
    ValueBytes,
    /// [`crate::Limits::txn_checks_max`]
    TxnChecks,
    /// [`crate::Limits::txn_writes_max`]
    TxnWrites,
    /// [`crate::Limits::txn_bytes_max`]
    TxnBytes,
    /// [`crate::Limits::get_keys_max`]
    GetKeys,
}

/// The error of a store operation. [`StoreError::is_definite`] says whether nothing happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum StoreError {
    /// A check did not hold; nothing was written. `failed` lists the positions of failed checks where the store knows them.
    #[error("the transaction conflicts with another one (failed checks: {failed:?}): read again and plan anew")]
    Conflict {
        /// Positions in [`crate::Txn::checks`]; may be empty.
        failed: Vec<usize>,
    },
    /// The request is larger than [`crate::Limits`] allow; nothing was written.
    #[error("{which:?} is {actual}, this store allows {max}: plan within limits()")]
    LimitExceeded {
        /// Which limit.
        which: LimitKind,
        /// What it allows.
        max: usize,
        /// What was asked.
        actual: usize,
    },
    /// The request breaks a rule of the contract; nothing was written.
    #[error("invalid request: {0}")]
    InvalidRequest(String),
    /// The store could not be reached or refused; nothing was sent or nothing happened.
    #[error("the store is unavailable ({0}): nothing happened, try again later")]
    Unavailable(String),
    /// The outcome is unknown: it may have happened and may still happen. Read the witness of the transaction.
    #[error("the outcome is unknown ({0}): read the records again before deciding anything")]
    Ambiguous(String),
}

impl StoreError {
    /// Whether nothing happened, for certain.
    pub fn is_definite(&self) -> bool {
        !matches!(self, Self::Ambiguous(_))
    }
}
