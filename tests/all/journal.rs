//! A journal of the production driver runs again through the machines; one that was altered does not.

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use restante_core::Config;
use restante_core::machine::{Post, PostResult};
use restante_driver::{Backlog, Journal, Message};
use restante_journal::{CheckRecord, Event, IoRecord, ReplyRecord, WriteRecord, line, read};
use restante_kv_sqlite::SqliteKv;
use restante_sim::journal::{JournalReport, replay_from};

const SECRET: &str = "a payload that nobody else may read";

/// Sends, failures, retries, a lane, a large payload, a stop: everything that a journal can hold.
async fn record(directory: &Path, bytes_max: u64) -> PathBuf {
    let path = directory.join("journal");
    let store = Arc::new(SqliteKv::builder(directory.join("backlog.sqlite")).open().unwrap());
    let attempts = Arc::new(AtomicUsize::new(0));
    let sender = tower::service_fn(move |_: Post| {
        let result = match attempts.fetch_add(1, Ordering::Relaxed) % 7 {
            2 => PostResult::Unknown,
            4 => PostResult::Status { code: 503, retry_after_ms: Some(30) },
            6 => PostResult::Status { code: 410, retry_after_ms: None },
            _ => PostResult::Status { code: 202, retry_after_ms: None },
        };
        async move { Ok::<_, Infallible>(result) }
    });
    // The failures come whenever they come: a circuit that five of them open would stay open for half an hour.
    let config = Config { backoff_initial_ms: 10, poll_interval_ms: 20, breaker_failures: 0, ..Config::new(86_400_000) };
    let journal = Journal::create(&path, bytes_max).unwrap();
    let backlog = Backlog::builder(store, config, sender).journal(journal).build().unwrap();
    let handle = backlog.start();
    for number in 0..40 {
        let message = Message::new(format!("https://h{}.example/inbox", number % 3), format!("{SECRET} {number}").into_bytes());
        let message = if number % 2 == 0 { message.order_key("thread") } else { message };
        backlog.send(message).await.unwrap();
    }
    backlog.send(Message::new("https://h0.example/inbox", vec![7; 120_000])).await.unwrap();
    backlog.run_once(100).await;
    while backlog.depth().await.unwrap().entries > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    handle.shutdown(Duration::from_secs(10)).await;
    path
}

fn recorded(bytes_max: u64) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let path = runtime.block_on(record(directory.path(), bytes_max));
    (directory, path)
}

/// The journal with some of its events changed and every checksum right.
fn altered(path: &Path, alter: impl FnOnce(&mut Vec<Event>)) -> JournalReport {
    let mut events: Vec<Event> = read(path).unwrap().events.into_iter().map(|(_, event)| event).collect();
    let before = events.clone();
    alter(&mut events);
    assert!(before != events, "nothing was altered");
    let text: String = events.iter().map(line).collect();
    replay_from(text.as_bytes()).unwrap()
}

/// Where it was caught, and that it says which step.
fn assert_caught(report: &JournalReport, what: &str) -> u64 {
    let violation = report.violation.as_ref().map(|violation| &violation.wrong);
    let wrong = report.difference.as_ref().or(violation).unwrap_or_else(|| panic!("an altered {what} is not noticed"));
    assert!(wrong.line > 0 && !wrong.what.is_empty(), "{wrong:?}");
    wrong.line
}

#[test]
fn a_journal_of_the_driver_replays_without_a_difference_and_holds_no_payload() {
    let (_directory, path) = recorded(u64::MAX);
    let report = replay_from(fs::File::open(&path).unwrap()).unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert!(report.steps > 500 && report.commits > 150 && report.posts > 41, "{report:?}");
    assert!(!fs::read_to_string(&path).unwrap().contains(SECRET));
    // Base64 of the payload's first bytes.
    assert!(!fs::read_to_string(&path).unwrap().contains("YSBwYXlsb2Fk"));
}

#[test]
fn an_altered_reply_is_caught_at_its_step() {
    let (_directory, path) = recorded(u64::MAX);
    let posted = |event: &&mut Event| matches!(event, Event::Answered { reply: ReplyRecord::Posted { .. }, .. });
    let report = altered(&path, |events| {
        let Some(Event::Answered { reply: ReplyRecord::Posted { result, .. }, .. }) = events.iter_mut().filter(posted).nth(5)
        else {
            panic!("no sixth attempt")
        };
        *result = match result {
            PostResult::Status { code: 200..=299, .. } => PostResult::Status { code: 404, retry_after_ms: None },
            _ => PostResult::Status { code: 200, retry_after_ms: None },
        };
    });
    assert_caught(&report, "reply");
}

