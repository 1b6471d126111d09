//! How many signatures a second one core makes: `cargo run --release -p restante-signing --example signatures`.

use std::time::{Duration, Instant, SystemTime};

use http::{HeaderMap, HeaderValue, Method};
use restante_core::atoms::Sealed;
use restante_kv::{Limits, MemoryKv, StoreTime};
use restante_kv_conformance::block_on;
use restante_signing::{
    KeyName, MasterKey, MasterKeys, Outgoing, PrivateKey, Scheme, Signer, SigningReference, Vault, VaultSigner,
};

/// How long each figure is measured.
const MEASURED: Duration = Duration::from_secs(3);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = std::sync::Arc::new(MemoryKv::new(Limits::FLOOR, std::sync::Arc::new(|| StoreTime::from_ms(0))));
    let vault = Vault::new(store, "vault/", MasterKeys::new(MasterKey::from_bytes(1, [7; 32])));
    let keys = [("RSA-2048", include_str!("../tests/keys/rsa.pem")), ("Ed25519", include_str!("../tests/keys/ed25519.pem"))];
    for (name, pem) in keys {
        let (name, key) = (KeyName::new(name)?, PrivateKey::from_pem(pem)?);
        block_on(vault.put(&name, &key))?;
        println!("{:<40} {:>9.0} /s", format!("{name}: opened and parsed"), rate(|| key.prepare().is_ok()));
        let prepared = key.prepare()?;
        println!("{:<40} {:>9.0} /s", format!("{name}: signature alone"), rate(|| prepared.sign(b"a short message").is_ok()));
    }
    let signer = VaultSigner::new(vault.into());
    let body = vec![b'x'; 2048];
    for (scheme, name) in [(Scheme::Cavage, "RSA-2048"), (Scheme::Rfc9421, "RSA-2048"), (Scheme::Rfc9421, "Ed25519")] {
        let reference = SigningReference::new(KeyName::new(name)?, scheme, "https://social.example/users/ada#main-key")?.seal();
        let label = format!("{scheme}, {name}: 2 KiB request");
        println!("{label:<40} {:>9.0} /s", rate(|| signed(&signer, &body, &reference)));
    }
    Ok(())
}

fn signed(signer: &VaultSigner, body: &[u8], reference: &Sealed) -> bool {
    let Ok(url) = "https://other.example/inbox".parse() else { return false };
    let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, HeaderValue::from_static("application/activity+json"))]);
    let request = Outgoing { method: &Method::POST, url: &url, headers: &headers, body, at: SystemTime::now() };
    block_on(signer.sign(request, reference)).is_ok()
}

fn rate(mut once: impl FnMut() -> bool) -> f64 {
    let (start, mut count) = (Instant::now(), 0_u32);
    while start.elapsed() < MEASURED {
        assert!(once(), "nothing was signed");
        count += 1;
    }
    f64::from(count) / start.elapsed().as_secs_f64()
}
