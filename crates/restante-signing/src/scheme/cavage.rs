//! `draft-cavage-http-signatures` as the fediverse reads it: RSA with SHA-256 over a few headers and the request line.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;

use super::{authority, instant, path_and_query, put, set_by_caller, sha256_base64};
use crate::signer::{Outgoing, SignError};
use crate::{KeyKind, Scheme, SigningKey};

pub(super) fn sign(request: &Outgoing<'_>, key: &SigningKey, key_id: &str) -> Result<HeaderMap, SignError> {
    // The draft knows no name for Ed25519 that receivers agree on; a signature that nobody can check would only look like one.
    if key.kind() != KeyKind::Rsa {
        return Err(SignError::KeyDoesNotFit { scheme: Scheme::Cavage, kind: key.kind() });
    }
    let (_, date) = instant(request.at)?;
    let digest = format!("SHA-256={}", sha256_base64(request.body));
    let mut covered = vec![
        ("(request-target)", request_target(request)),
        ("host", authority(request.url)?),
        ("date", date.clone()),
        ("digest", digest.clone()),
    ];
    if let Some(content_type) = set_by_caller(request.headers, "content-type")? {
        covered.push(("content-type", content_type.to_owned()));
    }
    let signature = STANDARD.encode(key.sign(signing_string(&covered).as_bytes())?);
    let names: Vec<&str> = covered.iter().map(|(name, _)| *name).collect();
    let names = names.join(" ");

    let mut headers = HeaderMap::new();
    put(&mut headers, "date", &date)?;
    put(&mut headers, "digest", &digest)?;
    // `hs2019` would be the draft's later word; receivers that look at this parameter at all know this one.
    let value = format!(r#"keyId="{key_id}",algorithm="rsa-sha256",headers="{names}",signature="{signature}""#);
    put(&mut headers, "signature", &value)?;
    Ok(headers)
}

fn request_target(request: &Outgoing<'_>) -> String {
    format!("{} {}", request.method.as_str().to_ascii_lowercase(), path_and_query(request.url))
}

/// What is signed: a line a header, without a line end behind the last.
pub(super) fn signing_string(covered: &[(&str, String)]) -> String {
    let lines: Vec<String> = covered.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    lines.join("\n")
}
