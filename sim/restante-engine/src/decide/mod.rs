//! Keyed decisions.
//!
//! # How an answer is found
//!
//! 1. The decision's **id** is a 64-bit hash of `site + 0x1F + key`, taken while the key is formatted. The hash is ours and
//!    fixed for ever (see the `key` module), so a tape can be written by hand, with names.
//! 2. If the [`Tape`] names the decision, it answers. Otherwise **one ChaCha8 block** does: the first of the generator whose
//!    32 seed bytes hold the seed, the id and two constants.
//! 3. [`Decider::choose`]: each alternative's *name* derives a uniform `u` from the block, and the smallest
//!    `-log2(u) / weight` wins (weighted rendezvous). [`Decider::quantity`]: one quantile of the block.
//!    [`Decider::draw`]: 64 of its bits.
//!
//! All in integers. The three use different words of the block, but one (site, key) pair should still serve one purpose.
//! Asking again gives the same answer: a key has to say which attempt it is about.

mod key;
mod log;
mod quantity;
mod score;
mod sites;
mod tape;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt::Arguments};

use rand_chacha::{
    ChaCha8Core,
    rand_core::{SeedableRng, block::Generator},
};

pub use self::{
    log::{DecisionLog, DecisionRecord, Match, RecordError},
    quantity::Quantity,
    sites::SiteCount,
    tape::{Tape, TapeEntry},
};
use crate::mix::{K0, K2, K3, avalanche, fold};

/// One of the things that can happen at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// Unique among its site's alternatives; tapes and scores go by it, so renaming one changes seeds.
    pub name: &'static str,
    /// Relative to the weights of the others; 0 = never, unless a tape says so.
    pub weight: u32,
}

impl Alternative {
    /// The alternative `name` with `weight`.
    pub const fn new(name: &'static str, weight: u32) -> Self {
        Self { name, weight }
    }
}

/// Answers every question whose answer can differ between runs.
///
/// Asking: [`choose`](Self::choose), [`quantity`](Self::quantity), [`draw`](Self::draw), [`tie`](Self::tie). Afterwards:
/// [`counts`](Self::counts), [`log`](Self::log). A clone answers alike.
#[derive(Clone, Debug)]
pub struct Decider {
    seed: u64,
    /// By id: an index into the log's overrides.
    overrides: BTreeMap<u64, usize>,
    sites: sites::Sites,
    log: DecisionLog,
}

impl Decider {
    /// Answers from `seed` alone.
    pub fn new(seed: u64) -> Self {
        Self::with_tape(seed, &Tape::new())
    }

    /// Answers from `tape` where it names the decision, else from `seed`.
    pub fn with_tape(seed: u64, tape: &Tape) -> Self {
        let id = |entry: &TapeEntry| key::decision_id(&entry.site, format_args!("{}", entry.key));
        Self {
            seed,
            overrides: tape.entries.iter().enumerate().map(|(index, entry)| (id(entry), index)).collect(),
            sites: sites::Sites::new(),
            log: DecisionLog::new(tape),
        }
    }

    /// Keeps a log of every decision from here on, which costs time and memory (some 70 bytes a decision).
    pub fn recording(mut self) -> Self {
        self.log.record_from_now();
        self
    }

    /// The seed this was made with.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Which of `alternatives` happens, as an index. The first has to be the benign one. Each wins as often as its weight
    /// says; their order does not matter.
    ///
    /// # Panics
    ///
    /// If there are no alternatives.
    pub fn choose(&mut self, site: &'static str, key: Arguments<'_>, alternatives: &[Alternative]) -> usize {
        assert!(!alternatives.is_empty(), "{site} has no alternatives");
        let id = key::decision_id(site, key);
        let named = |choice: &str| alternatives.iter().position(|alternative| alternative.name == choice);
        let index = match self.overridden(id, named) {
            Some(index) => index,
            None if alternatives.len() == 1 => 0,
            None => score::winner(self.block(id), alternatives),
        };
        self.sites.count(site, index != 0);
        if self.log.is_recording() {
            self.log.choice(id, site, key, alternatives, index);
        }
        index
    }

    /// A latency or the like, in the caller's unit; `range.min` is the benign answer. The greater the quantile that was
    /// drawn, the greater the quantity. A tape may give any number within the range.
    #[inline]
    pub fn quantity(&mut self, site: &'static str, key: Arguments<'_>, range: Quantity) -> u64 {
        self.quantity_in(site, key, range, range.steps())
    }

    fn quantity_in(&mut self, site: &'static str, key: Arguments<'_>, range: Quantity, steps: quantity::Steps) -> u64 {
        let id = key::decision_id(site, key);
        let number = |choice: &str| choice.parse().ok().filter(|number| range.contains(*number));
        let quantity = match self.overridden(id, number) {
            Some(quantity) => quantity,
            None => steps.at_quantile(self.block(id)[0]),
        };
        self.sites.count(site, false);
        if self.log.is_recording() {
            self.log.number(id, site, key, quantity);
        }
        quantity
    }

    /// 64 uniform bits, for production code that wants entropy.
    pub fn draw(&mut self, site: &'static str, key: Arguments<'_>) -> u64 {
        let id = key::decision_id(site, key);
        let bits = match self.overridden(id, |choice| choice.parse().ok()) {
            Some(bits) => bits,
            None => self.block(id)[1],
        };
        self.sites.count(site, false);
        if self.log.is_recording() {
            self.log.number(id, site, key, bits);
        }
        bits
    }

    /// The order of `key` among events at the same time, lowest first. Cheap, neither logged nor on the tape.
    pub fn tie(&self, key: Arguments<'_>) -> u64 {
        avalanche(key::text_hash(key) ^ fold(self.seed ^ K0, K2))
    }

    /// How many decisions each site has made, by site.
    pub fn counts(&self) -> BTreeMap<&'static str, SiteCount> {
        self.sites.counts()
    }

    /// What was recorded, and what became of the tape (that part also when not recording).
    pub fn log(&self) -> &DecisionLog {
        &self.log
    }

    /// The tape's answer to `id`, if it has one that `parse` accepts.
    #[inline]
    fn overridden<T>(&mut self, id: u64, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        if self.overrides.is_empty() {
            return None;
        }
        let index = *self.overrides.get(&id)?;
        self.log.use_override(index, parse)
    }

    /// The first words of the one block selected by seed and id.
    #[inline]
    fn block(&mut self, id: u64) -> [u64; 2] {
        let mut key = [0; 32];
        for (eight, word) in key.as_chunks_mut::<8>().0.iter_mut().zip([self.seed, id, K2, K3]) {
            *eight = word.to_le_bytes();
        }
        let mut words = [0; 64];
        ChaCha8Core::from_seed(key).generate(&mut words);
        [u64::from(words[0]) | u64::from(words[1]) << 32, u64::from(words[2]) | u64::from(words[3]) << 32]
    }
}
