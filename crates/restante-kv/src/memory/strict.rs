//! The write rules that Restante relies on, and that no store enforces.

use thiserror::Error;

use crate::{Guard, Key, Mutation, Txn};

/// How a write breaks the rules.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum StrictViolation {
    /// The write claims [`Guard::Checked`], and its key has no check.
    #[error("the write to {key:?} says it is checked, and the transaction does not check it")]
    NotChecked {
        /// The written key.
        key: Key,
    },
    /// The write names a guard record that the transaction does not check.
    #[error("the write to {key:?} is guarded by {guard:?}, which the transaction does not check")]
    GuardNotChecked {
        /// The written key.
        key: Key,
        /// The guard record.
        guard: Key,
    },
    /// The write names a guard record that the transaction does not write.
    #[error("the write to {key:?} is guarded by {guard:?}, which the transaction does not write")]
    GuardNotWritten {
        /// The written key.
        key: Key,
        /// The guard record.
        guard: Key,
    },
    /// A delete claims to be idempotent: repeated late, it would remove what was created since.
    #[error("the delete of {key:?} says it is idempotent: a delete must check the version it removes")]
    IdempotentDelete {
        /// The deleted key.
        key: Key,
    },
}

impl StrictViolation {
    /// The rule that was broken, in a few words that are the same for every key.
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::NotChecked { .. } => "a write that says it is checked is checked",
            Self::GuardNotChecked { .. } => "a guard record is checked",
            Self::GuardNotWritten { .. } => "a guard record is written",
            Self::IdempotentDelete { .. } => "a delete is not idempotent",
        }
    }
}

/// Checks that every write is safe: its own key is checked, or it stands under a guard record that the transaction checks and
/// writes, or it is an idempotent put.
///
/// # Errors
/// The first violation, in the order of the writes.
pub fn check_strict(txn: &Txn) -> Result<(), StrictViolation> {
    let is_checked = |key: &Key| txn.checks.iter().any(|check| check.key == *key);
    let is_written = |key: &Key| txn.writes.iter().any(|write| write.key == *key);
    for write in &txn.writes {
        let key = || write.key.clone();
        match &write.guard {
            Guard::Checked if is_checked(&write.key) => {}
            Guard::Checked => return Err(StrictViolation::NotChecked { key: key() }),
            Guard::Under(guard) if !is_checked(guard) => {
                return Err(StrictViolation::GuardNotChecked { key: key(), guard: guard.clone() });
            }
            Guard::Under(guard) if !is_written(guard) => {
                return Err(StrictViolation::GuardNotWritten { key: key(), guard: guard.clone() });
            }
            Guard::Under(_) => {}
            Guard::Idempotent => match write.mutation {
                Mutation::Put(_) => {}
                Mutation::Delete => return Err(StrictViolation::IdempotentDelete { key: key() }),
            },
        }
    }
    Ok(())
}
