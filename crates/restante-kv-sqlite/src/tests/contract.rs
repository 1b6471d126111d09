//! The sentences of the contract, with groups, without groups, and with one reader.

use restante_kv::{AtomicKv, KeyRange};
use restante_kv_conformance::{OpenError, Subject, Suite, block_on};

use super::{Temp, assert_sound, commit, key, path_in, put};
use crate::{Builder, SqliteKv};

fn suite(name: &str, options: fn(Builder) -> Builder) -> Suite {
    Suite::new(name, move || {
        let directory = tempfile::tempdir().map_err(OpenError::new)?;
        let open = move || options(SqliteKv::builder(path_in(&directory))).open();
        Ok::<_, OpenError>(Subject::new(open))
    })
}

#[test]
fn store_meets_the_contract() {
    suite("sqlite", |builder| builder).run().assert_passed();
}

#[test]
fn store_without_groups_and_with_one_reader_meets_the_contract() {
    suite("sqlite, one by one", |builder| builder.group_max(1).readers(1)).run().assert_passed();
}

#[test]
fn options_of_0_mean_1() {
    let temp = Temp::with(|builder| builder.group_max(0).readers(0));
    commit(&temp, &[], &[put("k", "v")]).unwrap();
    assert!(super::get(&temp, "k").is_some());
}

#[test]
fn a_page_of_large_values_is_short_and_goes_on() {
    let temp = Temp::new();
    let size = temp.limits().value_bytes_max;
    for i in 0..6 {
        commit(&temp, &[], &[put(&format!("k{i}"), vec![i; size])]).unwrap();
    }
    let all = KeyRange::prefix(b"k");
    let first = block_on(temp.scan(all.clone(), 100)).unwrap();
    assert!(first.entries.len() < 6, "{} values of {size} bytes in one page", first.entries.len());
    assert_eq!(first.next, Some(key(format!("k{}", first.entries.len()))));
    let rest = block_on(temp.scan(KeyRange { start: first.next.unwrap(), ..all }, 100)).unwrap();
    assert_eq!((first.entries.len() + rest.entries.len(), rest.next), (6, None));
    assert_sound(&temp.path());
}
