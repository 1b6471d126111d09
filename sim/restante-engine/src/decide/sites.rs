//! How many decisions each site has made.

use std::{collections::BTreeMap, ptr};

/// The decisions of one site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteCount {
    /// How many were made.
    pub made: u64,
    /// How many of these chose an alternative other than the benign one.
    pub fired: u64,
}

/// Counts by site. A site is nearly always found through the address of its name, by which nothing is ordered.
#[derive(Clone, Debug)]
pub(super) struct Sites {
    sites: Vec<(&'static str, SiteCount)>,
    /// By a hash of the name's address: a guess at the index into `sites`.
    guesses: [u8; 64],
}

impl Sites {
    pub(super) fn new() -> Self {
        Self { sites: Vec::new(), guesses: [0; 64] }
    }

    #[inline]
    pub(super) fn count(&mut self, site: &'static str, fired: bool) {
        let hash = (site.as_ptr().addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        let guess = usize::from(self.guesses[hash as usize]);
        let index = match self.sites.get(guess) {
            Some((name, _)) if ptr::eq(*name, site) => guess,
            _ => self.find(site, hash as usize),
        };
        let count = &mut self.sites[index].1;
        count.made += 1;
        count.fired += u64::from(fired);
    }

    #[cold]
    fn find(&mut self, site: &'static str, hash: usize) -> usize {
        let index = self.sites.iter().position(|(name, _)| *name == site).unwrap_or_else(|| {
            self.sites.push((site, SiteCount::default()));
            self.sites.len() - 1
        });
        self.guesses[hash] = u8::try_from(index).unwrap_or(0);
        index
    }

    pub(super) fn counts(&self) -> BTreeMap<&'static str, SiteCount> {
        self.sites.iter().copied().collect()
    }
}
