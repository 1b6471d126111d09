//! What an operator asks of a backlog, for the command line and the HTTP API alike.

use std::future::Future;
use std::time::{SystemTime, UNIX_EPOCH};

use restante_core::Rejection;
use restante_core::keys::Kind;
use restante_core::machine::{
    DeadLetterPage, DestinationPage, DestinationRow, Failure, InspectPage, InspectRow, QuarantinePage, QuarantineRow, RunReport,
    dead_letter_range, row_of_destination,
};
use restante_core::plan::NAME_BYTES_MAX;
use restante_core::record::{Destination, Intake, Record as _};
use restante_driver::{Backlog, RunOutcome};
use restante_kv::{Check, Expect, Guard, Mutation, StoreError, StoreTime, Txn, Write};
use url::{Host, Origin, Url};

use crate::fault::{Code, Fault};
use crate::views::{Destinations, instant, read_cursor, read_entry_id};

/// Entries of a page unless another number is asked for.
pub(crate) const PAGE_DEFAULT: usize = 100;
/// Most entries of a page.
pub(crate) const PAGE_MAX: usize = 1_000;
/// Entries that one page looks through for a destination.
const LOOKED_THROUGH_MAX: usize = 20_000;
/// Most deliveries of one bounded run over HTTP.
pub(crate) const RUN_MAX: u64 = 10_000;

/// Whether the store answers.
pub(crate) async fn ping(backlog: &Backlog) -> Result<(), Fault> {
    backlog.store().get_many(vec![backlog.env().keys.intake()]).await?;
    Ok(())
}

/// One page, and what is known of its entries' destinations; with `destination`, of what goes there. A rare one is looked for among [`LOOKED_THROUGH_MAX`] entries, so that no
/// question takes for ever: its page may be short, or empty, and not be the last.
pub(crate) async fn inspect(
    backlog: &Backlog,
    cursor: Option<&str>,
    limit: usize,
    destination: Option<&str>,
) -> Result<(InspectPage, Destinations), Fault> {
    let page = entries(backlog, cursor, limit, destination).await?;
    let destinations = backlog.destinations_of(&page.rows).await?;
    Ok((page, destinations))
}

async fn entries(backlog: &Backlog, cursor: Option<&str>, limit: usize, destination: Option<&str>) -> Result<InspectPage, Fault> {
    let mut next = cursor.map(|cursor| read_cursor(&backlog.env().keys.all(Kind::Entry), cursor)).transpose()?;
    let Some(destination) = destination else { return Ok(backlog.inspect(next, limit).await?) };
    let mut found = InspectPage { rows: Vec::new(), unreadable: Vec::new(), next: None };
    for _ in 0..LOOKED_THROUGH_MAX / PAGE_MAX {
        let page = backlog.inspect(next, PAGE_MAX).await?;
        found.rows.extend(page.rows.into_iter().filter(|row| goes_to(row, destination)));
        found.unreadable.extend(page.unreadable);
        next = page.next;
        if found.rows.len() > limit || next.is_none() {
            break;
        }
    }
    if let Some(id) = found.rows.get(limit).map(|row| row.id) {
        found.rows.truncate(limit);
        found.unreadable.retain(|(unreadable, _)| *unreadable < id);
        next = Some(backlog.env().keys.entry(id));
    }
    Ok(InspectPage { next, ..found })
}

/// Whether the inbox lies at a destination, given as `https://host` or as the host alone.
fn goes_to(row: &InspectRow, destination: &str) -> bool {
    let of_inbox = Url::parse(&row.inbox).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
    of_inbox == destination || of_inbox.split_once("://").is_some_and(|(_, host)| host == destination)
}

/// One entry, and what is known of its destination.
pub(crate) async fn entry(backlog: &Backlog, id: &str) -> Result<(InspectRow, Destinations), Fault> {
    let unknown = || Fault::unknown_id(id);
    let asked = read_entry_id(id).ok_or_else(unknown)?;
    let page = backlog.inspect(Some(backlog.env().keys.entry(asked)), 1).await?;
    if let Some((_, why)) = page.unreadable.iter().find(|(id, _)| *id == asked) {
        let what_to_do = "use the version that wrote it, or run `restante doctor`";
        return Err(Fault::new(Code::RecordUnreadable, format!("entry {asked} cannot be read: {why}"), what_to_do));
    }
    let row = page.rows.into_iter().find(|row| row.id == asked).ok_or_else(unknown)?;
    let destinations = backlog.destinations_of(std::slice::from_ref(&row)).await?;
    Ok((row, destinations))
}

