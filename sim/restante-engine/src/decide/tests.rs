//! The laws of decisions, and golden values: what a seed means may never differ between machines or versions.

use std::fmt::Write;

use proptest::prelude::*;

use super::{key, score, *};

const OUTCOME: [Alternative; 4] = [
    Alternative::new("committed", 900),
    Alternative::new("conflict", 60),
    Alternative::new("unavailable", 30),
    Alternative::new("ambiguous", 10),
];
const NAMES: [&str; 12] = [
    "arrives",
    "lost",
    "late",
    "twice",
    "reset",
    "refused",
    "slow",
    "committed",
    "conflict",
    "unavailable",
    "ambiguous-committed",
    "a name that is longer than two lanes of the hash",
];

fn choose(seed: u64, key: u64, alternatives: &[Alternative]) -> &'static str {
    alternatives[Decider::new(seed).choose("site", format_args!("key {key}"), alternatives)].name
}

fn alternatives() -> impl Strategy<Value = Vec<Alternative>> {
    let weight = prop_oneof![Just(0_u32), 1..10_u32, 1..1_000_u32, any::<u32>()];
    let named = |weights: Vec<u32>| weights.into_iter().zip(NAMES).map(|(weight, name)| Alternative { name, weight }).collect();
    proptest::collection::vec(weight, 1..NAMES.len()).prop_map(named)
}

fn entry(site: &str, key: &str, choice: &str) -> TapeEntry {
    TapeEntry { site: site.into(), key: key.into(), choice: choice.into() }
}

#[test]
fn golden() {
    let mut text = String::new();
    for seed in [0, 1, u64::MAX] {
        let mut decider = Decider::new(seed);
        for attempt in 0..4 {
            let outcome = OUTCOME[decider.choose("kv.commit", format_args!("claim A3, attempt {attempt}"), &OUTCOME)].name;
            let range = Quantity::uniform(1_000, 20_000, 100).with_tail(100, 90_000);
            let latency_us = decider.quantity("net.latency", format_args!("send A3 -> host b, attempt {attempt}"), range);
            let bits = decider.draw("entropy", format_args!("worker-2, draw {attempt}"));
            let tie = decider.tie(format_args!("worker-2, event {attempt}"));
            writeln!(text, "{seed:x} {attempt}: {outcome} {latency_us} {bits:016x} {tie:016x}").unwrap();
        }
    }
    assert_eq!(text, include_str!("golden.txt"));
}

#[test]
fn golden_ids() {
    let long = "0123456789".repeat(20);
    let ids = ["", "A3 -> b", "send A3 -> host b, attempt 2, by worker-2", &long]
        .map(|key| format!("{:016x}", key::decision_id("net.send", format_args!("{key}"))));
    assert_eq!(ids, ["8be04c596c8ab6dc", "a4582aa7ff2c30f1", "d01dc2a533367e8a", "d8bbc3334fbc394c"]);
}

