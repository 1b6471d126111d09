//! Kinds of records in scenario files, by name.

use restante_core::keys::Kind;
use serde::de::{self, Deserialize, Deserializer};

/// Kinds of records, written like `["entry", "order-key-queue"]`; at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordKinds(pub Vec<Kind>);

impl Default for RecordKinds {
    fn default() -> Self {
        Self(vec![Kind::Entry])
    }
}

/// A kind's name in a scenario's file.
pub fn kind_name(kind: Kind) -> String {
    let mut name = String::new();
    for letter in format!("{kind:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

impl<'de> Deserialize<'de> for RecordKinds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut kinds = Vec::new();
        for name in Vec::<String>::deserialize(deserializer)? {
            let Some(kind) = Kind::ALL.into_iter().find(|kind| kind_name(*kind) == name) else {
                let known = Kind::ALL.map(|kind| format!("`{}`", kind_name(kind))).join(", ");
                return Err(de::Error::custom(format!("unknown kind `{name}`, expected one of {known}")));
            };
            if kinds.contains(&kind) {
                return Err(de::Error::custom(format!("the kind `{name}` twice")));
            }
            kinds.push(kind);
        }
        if kinds.is_empty() { Err(de::Error::custom("no kind of record: give at least one")) } else { Ok(Self(kinds)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RecordKinds, String> {
        let table: toml::Table = toml::from_str(&format!("kinds = {text}")).map_err(|error| error.to_string())?;
        table["kinds"].clone().try_into().map_err(|error: toml::de::Error| error.message().to_owned())
    }

    #[test]
    fn every_kind_has_a_name_that_is_read_as_that_kind() {
        for kind in Kind::ALL {
            assert_eq!(read(&format!("[\"{}\"]", kind_name(kind))), Ok(RecordKinds(vec![kind])));
        }
        assert_eq!(read("[\"order-key-queue\", \"entry\"]"), Ok(RecordKinds(vec![Kind::OrderKeyQueue, Kind::Entry])));
    }

    #[test]
    fn what_names_no_kind_or_one_twice_is_refused() {
        for text in ["[]", "[\"entries\"]", "[\"lane\", \"lane\"]", "\"entry\""] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
