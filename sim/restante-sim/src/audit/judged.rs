//! How often each property was judged where it could have been violated.
//!
//! That a property is in the list shows nothing; that its check was run shows little. What is counted here is a check whose
//! trigger was there: a POST for what concerns POSTs, a settle while a wake was pending for `wake-is-not-lost`. The count stands
//! where the check is made.

use restante_engine::{Marks, Quantifier};

use super::PROPERTIES;

/// Properties that must hold, which come first in the list.
const MUST: usize = {
    let mut count = 0;
    while count < PROPERTIES.len() && !matches!(PROPERTIES[count].quantifier, Quantifier::Sometimes) {
        count += 1;
    }
    count
};

/// The place of a property that must hold. A name that is none does not compile.
pub(crate) const fn place_of(name: &str) -> usize {
    let mut place = 0;
    while place < MUST {
        if is_same(PROPERTIES[place].name.as_bytes(), name.as_bytes()) {
            return place;
        }
        place += 1;
    }
    panic!("no property that must hold has that name")
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Counts by place.
#[derive(Clone, Debug)]
pub(crate) struct Judged([u32; MUST]);

impl Judged {
    pub(super) fn new() -> Self {
        Self([0; MUST])
    }

    pub(crate) fn count(&mut self, place: usize) {
        self.0[place] = self.0[place].saturating_add(1);
    }

    /// By name; what was never judged is not there.
    pub(crate) fn by_name(&self) -> Marks {
        let mut marks = Marks::new();
        for (property, count) in PROPERTIES.iter().zip(self.0).filter(|(_, count)| *count > 0) {
            marks.add(property.name, count.into());
        }
        marks
    }
}

/// Notes that a property is judged now, and that it could be found violated.
macro_rules! judged {
    ($auditor:expr, $($name:literal),+) => {{
        $(
            $auditor.judged.count(const { $crate::audit::judged::place_of($name) });
        )+
    }};
}
pub(crate) use judged;

#[cfg(test)]
mod tests {
    use restante_engine::Quantifier;

    use super::{MUST, PROPERTIES, place_of};

    #[test]
    fn what_must_hold_comes_first() {
        assert!(PROPERTIES[MUST..].iter().all(|property| property.quantifier == Quantifier::Sometimes));
        assert_eq!(PROPERTIES[place_of("drains-after-heal")].name, "drains-after-heal");
    }
}
