//! Bytes as text and back: keys readable where they can be, values compact.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// Printable ASCII as it is, everything else as `\xNN`.
pub(crate) fn from_key(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 16);
    for byte in bytes {
        match byte {
            b'\\' | 0..=0x1F | 0x7F.. => text.push_str(&format!("\\x{byte:02x}")),
            printable => text.push(char::from(*printable)),
        }
    }
    text
}

/// The bytes that [`from_key`] wrote.
pub(crate) fn to_key(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let (escape, after) = rest.split_at_checked(3)?;
        let hex = std::str::from_utf8(escape.strip_prefix(b"x")?).ok()?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        rest = after;
    }
    Some(bytes)
}

pub(crate) fn from_value(bytes: &[u8]) -> String {
    STANDARD_NO_PAD.encode(bytes)
}

pub(crate) fn to_value(text: &str) -> Option<Vec<u8>> {
    STANDARD_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_come_back_as_they_were(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(to_key(&from_key(&bytes)), Some(bytes.clone()));
            prop_assert_eq!(to_value(&from_value(&bytes)), Some(bytes));
        }

        #[test]
        fn any_text_is_bytes_or_none(text in ".*") {
            let _ = to_key(&text);
            let _ = to_value(&text);
        }
    }
}
