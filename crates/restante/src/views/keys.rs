//! The keys that sign.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A key that signs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeyView {
    /// Its name.
    pub name: String,
    /// The number of the master key that seals it; `null` when its record cannot be read.
    pub master_key: Option<u32>,
}

/// All keys that sign.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeysView {
    /// In the order of their names.
    pub keys: Vec<KeyView>,
}

/// What sealing anew came to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RotationView {
    /// Keys sealed anew.
    pub resealed: u64,
    /// Keys that needed nothing.
    pub current: u64,
    /// Names of keys that are left, and why.
    pub left: BTreeMap<String, String>,
}
