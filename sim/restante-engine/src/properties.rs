//! Bookkeeping of verdicts: what was promised, what was broken, what was reached, what was injected.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use crate::SimTime;

/// When a property has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantifier {
    /// In every state of every run.
    Always,
    /// In some state of some run of a set; never reached means that the set was vacuous.
    Sometimes,
    /// Within a bound after the faults have healed.
    Eventually,
}

impl fmt::Display for Quantifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Always => "always",
            Self::Sometimes => "sometimes",
            Self::Eventually => "eventually",
        })
    }
}

/// A named promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Property {
    /// Unique and stable: fingerprints begin with it.
    pub name: &'static str,
    /// When it has to hold.
    pub quantifier: Quantifier,
    /// What it says, in one sentence.
    pub sentence: &'static str,
}

impl Property {
    /// A property that holds in every state.
    pub const fn always(name: &'static str, sentence: &'static str) -> Self {
        Self { name, quantifier: Quantifier::Always, sentence }
    }

    /// A state that some run of a set has to reach.
    pub const fn sometimes(name: &'static str, sentence: &'static str) -> Self {
        Self { name, quantifier: Quantifier::Sometimes, sentence }
    }

    /// A property that holds in the end, once the faults have healed.
    pub const fn eventually(name: &'static str, sentence: &'static str) -> Self {
        Self { name, quantifier: Quantifier::Eventually, sentence }
    }
}

/// A property seen broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Name of the property.
    pub property: &'static str,
    /// When it was noticed.
    pub at: SimTime,
    /// Who and what took part: (role, alias). Aliases come from the scenario; no generated ids, no times.
    pub evidence: Vec<(&'static str, String)>,
}

impl Violation {
    /// What makes two violations the same bug: the property and the evidence in order of role and alias, without the time.
    ///
    /// ```
    /// use restante_engine::{SimTime, Violation};
    /// let evidence = vec![("entry", "A3".into()), ("by", "worker-2".into())];
    /// let violation = Violation { property: "one-lease", at: SimTime::from_ms(3), evidence };
    /// assert_eq!(violation.fingerprint(), "one-lease by=worker-2 entry=A3");
    /// ```
    pub fn fingerprint(&self) -> String {
        let mut evidence: Vec<_> = self.evidence.iter().collect();
        evidence.sort();
        evidence.into_iter().fold(self.property.to_owned(), |text, (role, alias)| text + " " + role + "=" + alias)
    }
}

/// How often each `sometimes` state was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Marks(BTreeMap<&'static str, u64>);

impl Marks {
    /// No marks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Marks `name` as reached once more.
    pub fn mark(&mut self, name: &'static str) {
        *self.0.entry(name).or_default() += 1;
    }

    /// Marks `name` as reached `count` times more.
    pub fn add(&mut self, name: &'static str, count: u64) {
        *self.0.entry(name).or_default() += count;
    }

    /// How often `name` was reached.
    pub fn count(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// All marks with their counts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(name, count)| (*name, *count))
    }

    /// The `sometimes` properties among `properties` that were never reached.
    pub fn missing<'a>(&self, properties: &'a [Property]) -> impl Iterator<Item = &'a Property> {
        properties.iter().filter(|property| property.quantifier == Quantifier::Sometimes && self.count(property.name) == 0)
    }

    /// Adds the counts of another run.
    pub fn merge(&mut self, other: &Self) {
        for (name, count) in &other.0 {
            *self.0.entry(name).or_default() += count;
        }
    }
}

/// How many of `properties` must hold: those before the first that only some run has to reach.
pub const fn must_hold(properties: &[Property]) -> usize {
    let mut count = 0;
    while count < properties.len() && !matches!(properties[count].quantifier, Quantifier::Sometimes) {
        count += 1;
    }
    count
}

/// The place of a property that must hold. In a constant, a name that is none does not compile.
///
/// # Panics
///
/// If no property that must hold has that name.
pub const fn place_of(properties: &[Property], name: &str) -> usize {
    const fn is_same(one: &[u8], other: &[u8]) -> bool {
        let mut at = 0;
        while at < one.len() && at < other.len() && one[at] == other[at] {
            at += 1;
        }
        at == one.len() && at == other.len()
    }
    let mut place = 0;
    while place < must_hold(properties) {
        if is_same(properties[place].name.as_bytes(), name.as_bytes()) {
            return place;
        }
        place += 1;
    }
    panic!("no property that must hold has that name")
}

/// How often each property that must hold was judged where it could have been found violated, by [place](place_of): cheap to
/// count and to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged<const MUST: usize>([u32; MUST]);

impl<const MUST: usize> Default for Judged<MUST> {
    fn default() -> Self {
        Self([0; MUST])
    }
}

