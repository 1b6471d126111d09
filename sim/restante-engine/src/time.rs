//! Simulated time.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An instant of simulated time, in microseconds since the start of the run. Arithmetic saturates.
///
/// ```
/// use restante_engine::SimTime;
/// assert_eq!(SimTime::from_ms(12_345).plus_us(678).to_string(), "  12.345678");
/// assert_eq!(SimTime::MAX.plus_ms(1), SimTime::MAX);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SimTime(u64);

impl SimTime {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// The last instant there is, about 584,000 years in; where arithmetic saturates.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `us` microseconds in.
    pub const fn from_us(us: u64) -> Self {
        Self(us)
    }

    /// The instant `ms` milliseconds in.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000))
    }

    /// Microseconds since the start.
    pub const fn as_us(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the start, rounded down.
    pub const fn as_ms(self) -> u64 {
        self.0 / 1_000
    }

    /// `us` microseconds later.
    pub const fn plus_us(self, us: u64) -> Self {
        Self(self.0.saturating_add(us))
    }

    /// `ms` milliseconds later.
    pub const fn plus_ms(self, ms: u64) -> Self {
        self.plus_us(ms.saturating_mul(1_000))
    }

    /// `us` microseconds earlier, but not before the start.
    pub const fn minus_us(self, us: u64) -> Self {
        Self(self.0.saturating_sub(us))
    }

    /// Microseconds from `earlier` to here; 0 when `earlier` is later.
    pub const fn us_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for SimTime {
    /// Seconds with six decimals, right-aligned in eleven columns (up to 9999 seconds): rows of a trace stay aligned.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>4}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::SimTime;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(SimTime::from_ms(u64::MAX), SimTime::MAX);
        assert_eq!(SimTime::ZERO.plus_ms(u64::MAX), SimTime::MAX);
        assert_eq!(SimTime::from_us(3).minus_us(4), SimTime::ZERO);
        assert_eq!(SimTime::from_us(3).us_since(SimTime::from_us(4)), 0);
        assert_eq!(SimTime::from_us(1_999).as_ms(), 1);
    }

    #[test]
    fn display_has_a_fixed_width() {
        for us in [0, 1, 999_999, 1_000_000, 9_999_999_999] {
            assert_eq!(SimTime::from_us(us).to_string().len(), 11);
        }
        assert_eq!(SimTime::from_us(12_345_678).to_string(), "  12.345678");
    }
}
