//! What a delivery costs as the backlog grows: keys, calls and rows counted, time beside them.
//!
//! Fills SQLite files with `SIZES` entries (`1000,10000,100000`; add 1000000 for the whole picture) for `HOSTS` (1,000)
//! destinations, then delivers `DELIVERIES` (500) of them and counts what discovery, claims, gates and settles asked of the
//! store; the sweep is not due. Also: what a look at the depth costs, and bytes of the file and of the index an entry.
//!
//! | from the environment | what is added |
//! |---|---|
//! | `BLOCK=hold`, `BLOCK=circuit` | `BLOCKED` (90) of a hundred entries go to `BLOCKED_HOSTS` (1,000) other destinations, which are held, or whose circuits are open; what such a change writes, and what it costs to meet them first |
//! | `BUCKET_MS` (1000) | how wide a step of the pointers is: sends to one destination within one step share a pointer |
//! | `WORKERS=1,2,4` | so many workers at once deliver `DELIVERIES` each, over one handle of the file and over one each: conflicts a commit |
//! | `SWEEP_MS=2000` | a run sweeps at an interval of this, while another one beside it wants to, again and again; neither delivers |
//! | `RECOUNT=1` | a recount by the doctor must find what the depth says |

mod counting;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use counting::{Counting, Counts, Figures};
use restante_core::atoms::{EntryId, Fence, OwnerId, SendId};
use restante_core::keys::Kind;
use restante_core::machine::{Io, LocalTime, Post, PostResult, Reply, Transact, TransactStep};
use restante_core::plan::{CountAttempt, Reach};
use restante_core::record::{Record as _, SweepState};
use restante_core::{Command, Config, Env};
use restante_driver::{Backlog, Message};
use restante_kv::{AtomicKv as _, StoreTime};
use restante_kv_sqlite::SqliteKv;

const DAY_MS: u64 = 86_400_000;
/// Failures that open a circuit here.
const FAILURES: usize = 2;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn sizes(name: &str, default: &str) -> Vec<usize> {
    let text = std::env::var(name).unwrap_or_else(|_| default.to_owned());
    text.split(',').filter_map(|size| size.trim().parse().ok()).collect()
}

/// What keeps the blocked destinations' work back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Hold,
    Circuit,
}

fn block() -> Option<Block> {
    match std::env::var("BLOCK").as_deref() {
        Ok("hold") => Some(Block::Hold),
        Ok("circuit") => Some(Block::Circuit),
        Ok(other) => panic!("BLOCK is hold or circuit, not {other:?}"),
        Err(_) => None,
    }
}

fn config() -> Config {
    config_sweeping_every(DAY_MS)
}

fn config_sweeping_every(sweep_interval_ms: u64) -> Config {
    Config {
        counter_slots: 128,
        concurrency: 64,
        window: 64,
        sweep_interval_ms,
        // A backlog that grew over hours would have a pointer for every such step and destination.
        pointer_bucket_ms: setting("BUCKET_MS", 1_000) as u64,
        // No recheck and no probe while it is measured.
        held_recheck_interval_ms: DAY_MS,
        breaker_failures: FAILURES,
        breaker_recovery_ms: DAY_MS,
        // What failed is not due again meanwhile.
        backoff_initial_ms: DAY_MS,
        backoff_max_ms: DAY_MS,
        ..Config::new(30 * DAY_MS)
    }
}

/// One file, and everything that is counted about it.
struct Bed {
    path: PathBuf,
    counts: Arc<Counts>,
    env: Arc<Env>,
}

impl Bed {
    fn open(&self) -> Arc<SqliteKv> {
        Arc::new(SqliteKv::builder(&self.path).open().unwrap())
    }

    /// Delivers everything, except to blocked destinations, which fail.
    fn backlog(&self, store: &Arc<SqliteKv>) -> Backlog {
        self.backlog_with(store, config())
    }

    fn backlog_with(&self, store: &Arc<SqliteKv>, config: Config) -> Backlog {
        let (store, counts, env) = (Arc::clone(store), Arc::clone(&self.counts), Arc::clone(&self.env));
        let sender = tower::service_fn(|post: Post| async move {
            let code = if post.destination.starts_with("https://blocked-") { 500 } else { 202 };
            Ok::<_, Infallible>(PostResult::Status { code, retry_after_ms: None })
        });
        Backlog::builder(Arc::new(Counting { store, counts, env }), config, sender).build().unwrap()
    }

