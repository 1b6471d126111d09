//! What the independent verifier says of our requests, as they are and altered on the way.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, Method};
use restante_kv::{Limits, MemoryKv, StoreTime};
use restante_kv_conformance::block_on;
use restante_signing::{
    KeyName, MasterKey, MasterKeys, Outgoing, PrivateKey, Scheme, Signer, SigningReference, Vault, VaultSigner,
};
use url::Url;

use crate::verifier::Verifier;

const BODY: &[u8] = br#"{"type":"Create","id":"https://social.example/activities/1"}"#;
const RSA_ID: &str = "https://social.example/users/ada#main-key";
const ED25519_ID: &str = "https://social.example/users/ada#ed25519-key";

fn pem(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/keys").join(name)
}

fn verifier() -> Option<Verifier> {
    Verifier::start(&[(RSA_ID, &pem("rsa.pem")), (ED25519_ID, &pem("ed25519.pem"))])
}

fn signer() -> VaultSigner {
    let store = Arc::new(MemoryKv::new(Limits::FLOOR, Arc::new(|| StoreTime::from_ms(0))).strict(true));
    let vault = Vault::new(store, "vault/", MasterKeys::new(MasterKey::from_bytes(1, [7; 32])));
    for (name, file) in [("rsa", "rsa.pem"), ("pkcs1", "rsa-pkcs1.pem"), ("ed25519", "ed25519.pem")] {
        let text = std::fs::read_to_string(pem(file)).expect("readable");
        let key = PrivateKey::from_pem(&text).expect("a key");
        block_on(vault.put(&KeyName::new(name).expect("a name"), &key)).expect("put");
    }
    VaultSigner::new(Arc::new(vault))
}

/// A request on its way: what the tests alter.
struct Sent {
    target: String,
    host: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// A POST to the verifier, signed.
fn signed(port: u16, scheme: Scheme, key: &str, key_id: &str) -> Sent {
    let url: Url = format!("http://127.0.0.1:{port}/users/eve/inbox?page=1").parse().expect("a URL");
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/activity+json"));
    let reference = SigningReference::new(KeyName::new(key).expect("a name"), scheme, key_id).expect("a reference").seal();
    let request = Outgoing { method: &Method::POST, url: &url, headers: &headers, body: BODY, at: SystemTime::now() };
    let added = block_on(signer().sign(request, &reference)).expect("signed");
    headers.extend(added);
    Sent { target: "/users/eve/inbox?page=1".to_owned(), host: format!("127.0.0.1:{port}"), headers, body: BODY.to_vec() }
}

/// The verifier's answer: its status and what it says.
fn answer(port: u16, sent: &Sent) -> (u16, String) {
    let mut head = format!("POST {} HTTP/1.1\r\nHost: {}\r\n", sent.target, sent.host);
    for (name, value) in &sent.headers {
        head += &format!("{name}: {}\r\n", value.to_str().expect("text"));
    }
    head += &format!("Content-Length: {}\r\nConnection: close\r\n\r\n", sent.body.len());
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    stream.write_all(&[head.as_bytes(), &sent.body].concat()).expect("written");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("read");
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, text)
}

const WAYS: [(Scheme, &str, &str); 4] = [
    (Scheme::Cavage, "rsa", RSA_ID),
    (Scheme::Cavage, "pkcs1", RSA_ID),
    (Scheme::Rfc9421, "rsa", RSA_ID),
    (Scheme::Rfc9421, "ed25519", ED25519_ID),
];

#[test]
fn an_independent_verifier_accepts_every_scheme_and_key() {
    let Some(verifier) = verifier() else { return };
    for (scheme, key, key_id) in WAYS {
        let (status, text) = answer(verifier.port, &signed(verifier.port, scheme, key, key_id));
        assert_eq!(status, 202, "{scheme}, {key}: {text}");
    }
}

#[test]
fn an_independent_verifier_refuses_whatever_was_altered() {
    let Some(verifier) = verifier() else { return };
    type Alter = fn(&mut Sent);
    let alterations: [(&str, Alter); 7] = [
        ("body", |sent| sent.body[10] ^= 1),
        ("body cut", |sent| sent.body.truncate(5)),
        ("content type", |sent| drop(sent.headers.insert("content-type", HeaderValue::from_static("text/plain")))),
        ("date", |sent| {
            let a_second_ago = SystemTime::now() - std::time::Duration::from_secs(3);
            let date = httpdate::fmt_http_date(a_second_ago);
            sent.headers.insert("date", HeaderValue::from_str(&date).expect("a date"));
        }),
        ("target", |sent| sent.target = "/users/bob/inbox?page=1".to_owned()),
        ("host", |sent| sent.host = "other.example".to_owned()),
        ("digest and body", |sent| {
            // An attacker who knows how digests are made still has no key.
            sent.body = b"{}".to_vec();
            for (name, value) in [
                ("digest", "SHA-256=RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o="),
                ("content-digest", "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:"),
            ] {
                if sent.headers.contains_key(name) {
                    sent.headers.insert(name, HeaderValue::from_static(value));
                }
            }
        }),
    ];
    for (scheme, key, key_id) in WAYS {
        for (what, alter) in alterations {
            let mut sent = signed(verifier.port, scheme, key, key_id);
            alter(&mut sent);
            let (status, text) = answer(verifier.port, &sent);
            assert_eq!(status, 401, "{scheme}, {key}, {what}: {text}");
        }
    }
}

#[test]
fn an_independent_verifier_refuses_another_key_under_a_known_id() {
    let Some(verifier) = verifier() else { return };
    let sent = signed(verifier.port, Scheme::Rfc9421, "rsa", ED25519_ID);
    assert_eq!(answer(verifier.port, &sent).0, 401);
}
