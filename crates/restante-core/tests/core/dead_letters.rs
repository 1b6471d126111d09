//! Pages of what was given up: intents first, then deliveries, each once, and nothing of a payload in any of it.

use restante_core::atoms::EntryId;
use restante_core::keys::Kind;
use restante_core::machine::{
    DeadIntentRow, DeadLetterPage, DeadLetterRow, SendRequest, dead_letter_page, dead_letter_range, inspect_range,
};
use restante_core::record::{DropReason, Unreadable};
use restante_core::{Config, atoms::SendId};
use restante_kv::{Key, Value};

use crate::bed::{Bed, DAY_MS, config, entry_id, recipient, send, send_id, status};

fn page(bed: &Bed, next: Option<Key>, limit: usize) -> DeadLetterPage {
    let page = bed.model.scan(&dead_letter_range(&bed.env, next), limit).expect("readable");
    dead_letter_page(&bed.env, &page)
}

fn many(number: u8, count: usize) -> SendRequest {
    SendRequest { recipients: (0..count).map(|n| recipient(&format!("h{n}.example/{n}"))).collect(), ..send(number, &[]) }
}

/// Two deliveries that were refused for good, and two intents that nobody expanded in time.
fn given_up() -> Bed {
    let mut bed = Bed::new(Config { expand_entries_max: 2, chunk_bytes: 150, ..config() });
    bed.accept(many(1, 6));
    bed.accept(many(2, 7));
    bed.now_ms += 7 * DAY_MS;
    bed.once(1, 1_000);
    bed.accept(send(3, &["a.example/inbox", "b.example/inbox"]));
    bed.answers.extend([status(410), status(404)]);
    bed.once(1, 10);
    bed
}

#[test]
fn what_was_given_up_is_shown_without_a_payload() {
    let bed = given_up();
    let shown = page(&bed, None, 10);
    assert_eq!((shown.intents.len(), shown.rows.len(), &shown.unreadable, &shown.next), (2, 2, &Vec::new(), &None));
    // Every field, by name: a new one has to be looked at here.
    let DeadLetterRow { id, inbox, reason, attempts, origin, expires_at } = shown.rows[0].clone();
    assert_eq!((id, &*inbox, attempts), (entry_id(3, 0), "https://a.example/inbox", 1));
    assert!(matches!(reason, DropReason::Permanent(410 | 404)));
    assert_eq!((origin, expires_at), (bed.now(), bed.now().plus_ms(7 * DAY_MS)));
    let DeadIntentRow { send, reason, expanded, total, origin, expires_at } = shown.intents[0].clone();
    assert_eq!((send, reason, expanded, total), (send_id(1), DropReason::Expired, 0, 6));
    assert_eq!(expires_at.since_ms(origin), 14 * DAY_MS);
}

#[test]
fn attempts_are_all_that_were_made_the_one_refused_for_good_included() {
    for (last, reason) in [(503, DropReason::AttemptsExhausted), (410, DropReason::Permanent(410))] {
        let mut bed = Bed::new(Config { attempts_max: 3, ..config() });
        bed.accept(send(1, &["a.example/inbox"]));
        bed.answers.extend([status(503), status(503), status(last)]);
        for _ in 0..3 {
            bed.once(1, 1);
            bed.now_ms += 5_000;
        }
        let row = page(&bed, None, 10).rows.remove(0);
        assert_eq!((bed.posts.len(), row.attempts, row.reason), (3, 3, reason));
    }
}

#[test]
fn pages_join_to_everything_and_a_cursor_of_something_else_begins_anew() {
    let bed = given_up();
    for limit in 1..5 {
        let (mut sends, mut ids, mut next) = (Vec::<SendId>::new(), Vec::<EntryId>::new(), None);
        loop {
            let page = page(&bed, next, limit);
            assert!(page.intents.len() + page.rows.len() <= limit);
            assert!(page.intents.is_empty() || ids.is_empty(), "intents come first");
            sends.extend(page.intents.iter().map(|row| row.send));
            ids.extend(page.rows.iter().map(|row| row.id));
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        assert_eq!((sends, ids), (vec![send_id(1), send_id(2)], vec![entry_id(3, 0), entry_id(3, 1)]));
    }
    let elsewhere = inspect_range(&bed.env, None).start;
    assert_eq!(dead_letter_range(&bed.env, Some(elsewhere)), dead_letter_range(&bed.env, None));
}

#[test]
fn a_trace_that_cannot_be_read_is_named_and_hides_no_other() {
    let mut bed = given_up();
    bed.tamper(bed.env.keys.dead_letter(entry_id(3, 0)), Some(Value::from(vec![9, 1])));
    bed.tamper(bed.env.keys.dead_intent(send_id(2)), Some(Value::from(vec![1])));
    let shown = page(&bed, None, 10);
    assert_eq!((shown.intents.len(), shown.rows.len()), (1, 1));
    let unreadable = vec![(EntryId::of_intent(send_id(2)), Unreadable::Corrupt), (entry_id(3, 0), Unreadable::UnknownFormat(9))];
    assert_eq!(shown.unreadable, unreadable);
}

#[test]
fn what_is_forgotten_is_not_shown_any_more() {
    let mut bed = given_up();
    bed.now_ms += 8 * DAY_MS;
    bed.once(2, 1_000);
    assert!(bed.all(Kind::DeadLetter).is_empty() && bed.all(Kind::DeadIntent).is_empty());
    let shown = page(&bed, None, 10);
    assert!(shown.intents.is_empty() && shown.rows.is_empty());
}
