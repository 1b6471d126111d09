//! How long a campaign may take.

use std::time::Duration;

/// Reads a time budget like `90s`, `1500ms`, `10m` or `2h`; whole numbers, more than nothing.
///
/// # Errors
///
/// A sentence that says what is expected.
pub fn parse_budget(text: &str) -> Result<Duration, String> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let scale_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("expected a whole number with its unit: 1500ms, 90s, 10m or 2h".into()),
    };
    match number.parse::<u64>().ok().and_then(|number| number.checked_mul(scale_ms)) {
        None => Err("expected a whole number before the unit, and not too large a one".into()),
        Some(0) => Err("a budget of nothing is for nothing".into()),
        Some(ms) => Ok(Duration::from_millis(ms)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::parse_budget;

    #[test]
    fn budgets() {
        for (text, ms) in [("60s", 60_000), ("1ms", 1), ("10m", 600_000), ("2h", 7_200_000), ("007s", 7_000)] {
            assert_eq!(parse_budget(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in
            ["", "60", "s", "1.5s", "-1s", "1 s", "1S", "0s", "0ms", "1d", "99999999999999999999s", "6000000000000000000h"]
        {
            assert!(parse_budget(text).is_err(), "{text}");
        }
    }
}
