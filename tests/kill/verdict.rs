//! What must be true at the end.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use super::process::Site;
use super::receiver::{Answer, Arrival};
use super::{Item, Kill};

/// What it all came to.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// Every kill.
    pub(crate) kills: Vec<Kill>,
    /// From a restart to the first delivery.
    pub(crate) first_deliveries: Vec<Duration>,
    /// Attempts that arrived.
    pub(crate) arrival_count: usize,
    /// Items that the receiver took more than once.
    pub(crate) repeated: usize,
    /// Items that were accepted.
    pub(crate) accepted: usize,
    /// Journals, one a life.
    pub(crate) journals: Vec<std::path::PathBuf>,
    /// Everything that must not be.
    pub(crate) wrong: Vec<String>,
}

impl Verdict {
    pub(crate) fn judge(
        site: &Site,
        arrivals: &[Arrival],
        accepted: &BTreeMap<Item, Instant>,
        kills: Vec<Kill>,
        first_deliveries: Vec<Duration>,
        drained: bool,
    ) -> Self {
        let mut of_item: BTreeMap<Item, Vec<&Arrival>> = BTreeMap::new();
        for arrival in arrivals {
            of_item.entry(arrival.item).or_default().push(arrival);
        }
        let mut wrong = Vec::new();
        if !drained {
            wrong.push("the backlog was not empty in time, or the process did not stop by itself".to_owned());
        }
        for item in accepted.keys() {
            if !of_item.get(item).is_some_and(|all| all.iter().any(|arrival| arrival.is_accepted())) {
                wrong.push(format!("{item:?} was accepted and never arrived"));
            }
        }
        let repeated = of_item.values().filter(|all| all.iter().filter(|arrival| arrival.is_accepted()).count() > 1).count();
        wrong.extend(of_item.values().flat_map(|all| unexplained(all, &kills)));
        wrong.extend(out_of_order(arrivals));
        wrong.extend(site_findings(site));
        let journals = site.journals();
        Self { kills, first_deliveries, arrival_count: arrivals.len(), repeated, accepted: accepted.len(), journals, wrong }
    }

    /// Kills that found a lease that still ran.
    pub(crate) fn kills_with_live_lease(&self) -> usize {
        self.kills.iter().filter(|kill| kill.live > 0).count()
    }

    /// Kills between an attempt that arrived and its settle.
    pub(crate) fn kills_between_post_and_settle(&self) -> usize {
        self.kills.iter().filter(|kill| kill.posted > 0).count()
    }
}

/// Attempts that nothing explains: the one before was answered, and no kill left the entry leased in between.
fn unexplained(arrivals: &[&Arrival], kills: &[Kill]) -> Vec<String> {
    let mut wrong = Vec::new();
    for pair in arrivals.windows(2) {
        let [before, after] = pair else { continue };
        let is_one_entry = before.entry == after.entry;
        let is_asked_for = matches!(before.answer, Answer::Unavailable | Answer::Nothing | Answer::AcceptedTooLate);
        let is_killed =
            kills.iter().any(|kill| before.at <= kill.at && kill.at <= after.at && kill.leased.contains(&before.entry));
        if !is_one_entry || !(is_asked_for || is_killed) {
            wrong.push(format!("{:?} arrived again for no reason: {before:?}, then {after:?}", before.item));
        }
    }
    wrong
}

/// Items of one key arrive in the order of their numbers: none before its predecessor was taken, and none again after its
/// successor began.
fn out_of_order(arrivals: &[Arrival]) -> Vec<String> {
    let mut latest: BTreeMap<u64, &Arrival> = BTreeMap::new();
    let mut wrong = Vec::new();
    for arrival in arrivals {
        let Some(key) = arrival.item.order_key() else { continue };
        match latest.get(&key) {
            Some(before) if before.item > arrival.item => {
                wrong.push(format!("key {key}: {:?} arrived after {:?}", arrival.item, before.item));
            }
            Some(before) if before.item < arrival.item && !before.is_accepted() => {
                wrong.push(format!("key {key}: {:?} overtook {:?}, which was not taken yet", arrival.item, before.item));
            }
            _ => {}
        }
        latest.insert(key, arrival);
    }
    wrong
}

/// What the program and SQLite say of the file.
fn site_findings(site: &Site) -> Vec<String> {
    let mut wrong = Vec::new();
    let (code, said) = site.ask("doctor", &[]);
    if code != Some(0) {
        wrong.push(format!("the doctor exits with {code:?}: {said}"));
    }
    let (code, said) = site.ask("quarantine", &["list", "--json"]);
    if code.is_none() {
        wrong.push(format!("quarantine list was killed: {said}"));
    }
    let connection = rusqlite::Connection::open(&site.store).expect("the file");
    let integrity: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("an answer");
    if integrity != "ok" {
        wrong.push(format!("the file's integrity check says {integrity}"));
    }
    wrong
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut waits = self.first_deliveries.clone();
        waits.sort_unstable();
        let ms = |at: usize| waits.get(at).map_or(0, Duration::as_millis);
        writeln!(
            f,
            "{} kills, {} with a live lease, {} between an arrival and its settle",
            self.kills.len(),
            self.kills_with_live_lease(),
            self.kills_between_post_and_settle()
        )?;
        writeln!(
            f,
            "{} items accepted, {} attempts arrived, {} items taken more than once",
            self.accepted, self.arrival_count, self.repeated
        )?;
        writeln!(
            f,
            "from a restart to the first delivery: median {} ms, most {} ms",
            ms(waits.len() / 2),
            ms(waits.len().saturating_sub(1))
        )?;
        if self.wrong.is_empty() {
            return write!(f, "nothing lost, order kept, every repetition explained, the doctor and the integrity check content");
        }
        self.wrong.iter().take(20).try_for_each(|wrong| writeln!(f, "WRONG: {wrong}"))
    }
}
