//! Quantities in scenario files: every one carries its unit.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// A duration, written like `250ms`, `30s`, `10m`, `2h` or `7d`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Ms(pub u64);

/// A range of durations, written like `1ms..20ms`; both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Shortest.
    pub min: Ms,
    /// Longest.
    pub max: Ms,
}

/// A share or a chance, written like `2%` or `0.05%`; kept in millionths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Share(pub u32);

/// A size, written like `200B` or `60KiB`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Size(pub usize);

fn split_unit(text: &str) -> Option<(&str, &str)> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    Some(text.split_at(at))
}

fn parse_ms(text: &str) -> Option<Ms> {
    let (number, unit) = split_unit(text.trim())?;
    let scale = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale).map(Ms)
}

fn parse_span(text: &str) -> Option<Span> {
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    let span = Span { min: parse_ms(min)?, max: parse_ms(max)? };
    (span.min <= span.max).then_some(span)
}

fn parse_share(text: &str) -> Option<Share> {
    let number = text.trim().strip_suffix('%')?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 4 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole: u32 = whole.parse().ok()?;
    let fraction: u32 = format!("{fraction:0<4}").parse().ok()?;
    let millionths = whole.checked_mul(10_000)?.checked_add(fraction)?;
    (millionths <= 1_000_000).then_some(Share(millionths))
}

fn parse_size(text: &str) -> Option<Size> {
    let (number, unit) = split_unit(text.trim())?;
    let scale = match unit {
        "B" => 1,
        "KiB" => 1024,
        _ => return None,
    };
    number.parse::<usize>().ok()?.checked_mul(scale).map(Size)
}

macro_rules! quantity {
    ($name:ty, $parse:ident, $what:literal, $example:literal) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!($what, " with its unit, like ", $example))
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        $parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }
    };
}
quantity!(Ms, parse_ms, "a duration", "\"250ms\", \"30s\", \"10m\", \"2h\" or \"7d\"");
quantity!(Span, parse_span, "a range of durations", "\"1ms..20ms\"");
quantity!(Share, parse_share, "a share of at most 100%", "\"2%\" or \"0.05%\"");
quantity!(Size, parse_size, "a size", "\"200B\" or \"60KiB\"");

impl Span {
    /// A range from milliseconds.
    pub const fn ms(min: u64, max: u64) -> Self {
        Self { min: Ms(min), max: Ms(max) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!(parse_ms("10m"), Some(Ms(600_000)));
        assert_eq!(parse_span("1ms..2s"), Some(Span::ms(1, 2_000)));
        assert_eq!(parse_share("0.05%"), Some(Share(500)));
        assert_eq!(parse_size("60KiB"), Some(Size(61_440)));
    }

    #[test]
    fn quantities_without_units_or_out_of_range_are_refused() {
        for text in ["10", "ms", "1.5s", "1 week", "99999999999999999999s"] {
            assert_eq!(parse_ms(text), None, "{text}");
        }
        assert_eq!(parse_span("20ms..1ms"), None);
        for text in ["2", "101%", "0.00001%", "-1%"] {
            assert_eq!(parse_share(text), None, "{text}");
        }
    }
}