#[test]
fn an_altered_record_in_a_reply_is_caught() {
    let (_directory, path) = recorded(u64::MAX);
    let report = altered(&path, |events| {
        let asked =
            |event: &Event| matches!(event, Event::Asked { about, io: IoRecord::Read { .. }, .. } if about.starts_with("claim"));
        let at = events.iter().skip(300).position(asked).unwrap() + 300;
        let Event::Asked { op, task, .. } = events[at] else { unreachable!() };
        let answer =
            events[at..].iter_mut().find(|it| matches!(it, Event::Answered { op: o, task: t, .. } if (*o, *t) == (op, task)));
        let Some(Event::Answered { reply: ReplyRecord::Snapshot { records, .. }, .. }) = answer else { panic!("no snapshot") };
        records[0].as_mut().unwrap().version = "999999".to_owned();
    });
    assert_caught(&report, "version");
}

#[test]
fn an_altered_order_is_caught() {
    let (_directory, path) = recorded(u64::MAX);
    // An answer before its question; and two questions of one machine exchanged.
    let report = altered(&path, |events| {
        let asked = events.iter().rposition(|event| matches!(event, Event::Asked { io: IoRecord::Post { .. }, .. })).unwrap();
        let Event::Asked { op, task, .. } = events[asked] else { unreachable!() };
        let answered = events[asked..]
            .iter()
            .position(|event| matches!(event, Event::Answered { op: o, task: t, .. } if (*o, *t) == (op, task)))
            .unwrap();
        events.swap(asked, asked + answered);
    });
    assert_caught(&report, "order of question and answer");
    let report = altered(&path, |events| {
        let commits: Vec<usize> =
            (0..events.len()).filter(|at| matches!(&events[*at], Event::Asked { io: IoRecord::Commit { .. }, .. })).collect();
        let (first, second) = (commits[20], commits[21]);
        events.swap(first, second);
    });
    assert_caught(&report, "order of commits");
}

#[test]
fn an_altered_time_is_caught() {
    let (_directory, path) = recorded(u64::MAX);
    let report = altered(&path, |events| {
        for event in events.iter_mut().skip(300) {
            if let Event::Answered { reply: ReplyRecord::Snapshot { at_ms, .. }, .. } = event {
                *at_ms += 60_000;
                return;
            }
        }
    });
    assert_caught(&report, "store time");
    let report = altered(&path, |events| {
        for event in events.iter_mut().skip(300) {
            if let Event::Answered { local_ms, .. } = event {
                *local_ms += 60_000;
                return;
            }
        }
    });
    assert_caught(&report, "local time");
}

type Alteration = fn(&mut Vec<CheckRecord>, &mut Vec<WriteRecord>);

#[test]
fn an_altered_commit_is_caught_at_its_step() {
    let (_directory, path) = recorded(u64::MAX);
    let alterations: [Alteration; 3] = [
        |checks, _| {
            checks.pop();
        },
        |_, writes| {
            writes.pop();
        },
        |_, writes| writes[0].put = if writes[0].put.is_some() { None } else { Some(String::new()) },
    ];
    for alter in alterations {
        let mut altered_at = 0;
        let report = altered(&path, |events| {
            let settles = |event: &Event| matches!(event, Event::Asked { about, io: IoRecord::Commit { .. }, .. } if about.starts_with("settle"));
            let at = events.iter().rposition(settles).unwrap();
            let Event::Asked { io: IoRecord::Commit { checks, writes }, .. } = &mut events[at] else { unreachable!() };
            alter(checks, writes);
            altered_at = at as u64 + 1;
        });
        assert_eq!(assert_caught(&report, "commit"), altered_at);
    }
}

#[test]
fn a_damaged_line_is_refused_and_a_torn_last_line_is_not() {
    let (_directory, path) = recorded(u64::MAX);
    let whole = fs::read(&path).unwrap();
    let torn = &whole[..whole.len() - 5];
    let report = replay_from(torn).unwrap();
    assert!(report.is_clean() && report.torn, "{report:?}");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    assert!(replay_from(&damaged[..]).is_err());
    assert!(replay_from(&b"not a journal\n"[..]).is_err());
    assert!(replay_from(&b""[..]).is_err());
}

#[test]
fn a_full_journal_says_so_and_what_is_in_it_replays() {
    let (_directory, path) = recorded(60_000);
    let report = replay_from(fs::File::open(&path).unwrap()).unwrap();
    assert!(report.is_clean() && report.full, "{report:?}");
    assert!(fs::metadata(&path).unwrap().len() <= 60_000);
}
