//! From a request to the headers that sign it, in both schemes. Pure: the key and the instant are arguments.

mod cavage;
mod rfc9421;
#[cfg(test)]
mod tests;

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue};
use ring::digest::{SHA256, digest};
use url::Url;

use crate::signer::{Outgoing, SignError};
use crate::{Scheme, SigningKey};

/// The headers to add to `request` so that `key`, known as `key_id`, has signed it.
pub(crate) fn sign(scheme: Scheme, request: &Outgoing<'_>, key: &SigningKey, key_id: &str) -> Result<HeaderMap, SignError> {
    match scheme {
        Scheme::Cavage => cavage::sign(request, key, key_id),
        Scheme::Rfc9421 => rfc9421::sign(request, key, key_id),
    }
}

fn sha256_base64(body: &[u8]) -> String {
    STANDARD.encode(digest(&SHA256, body))
}

/// Host and non-default port: what the client sends as `Host` or `:authority`.
fn authority(url: &Url) -> Result<String, SignError> {
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or(SignError::Url)?;
    Ok(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// Path and query, as they stand in the request line.
fn path_and_query(url: &Url) -> String {
    url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()))
}

/// Seconds since 1970 and the `Date` header of that second.
fn instant(at: SystemTime) -> Result<(u64, String), SignError> {
    /// 9999-12-31T23:59:59Z: no date header can say a later second.
    const LAST: u64 = 253_402_300_799;
    let seconds = at.duration_since(UNIX_EPOCH).map_err(|_| SignError::Clock)?.as_secs();
    if seconds > LAST {
        return Err(SignError::Clock);
    }
    Ok((seconds, httpdate::fmt_http_date(at)))
}

/// The one value of a header that the caller set; `None` when it is absent.
fn set_by_caller<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, SignError> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().map(|value| value.to_str().map(str::trim)).transpose();
    match (value, values.next()) {
        (Ok(value), None) => Ok(value),
        _ => Err(SignError::Header { name }),
    }
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) -> Result<(), SignError> {
    headers.insert(name, HeaderValue::from_str(value).map_err(|_| SignError::Header { name })?);
    Ok(())
}
