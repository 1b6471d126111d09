//! How a check says that the store broke the contract.

use std::fmt::Debug;

use restante_kv::{Committed, LimitKind, StoreError, Versioned};

/// What a store should have done, and what it did.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected {expected}; found {found}")]
pub struct Breach {
    /// What the contract asks for.
    pub expected: String,
    /// What came.
    pub found: String,
}

/// The answer of a check.
pub(crate) type Held = Result<(), Breach>;

pub(crate) fn breach(expected: impl Into<String>, found: impl Into<String>) -> Breach {
    Breach { expected: expected.into(), found: found.into() }
}

/// Long evidence is cut: its beginning tells enough.
fn shown(value: &impl Debug) -> String {
    const CHARS_MAX: usize = 400;
    let text = format!("{value:?}");
    match text.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}… ({} characters)", &text[..at], text.chars().count()),
        None => text,
    }
}

pub(crate) fn ensure(holds: bool, expected: impl Into<String>, found: impl Into<String>) -> Held {
    if holds { Ok(()) } else { Err(breach(expected, found)) }
}

pub(crate) fn equal<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Held {
    ensure(found == expected, format!("{what}: {}", shown(&expected)), shown(&found))
}

/// A record with its bytes; only values that a check wrote itself are shown.
pub(crate) fn show(record: Option<&Versioned>) -> String {
    match record {
        None => "no record".to_owned(),
        Some(record) if record.value.len() > 64 => format!("{} bytes, {:?}", record.value.len(), record.version),
        Some(record) => format!("\"{}\", {:?}", record.value.as_bytes().escape_ascii(), record.version),
    }
}

/// A record that must hold these bytes.
pub(crate) fn holds(what: &str, found: Option<&Versioned>, value: &[u8]) -> Held {
    let is_it = found.is_some_and(|record| record.value.as_bytes() == value);
    let expected = match value.len() {
        0..=64 => format!("\"{}\"", value.escape_ascii()),
        len => format!("the {len} bytes written"),
    };
    ensure(is_it, format!("{what}: {expected}"), show(found))
}

pub(crate) fn missing(what: &str, found: Option<&Versioned>) -> Held {
    ensure(found.is_none(), format!("{what}: no record"), show(found))
}

pub(crate) fn conflicts(what: &str, answer: &Result<Committed, StoreError>) -> Held {
    let is_conflict = matches!(answer, Err(StoreError::Conflict { .. }));
    ensure(is_conflict, format!("{what}: a conflict"), shown(answer))
}

pub(crate) fn invalid<T: Debug>(what: &str, answer: &Result<T, StoreError>) -> Held {
    let is_invalid = matches!(answer, Err(StoreError::InvalidRequest(_)));
    ensure(is_invalid, format!("{what}: refused as an invalid request"), shown(answer))
}

/// One more than `limit` was asked for, and must be refused by that name.
pub(crate) fn exceeds<T: Debug>(what: &str, answer: &Result<T, StoreError>, which: LimitKind, limit: usize) -> Held {
    let named = StoreError::LimitExceeded { which, max: limit, actual: limit + 1 };
    ensure(matches!(answer, Err(error) if *error == named), format!("{what}: refused with {named:?}"), shown(answer))
}

/// Whether a transaction committed, when it may only commit or conflict.
pub(crate) fn won(what: &str, answer: &Result<Committed, StoreError>) -> Result<bool, Breach> {
    match answer {
        Ok(_) => Ok(true),
        Err(StoreError::Conflict { .. }) => Ok(false),
        Err(_) => Err(breach(format!("{what}: a commit or a conflict"), shown(answer))),
    }
}
