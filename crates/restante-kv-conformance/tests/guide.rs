//! `docs/adapter-guide.md` lists the checks as the code has them. With `RESTANTE_UPDATE_GUIDE` set, it is written anew.

use std::fmt::Write as _;
use std::path::Path;

use restante_kv_conformance::Check;

const BEGIN: &str = "<!-- checks: begin -->\n";
const END: &str = "<!-- checks: end -->\n";

fn table() -> String {
    let mut table = "| check | tier | sentence | protects |\n|---|---|---|---|\n".to_owned();
    for check in Check::all() {
        writeln!(table, "| `{}` | {} | {} | {} |", check.name, check.tier, check.sentence, check.protects)
            .expect("a string takes it");
    }
    table
}

#[test]
fn the_guide_lists_the_checks_as_they_are() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/adapter-guide.md");
    let page = std::fs::read_to_string(&path).expect("the guide can be read");
    let (before, rest) = page.split_once(BEGIN).expect("a place for the table");
    let (found, after) = rest.split_once(END).expect("the end of the table");
    if std::env::var_os("RESTANTE_UPDATE_GUIDE").is_some() {
        std::fs::write(&path, [before, BEGIN, &table(), END, after].concat()).expect("the guide can be written");
        return;
    }
    assert!(found == table(), "docs/adapter-guide.md is out of date: run this test again with RESTANTE_UPDATE_GUIDE=1");
}
