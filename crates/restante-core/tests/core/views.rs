//! Views that never were: of every record some version that a real store once held, put together at random.
//!
//! A store answers a read from one point in time, but a commit comes later; between the two, everything that the plan does not
//! check may have changed. So whatever mixture of versions a plan was made from, it commits exactly if all its checks hold, and
//! then the store is as sound as it was.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use restante_core::keys::Kind;
use restante_core::{Command, Env, Plan, Stop, View};
use restante_kv::{Expect, Key, Limits, StoreError, Value, Version, Versioned, check_strict};

use crate::bed::Bed;
use crate::books::{Books, Flaw};
use crate::picks::{Dice, Scene};
use crate::program::{Owners, Step, perform, step};

/// How many views, if nobody says otherwise.
const VIEWS: u64 = 10_000;
const VIEWS_A_MOMENT: u64 = 20;

/// What became of the views.
#[derive(Default, Debug)]
struct Answers {
    plan: u64,
    need: u64,
    reject: u64,
    inconsistent: u64,
    /// Plans with writes whose checks hold.
    committed: u64,
    /// Of these, plans that had seen something old all the same.
    committed_from_a_mixture: u64,
    /// Of these, plans that had trusted something old which no real snapshot shows beside what they check.
    misled: u64,
    conflicted: u64,
    /// Committed plans of each command.
    by_command: BTreeMap<&'static str, u64>,
}

impl Answers {
    fn total(&self) -> u64 {
        self.plan + self.need + self.reject + self.inconsistent
    }
}

/// A record for `key`: mostly what is there, or what was there, or nothing, or something else altogether.
fn pick(scene: &Scene<'_>, dice: &mut Dice, key: &Key, current_percent: u64) -> Option<Versioned> {
    let bed = scene.bed;
    let current = bed.model.get(key).cloned();
    // Records that are read without a check, at least by some command: old ones do not stand in the way of a commit.
    let unchecked = [Kind::LaneSlot, Kind::IntentSlot, Kind::Stage, Kind::Destination, Kind::DueRow, Kind::Pointer];
    let is_unchecked = bed.env.keys.kind_of(key).is_some_and(|kind| unchecked.contains(&kind));
    if dice.chance(if is_unchecked { current_percent.min(70) } else { current_percent }) {
        return current;
    }
    let versions = bed.history.get(key).map_or(&[][..], Vec::as_slice);
    // Bytes that no store holds here come under a version that none gives.
    let version = Version::from_raw(u128::MAX - u128::from(dice.number()));
    match dice.below(20) {
        0..=11 => dice.one(versions).cloned().flatten(),
        12..=15 => None,
        16 => {
            let others: Vec<&Versioned> = bed.model.iter().map(|(_, found)| found).collect();
            dice.one(&others).map(|found| Versioned { version, value: found.value.clone() })
        }
        way => {
            let mut bytes = current.or_else(|| versions.iter().flatten().next().cloned())?.value.as_bytes().to_vec();
            match way {
                _ if bytes.is_empty() => {}
                17 => bytes.truncate(dice.below(bytes.len())),
                18 => bytes[0] = dice.number() as u8,
                _ => {
                    let at = dice.below(bytes.len());
                    bytes[at] = dice.number() as u8;
                }
            }
            Some(Versioned { version, value: Value::from(bytes) })
        }
    }
}

/// Answers whatever the command asks for, until it has an answer, or now and then not all of it.
fn answer(command: &Command, scene: &Scene<'_>, dice: &mut Dice, view: &mut View) -> Result<Plan, Stop> {
    let attempted = dice.chance(20);
    let current_percent = if dice.chance(60) { 97 } else { 60 };
    for _ in 0..8 {
        let answer = command.plan(&scene.bed.env, view, attempted);
        let Err(Stop::Need(keys)) = answer else { return answer };
        assert!(!keys.is_empty());
        for key in &keys {
            assert!(view.records.iter().all(|(known, _)| known != key), "asked twice");
            view.records.push((key.clone(), pick(scene, dice, key, current_percent)));
        }
        assert!(view.records.len() <= Limits::FLOOR.get_keys_max, "more keys than a snapshot takes");
        if dice.chance(2) {
            let withheld = dice.below(view.records.len());
            view.records.remove(withheld);
            return command.plan(&scene.bed.env, view, attempted);
        }
    }
    panic!("it asks for ever");
}