proptest! {
    #[test]
    fn a_new_alternative_changes_only_the_draws_it_wins(
        seed in any::<u64>(), all in alternatives(), place in any::<prop::sample::Index>(), key in 0..1_000_u64,
    ) {
        let mut before = all.clone();
        let new = before.remove(place.index(all.len()));
        prop_assume!(before.iter().any(|alternative| alternative.weight > 0));
        let (old_answer, new_answer) = (choose(seed, key, &before), choose(seed, key, &all));
        prop_assert!(new_answer == old_answer || new_answer == new.name);
    }

    #[test]
    fn the_order_of_alternatives_does_not_matter(
        seed in any::<u64>(), all in alternatives().prop_shuffle(), key in any::<u64>(),
    ) {
        let mut sorted = all.clone();
        sorted.sort_by_key(|alternative| alternative.name);
        prop_assume!(all.iter().any(|alternative| alternative.weight > 0));
        prop_assert_eq!(choose(seed, key, &all), choose(seed, key, &sorted));
    }

    #[test]
    fn weight_0_never_wins(seed in any::<u64>(), all in alternatives(), key in any::<u64>()) {
        prop_assume!(all.iter().any(|alternative| alternative.weight > 0));
        let index = Decider::new(seed).choose("site", format_args!("{key}"), &all);
        prop_assert!(all[index].weight > 0);
    }

    #[test]
    fn raising_a_weight_never_loses_a_draw(
        seed in any::<u64>(), all in alternatives(), place in any::<prop::sample::Index>(), key in any::<u64>(),
    ) {
        let name = choose(seed, key, &all);
        let mut raised = all.clone();
        let place = place.index(all.len());
        raised[place].weight = raised[place].weight.saturating_mul(3);
        let now = choose(seed, key, &raised);
        prop_assert!(now == name || now == raised[place].name);
    }

    #[test]
    fn answers_do_not_depend_on_what_was_asked_before(seed in any::<u64>(), keys in proptest::collection::vec(0..50_u32, 1..40)) {
        let mut busy = Decider::new(seed).recording();
        for key in keys {
            let mut fresh = Decider::new(seed);
            let range = Quantity::uniform(0, 1 << 40, 1);
            prop_assert_eq!(
                busy.choose("a", format_args!("{key}"), &OUTCOME), fresh.choose("a", format_args!("{key}"), &OUTCOME)
            );
            prop_assert_eq!(busy.quantity("b", format_args!("{key}"), range), fresh.quantity("b", format_args!("{key}"), range));
            prop_assert_eq!(busy.draw("c", format_args!("{key}")), fresh.draw("c", format_args!("{key}")));
            prop_assert_eq!(busy.tie(format_args!("{key}")), fresh.tie(format_args!("{key}")));
        }
    }

    #[test]
    fn a_key_is_its_text_however_it_is_cut(pieces in proptest::collection::vec(".{0,70}", 0..6)) {
        let whole = pieces.concat();
        let [a, b, c, d, e] = std::array::from_fn(|index| pieces.get(index).map_or("", String::as_str));
        let id = key::decision_id("site", format_args!("{a}{b}{c}{d}{e}"));
        prop_assert_eq!(id, key::decision_id("site", format_args!("{whole}")));
        prop_assert_eq!(id, key::name_hash(&format!("site\u{1f}{whole}")));
    }

    #[test]
    fn a_record_survives_as_text(keys in proptest::collection::vec(any::<u32>(), 0..30)) {
        let mut decider = Decider::new(3).recording();
        for key in &keys {
            decider.draw("site", format_args!("{key}"));
        }
        let record = decider.log().record();
        let json = serde_json::to_string(&record).unwrap();
        prop_assert_eq!(&json, &format!("\"{record}\""));
        prop_assert_eq!(&serde_json::from_str::<DecisionRecord>(&json).unwrap(), &record);
        prop_assert!(decider.log().compare(&record).is_exact());
    }
}

/// Whether `count` of `total` is within five standard deviations of `per_million`.
fn is_near(count: u64, total: u64, per_million: u64) -> bool {
    let expected = total as f64 * per_million as f64 / 1e6;
    let deviation = (expected * (1.0 - per_million as f64 / 1e6)).sqrt();
    (count as f64 - expected).abs() <= 5.0 * deviation
}