/// Delivers what is due, once, by `run`. A run over a store that takes no commit says only that there is more; here it is a fault.
pub(crate) async fn run_once(
    backlog: &Backlog,
    run: impl Future<Output = Result<RunOutcome, Fault>>,
) -> Result<RunReport, Fault> {
    ping(backlog).await?;
    let RunOutcome { report, refused } = run.await?;
    if report.processed == 0 && report.more {
        takes_commits(backlog).await?;
        // It takes little ones, then, and not those that the run needs.
        if let Some(refused) = refused {
            return Err(unconfirmed(&refused.to_string()));
        }
    }
    Ok(report)
}

/// Whether the store takes commits, by one that writes what is there already: what only checks never reaches the disk.
async fn takes_commits(backlog: &Backlog) -> Result<(), Fault> {
    let (store, key) = (backlog.store(), backlog.env().keys.intake());
    let found = store.get_many(vec![key.clone()]).await?.values.pop().flatten();
    let expect = found.as_ref().map_or(Expect::Absent, |found| Expect::Version(found.version));
    // No record means open, in its first epoch.
    let value = found.map_or_else(|| Intake { open: true, epoch: 0 }.encode(), |found| found.value);
    let writes = vec![Write { key: key.clone(), mutation: Mutation::Put(value), guard: Guard::Checked }];
    match store.cas_many(Txn { checks: vec![Check { key, expect }], writes }).await {
        // Whoever made it conflict has committed.
        Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(StoreError::Ambiguous(why)) => Err(unconfirmed(&why)),
        Err(error) => Err(error.into()),
    }
}

fn unconfirmed(why: &str) -> Fault {
    let message = format!("the store does not take what a run commits, or does not confirm it ({why})");
    Fault::new(Code::OutcomeUnknown, message, "look at its file and disk, and run again: nothing is lost")
}

/// One page of what was put aside.
pub(crate) async fn quarantined(backlog: &Backlog, cursor: Option<&str>, limit: usize) -> Result<QuarantinePage, Fault> {
    let next = cursor.map(|cursor| read_cursor(&backlog.env().keys.all(Kind::Quarantined), cursor)).transpose()?;
    Ok(backlog.quarantined(next, limit).await?)
}

/// One record that was put aside.
pub(crate) async fn quarantined_one(backlog: &Backlog, id: &str) -> Result<QuarantineRow, Fault> {
    let unknown = || Fault::unknown_id(id);
    let asked = read_entry_id(id).ok_or_else(unknown)?;
    let page = backlog.quarantined(Some(backlog.env().keys.quarantined(asked)), 1).await?;
    page.rows.into_iter().find(|row| row.id == asked).ok_or_else(unknown)
}

/// Drops what was put aside.
pub(crate) async fn drop_quarantined(backlog: &Backlog, id: &str) -> Result<(), Fault> {
    let asked = read_entry_id(id).ok_or_else(|| Fault::unknown_id(id))?;
    backlog.drop_quarantined(asked).await.map_err(|failure| about(id, failure))
}

/// Makes what was put aside an entry again.
pub(crate) async fn revive(backlog: &Backlog, id: &str) -> Result<(), Fault> {
    let asked = read_entry_id(id).ok_or_else(|| Fault::unknown_id(id))?;
    backlog.revive(asked).await.map_err(|failure| about(id, failure))
}

/// One page of what was given up.
pub(crate) async fn dead_letters(backlog: &Backlog, cursor: Option<&str>, limit: usize) -> Result<DeadLetterPage, Fault> {
    let all = dead_letter_range(backlog.env(), None);
    let next = cursor.map(|cursor| read_cursor(&all, cursor)).transpose()?;
    Ok(backlog.dead_letters(next, limit).await?)
}

/// One page of destinations of which something is known.
pub(crate) async fn destinations(backlog: &Backlog, cursor: Option<&str>, limit: usize) -> Result<DestinationPage, Fault> {
    let all = backlog.env().keys.all(Kind::Destination);
    let next = cursor.map(|cursor| read_cursor(&all, cursor)).transpose()?;
    Ok(backlog.destinations(next, limit).await?)
}

/// When a hold ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HoldEnd {
    /// Nobody knows.
    Unknown,
    /// Then.
    At(StoreTime),
    /// So many milliseconds after it begins.
    After(u64),
}

