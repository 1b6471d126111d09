//! What the core must not contain, must not show, and must not start with.

use restante_core::atoms::{Bytes, Sealed};
use restante_core::machine::{InspectRow, SendRequest, inspect_page, inspect_range};
use restante_core::{Config, ConfigError};
use restante_kv::Limits;

use crate::bed::{Bed, DAY_MS, config, send};

/// Whatever differs from run to run comes in as a value.
#[test]
fn the_source_names_no_clock_no_io_no_thread_and_no_unordered_map() {
    const FORBIDDEN: [&str; 8] =
        ["SystemTime", "Instant::now", "std::fs", "std::net", "std::thread", "HashMap", "HashSet", "std::env"];
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(folder).expect("the source is there") {
            let path = item.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            let text = std::fs::read_to_string(&path).expect("readable");
            for name in FORBIDDEN {
                assert!(!text.contains(name), "{} names {name}", path.display());
            }
        }
    }
    assert!(files > 20, "only {files} files were read");
}

#[test]
fn an_inspection_has_no_field_for_a_payload_or_a_signing_reference() {
    let mut bed = Bed::default();
    let secret = SendRequest {
        payload: Bytes::from(&b"TOP-SECRET"[..]),
        signing: Sealed::new(&b"KEY-SECRET"[..]),
        ..send(1, &["a.example/inbox"])
    };
    bed.accept(secret);
    bed.accept(send(2, &["b.example/inbox"]));
    bed.make_unknown(2, 0);
    let page = bed.model.scan(&inspect_range(&bed.env, None), 10).expect("readable");
    let shown = inspect_page(&bed.env, &page);
    assert_eq!((shown.rows.len(), shown.unreadable.len(), shown.next.is_some()), (1, 1, false));
    // Every field, by name: a new one has to be looked at here.
    let InspectRow {
        id: _,
        inbox,
        destination: _,
        origin,
        retention_end_at,
        vest_at: _,
        failure_count: _,
        fence: _,
        lease: _,
        lane: _,
        wait: _,
    } = &shown.rows[0];
    assert_eq!(&**inbox, "https://a.example/inbox");
    assert_eq!(retention_end_at.since_ms(*origin), 7 * DAY_MS);
    assert!(!format!("{shown:?} {:?}", bed.entry(1, 0)).contains("SECRET"), "debug output prints neither");
}

#[test]
fn an_inspection_goes_on_where_it_stopped_and_nowhere_else() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/1", "b.example/1", "c.example/1"]));
    let page = bed.model.scan(&inspect_range(&bed.env, None), 2).expect("readable");
    let shown = inspect_page(&bed.env, &page);
    let rest = bed.model.scan(&inspect_range(&bed.env, shown.next), 2).expect("readable");
    assert_eq!((shown.rows.len(), inspect_page(&bed.env, &rest).rows.len()), (2, 1));
    // A cursor from outside cannot make it read other records.
    let elsewhere = inspect_range(&bed.env, Some(bed.env.keys.intake()));
    assert_eq!(elsewhere, inspect_range(&bed.env, None));
}

#[test]
fn settings_that_would_never_work_are_refused() {
    let refused = |change: fn(&mut Config)| {
        let mut config = config();
        change(&mut config);
        config.validate(&Limits::FLOOR).expect_err("invalid")
    };
    assert_eq!(refused(|it| it.max_retention_ms = 0), ConfigError::Zero("max_retention_ms"));
    assert_eq!(refused(|it| it.attempts_max = 0), ConfigError::Zero("attempts_max"));
    assert_eq!(refused(|it| it.gate_freshness_ms = 0), ConfigError::Zero("gate_freshness_ms"));
    assert_eq!(refused(|it| it.request_timeout_ms = 0), ConfigError::Zero("request_timeout_ms"));
    assert_eq!(refused(|it| it.pointer_bucket_ms = 0), ConfigError::Zero("pointer_bucket_ms"));
    assert_eq!(refused(|it| it.backoff_max_ms = 1), ConfigError::BackoffInverted { initial_ms: 1_000, max_ms: 1 });
    assert!(matches!(refused(|it| it.lease_ms = 10_000), ConfigError::LeaseTooShort { .. }));
    assert!(matches!(refused(|it| it.max_clock_skew_ms = u64::MAX), ConfigError::LeaseTooShort { .. }));
    let too_much: [fn(&mut Config); 9] = [
        |it| it.recipients_max = 6,
        |it| it.recipients_max = usize::MAX,
        |it| it.counter_slots = 10,
        |it| it.counter_slots = u64::MAX,
        |it| it.chunk_bytes = 64 * 1024,
        |it| it.chunk_bytes = usize::MAX,
        |it| it.inline_bytes_max = 49 * 1024,
        |it| it.inline_bytes_max = usize::MAX,
        |it| it.prefix = "p".repeat(1024).into(),
    ];
    for change in too_much {
        assert!(matches!(refused(change), ConfigError::StoreTooSmall { .. }));
    }
}

/// A batch that no transaction can take would be refused with every send.
#[test]
fn the_largest_batch_must_fit_a_transaction() {
    let limits = Limits { value_bytes_max: 1 << 20, ..Limits::FLOOR };
    let config = Config { inline_bytes_max: 200 * 1024, ..config() };
    assert!(matches!(config.validate(&limits), Err(ConfigError::StoreTooSmall { what: "bytes in a transaction", .. })));
}

#[test]
fn backoff_never_overflows() {
    for initial in [1, 1_000, u64::MAX] {
        let config = Config { backoff_initial_ms: initial, backoff_max_ms: u64::MAX, ..config() };
        for failures in [0, 1, 63, 64, u32::MAX] {
            assert!(config.backoff_ms(failures, u64::MAX) >= initial);
        }
    }
}
