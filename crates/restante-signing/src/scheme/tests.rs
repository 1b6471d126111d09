use std::time::Duration;

use http::Method;
use ring::signature::{RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, RsaPublicKeyComponents};

use super::*;
use crate::{KeyKind, PrivateKey};

const ED25519: &str = include_str!("../../tests/keys/ed25519.pem");
const RSA: &str = include_str!("../../tests/keys/rsa.pem");
const RSA_PKCS1: &str = include_str!("../../tests/keys/rsa-pkcs1.pem");
const KEY_ID: &str = "https://social.example/users/ada#main-key";

fn key(pem: &str) -> SigningKey {
    PrivateKey::from_pem(pem).and_then(|key| key.prepare()).expect("a key")
}

fn url(text: &str) -> Url {
    text.parse().expect("a URL")
}

fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/activity+json"));
    headers
}

fn at_seconds(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn signed(scheme: Scheme, url: &Url, headers: &HeaderMap, pem: &str) -> Result<HeaderMap, SignError> {
    let request = Outgoing { method: &Method::POST, url, headers, body: b"{}", at: at_seconds(1_700_000_000) };
    sign(scheme, &request, &key(pem), KEY_ID)
}

fn owned<'a>(lines: &[(&'a str, &str)]) -> Vec<(&'a str, String)> {
    lines.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

/// RFC 9421, B.2.6: Ed25519 is deterministic, so the published signature must come out byte for byte.
#[test]
fn the_ed25519_example_of_rfc_9421_comes_out() {
    let components = owned(&[
        ("date", "Tue, 20 Apr 2021 02:07:55 GMT"),
        ("@method", "POST"),
        ("@path", "/foo"),
        ("@authority", "example.com"),
        ("content-type", "application/json"),
        ("content-length", "18"),
    ]);
    let input = rfc9421::signature_input(&components, r#";created=1618884473;keyid="test-key-ed25519""#);
    let signature = key(ED25519).sign(rfc9421::signature_base(&components, &input).as_bytes()).expect("signed");
    assert_eq!(
        STANDARD.encode(signature),
        "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
    );
}

/// `draft-cavage-http-signatures`, appendix C: its key of 1024 bits is too short to sign with here, but the published
/// signatures must be good for the strings that we sign.
#[test]
fn the_published_signatures_of_the_cavage_draft_fit_our_signing_strings() {
    let modulus = "whRDRsN98hoocvdqQ42UIZdAt+qzyY/gr30gvPqtvIcQNetUBTVHdd8Lgk1HKtEHdqrAXv9oRcnNgwiSYNIdS+/PumeFDEexDnKX3VBPR395v4bPhVEeObgSXgytR0hRw/Gxyg+pL/BTxnyU6LXPtsYycKGIvtYaqdXyHpGsbMk=";
    let public = RsaPublicKeyComponents { n: STANDARD.decode(modulus).expect("base64"), e: vec![1, 0, 1] };
    let target = ("(request-target)", "post /foo?param=value&pet=dog");
    let (host, date) = (("host", "example.com"), ("date", "Sun, 05 Jan 2014 21:31:40 GMT"));
    let basic = vec![target, host, date];
    let all = vec![
        target,
        host,
        date,
        ("content-type", "application/json"),
        ("digest", "SHA-256=X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE="),
        ("content-length", "18"),
    ];
    let basic_signature = "qdx+H7PHHDZgy4y/Ahn9Tny9V3GP6YgBPyUXMmoxWtLbHpUnXS2mg2+SbrQDMCJypxBLSPQR2aAjn7ndmw2iicw3HMbe8VfEdKFYRqzic+efkb3nndiv/x1xSHDJWeSWkx3ButlYSuBskLu6kd9Fswtemr3lgdDEmn04swr2Os0=";
    let all_signature = "vSdrb+dS3EceC9bcwHSo4MlyKS59iFIrhgYkz8+oVLEEzmYZZvRs8rgOp+63LEM3v+MFHB32NfpB2bEKBIvB1q52LaEUHFv120V01IL+TAD48XaERZFukWgHoBTLMhYS2Gb51gWxpeIq8knRmPnYePbF5MOkR0Zkly4zKH7s1dE=";
    for (lines, signature) in [(basic, basic_signature), (all, all_signature)] {
        let text = cavage::signing_string(&owned(&lines));
        let signature = STANDARD.decode(signature).expect("base64");
        let checked = public.verify(&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, text.as_bytes(), &signature);
        assert!(checked.is_ok(), "{text}");
    }
    assert_eq!(sha256_base64(br#"{"hello": "world"}"#), "X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=");
}

#[test]
fn cavage_covers_target_host_date_digest_and_content_type() {
    let url = url("https://Other.Example:8443/inbox?a=b#fragment");
    let signed = signed(Scheme::Cavage, &url, &headers(), RSA).expect("signed");
    let signature = signed["signature"].to_str().expect("text");
    assert!(signature.contains(r#"headers="(request-target) host date digest content-type""#), "{signature}");
    assert!(signature.starts_with(r#"keyId="https://social.example/users/ada#main-key",algorithm="rsa-sha256","#), "{signature}");
    assert_eq!(signed["digest"], "SHA-256=RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=");
    let text = "(request-target): post /inbox?a=b\nhost: other.example:8443\ndate: Tue, 14 Nov 2023 22:13:20 GMT\n\
        digest: SHA-256=RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=\ncontent-type: application/activity+json";
    let bytes = signature.split("signature=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a signature");
    assert_is_signed(text, &STANDARD.decode(bytes).expect("base64"));
}

#[test]
fn rfc_9421_covers_method_target_authority_date_content_and_type() {
    let url = url("https://user:secret@Other.Example:443/inbox?a=b#fragment");
    let signed = signed(Scheme::Rfc9421, &url, &headers(), RSA).expect("signed");
    let input = signed["signature-input"].to_str().expect("text").strip_prefix("sig1=").expect("the label");
    let digest = "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:";
    let text = format!(
        "\"@method\": POST\n\"@target-uri\": https://other.example/inbox?a=b\n\"@authority\": other.example\n\
         \"date\": Tue, 14 Nov 2023 22:13:20 GMT\n\"content-digest\": {digest}\n\"content-type\": application/activity+json\n\
         \"@signature-params\": {input}"
    );
    assert_eq!(
        input,
        "(\"@method\" \"@target-uri\" \"@authority\" \"date\" \"content-digest\" \"content-type\");created=1700000000;\
         keyid=\"https://social.example/users/ada#main-key\";alg=\"rsa-v1_5-sha256\""
    );
    let signature = signed["signature"].to_str().expect("text");
    let bytes = signature.strip_prefix("sig1=:").and_then(|rest| rest.strip_suffix(':')).expect("a byte sequence");
    assert_is_signed(&text, &STANDARD.decode(bytes).expect("base64"));
}

fn assert_is_signed(text: &str, signature: &[u8]) {
    // RSASSA-PKCS1-v1_5 is deterministic: the other encoding of the same key must give the same signature.
    assert_eq!(key(RSA_PKCS1).sign(text.as_bytes()).expect("signed"), signature, "{text}");
}

#[test]
fn cavage_refuses_an_ed25519_key() {
    let refused = signed(Scheme::Cavage, &url("https://other.example/"), &headers(), ED25519);
    assert!(matches!(refused, Err(SignError::KeyDoesNotFit { scheme: Scheme::Cavage, kind: KeyKind::Ed25519 })), "{refused:?}");
}

#[test]
fn a_header_that_occurs_twice_is_not_signed() {
    let mut headers = headers();
    headers.append("content-type", HeaderValue::from_static("text/plain"));
    for scheme in [Scheme::Cavage, Scheme::Rfc9421] {
        let refused = signed(scheme, &url("https://other.example/"), &headers, RSA);
        assert!(matches!(refused, Err(SignError::Header { name: "content-type" })), "{refused:?}");
    }
}

#[test]
fn an_impossible_clock_is_an_error_and_no_panic() {
    for at in [UNIX_EPOCH - Duration::from_secs(1), at_seconds(253_402_300_800)] {
        assert!(matches!(instant(at), Err(SignError::Clock)));
    }
    assert_eq!(instant(at_seconds(253_402_300_799)).expect("a date").1, "Fri, 31 Dec 9999 23:59:59 GMT");
}

#[test]
fn a_key_that_cannot_sign_is_a_typed_error() {
    use crate::KeyError;
    assert!(matches!(PrivateKey::from_pem("nothing"), Err(KeyError::NotPem)));
    assert!(matches!(PrivateKey::from_pkcs8_der(&[0x30, 0x00]), Err(KeyError::Rejected { .. })));
    let sec1 = "-----BEGIN EC PRIVATE KEY-----\nMAA=\n-----END EC PRIVATE KEY-----\n";
    assert!(matches!(PrivateKey::from_pem(sec1), Err(KeyError::UnsupportedKind)));
}