/// Takes note that a destination wants no deliveries, and says what is known of it then.
pub(crate) async fn set_hold(
    backlog: &Backlog,
    destination: &str,
    from: Option<StoreTime>,
    end: HoldEnd,
) -> Result<DestinationRow, Fault> {
    let destination = read_destination(destination)?;
    let from = match from {
        Some(from) => from,
        // Every try, and the length, counts from the same instant.
        None => store_now(backlog).await?,
    };
    let until = match end {
        HoldEnd::Unknown => None,
        HoldEnd::At(until) => Some(until),
        HoldEnd::After(ms) => Some(from.plus_ms(ms)),
    };
    if let Some(until) = until.filter(|until| *until <= from) {
        let message = format!("the hold of {destination} would end at {}, and begins at {}", instant(until), instant(from));
        return Err(Fault::new(Code::InvalidRequest, message, "give an end after its beginning"));
    }
    backlog.set_hold(&destination, Some(from), until).await.map_err(|failure| about_hold(&destination, failure))?;
    known_of(backlog, &destination).await
}

/// Takes note that a destination wants deliveries again, and says what is known of it then.
pub(crate) async fn release_hold(backlog: &Backlog, destination: &str, from: Option<StoreTime>) -> Result<DestinationRow, Fault> {
    let destination = read_destination(destination)?;
    backlog.release_hold(&destination, from).await.map_err(|failure| about_hold(&destination, failure))?;
    known_of(backlog, &destination).await
}

/// A destination, given as a URL there, or as the host alone, for https.
fn read_destination(text: &str) -> Result<String, Fault> {
    let what_to_do = "give https://host, or the host alone";
    // What stands before an @ may be credentials, which are not repeated.
    let shown = text.rsplit('@').next().unwrap_or_default();
    let wrong = |why: &str| Fault::new(Code::InvalidRequest, format!("{shown:?} is no destination: {why}"), what_to_do);
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(wrong("it holds white space or control characters"));
    }
    let is_url = text.contains("://");
    if !is_url && ["http:", "https:"].iter().any(|scheme| text.to_ascii_lowercase().starts_with(scheme)) {
        return Err(wrong("two slashes belong behind its scheme"));
    }
    let url = if is_url { text.to_owned() } else { format!("https://{text}") };
    let url = Url::parse(&url).map_err(|error| wrong(&error.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it holds credentials"));
    }
    let origin @ Origin::Tuple(..) = url.origin() else { return Err(wrong("it is neither http nor https")) };
    // What the URL standard takes, and nobody means: a wildcard, a label that is missing, an address that was none as written.
    let host = url.host_str().unwrap_or_default();
    let is_named = |host: &str| host.split('.').all(|label| !label.is_empty() && label.len() <= 63 && label != "-");
    let is_plain = match url.host() {
        Some(Host::Domain(host)) => !host.contains('*') && is_named(host),
        Some(Host::Ipv4(_)) => text.contains(host),
        Some(Host::Ipv6(_)) => true,
        None => false,
    };
    if !is_plain || url.port() == Some(0) {
        return Err(wrong("it names no host"));
    }
    let destination = origin.ascii_serialization();
    match url.scheme() {
        "http" | "https" if destination.len() <= NAME_BYTES_MAX => Ok(destination),
        "http" | "https" => Err(wrong(&format!("it is longer than {NAME_BYTES_MAX} bytes"))),
        _ => Err(wrong("it is neither http nor https")),
    }
}

/// The store's clock; this machine's, where the store has none.
async fn store_now(backlog: &Backlog) -> Result<StoreTime, Fault> {
    let snapshot = backlog.store().get_many(vec![backlog.env().keys.intake()]).await?;
    let this_machine = || {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        StoreTime::from_ms(u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX))
    };
    Ok(snapshot.at.unwrap_or_else(this_machine))
}

/// What is known of a destination whose notice was committed. A notice may change less than it says: beside others, or too late.
async fn known_of(backlog: &Backlog, destination: &str) -> Result<DestinationRow, Fault> {
    let page = backlog.destinations(Some(backlog.env().keys.destination(destination)), 1).await.map_err(|error| {
        let message = format!("the notice about {destination} was committed, and what is known now cannot be read ({error})");
        Fault::new(Code::OutcomeUnknown, message, "list destinations, or repeat the same request: that is harmless")
    })?;
    let known = page.rows.into_iter().find(|row| &*row.destination == destination);
    // Nothing is kept of a destination of which nothing is known: then no instant matters.
    let nothing = || row_of_destination(backlog.env(), destination.into(), &Destination::default(), StoreTime::default());
    Ok(known.unwrap_or_else(nothing))
}