impl<const MUST: usize> Judged<MUST> {
    /// The property at `place` is judged once more.
    pub fn count(&mut self, place: usize) {
        self.0[place] = self.0[place].saturating_add(1);
    }

    /// By name; what was never judged is not there. `properties` is the list that the places are of.
    pub fn by_name(&self, properties: &[Property]) -> Marks {
        let mut marks = Marks::new();
        for (property, count) in properties.iter().zip(self.0).filter(|(_, count)| *count > 0) {
            marks.add(property.name, count.into());
        }
        marks
    }
}

/// Faults of one family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FaultCount {
    /// How many were asked for.
    pub requested: u64,
    /// How many really happened to somebody.
    pub delivered: u64,
}

/// Faults by family: asked for, and really delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct FaultCounts(BTreeMap<&'static str, FaultCount>);

impl FaultCounts {
    /// No faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a fault of `family` as asked for.
    pub fn requested(&mut self, family: &'static str) {
        self.0.entry(family).or_default().requested += 1;
    }

    /// Counts a fault of `family` as having happened to somebody.
    pub fn delivered(&mut self, family: &'static str) {
        self.0.entry(family).or_default().delivered += 1;
    }

    /// The counts of `family`.
    pub fn count(&self, family: &str) -> FaultCount {
        self.0.get(family).copied().unwrap_or_default()
    }

    /// All families that were counted, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, FaultCount)> {
        self.0.iter().map(|(family, count)| (*family, *count))
    }

    /// The families that were asked for and never delivered: the runs proved nothing about them.
    pub fn vacuous(&self) -> impl Iterator<Item = &'static str> {
        self.iter().filter(|(_, count)| count.requested > 0 && count.delivered == 0).map(|(family, _)| family)
    }

    /// Adds the counts of another run.
    pub fn merge(&mut self, other: &Self) {
        for (family, count) in &other.0 {
            let sum = self.0.entry(family).or_default();
            sum.requested += count.requested;
            sum.delivered += count.delivered;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FaultCount, FaultCounts, Judged, Marks, Property, Violation, must_hold, place_of};
    use crate::SimTime;

    #[test]
    fn fingerprints_ignore_time_and_order() {
        let violation = |ms, evidence| Violation { property: "p", at: SimTime::from_ms(ms), evidence };
        let (a, b) = (("entry", "A3".to_owned()), ("entry", "A1".to_owned()));
        let one = violation(1, vec![a.clone(), b.clone()]).fingerprint();
        assert_eq!(one, "p entry=A1 entry=A3");
        assert_eq!(one, violation(2, vec![b, a]).fingerprint());
    }

    #[test]
    fn marks_merge_and_tell_what_is_missing() {
        const ALL: [Property; 3] = [Property::sometimes("a", "A."), Property::sometimes("b", "B."), Property::always("c", "C.")];
        let (mut one, mut two) = (Marks::new(), Marks::new());
        one.mark("a");
        two.mark("a");
        assert_eq!(one.missing(&ALL).map(|property| property.name).collect::<Vec<_>>(), ["b"]);
        two.mark("b");
        one.merge(&two);
        assert_eq!(one.iter().collect::<Vec<_>>(), [("a", 2), ("b", 1)]);
        assert_eq!(one.missing(&ALL).count(), 0);
        assert_eq!(serde_json::to_string(&one).unwrap(), r#"{"a":2,"b":1}"#);
    }

    #[test]
    fn what_is_judged_is_counted_by_place() {
        const ALL: [Property; 3] =
            [Property::always("a", "A."), Property::eventually("ab", "B."), Property::sometimes("c", "C.")];
        let mut judged = Judged::<{ must_hold(&ALL) }>::default();
        judged.count(const { place_of(&ALL, "ab") });
        judged.count(const { place_of(&ALL, "ab") });
        assert_eq!(judged.by_name(&ALL).iter().collect::<Vec<_>>(), [("ab", 2)]);
        assert_eq!((place_of(&ALL, "a"), must_hold(&ALL)), (0, 2));
    }

    #[test]
    fn faults_merge_and_tell_what_was_never_delivered() {
        let (mut one, mut two) = (FaultCounts::new(), FaultCounts::new());
        one.requested("loss");
        one.requested("crash");
        two.requested("loss");
        two.delivered("loss");
        assert_eq!(one.vacuous().collect::<Vec<_>>(), ["crash", "loss"]);
        one.merge(&two);
        assert_eq!(one.vacuous().collect::<Vec<_>>(), ["crash"]);
        assert_eq!(one.count("loss"), FaultCount { requested: 2, delivered: 1 });
        assert_eq!(one.count("reset"), FaultCount::default());
    }
}
