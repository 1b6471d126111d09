//! From a transport's failure to what is certain of the attempt.

use std::error::Error;
use std::io;

use restante_core::machine::{NotSent, PostResult};

use crate::resolve::LookupError;

/// What is certain after the client failed to bring an answer.
///
/// The client reports as a failure to connect what happened before it had a connection to write to: only then nothing can have
/// reached the destination. Everything else is unknown, a connection that was kept from an earlier request and turned out to be
/// closed included.
pub(crate) fn of_failure(failure: &reqwest::Error) -> PostResult {
    if failure.is_builder() {
        return PostResult::NotSent(NotSent::Refused);
    }
    if !failure.is_connect() {
        return PostResult::Unknown;
    }
    match find::<LookupError>(failure) {
        Some(LookupError::Refused { .. }) => return PostResult::NotSent(NotSent::Refused),
        Some(LookupError::Unresolved(_) | LookupError::Empty) => return PostResult::NotSent(NotSent::Dns),
        None => {}
    }
    // A peer that hangs up in the middle of the handshake leaves no TLS error, only an end; connecting alone never ends like that.
    let ended = find::<io::Error>(failure).is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
    let why = if ended || find::<rustls::Error>(failure).is_some() { NotSent::Tls } else { NotSent::Connect };
    PostResult::NotSent(why)
}

/// The first cause of this type. An `io::Error` hides what it wraps from `source`, so that is looked at as well.
fn find<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    if let Some(found) = error.downcast_ref::<E>() {
        return Some(found);
    }
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    match wrapped {
        Some(wrapped) => find::<E>(wrapped),
        None => error.source().and_then(find::<E>),
    }
}

/// The failure and its causes in a line, without the URL: its path may tell more than a log should know.
pub(crate) fn told(failure: reqwest::Error) -> String {
    let failure = failure.without_url();
    let mut line = failure.to_string();
    let mut cause = failure.source();
    while let Some(error) = cause {
        line = format!("{line}: {error}");
        cause = error.source();
    }
    line
}
