//! Durations as people write them: `250ms`, `10s`, `5m`, `2h`, `7d`.

use thiserror::Error;

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Why a text is no duration.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{text:?} is no duration: write a whole number and its unit, as in 250ms, 10s, 5m, 2h or 7d")]
pub struct InvalidDuration {
    /// The text.
    pub text: String,
}

/// Milliseconds of a duration as people write it.
///
/// # Errors
/// [`InvalidDuration`], also for one that is too long to count.
pub fn parse_duration_ms(text: &str) -> Result<u64, InvalidDuration> {
    let invalid = || InvalidDuration { text: text.to_owned() };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(invalid)?;
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(*unit_ms)).ok_or_else(invalid)
}

/// The duration in its largest unit that leaves nothing over.
pub(crate) fn format_duration_ms(ms: u64) -> String {
    let unit = UNITS.iter().rev().find(|(_, unit_ms)| ms >= *unit_ms && ms.is_multiple_of(*unit_ms));
    let (name, unit_ms) = unit.unwrap_or(&UNITS[0]);
    format!("{}{name}", ms / unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_whole_number_and_a_unit() {
        for (text, ms) in [("0s", 0), ("250ms", 250), ("10s", 10_000), ("5m", 300_000), ("2h", 7_200_000), ("7d", 604_800_000)] {
            assert_eq!(parse_duration_ms(text), Ok(ms));
        }
        for text in ["", "10", "s", "1.5h", "-1s", " 1s", "1 s", "1w", "1h30m", "99999999999999999999s", "9999999999999999d"] {
            let error = parse_duration_ms(text).expect_err(text).to_string();
            assert!(error.contains("as in 250ms, 10s, 5m, 2h or 7d"), "{error}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for ms in [0, 1, 999, 1_000, 61_000, 3_600_000, 86_400_000, 86_400_001] {
            assert_eq!(parse_duration_ms(&format_duration_ms(ms)), Ok(ms));
        }
        assert_eq!(format_duration_ms(604_800_000), "7d");
    }
}
