//! Several handles on one file, and the end of a handle.

use std::thread;
use std::time::{Duration, SystemTime};

use restante_kv::{AtomicKv, StoreError, StoreTime};
use restante_kv_conformance::block_on;

use super::{Temp, absent, assert_sound, commit, delete, get, is, key, put, sent, txn};
use crate::SqliteKv;
use crate::clock::Clock;

#[test]
fn another_handle_reads_what_was_acknowledged() {
    let temp = Temp::new();
    let other = temp.another();
    for i in 0..50u8 {
        let (writer, reader): (&dyn AtomicKv, &dyn AtomicKv) = if i % 2 == 0 { (&temp, &other) } else { (&other, &temp) };
        let version = commit(writer, &[], &[put("k", [i])]).unwrap().version;
        assert_eq!(get(reader, "k").map(|record| record.version), Some(version));
    }
}

#[test]
fn handles_take_turns_and_lose_no_increment() {
    let temp = Temp::with(|builder| builder.busy_timeout(Duration::from_secs(60)));
    commit(&temp, &[], &[put("k", 0u64.to_be_bytes())]).unwrap();
    let open = || SqliteKv::builder(temp.path()).busy_timeout(Duration::from_secs(60)).open().unwrap();
    let handles = [open(), open(), open()];
    thread::scope(|scope| {
        for handle in &handles {
            scope.spawn(move || {
                let mut done = 0;
                while done < 20 {
                    let record = get(handle, "k").unwrap();
                    let count = u64::from_be_bytes(record.value.as_bytes().try_into().unwrap());
                    match commit(handle, &[is("k", record.version)], &[put("k", (count + 1).to_be_bytes())]) {
                        Ok(_) => done += 1,
                        Err(StoreError::Conflict { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    assert_eq!(get(&temp, "k").unwrap().value.as_bytes(), 60u64.to_be_bytes());
    assert_sound(&temp.path());
}

#[test]
fn a_writer_in_the_way_makes_the_store_unavailable_and_then_it_goes_on() {
    let temp = Temp::with(|builder| builder.busy_timeout(Duration::from_millis(50)));
    let blocker = temp.raw();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = commit(&temp, &[absent("k")], &[put("k", "1")]);
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert_eq!(get(&temp, "k"), None, "reading goes on beside a writer");
    blocker.execute_batch("ROLLBACK").unwrap();
    commit(&temp, &[absent("k")], &[put("k", "2")]).expect("nothing had happened");
}

#[test]
fn a_long_reader_does_not_block_the_writer() {
    let temp = Temp::new();
    commit(&temp, &[], &[put("k", "1")]).unwrap();
    let reader = temp.raw();
    reader.execute_batch("BEGIN").unwrap();
    let count = || reader.query_row("SELECT count(*) FROM kv", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count(), 1);
    for i in 0..100 {
        commit(&temp, &[], &[put(&format!("k{i}"), "2")]).unwrap();
    }
    assert_eq!(count(), 1, "the reader's snapshot stays");
}

#[test]
fn versions_stay_unique_when_the_store_is_closed_and_opened_again() {
    let temp = Temp::new();
    let mut seen = vec![];
    for _ in 0..5 {
        let store = temp.another();
        let version = commit(&store, &[absent("k")], &[put("k", "same")]).unwrap().version;
        assert!(!seen.contains(&version), "{version:?} came back");
        seen.push(version);
        commit(&store, &[is("k", version)], &[delete("k")]).unwrap();
        store.close();
    }
}

#[test]
fn a_scan_goes_on_at_its_cursor_on_another_handle() {
    let temp = Temp::new();
    for name in ["a", "b", "c"] {
        commit(&temp, &[], &[put(name, "")]).unwrap();
    }
    let all = restante_kv::KeyRange { start: key(""), end: None };
    let next = block_on(temp.scan(all.clone(), 2)).unwrap().next.unwrap();
    temp.kv.close();
    let rest = block_on(temp.another().scan(restante_kv::KeyRange { start: next, ..all }, 2)).unwrap();
    assert_eq!(rest.entries.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), [key("c")]);
}

#[test]
fn closing_answers_what_was_sent_and_refuses_the_rest() {
    let temp = Temp::new();
    let blocker = temp.raw();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting: Vec<_> = (0..100).map(|i| sent(temp.cas_many(txn(&[], &[put(&format!("k{i}"), "")])))).collect();
    thread::scope(|scope| {
        let closing = scope.spawn(|| temp.kv.close());
        blocker.execute_batch("ROLLBACK").unwrap();
        closing.join().unwrap();
    });
    for future in waiting {
        block_on(future).expect("what was sent before is committed");
    }
    assert!(matches!(commit(&temp, &[], &[put("late", "")]), Err(StoreError::Unavailable(_))));
    assert!(matches!(block_on(temp.get_many(vec![key("k1")])), Err(StoreError::Unavailable(_))));
    temp.kv.close();
    assert!(get(&temp.another(), "k99").is_some());
}

#[test]
fn the_clock_stands_still_while_the_machine_is_behind() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static SECONDS: AtomicU64 = AtomicU64::new(0);
    let clock = Clock::new(|| SystemTime::UNIX_EPOCH + Duration::from_secs(SECONDS.load(Ordering::Relaxed)));
    let mut read = |seconds| {
        SECONDS.store(seconds, Ordering::Relaxed);
        clock.now()
    };
    let at = [10_000, 6_400, 10_001, 13_601].map(&mut read);
    assert_eq!(at.map(StoreTime::as_ms), [10_000_000, 10_000_000, 10_001_000, 13_601_000]);
    assert_eq!(Clock::new(|| SystemTime::UNIX_EPOCH - Duration::from_secs(1)).now(), StoreTime::from_ms(0));
}
