//! A process on a file is killed again and again; see the module `kill` beside this folder.

#[path = "../kill/mod.rs"]
mod harness;

use harness::{Options, find_program, run};

#[test]
fn nothing_is_lost_by_a_process_that_is_killed_again_and_again() {
    let program = match find_program() {
        Ok(program) => program,
        Err(why) => {
            println!("skipped: {why}");
            assert!(std::env::var("CI").is_err(), "skipped: {why}");
            return;
        }
    };
    let directory = tempfile::tempdir().unwrap();
    let verdict = run(&program, directory.path(), &Options { journal: true, ..Options::default() });
    println!("{verdict}");
    assert_eq!(verdict.wrong, Vec::<String>::new());
    assert_eq!(verdict.accepted, 2_000);
    // A kill that hits nothing proves nothing.
    assert!(verdict.kills.len() >= 10, "{verdict}");
    assert!(verdict.kills_with_live_lease() >= 7, "{verdict}");
    assert!(verdict.kills_between_post_and_settle() >= 1, "{verdict}");
    assert_eq!(verdict.journals.len(), verdict.kills.len() + 1);
    let mut steps = 0;
    for journal in &verdict.journals {
        let report = restante_sim::journal::replay(journal).unwrap();
        assert!(report.is_clean(), "{}: {report:?}", journal.display());
        steps += report.steps;
    }
    assert!(steps > 10_000, "{steps} steps were replayed");
}