    fn file_bytes(&self) -> u64 {
        let beside =
            |ending: &str| Path::new(&format!("{}{ending}", self.path.display())).metadata().map_or(0, |file| file.len());
        ["", "-wal"].into_iter().map(beside).sum()
    }
}

async fn fill(backlog: &Backlog, size: usize, block: Option<Block>) -> f64 {
    let (hosts, blocked_hosts) = (setting("HOSTS", 1_000), setting("BLOCKED_HOSTS", 1_000));
    let percent = if block.is_some() { setting("BLOCKED", 90) } else { 0 };
    let began = Instant::now();
    for from in (0..size).step_by(1_000) {
        let message = |number: usize| {
            let inbox = match number % 100 {
                part if part < percent => format!("{}/inbox", blocked((number / 100 * percent + part) % blocked_hosts)),
                _ => format!("https://host-{}.example/inbox", number % hosts),
            };
            Message::new(inbox, vec![b'x'; 512])
        };
        let answers = backlog.send_many((from..size.min(from + 1_000)).map(message).collect()).await;
        assert!(answers.iter().all(Result::is_ok));
    }
    size as f64 / began.elapsed().as_secs_f64()
}

/// Holds every blocked destination, or opens its circuit, by the commands that workers issue.
async fn put_block(bed: &Bed, backlog: &Backlog, block: Block, size: usize) {
    let hosts = blocked_hosts(size);
    match block {
        Block::Hold => {
            for what in ["set", "extend"] {
                let (before, began) = (bed.counts.now(), Instant::now());
                for host in 0..hosts {
                    backlog.set_hold(&blocked(host), None, None).await.unwrap();
                }
                tell_changes(bed, what, before, hosts, began);
            }
        }
        Block::Circuit => {
            for what in ["count a failure", "open"] {
                let (before, began) = (bed.counts.now(), Instant::now());
                for host in 0..hosts {
                    count_attempt(bed, backlog, host, Reach::Failed).await;
                }
                tell_changes(bed, what, before, hosts, began);
            }
        }
    }
}

/// What ends the block of some, and puts it back for the measurements that follow.
async fn end_block(bed: &Bed, backlog: &Backlog, block: Block, size: usize) {
    let hosts = blocked_hosts(size).min(10);
    let (before, began) = (bed.counts.now(), Instant::now());
    for host in 0..hosts {
        match block {
            Block::Hold => backlog.release_hold(&blocked(host), None).await.unwrap(),
            Block::Circuit => count_attempt(bed, backlog, host, Reach::Reached).await,
        }
    }
    tell_changes(bed, if block == Block::Hold { "release" } else { "close" }, before, hosts, began);
    for host in 0..hosts {
        match block {
            Block::Hold => backlog.set_hold(&blocked(host), None, None).await.unwrap(),
            Block::Circuit => {
                for _ in 0..FAILURES {
                    count_attempt(bed, backlog, host, Reach::Failed).await;
                }
            }
        }
    }
}

fn blocked(host: usize) -> String {
    format!("https://blocked-{host}.example")
}

fn blocked_hosts(size: usize) -> usize {
    setting("BLOCKED_HOSTS", 1_000).min(size * setting("BLOCKED", 90) / 100)
}

/// Tells a destination's circuit of an attempt, as a worker does beside the settle.
async fn count_attempt(bed: &Bed, backlog: &Backlog, host: usize, reach: Reach) {
    let id = EntryId { send: SendId::from_bytes([0; 16]), index: 0 };
    let (owner, fence) = (OwnerId::from_bytes([0; 16]), Fence::default());
    let command = CountAttempt { destination: blocked(host).into(), id, owner, fence, reach };
    let (store, began) = (backlog.store(), Instant::now());
    let local = || LocalTime::from_ms(began.elapsed().as_millis() as u64);
    let now = || StoreTime::from_ms(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64);
    let (mut transact, mut step) = Transact::begin(&bed.env, Command::CountAttempt(command), Fence::default(), local());
    loop {
        let reply = match step {
            TransactStep::Done(done) => return drop(done.unwrap()),
            TransactStep::Do(Io::Read(keys)) => {
                let snapshot = store.get_many(keys).await;
                let at = snapshot.as_ref().ok().and_then(|snapshot| snapshot.at).unwrap_or_else(now);
                Reply::Snapshot { result: snapshot.map(|snapshot| snapshot.values), at }
            }
            TransactStep::Do(Io::Commit(txn)) => Reply::Committed(store.cas_many(txn).await),
            TransactStep::Do(other) => panic!("nobody else is here to wait for: {other:?}"),
        };
        step = transact.step(&bed.env, reply, local());
    }
}