/// The end is checked before: what is left to refuse is one hold too many.
fn about_hold(destination: &str, failure: Failure) -> Fault {
    match failure {
        Failure::Rejected(Rejection::Invalid(why)) => {
            let message = format!("the notice about {destination} is refused: {why}");
            Fault::new(Code::Refused, message, "release the later ones (from an instant on), and set those that matter")
        }
        other => other.into(),
    }
}

/// "Gone" says which.
fn about(id: &str, failure: Failure) -> Fault {
    match failure {
        Failure::Rejected(Rejection::Gone) => Fault::unknown_id(id),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use restante_core::Config;
    use restante_core::machine::{Post, PostResult};
    use restante_kv::{AtomicKv, BoxFuture, Committed, Key, KeyRange, Limits, MemoryKv, Page, Snapshot};

    use super::*;

    /// Commits, and gives no page.
    struct WithoutPages(MemoryKv);

    impl AtomicKv for WithoutPages {
        fn limits(&self) -> Limits {
            self.0.limits()
        }
        fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
            self.0.get_many(keys)
        }
        fn scan(&self, _range: KeyRange, _limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
            Box::pin(async { Err(StoreError::Unavailable("no page".into())) })
        }
        fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
            self.0.cas_many(txn)
        }
    }

    #[tokio::test]
    async fn a_notice_that_was_committed_is_not_told_as_one_that_was_not() {
        let store = MemoryKv::new(Limits::FLOOR, Arc::new(|| StoreTime::from_ms(1_000)));
        let nobody = tower::service_fn(|_: Post| async { Ok::<_, Infallible>(PostResult::Unknown) });
        let builder = Backlog::builder(Arc::new(WithoutPages(store)), Config::new(1_000_000), nobody);
        let backlog = builder.allow_volatile_store().build().expect("a backlog");
        let set = set_hold(&backlog, "a.example", None, HoldEnd::After(60_000)).await.expect_err("it cannot be read back");
        let release = release_hold(&backlog, "a.example", None).await.expect_err("it cannot be read back");
        for fault in [set, release] {
            assert_eq!(fault.code, Code::OutcomeUnknown);
            assert!(fault.message.starts_with("the notice about https://a.example was committed"), "{fault}");
        }
    }

    #[test]
    fn a_destination_is_a_url_there_or_the_host_alone() {
        for (text, destination) in [
            ("a.example", "https://a.example"),
            ("https://A.example", "https://a.example"),
            ("https://a.example/users/ada/inbox", "https://a.example"),
            ("a.example:8443", "https://a.example:8443"),
            ("http://a.example:80", "http://a.example"),
            ("b\u{fc}cher.example", "https://xn--bcher-kva.example"),
            ("[::1]", "https://[::1]"),
        ] {
            assert_eq!(read_destination(text).as_deref(), Ok(destination), "{text}");
        }
    }

    #[test]
    fn what_is_no_destination_is_refused_and_credentials_are_not_repeated() {
        let long = format!("{}.example", "a".repeat(600));
        for text in [
            "",
            "https://",
            "a b",
            "a.example\n",
            "ftp://a.example",
            "file:///x",
            "a.example:port",
            "::1",
            "*.example",
            "https:/a.example",
            "1",
            ".",
            "a..b",
            "a.example:0",
            "-",
            &long,
        ] {
            let fault = read_destination(text).expect_err(text);
            assert_eq!((fault.code, fault.what_to_do.as_str()), (Code::InvalidRequest, "give https://host, or the host alone"));
        }
        for text in
            ["https://ada:secret@a.example", "ada:secret@a.example", "https://ada:secret@", "https://ada:sec ret@a.example"]
        {
            let fault = read_destination(text).expect_err(text).to_string();
            assert!(!fault.contains("secret") && !fault.contains("sec ret"), "{fault}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_destination_or_none(text in r"(https?://)?[a-z0-9.:@/\[\]%-]{0,40}|\PC{0,40}") {
            if let Ok(destination) = read_destination(&text) {
                assert_eq!(read_destination(&destination), Ok(destination.clone()));
            }
        }
    }
}