/// What of the view is not what the store holds.
fn outdated<'v>(bed: &Bed, view: &'v View) -> impl Iterator<Item = &'v Key> {
    view.records.iter().filter(|(key, found)| bed.model.get(key) != found.as_ref()).map(|(key, _)| key)
}

/// Whether a plan relied on a record that it does not check and that was not the current one beside what it does check: the
/// next place of a lane or a FIFO that it checks, or a stage or an intent that is gone once the chunk it checks is there.
fn is_misled(env: &Env, unchecked: &[&Key]) -> bool {
    unchecked.iter().any(|key| match env.keys.kind_of(key) {
        Some(Kind::LaneSlot | Kind::IntentSlot | Kind::Stage | Kind::Intent) => true,
        Some(Kind::Quarantined) => env.keys.read_entry(Kind::Quarantined, key).is_ok_and(|id| id.is_intent()),
        _ => false,
    })
}

fn assert_holds_or_conflicts(
    command: &Command,
    scene: &Scene<'_>,
    view: &View,
    plan: &Plan,
    before: &(Books<'_>, BTreeSet<Flaw>),
    answers: &mut Answers,
) {
    let (bed, txn) = (scene.bed, &plan.txn);
    assert_eq!(check_strict(txn), Ok(()));
    if txn.writes.is_empty() {
        assert!(txn.checks.is_empty(), "there is nothing to commit, and yet something to check");
        return;
    }
    assert_eq!(Limits::FLOOR.check_txn(txn), Ok(()));
    let holds = txn.checks.iter().all(|check| match check.expect {
        Expect::Absent => bed.model.get(&check.key).is_none(),
        Expect::Version(version) => bed.model.get(&check.key).is_some_and(|found| found.version == version),
    });
    for check in &txn.checks {
        assert!(view.records.iter().any(|(key, _)| *key == check.key), "it checks what it has not read");
    }
    let mut after = bed.model.clone();
    let committed = after.commit(txn);
    if !holds {
        assert!(matches!(committed, Err(StoreError::Conflict { .. })), "{committed:?}");
        answers.conflicted += 1;
        return;
    }
    assert!(committed.is_ok(), "{committed:?}");
    answers.committed += 1;
    *answers.by_command.entry(command.name()).or_default() += 1;
    let unchecked: Vec<&Key> = outdated(bed, view).collect();
    assert!(
        unchecked.iter().all(|key| txn.checks.iter().all(|check| check.key != **key)),
        "what it checks is what the store holds"
    );
    answers.committed_from_a_mixture += u64::from(!unchecked.is_empty());
    // What a notice says of a destination makes it looked at again at the snapshot's time: one from the future, too late.
    let is_ahead = matches!(command, Command::SetHold(_)) && view.at > bed.now();
    if is_ahead || is_misled(&bed.env, &unchecked) {
        answers.misled += 1;
        return;
    }
    let books = Books::read(&bed.env, &after);
    // A plan from a snapshot of the future makes what it makes for then.
    let flaws = books.flaws(bed.now().max(view.at), &scene.once_unreadable);
    let new: Vec<&Flaw> = flaws.difference(&before.1).collect();
    assert!(new.is_empty(), "it breaks {new:?}");
    books.assert_follows(&before.0, command.name());
}

/// Says what was looked at when an assertion fails.
struct Shown<'v>(&'v Command, &'v View);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(command, view) = self;
            eprintln!("{command:#?}\nat {:?}", view.at);
            view.records.iter().for_each(|record| eprintln!("{record:?}"));
        }
    }
}

