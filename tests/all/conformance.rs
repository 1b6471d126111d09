//! The checks come to the same verdicts on the model, on SQLite and on the store that the simulation runs on: what holds in the
//! simulation holds on a real store.

use std::convert::Infallible;
use std::sync::Arc;

use restante_kv::{AtomicKv, Limits, MemoryKv, StoreTime};
use restante_kv_conformance::{OpenError, Outcome, Report, Subject, Suite};
use restante_kv_sqlite::SqliteKv;
use restante_sim::SimulatedKv;

fn handles(kv: impl AtomicKv + Clone + 'static) -> Subject {
    Subject::new(move || Ok::<_, Infallible>(kv.clone()))
}

fn memory() -> Report {
    let clock = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        StoreTime::from_ms(since.as_millis() as u64)
    };
    Suite::new("memory", move || Ok::<_, Infallible>(handles(MemoryKv::new(Limits::FLOOR, Arc::new(clock))))).run()
}

fn sqlite() -> Report {
    let open = || {
        let folder = tempfile::tempdir().map_err(OpenError::new)?;
        Ok::<_, OpenError>(Subject::new(move || SqliteKv::builder(folder.path().join("restante.db")).open()))
    };
    Suite::new("sqlite", open).run()
}

fn simulated(make: fn(u64) -> SimulatedKv, seed: u64) -> Report {
    Suite::new(format!("simulated, seed {seed}"), move || Ok::<_, Infallible>(handles(make(seed)))).seed(seed).run()
}

/// Name, and whether it passed; nothing for a check that the store need not pass.
fn verdicts(report: &Report) -> Vec<(&'static str, Option<bool>)> {
    let verdict = |outcome: &Outcome| match outcome {
        Outcome::Passed => Some(true),
        Outcome::Skipped { .. } => None,
        Outcome::Failed(_) | Outcome::NotOpened { .. } => Some(false),
    };
    report.ran.iter().map(|ran| (ran.check.name, verdict(&ran.outcome))).collect()
}

#[test]
fn the_simulated_store_gets_the_verdicts_of_the_model_and_of_sqlite() {
    let (memory, sqlite) = (memory(), sqlite());
    let expected = verdicts(&memory);
    for seed in 1..=3 {
        for make in [SimulatedKv::prompt, SimulatedKv::in_flight] {
            let report = simulated(make, seed);
            assert_eq!(verdicts(&report), expected, "{report}");
        }
    }
    assert!(memory.is_passed() && sqlite.is_passed(), "{memory}\n{sqlite}");
    // SQLite is asked for more: what outlives a process.
    for ((name, model), (other, file)) in expected.iter().zip(verdicts(&sqlite)) {
        assert_eq!((*name, model.is_none() || *model == file), (other, true), "{name}");
    }
}
