//! What made a capsule.

use std::fmt;

use restante_engine::Digest;
use serde::{Deserialize, Serialize};

use crate::campaign::{Simulated, families};
use crate::scenario::Faults;

/// What a run depends on besides its capsule. Two runs in the same environment do the same.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// Version of the package.
    pub version: String,
    /// Hash of the sources and of the versions of their dependencies.
    pub source: String,
    /// The compiler.
    pub toolchain: String,
    /// `debug` or `release`: they differ in their checks.
    pub profile: String,
    /// Format of the records that the backlog writes.
    pub record_format: u8,
    /// Hash of the names of properties and fault families.
    pub names: String,
}

impl Environment {
    /// The environment of this process.
    pub fn current() -> Self {
        let mut names = Digest::new();
        Simulated::ALL.into_iter().flat_map(Simulated::properties).for_each(|property| names.str(property.name));
        families(&Faults::default()).iter().for_each(|(family, _)| names.str(family));
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            source: env!("RESTANTE_SOURCE").into(),
            toolchain: env!("RESTANTE_TOOLCHAIN").into(),
            profile: env!("RESTANTE_PROFILE").into(),
            record_format: restante_core::record::FORMAT,
            names: names.to_string(),
        }
    }

    /// What differs in `other`, as `what: this -> that`; empty when nothing does.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let Self { version, source, toolchain, profile, record_format, names } = self;
        let pairs: [(&str, &dyn fmt::Display, &dyn fmt::Display); 6] = [
            ("version", version, &other.version),
            ("source", source, &other.source),
            ("toolchain", toolchain, &other.toolchain),
            ("profile", profile, &other.profile),
            ("record format", record_format, &other.record_format),
            ("property and fault names", names, &other.names),
        ];
        let texts = pairs.into_iter().map(|(what, one, other)| (what, one.to_string(), other.to_string()));
        texts.filter(|(_, one, other)| one != other).map(|(what, one, other)| format!("{what}: {one} -> {other}")).collect()
    }
}