/// Makes views of one moment of a store, and sees what comes of them.
fn look(bed: &Bed, dice: &mut Dice, answers: &mut Answers) {
    let scene = Scene::of(bed);
    let books = Books::read(&bed.env, &bed.model);
    let flaws = books.flaws(bed.now(), &scene.once_unreadable);
    let before = (books, flaws);
    for _ in 0..VIEWS_A_MOMENT {
        let command = scene.command(dice);
        let mut view = View { at: scene.instant(dice), records: Vec::new() };
        match answer(&command, &scene, dice, &mut view) {
            Ok(plan) => {
                let _shown = Shown(&command, &view);
                answers.plan += 1;
                assert_holds_or_conflicts(&command, &scene, &view, &plan, &before, answers);
            }
            Err(Stop::Need(_)) => answers.need += 1,
            Err(Stop::Reject(_)) => answers.reject += 1,
            Err(Stop::Inconsistent { .. }) => answers.inconsistent += 1,
        }
    }
}

/// Sends and lets workers die over it, so that there is something to look at: programs are good at bringing all to an end.
fn fill(bed: &mut Bed, dice: &mut Dice, sent: &mut u8, owners: &mut Owners) {
    for _ in 0..dice.below(6) {
        let answers = (0..4).map(|_| dice.below(6) as u8).collect();
        let step = match dice.below(7) {
            0..=2 => {
                let hosts = (0..1 + dice.below(6)).map(|_| dice.below(3) as u8).collect();
                Step::Send { hosts, keyed: dice.chance(60), large: dice.chance(40) }
            }
            3 => Step::MakeUnknown(dice.below(1 + usize::from(*sent)) as u8),
            4 => Step::Wait(61_000),
            _ => Step::Die { actions: dice.below(30), answers },
        };
        perform(bed, step, sent, owners);
    }
}

/// Makes some record one of another version or a damaged one; returns what it was.
fn damage(bed: &mut Bed, dice: &mut Dice) -> Option<(Key, Value)> {
    let records: Vec<(Key, Value)> = bed.model.iter().map(|(key, found)| (key.clone(), found.value.clone())).collect();
    let (key, value) = dice.one(&records)?.clone();
    let mut bytes = value.as_bytes().to_vec();
    match bytes.first_mut() {
        Some(format) if dice.chance(50) => *format = 9,
        _ => bytes.truncate(bytes.len() / 2),
    }
    bed.tamper(key.clone(), Some(Value::from(bytes)));
    Some((key, value))
}

/// A program's steps, the same for the same number.
fn program(number: u64) -> Vec<Step> {
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    prop::collection::vec(step(), 8..40).new_tree(&mut runner).expect("steps").current()
}

#[test]
fn plans_from_mixed_versions_conflict_or_keep_the_store_sound() {
    let wanted = std::env::var("RESTANTE_FUZZ_VIEWS").map_or(VIEWS, |views| views.parse().expect("a number of views"));
    let mut answers = Answers::default();
    for number in 0.. {
        if answers.total() >= wanted {
            break;
        }
        let mut dice = Dice::new(number);
        let mut bed = Bed::new(crate::program::crowded());
        let (mut sent, mut owners) = (0, Owners::default());
        for (place, step) in program(number).into_iter().enumerate() {
            perform(&mut bed, step, &mut sent, &mut owners);
            if place % 4 == 3 {
                fill(&mut bed, &mut dice, &mut sent, &mut owners);
                let damaged = dice.chance(20).then(|| damage(&mut bed, &mut dice)).flatten();
                look(&bed, &mut dice, &mut answers);
                if let Some((key, value)) = damaged {
                    bed.tamper(key, Some(value));
                }
            }
        }
    }
    println!("{answers:?}");
    assert!(answers.plan * 10 >= answers.total() * 3, "less than 30 % of the views led to a plan: {answers:?}");
    assert!(answers.committed > 0 && answers.conflicted > 0 && answers.committed_from_a_mixture > 0, "{answers:?}");
}