#[test]
fn frequencies_match_the_weights() {
    let sets: [&[(&'static str, u32)]; 4] = [
        &[("arrives", 98), ("lost", 2)],
        &[("committed", 900), ("conflict", 60), ("unavailable", 30), ("ambiguous", 10)],
        &[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1), ("f", 0)],
        &[("always", 4_000_000_000), ("nearly never", 400_000)],
    ];
    for set in sets {
        let all: Vec<_> = set.iter().map(|(name, weight)| Alternative::new(name, *weight)).collect();
        let sum: u64 = set.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let mut decider = Decider::new(11);
        let mut counts = vec![0_u64; set.len()];
        let total = 20_000;
        for key in 0..total {
            counts[decider.choose("site", format_args!("{key}"), &all)] += 1;
        }
        for ((name, weight), count) in set.iter().zip(counts) {
            assert!(is_near(count, total, u64::from(*weight) * 1_000_000 / sum), "{name}: {count} of {total}");
        }
    }
}

#[test]
fn sites_seeds_and_keys_are_independent() {
    const COIN: [Alternative; 2] = [Alternative::new("heads", 1), Alternative::new("tails", 1)];
    let (mut one, mut two, total) = (Decider::new(1), Decider::new(2), 20_000);
    let mut equal = [0_u64; 4];
    for key in 0..total {
        let here = one.choose("a", format_args!("{key}"), &COIN);
        equal[0] += u64::from(here == one.choose("b", format_args!("{key}"), &COIN));
        equal[1] += u64::from(here == two.choose("a", format_args!("{key}"), &COIN));
        equal[2] += u64::from(here == one.choose("a", format_args!("{}", key + 1), &COIN));
        equal[3] += u64::from(here == (one.draw("a", format_args!("{key}")) >> 63) as usize);
    }
    for count in equal {
        assert!(is_near(count, total, 500_000), "{equal:?}");
    }
}

#[test]
fn quantities_are_uniform_on_their_grid_and_the_tail_is_as_heavy_as_asked() {
    let range = Quantity::uniform(1_000, 1_900, 100).with_tail(50, 5_000);
    let (mut decider, total) = (Decider::new(5), 20_000);
    let mut counts = BTreeMap::<u64, u64>::new();
    for key in 0..total {
        *counts.entry(decider.quantity("latency", format_args!("{key}"), range)).or_default() += 1;
    }
    for (value, count) in &counts {
        let per_million = if *value <= 1_900 { 95_000 } else { 50_000 / 31 };
        assert!(is_near(*count, total, per_million), "{value}: {count}");
    }
    assert_eq!(counts.len(), 41);
}

#[test]
fn logarithms_are_exact_enough() {
    let mut u = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..200_000_u32 {
        u = avalanche(u.wrapping_add(u64::from(round)));
        let u = u >> (round % 64);
        let exact = 64.0 - (u.max(1) as f64).log2();
        let ours = score::minus_log2(u) as f64 / 2_f64.powi(57);
        assert!((exact - ours).abs() < 2e-12, "{u}: {exact} {ours}");
    }
    assert_eq!(score::minus_log2(0), 64 << 57);
    assert_eq!(score::minus_log2(1 << 63), 1 << 57);
    // Near 2^64, where rare alternatives are decided, it is the relative error that counts.
    for shift in 20..34 {
        let exact = 2_f64.powi(-shift) * std::f64::consts::LOG2_E;
        let ours = score::minus_log2(u64::MAX - (u64::MAX >> shift)) as f64 / 2_f64.powi(57);
        assert!((ours / exact - 1.0).abs() < 1e-4, "2^-{shift}: {exact} {ours}");
    }
}

#[test]
fn a_tape_overrides_by_name_and_reports_what_does_not_fit() {
    let tape = Tape::from(vec![
        entry("kv.commit", "claim A1", "ambiguous"),
        entry("kv.commit", "claim A2", "renamed since"),
        entry("kv.commit", "claim A9", "conflict"),
        entry("net.latency", "A1", "1234"),
        entry("net.latency", "A2", "999999"),
        entry("entropy", "A1", "18446744073709551615"),
        entry("entropy", "A2", "many"),
    ]);
    let json = serde_json::to_string(&tape).unwrap();
    assert_eq!(serde_json::from_str::<Tape>(&json).unwrap(), tape);
    assert!(serde_json::from_str::<Tape>(r#"[{"site":"a","key":"b","choice":"c","more":1}]"#).is_err());

    let (mut taped, mut plain) = (Decider::with_tape(1, &tape), Decider::new(1));
    let range = Quantity::uniform(1_000, 20_000, 100);
    assert_eq!(taped.choose("kv.commit", format_args!("claim A{}", 1), &OUTCOME), 3);
    assert_eq!(taped.quantity("net.latency", format_args!("A1"), range), 1_234);
    assert_eq!(taped.draw("entropy", format_args!("A1")), u64::MAX);
    for decider in [&mut taped, &mut plain] {
        decider.choose("kv.commit", format_args!("claim A2"), &OUTCOME);
    }
    assert_eq!(
        taped.quantity("net.latency", format_args!("A2"), range),
        plain.quantity("net.latency", format_args!("A2"), range)
    );
    assert_eq!(taped.draw("entropy", format_args!("A2")), plain.draw("entropy", format_args!("A2")));
    let (entries, log) = (&tape.entries, taped.log());
    assert_eq!(log.unused_overrides(), [&entries[2]]);
    assert_eq!(log.unknown_overrides(), [&entries[1], &entries[4], &entries[6]]);
}

#[test]
fn of_two_overrides_of_one_decision_the_later_counts() {
    let tape = Tape::from(vec![entry("site", "key", "conflict"), entry("site", "key", "ambiguous")]);
    let mut decider = Decider::with_tape(1, &tape);
    assert_eq!(decider.choose("site", format_args!("key"), &OUTCOME), 3);
    assert_eq!(decider.log().unused_overrides(), [&tape.entries[0]]);
}

#[test]
fn a_fault_asked_for_twice_is_on_the_tape_once() {
    let tape = Tape::from(vec![entry("site", "key", "ambiguous")]);
    let mut decider = Decider::with_tape(1, &tape).recording();
    for _ in 0..2 {
        decider.choose("site", format_args!("key"), &OUTCOME);
    }
    assert_eq!((decider.log().fired(), decider.log().len()), (&tape.entries[..], 2));
}

#[test]
fn a_log_as_a_tape_answers_everything_alike() {
    let ask = |decider: &mut Decider| {
        let choice = decider.choose("site", format_args!("key"), &OUTCOME) as u64;
        let latency = decider.quantity("latency", format_args!("key"), Quantity::uniform(1, 900, 1));
        [choice, latency, decider.draw("bits", format_args!(""))]
    };
    let mut decider = Decider::new(5).recording();
    let first = ask(&mut decider);
    let entries: Vec<_> = decider.log().entries().collect();
    assert_eq!(entries[1], entry("latency", "key", &first[1].to_string()));
    assert_eq!(entries.iter().map(|entry| entry.site.as_str()).collect::<Vec<_>>(), ["site", "latency", "bits"]);
    assert_eq!(ask(&mut Decider::with_tape(6, &Tape::from(entries))), first);
}

#[test]
fn a_tape_may_choose_what_has_weight_0() {
    let all = [Alternative::new("benign", 1), Alternative::new("never", 0)];
    let mut decider = Decider::with_tape(1, &Tape::from(vec![entry("site", "key", "never")]));
    assert_eq!(decider.choose("site", format_args!("key"), &all), 1);
    assert_eq!(decider.choose("site", format_args!("other"), &all), 0);
}

#[test]
fn replaying_what_fired_on_a_benign_seed_answers_alike() {
    let mut decider = Decider::new(21).recording();
    let first: Vec<_> = (0..200).map(|key| decider.choose("site", format_args!("{key}"), &OUTCOME)).collect();
    let tape = Tape::from(decider.log().fired().to_vec());
    assert!(!tape.is_empty() && tape.len() < 50);
    let benign = OUTCOME.map(|alternative| Alternative { weight: u32::from(alternative.name == "committed"), ..alternative });
    let mut replay = Decider::with_tape(22, &tape);
    let second: Vec<_> = (0..200).map(|key| replay.choose("site", format_args!("{key}"), &benign)).collect();
    assert_eq!(first, second);
    assert!(replay.log().unused_overrides().is_empty());
    let count = decider.counts()["site"];
    assert_eq!((count.made, count.fired), (200, tape.len() as u64));
}

#[test]
fn records_compare_by_key_whatever_the_order() {
    let run = |keys: &[u32], alternatives: &[Alternative]| {
        let mut decider = Decider::new(4).recording();
        for key in keys {
            decider.choose("kv.commit", format_args!("claim A{key}"), alternatives);
            decider.quantity("latency", format_args!("claim A{key}"), Quantity::uniform(0, 9_000, 1));
        }
        decider.log().clone()
    };
    let old = run(&[1, 2, 3, 4], &OUTCOME).record();
    assert!(run(&[1, 2, 3, 4], &OUTCOME).compare(&old).is_exact());
    let swapped = run(&[2, 1, 4, 3], &OUTCOME).compare(&old);
    assert_eq!((swapped.matched, swapped.first_difference), (8, None));
    let extra = run(&[1, 2, 5, 3, 4], &OUTCOME).compare(&old);
    assert_eq!((extra.matched, extra.recorded, extra.made), (8, 8, 10));
    assert_eq!(extra.first_difference.as_deref(), Some("kv.commit | claim A5: not recorded -> committed"));
    let missing = run(&[1, 4], &OUTCOME).compare(&old);
    assert_eq!(missing.to_string(), "4 of 8 decisions matched (4 made)");

    let mut decider = Decider::with_tape(4, &Tape::from(vec![entry("kv.commit", "claim A2", "ambiguous")])).recording();
    decider.choose("kv.commit", format_args!("claim A1"), &OUTCOME);
    decider.choose("kv.commit", format_args!("claim A2"), &OUTCOME);
    let differs = decider.log().compare(&old);
    assert_eq!(differs.first_difference.as_deref(), Some("kv.commit | claim A2: committed -> ambiguous"));
    let renamed = run(&[1, 2, 3, 4], &[Alternative::new("done", 1)]).compare(&old);
    assert_eq!(
        renamed.to_string(),
        "4 of 8 decisions matched, first difference: kv.commit | claim A1: an alternative of that time -> done"
    );
}

#[test]
fn a_text_that_is_no_record_is_refused() {
    assert!(matches!("!".parse::<DecisionRecord>(), Err(RecordError::Base64(_))));
    assert_eq!("AAAA".parse::<DecisionRecord>(), Err(RecordError::Length(3)));
    assert!("".parse::<DecisionRecord>().unwrap().is_empty());
}

#[test]
#[should_panic(expected = "kv.commit has no alternatives")]
fn no_alternatives_is_a_mistake() {
    Decider::new(0).choose("kv.commit", format_args!("claim"), &[]);
}
