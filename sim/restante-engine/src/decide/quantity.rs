//! Ranges of latencies and other amounts.

/// 2^64 / 1000.
const PER_MILLE: u64 = u64::MAX / 1_000;

/// What [`Decider::quantity`](super::Decider::quantity) may answer: `min`, `min + grid`, ... up to `max`, each as likely; and
/// in `tail_per_mille` of 1000 cases, the grid's further points up to `tail_max`. All in the caller's unit.
///
/// A coarse grid makes events meet at one instant, where their order is a decision of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// The benign answer, and the least.
    pub min: u64,
    /// The greatest answer outside the tail; below `min` it counts as `min`.
    pub max: u64,
    /// Distance between answers; 0 counts as 1.
    pub grid: u64,
    /// How many of 1000 answers come from the tail.
    pub tail_per_mille: u32,
    /// The greatest answer in the tail; without a point of the grid between `max` and it, there is no tail.
    pub tail_max: u64,
}

impl Quantity {
    /// `min`, `min + grid`, ... up to `max`, without a tail.
    pub const fn uniform(min: u64, max: u64, grid: u64) -> Self {
        Self { min, max, grid, tail_per_mille: 0, tail_max: max }
    }

    /// Always `value`.
    pub const fn exactly(value: u64) -> Self {
        Self::uniform(value, value, 1)
    }

    /// The same with a tail up to `tail_max`, taken in `per_mille` of 1000 cases.
    pub const fn with_tail(self, per_mille: u32, tail_max: u64) -> Self {
        Self { tail_per_mille: per_mille, tail_max, ..self }
    }

    /// Whether a tape may ask for `value`; it need not lie on the grid.
    pub(super) fn contains(&self, value: u64) -> bool {
        (self.min..=self.max.max(self.tail_max).max(self.min)).contains(&value)
    }

    /// The grid in counts of steps; a constant when the quantity is one.
    #[inline(always)]
    pub(super) fn steps(&self) -> Steps {
        let grid = self.grid.max(1);
        let body = self.max.saturating_sub(self.min) / grid;
        let tail = match self.tail_per_mille {
            0 => 0,
            _ => (self.tail_max.saturating_sub(self.min) / grid).saturating_sub(body),
        };
        // The quantiles up to here are the body, those from here to 2^64 the tail.
        let cut = PER_MILLE * u64::from(1_000_u32.saturating_sub(self.tail_per_mille));
        Steps { min: self.min, grid, body, tail, cut }
    }
}

/// A [`Quantity`] with its divisions done.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    min: u64,
    grid: u64,
    /// How many steps it is to the last point of the body, and from there to the last of the tail (0 = no tail).
    body: u64,
    tail: u64,
    cut: u64,
}

impl Steps {
    /// The answer below which `quantile` of 2^64 of all answers lie.
    #[inline]
    pub(super) fn at_quantile(&self, quantile: u64) -> u64 {
        let body = u128::from(self.body) + 1;
        let steps = if self.tail == 0 {
            ((u128::from(quantile) * body) >> 64) as u64
        } else if quantile < self.cut {
            (u128::from(quantile) * body / u128::from(self.cut)) as u64
        } else {
            let (beyond, tail_quantiles) = (u128::from(quantile - self.cut), (1 << 64) - u128::from(self.cut));
            self.body + 1 + (beyond * u128::from(self.tail) / tail_quantiles) as u64
        };
        self.min + self.grid * steps
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Quantity;

    #[test]
    fn ends_of_the_range_are_reached() {
        let range = Quantity::uniform(1_000, 20_050, 100);
        assert_eq!(range.steps().at_quantile(0), 1_000);
        assert_eq!(range.steps().at_quantile(u64::MAX), 20_000);
        let range = range.with_tail(10, 90_000);
        assert_eq!(range.steps().at_quantile(0), 1_000);
        assert_eq!(range.steps().at_quantile(u64::MAX / 1_000 * 990 - 1), 20_000);
        assert_eq!(range.steps().at_quantile(u64::MAX / 1_000 * 990), 20_100);
        assert_eq!(range.steps().at_quantile(u64::MAX), 90_000);
        assert_eq!(Quantity::exactly(5).steps().at_quantile(u64::MAX), 5);
        assert_eq!(Quantity::uniform(0, u64::MAX, 1).steps().at_quantile(u64::MAX), u64::MAX);
    }

    #[test]
    fn odd_ranges_are_harmless() {
        let all_tail = Quantity::uniform(5, 5, 0).with_tail(2_000, 7);
        assert_eq!((all_tail.steps().at_quantile(0), all_tail.steps().at_quantile(u64::MAX)), (6, 7));
        assert_eq!(Quantity::uniform(5, 3, 1).steps().at_quantile(u64::MAX), 5);
        assert_eq!(Quantity::uniform(5, 9, 1).with_tail(500, 3).steps().at_quantile(u64::MAX), 9);
    }

    proptest! {
        #[test]
        fn stays_on_the_grid_and_rises(
            min in any::<u64>(), length in any::<u64>(), grid in 0..u64::MAX, per_mille in 0..1_200_u32, tail in any::<u64>(),
            a in any::<u64>(), b in any::<u64>(),
        ) {
            let max = min.saturating_add(length);
            let range = Quantity::uniform(min, max, grid).with_tail(per_mille, max.saturating_add(tail));
            let (low, high) = (range.steps().at_quantile(a.min(b)), range.steps().at_quantile(a.max(b)));
            prop_assert!(low <= high);
            for value in [low, high] {
                prop_assert!(range.contains(value));
                prop_assert_eq!((value - min) % grid.max(1), 0);
            }
        }
    }
}
