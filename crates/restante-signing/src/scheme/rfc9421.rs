//! HTTP Message Signatures, RFC 9421: one signature over the request line's parts, the date and the content.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;

use super::{authority, instant, path_and_query, put, set_by_caller, sha256_base64};
use crate::signer::{Outgoing, SignError};
use crate::{KeyKind, SigningKey};

/// The label of the one signature that a request carries.
const LABEL: &str = "sig1";

pub(super) fn sign(request: &Outgoing<'_>, key: &SigningKey, key_id: &str) -> Result<HeaderMap, SignError> {
    let (created, date) = instant(request.at)?;
    let authority = authority(request.url)?;
    let content_digest = format!("sha-256=:{}:", sha256_base64(request.body));
    let mut components = vec![
        ("@method", request.method.as_str().to_owned()),
        ("@target-uri", format!("{}://{authority}{}", request.url.scheme(), path_and_query(request.url))),
        // Said again by the target, but some receivers look for this one and some for that.
        ("@authority", authority),
        ("date", date.clone()),
        ("content-digest", content_digest.clone()),
    ];
    if let Some(content_type) = set_by_caller(request.headers, "content-type")? {
        components.push(("content-type", content_type.to_owned()));
    }
    let algorithm = match key.kind() {
        KeyKind::Rsa => "rsa-v1_5-sha256",
        KeyKind::Ed25519 => "ed25519",
    };
    // The algorithm is told although the key may say it: an RSA key alone does not tell PKCS #1 v1.5 from PSS.
    let parameters = format!(r#";created={created};keyid="{key_id}";alg="{algorithm}""#);
    let input = signature_input(&components, &parameters);
    let signature = STANDARD.encode(key.sign(signature_base(&components, &input).as_bytes())?);

    let mut headers = HeaderMap::new();
    put(&mut headers, "date", &date)?;
    put(&mut headers, "content-digest", &content_digest)?;
    put(&mut headers, "signature-input", &format!("{LABEL}={input}"))?;
    put(&mut headers, "signature", &format!("{LABEL}=:{signature}:"))?;
    Ok(headers)
}

/// The list of covered components with the parameters of the signature.
pub(super) fn signature_input(components: &[(&str, String)], parameters: &str) -> String {
    let names: Vec<String> = components.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    format!("({}){parameters}", names.join(" "))
}

/// What is signed: a line a component, and the list itself last.
pub(super) fn signature_base(components: &[(&str, String)], input: &str) -> String {
    let lines: String = components.iter().map(|(name, value)| format!("\"{name}\": {value}\n")).collect();
    format!("{lines}\"@signature-params\": {input}")
}
