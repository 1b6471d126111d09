//! How often each property was judged where it could have been violated.
//!
//! That a property is in the list shows nothing; that its check was run shows little. What is counted here is a check whose
//! trigger was there: a POST for what concerns POSTs, a settle while a wake was pending for `wake-is-not-lost`. The count stands
//! where the check is made.

use super::PROPERTIES;

/// The counts of the backlog's world.
pub(crate) type Judged = restante_engine::Judged<{ restante_engine::must_hold(PROPERTIES) }>;

/// Notes that a property is judged now, and that it could be found violated.
macro_rules! judged {
    ($auditor:expr, $($name:literal),+) => {{
        $($auditor.judged.count(const { restante_engine::place_of($crate::PROPERTIES, $name) });)+
    }};
}
pub(crate) use judged;

#[cfg(test)]
mod tests {
    use restante_engine::{Quantifier, must_hold, place_of};

    use super::PROPERTIES;

    #[test]
    fn what_must_hold_comes_first() {
        let rest = &PROPERTIES[must_hold(PROPERTIES)..];
        assert!(rest.iter().all(|property| property.quantifier == Quantifier::Sometimes));
        assert_eq!(PROPERTIES[place_of(PROPERTIES, "drains-after-heal")].name, "drains-after-heal");
    }
}
