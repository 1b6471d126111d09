//! A real process is killed again and again while it delivers, and nothing is lost.
//!
//! `restante serve` runs on an SQLite file. Producers hand items over through its HTTP API, and repeat what was not answered
//! under the same idempotency key. A receiver fails some attempts, delays some, and leaves some without an answer. SIGKILL
//! comes at odd moments and right after an arrival. What lies in the store after each kill is noted, because it must explain
//! whatever arrives twice.

mod process;
mod producers;
mod receiver;
mod verdict;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use process::{Process, Site};
use producers::Producers;
use receiver::Receiver;
pub(crate) use verdict::Verdict;

/// How much of it.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Items to deliver.
    pub(crate) item_count: u64,
    /// Fewest kills.
    pub(crate) kills_min: usize,
    /// Most kills, reached when the moments that are wanted do not come.
    pub(crate) kills_max: usize,
    /// Decides what the receiver does and when the kills come.
    pub(crate) seed: u64,
    /// Whether every life of the process keeps a journal.
    pub(crate) journal: bool,
    /// Whether to say what happens.
    pub(crate) watch: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { item_count: 2_000, kills_min: 10, kills_max: 40, seed: 1, journal: false, watch: false }
    }
}

/// An item: half of them have an order key, and each key one inbox.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Item(pub(crate) u64);

impl Item {
    /// Its order key.
    pub(crate) fn order_key(self) -> Option<u64> {
        self.0.is_multiple_of(2).then_some((self.0 / 2) % 50)
    }
    /// Which of the receiver's ports it goes to.
    pub(crate) fn port_index(self) -> usize {
        self.order_key().unwrap_or(self.0) as usize % receiver::PORTS
    }
}

/// One kill and what it left.
#[derive(Clone, Debug)]
pub(crate) struct Kill {
    /// When.
    pub(crate) at: Instant,
    /// Entries that lay under a lease.
    pub(crate) leased: BTreeSet<String>,
    /// How many of those leases still ran.
    pub(crate) live: usize,
    /// Entries that had arrived in this life and were not settled.
    pub(crate) posted: usize,
}

/// A number from a seed and some others, well mixed.
pub(crate) fn mix(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0x9E37_79B9_7F4A_7C15, |state, number| {
        let mut state = state ^ number.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state ^= state >> 30;
        state = state.wrapping_mul(0x94D0_49BB_1331_11EB);
        state ^ (state >> 31)
    })
}

/// Everything from the first start to the last look. `program` is the executable `restante`, `directory` an empty folder.
///
/// # Panics
/// When something cannot even be tried: no port, no executable, no store.
pub(crate) fn run(program: &Path, directory: &Path, options: &Options) -> Verdict {
    let say = |what: String| {
        if options.watch {
            println!("{what}");
        }
    };
    let receiver = Receiver::start(options.seed);
    let site = Site::new(program, directory, options.journal);
    let mut process = Process::start(&site, 0);
    let producers = Producers::start(options.item_count, &receiver, process.address());
    say(format!(
        "{} items, {} with an order key; the store is {}",
        options.item_count,
        options.item_count / 2,
        site.store.display()
    ));

    let (mut kills, mut first_deliveries) = (Vec::<Kill>::new(), Vec::new());
    let wanted = |kills: &[Kill]| {
        kills.len() >= options.kills_min
            && kills.iter().filter(|kill| kill.live > 0).count() >= 7
            && kills.iter().any(|kill| kill.posted > 0)
    };
    while !wanted(&kills) && kills.len() < options.kills_max {
        let life_began = Instant::now();
        // An early kill is a moment of its own; most come when deliveries are under way.
        let arrived = receiver.wait_for_more(Duration::from_secs(if kills.len() % 5 == 4 { 1 } else { 30 }));
        if let Some(at) = arrived.filter(|_| !kills.is_empty()) {
            first_deliveries.push(at.duration_since(process.began()));
        }
        std::thread::sleep(Duration::from_millis(mix(&[options.seed, kills.len() as u64]) % 400));
        if kills.len() % 2 == 0 {
            receiver.wait_for_more(Duration::from_millis(500));
        }
        let at = process.kill();
        let (leased, live) = site.leases();
        let arrivals = receiver.arrivals();
        let in_this_life = |entry: &&String| {
            arrivals.iter().any(|arrival| arrival.entry == **entry && arrival.at >= life_began && arrival.is_accepted())
        };
        let posted = leased.iter().filter(in_this_life).count();
        say(format!(
            "kill {:>2}: {:>4} of {} accepted, {:>4} arrived; {:>2} leases, {live:>2} of them live, {posted:>2} posted and not settled",
            kills.len() + 1,
            producers.accepted(),
            options.item_count,
            receiver.items(),
            leased.len()
        ));
        kills.push(Kill { at, leased, live, posted });
        process = Process::start(&site, kills.len());
        producers.moved_to(process.address());
    }

    let accepted = producers.finish(Duration::from_secs(120));
    say(format!("{} accepted; waiting until nothing is owned any more", accepted.len()));
    let drained = site.wait_until_drained(Duration::from_secs(120));
    let stopped = process.stop();
    Verdict::judge(&site, &receiver.arrivals(), &accepted, kills, first_deliveries, drained && stopped)
}

/// The executable `restante` beside this one's folder, where cargo puts it; or why it is not there.
///
/// # Errors
/// What to do.
pub(crate) fn find_program() -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = here.ancestors().skip(1).find(|folder| folder.join("restante").is_file());
    folder
        .map(|folder| folder.join("restante"))
        .ok_or_else(|| "the program restante is not built: run `cargo build -p restante` with the same profile".to_owned())
}
