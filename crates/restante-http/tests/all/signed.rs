//! Signed as the entry asks, or not sent; and what an independent verifier says of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use restante_core::atoms::Sealed;
use restante_core::machine::{NotSent, PostResult};
use restante_kv::{BoxFuture, Limits, MemoryKv, StoreTime};
use restante_signing::{
    KeyName, MasterKey, MasterKeys, Outgoing, PrivateKey, Scheme, SignError, Signer, SigningReference, Vault, VaultSigner,
};

use crate::receiver::{Receiver, answer, open, post_to};
use crate::verifier::Verifier;

const UNSIGNED: PostResult = PostResult::NotSent(NotSent::Unsigned);
const RSA_ID: &str = "https://social.example/users/ada#main-key";
const ED25519_ID: &str = "https://social.example/users/ada#ed25519-key";

fn pem(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../restante-signing/tests/keys").join(name)
}

async fn signer() -> Arc<VaultSigner> {
    let store = Arc::new(MemoryKv::new(Limits::FLOOR, Arc::new(|| StoreTime::from_ms(0))).strict(true));
    let vault = Vault::new(store, "vault/", MasterKeys::new(MasterKey::from_bytes(1, [7; 32])));
    for name in ["rsa", "ed25519"] {
        let text = std::fs::read_to_string(pem(&format!("{name}.pem"))).expect("readable");
        let key = PrivateKey::from_pem(&text).expect("a key");
        vault.put(&KeyName::new(name).expect("a name"), &key).await.expect("put");
    }
    Arc::new(VaultSigner::new(Arc::new(vault)))
}

fn reference(key: &str, scheme: Scheme, key_id: &str) -> Sealed {
    SigningReference::new(KeyName::new(key).expect("a name"), scheme, key_id).expect("a reference").seal()
}

#[tokio::test]
async fn an_independent_verifier_accepts_what_the_sender_sends() {
    let Some(verifier) = Verifier::start(&[(RSA_ID, &pem("rsa.pem")), (ED25519_ID, &pem("ed25519.pem"))]) else { return };
    let sender = open().allow_unsigned(true).signer(signer().await).build().expect("a sender");
    let mut post = post_to(&format!("http://127.0.0.1:{}/users/eve/inbox?page=1", verifier.port));
    for (key, scheme, key_id) in
        [("rsa", Scheme::Cavage, RSA_ID), ("rsa", Scheme::Rfc9421, RSA_ID), ("ed25519", Scheme::Rfc9421, ED25519_ID)]
    {
        post.signing = reference(key, scheme, key_id);
        let answered = sender.send(post.clone()).await;
        assert_eq!(answered, PostResult::Status { code: 202, retry_after_ms: None }, "{scheme}, {key}");
    }
    post.signing = reference("rsa", Scheme::Rfc9421, ED25519_ID);
    assert_eq!(sender.send(post.clone()).await, PostResult::Status { code: 401, retry_after_ms: None }, "another key");
    post.signing = Sealed::default();
    assert_eq!(sender.send(post).await, PostResult::Status { code: 401, retry_after_ms: None }, "no signature");
}

#[tokio::test]
async fn what_cannot_be_signed_is_not_sent() {
    let receiver = Receiver::start(vec![answer("200 OK", "")]).await;
    let with_signer = open().signer(signer().await).build().expect("a sender");
    let without_signer = open().build().expect("a sender");
    let known = reference("rsa", Scheme::Cavage, RSA_ID);
    let mut newer = known.expose().to_vec();
    newer[0] = 2;
    for (what, sender, signing) in [
        ("no such key", &with_signer, reference("eve", Scheme::Cavage, RSA_ID)),
        ("a key that does not fit", &with_signer, reference("ed25519", Scheme::Cavage, ED25519_ID)),
        ("another version's reference", &with_signer, Sealed::new(newer)),
        ("no signer", &without_signer, known),
    ] {
        let mut post = post_to(&receiver.url("/inbox"));
        post.signing = signing;
        assert_eq!(sender.send(post).await, UNSIGNED, "{what}");
    }
    let signed_only = open().allow_unsigned(false).signer(signer().await).build().expect("a sender");
    assert_eq!(signed_only.send(post_to(&receiver.url("/inbox"))).await, UNSIGNED, "no reference");
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a_signer_that_takes_too_long_ends_with_the_attempt() {
    struct Never;
    impl Signer for Never {
        fn sign<'a>(&'a self, _: Outgoing<'a>, _: &'a Sealed) -> BoxFuture<'a, Result<HeaderMap, SignError>> {
            Box::pin(std::future::pending())
        }
    }
    let receiver = Receiver::start(vec![answer("200 OK", "")]).await;
    let sender = open().signer(Arc::new(Never)).build().expect("a sender");
    let mut post = post_to(&receiver.url("/inbox"));
    post.signing = reference("rsa", Scheme::Cavage, RSA_ID);
    post.timeout_ms = 100;
    let result = tokio::time::timeout(Duration::from_secs(5), sender.send(post)).await;
    assert_eq!(result.expect("an end"), UNSIGNED);
    assert_eq!(receiver.connections(), 0);
}
