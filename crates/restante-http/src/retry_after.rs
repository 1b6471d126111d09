//! `Retry-After`, in both forms: seconds from now, and a date.

use std::time::SystemTime;

use http::HeaderMap;
use http::header::RETRY_AFTER;

/// How long the destination asks to be left alone, in milliseconds. What lies in the past is 0, what no number holds the largest
/// one; `None` is no such header, or one that says nothing.
pub(crate) fn retry_after_ms(headers: &HeaderMap, now: SystemTime) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits only, so the one thing that can be wrong with it is its length.
        let seconds = digits.parse::<u64>().unwrap_or(u64::MAX);
        return Some(if negative { 0 } else { seconds.saturating_mul(1000) });
    }
    let until = httpdate::parse_http_date(text).ok()?;
    let wait = until.duration_since(now).unwrap_or_default();
    Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    /// 784,111,777 s: Sun, 06 Nov 1994 08:49:37 GMT.
    fn read(text: &str) -> Option<u64> {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_bytes(text.as_bytes()).expect("a value"))]);
        retry_after_ms(&headers, now)
    }

    #[test]
    fn seconds_and_dates_are_read() {
        assert_eq!(read("120"), Some(120_000));
        assert_eq!(read(" 0 "), Some(0));
        assert_eq!(read("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60_000));
        assert_eq!(read("Sunday, 06-Nov-94 08:50:37 GMT"), Some(60_000));
        assert_eq!(read("Sun Nov  6 08:50:37 1994"), Some(60_000));
    }

    #[test]
    fn what_lies_in_the_past_is_no_wait() {
        assert_eq!(read("-5"), Some(0));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:36 GMT"), Some(0));
        assert_eq!(read("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    }

    #[test]
    fn absurd_numbers_saturate() {
        assert_eq!(read("18446744073709551615"), Some(u64::MAX));
        assert_eq!(read(&"9".repeat(400)), Some(u64::MAX));
        assert_eq!(read(&format!("-{}", "9".repeat(400))), Some(0));
    }

    #[test]
    fn what_says_nothing_is_ignored() {
        for text in ["", "-", "soon", "1.5", "1e3", "+5", "1 2", "Sun, 32 Nov 1994 08:49:37 GMT", "2026-01-01T00:00:00Z", "ü"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(retry_after_ms(&HeaderMap::new(), UNIX_EPOCH), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                retry_after_ms(&HeaderMap::from_iter([(RETRY_AFTER, value)]), UNIX_EPOCH);
            }
        }
    }
}
