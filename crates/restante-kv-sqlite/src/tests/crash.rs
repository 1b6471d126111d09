//! Processes that share a file and are killed: what they acknowledged is there, and nothing is half there.

use std::collections::{BTreeSet, HashSet};
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, io, thread};

use restante_kv::{AtomicKv, KeyRange};
use restante_kv_conformance::block_on;

use super::{absent, assert_sound, commit, get, key, put};
use crate::SqliteKv;

/// Set for the process that is going to be killed: the file it writes to.
const PATH: &str = "RESTANTE_KV_CRASH_PATH";
const ROUNDS: usize = 5;
/// Processes that write at once.
const PROCESSES: usize = 2;
/// Acknowledgements to wait for before a process is killed.
const ACKNOWLEDGED: usize = 100;

#[test]
fn acknowledged_commits_survive_a_kill_whole() {
    if let Some(path) = env::var_os(PATH) {
        write_until_killed(Path::new(&path));
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let mut acknowledged = BTreeSet::new();
    for round in 0..ROUNDS {
        thread::scope(|scope| {
            let processes = [(); PROCESSES].map(|()| scope.spawn(|| run_and_kill(&path)));
            for process in processes {
                acknowledged.extend(process.join().unwrap());
            }
        });
        let store = SqliteKv::builder(&path).open().expect("the file opens after a kill");
        for name in &acknowledged {
            assert!(get(&store, name).is_some(), "{name} was acknowledged and is gone");
        }
        let mut range = KeyRange { start: key(""), end: None };
        let mut versions = HashSet::new();
        loop {
            let page = block_on(store.scan(range.clone(), 1000)).unwrap();
            for (key, record) in &page.entries {
                let name = String::from_utf8(key.as_bytes().to_vec()).unwrap();
                let twin = name.strip_suffix("/twin").map_or(format!("{name}/twin"), str::to_owned);
                let twin = get(&store, &twin).unwrap_or_else(|| panic!("{name} is half there"));
                assert_eq!(twin.version, record.version);
                versions.insert(record.version);
            }
            match page.next {
                Some(next) => range.start = next,
                None => break,
            }
        }
        let names = [format!("round {round}"), format!("round {round}/twin")];
        let version = commit(&store, &[absent(&names[0])], &[put(&names[0], ""), put(&names[1], "")]).unwrap().version;
        assert!(!versions.contains(&version), "{version:?} came back");
        store.close();
        assert_sound(&path);
    }
}

/// Runs this test in a process of its own, kills it in the middle, and answers what it had acknowledged.
fn run_and_kill(path: &Path) -> Vec<String> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "tests::crash::acknowledged_commits_survive_a_kill_whole", "--nocapture"])
        .env(PATH, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut names = vec![];
    let mut lines = BufReader::new(child.stdout.take().unwrap()).split(b'\n');
    let mut name = || -> Option<String> {
        let line = String::from_utf8(lines.next()?.unwrap()).unwrap();
        Some(line.strip_prefix("ack ").and_then(|line| line.strip_suffix(" .")).unwrap_or_default().to_owned())
    };
    while names.len() < ACKNOWLEDGED {
        names.extend(Some(name().expect("the process writes until it is killed")).filter(|name| !name.is_empty()));
    }
    child.kill().unwrap();
    names.extend(std::iter::from_fn(name).filter(|name| !name.is_empty()));
    child.wait().unwrap();
    names
}

fn write_until_killed(path: &Path) -> ! {
    let store = SqliteKv::builder(path).busy_timeout(Duration::from_secs(60)).open().unwrap();
    let process = std::process::id();
    thread::scope(|scope| {
        for caller in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for i in 0.. {
                    let name = format!("{process}/{caller}/{i}");
                    commit(store, &[absent(&name)], &[put(&name, "x"), put(&format!("{name}/twin"), "x")]).unwrap();
                    // In one write, and with an end mark: a line cut off by the kill names nothing.
                    io::stdout().write_all(format!("ack {name} .\n").as_bytes()).unwrap();
                }
            });
        }
    });
    unreachable!("the callers do not end");
}