fn tell_changes(bed: &Bed, what: &str, before: Figures, destinations: usize, began: Instant) {
    let done = bed.counts.now().since(before);
    println!(
        "           {what}: {destinations} destinations, {} commits that change one, {} rows at most in one | {:.2} ms each",
        done.changes,
        done.change_rows_max,
        began.elapsed().as_secs_f64() * 1e3 / destinations as f64
    );
}

/// Delivers until no pointer of a blocked destination is met any more: each has been moved to where it is looked at again.
async fn meet_blocked(bed: &Bed, backlog: &Backlog, deliveries: u64) {
    let (before, began, mut processed, mut met_none) = (bed.counts.now(), Instant::now(), 0, 0);
    // A run that ends at its limit has not been everywhere: several in a row must meet none.
    while met_none < 3 {
        let this_time = bed.counts.now();
        let report = backlog.run_once(deliveries).await;
        processed += report.processed;
        // A delivery takes two commits, and now and then a third for a pointer of its own.
        let is_clean = bed.counts.now().since(this_time).commits * 4 <= report.processed * 9;
        met_none = if is_clean { met_none + 1 } else { 0 };
    }
    let done = bed.counts.now().since(before);
    println!(
        "           meeting what is blocked: {processed} deliveries meanwhile; {} commits beside theirs, once | {:.0} ms in all",
        done.commits - 2 * processed,
        began.elapsed().as_secs_f64() * 1e3
    );
}

async fn deliver(bed: &Bed, backlog: &Backlog, what: &str, deliveries: u64) {
    let (before, began) = (bed.counts.now(), Instant::now());
    let report = backlog.run_once(deliveries).await;
    let took = began.elapsed();
    let done = bed.counts.now().since(before);
    println!(
        "           {what}: {} deliveries, each {} | {:.2} ms | in all {} keys, {} pages, {} commits in {:.0} ms",
        report.processed,
        done.each(report.processed),
        took.as_secs_f64() * 1e3 / report.processed.max(1) as f64,
        done.keys,
        done.pages,
        done.commits,
        took.as_secs_f64() * 1e3,
    );
}

/// Bytes of keys and values, by what they are for.
async fn tell_bytes(bed: &Bed, store: &SqliteKv, size: usize) {
    let env = &bed.env;
    let of = async |kinds: &[Kind]| {
        let (mut rows, mut bytes) = (0_u64, 0_u64);
        for kind in kinds {
            let mut range = env.keys.all(*kind);
            loop {
                let page = store.scan(range.clone(), 1_000).await.unwrap();
                rows += page.entries.len() as u64;
                bytes += page
                    .entries
                    .iter()
                    .map(|(key, found)| (key.as_bytes().len() + found.value.as_bytes().len()) as u64)
                    .sum::<u64>();
                match page.next {
                    Some(next) => range.start = next,
                    None => break,
                }
            }
        }
        (rows as f64 / size as f64, bytes as f64 / size as f64)
    };
    let (entries, markers) = (of(&[Kind::Entry]).await, of(&[Kind::Marker]).await);
    let (due, pointers) = (of(&[Kind::DueRow]).await, of(&[Kind::Pointer]).await);
    println!(
        "           bytes an entry: {} of the file; records {:.0}, markers {:.0}, index {:.0} ({:.2} due rows of {:.0} bytes in all, {:.3} pointers of {:.0})",
        bed.file_bytes() / size as u64,
        entries.1,
        markers.1,
        due.1 + pointers.1,
        due.0,
        due.1,
        pointers.0,
        pointers.1
    );
}

/// So many workers at once, each with a backlog of its own.
async fn contend(bed: &Bed, workers: usize, own_handles: bool) {
    let shared = bed.open();
    let backlogs: Vec<Backlog> =
        (0..workers).map(|_| bed.backlog(&if own_handles { bed.open() } else { Arc::clone(&shared) })).collect();
    let each = setting("DELIVERIES", 500) as u64;
    let (before, began) = (bed.counts.now(), Instant::now());
    let runs: Vec<_> = backlogs.into_iter().map(|backlog| tokio::spawn(async move { backlog.run_once(each).await })).collect();
    let mut processed = 0;
    for run in runs {
        processed += run.await.unwrap().processed;
    }
    let (done, took) = (bed.counts.now().since(before), began.elapsed().as_secs_f64());
    println!(
        "           {workers} workers, {}: {:.0} deliveries/s, {:.4} conflicts a commit, {} refusals | each {}",
        if own_handles { "a handle each" } else { "one handle  " },
        processed as f64 / took,
        done.conflicts as f64 / done.commits as f64,
        done.refusals,
        done.each(processed)
    );
}

/// One sweep of everything, while another run wants one again and again; neither delivers.
async fn sweep(bed: &Bed, interval_ms: u64) {
    let backlog = bed.backlog_with(&bed.open(), config_sweeping_every(interval_ms));
    let rival = bed.backlog_with(&bed.open(), config_sweeping_every(interval_ms));
    let rivals = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(interval_ms / 4)).await;
            rival.run_once(0).await;
        }
    });
    let (before, began) = (bed.counts.now(), Instant::now());
    backlog.run_once(0).await;
    let (took, done) = (began.elapsed(), bed.counts.now().since(before));
    rivals.abort();
    let state = bed.open().get_many(vec![bed.env.keys.sweep()]).await.unwrap().values.remove(0).unwrap();
    let state = SweepState::decode(&state.value).unwrap();
    let began_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64 - took.as_millis() as u64;
    println!(
        "           sweep: {} records, {} pages, {} snapshots, {} commits in {:.1} s, at an interval of {:.1} s | recorded complete: {}",
        done.records,
        done.pages,
        done.snapshots,
        done.commits,
        took.as_secs_f64(),
        interval_ms as f64 / 1e3,
        state.completed && state.completed_from.as_ms() + 1_000 >= began_ms,
    );
}

async fn measure(size: usize) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bed = Bed { path: directory.path().join("backlog"), counts: Arc::default(), env: Arc::new(Env::new(config())) };
    let store = bed.open();
    let backlog = bed.backlog(&store);
    // An empty backlog is swept in no time, and then the sweep is not due for a day.
    assert!(!backlog.run_once(1).await.more);

    let block = block();
    let accepts = fill(&backlog, size, block).await;
    println!("{size:>8} entries | accepts {accepts:>6.0}/s");
    tell_bytes(&bed, &store, size).await;
    let deliveries = setting("DELIVERIES", 500) as u64;
    if let Some(block) = block {
        put_block(&bed, &backlog, block, size).await;
        end_block(&bed, &backlog, block, size).await;
        meet_blocked(&bed, &backlog, deliveries).await;
    }
    deliver(&bed, &backlog, "delivered", deliveries).await;

    let (before, began) = (bed.counts.now(), Instant::now());
    let depth = backlog.depth().await.unwrap();
    println!(
        "           depth: {} entries | {} | {:.2} ms",
        depth.entries,
        bed.counts.now().since(before).each(1),
        began.elapsed().as_secs_f64() * 1e3
    );
    if setting("RECOUNT", 0) > 0 {
        let began = Instant::now();
        let report = backlog.doctor(false).await.unwrap();
        assert!(report.is_clean() && !report.in_motion, "a recount finds what the depth says, and nothing wrong: {report:?}");
        println!("           recount: {} records, the same | {:.1} s", report.records, began.elapsed().as_secs_f64());
    }
    if let Some(interval_ms) = sizes("SWEEP_MS", "").first() {
        sweep(&bed, *interval_ms as u64).await;
    }
    for workers in sizes("WORKERS", "") {
        contend(&bed, workers, false).await;
        contend(&bed, workers, true).await;
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for size in sizes("SIZES", "1000,10000,100000") {
        runtime.block_on(measure(size));
    }
}
