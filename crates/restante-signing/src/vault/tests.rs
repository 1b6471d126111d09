use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use restante_kv::{BoxFuture, Committed, Limits, MemoryKv, Page, Snapshot, StoreTime};
use restante_kv_conformance::block_on;

use super::*;
use crate::KeyKind;

const ED25519: &str = include_str!("../../tests/keys/ed25519.pem");
const RSA: &str = include_str!("../../tests/keys/rsa.pem");

/// A store whose commits can be made ambiguous: the next `late` never happen, the next `lost` do.
struct Trouble {
    inner: MemoryKv,
    late: AtomicU32,
    lost: AtomicU32,
    reads: AtomicU32,
}

impl AtomicKv for Trouble {
    fn limits(&self) -> Limits {
        self.inner.limits()
    }
    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.get_many(keys)
    }
    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        // Short pages: the vault must read on.
        self.inner.scan(range, limit.min(2))
    }
    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        let take = |count: &AtomicU32| count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok();
        Box::pin(async move {
            if take(&self.late) {
                return Err(StoreError::Ambiguous("late".to_owned()));
            }
            let committed = self.inner.cas_many(txn).await?;
            if take(&self.lost) { Err(StoreError::Ambiguous("lost".to_owned())) } else { Ok(committed) }
        })
    }
}

fn store() -> Arc<Trouble> {
    let inner = MemoryKv::new(Limits::FLOOR, Arc::new(|| StoreTime::from_ms(0))).strict(true);
    Arc::new(Trouble { inner, late: AtomicU32::new(0), lost: AtomicU32::new(0), reads: AtomicU32::new(0) })
}

fn master(number: u32) -> MasterKey {
    MasterKey::from_bytes(number, [number as u8; 32])
}

fn vault(store: &Arc<Trouble>, masters: MasterKeys) -> Vault {
    Vault::new(store.clone(), "vault/", masters)
}

fn name(text: &str) -> KeyName {
    KeyName::new(text).expect("a name")
}

fn pem(text: &str) -> PrivateKey {
    PrivateKey::from_pem(text).expect("a key")
}

/// Puts `value` under `key`, whatever is there.
fn overwrite(store: &Trouble, key: Key, value: Value) {
    let found = block_on(store.inner.get_many(vec![key.clone()])).expect("read").values.remove(0);
    let expect = found.map_or(Expect::Absent, |found| Expect::Version(found.version));
    let checks = vec![Check { key: key.clone(), expect }];
    let writes = vec![Write { key, mutation: Mutation::Put(value), guard: Guard::Checked }];
    block_on(store.inner.cas_many(Txn { checks, writes })).expect("written");
}

fn record(store: &Trouble, vault: &Vault, of: &str) -> Value {
    let found = block_on(store.inner.get_many(vec![vault.key(&name(of))])).expect("read").values.remove(0);
    found.expect("a record").value
}

#[test]
fn a_key_comes_back_and_signs() {
    let store = store();
    let vault = vault(&store, MasterKeys::new(master(1)));
    assert_eq!(block_on(vault.put(&name("ada"), &pem(ED25519))), Ok(Put::Created));
    let first = block_on(vault.get(&name("ada"))).expect("a key").sign(b"x").expect("signed");
    assert_eq!(first, pem(ED25519).prepare().and_then(|key| key.sign(b"x")).expect("signed"));
    assert_eq!(block_on(vault.put(&name("ada"), &pem(RSA))), Ok(Put::Replaced));
    assert_eq!(block_on(vault.get(&name("ada"))).expect("a key").kind(), KeyKind::Rsa);
}

#[test]
fn nothing_secret_lies_in_the_store_or_is_printed() {
    let store = store();
    let vault = vault(&store, MasterKeys::new(master(7)));
    let key = pem(ED25519);
    block_on(vault.put(&name("ada"), &key)).expect("put");
    let secret = &key.to_plaintext()[17..];
    let stored = record(&store, &vault, "ada");
    assert!(!stored.as_bytes().windows(8).any(|window| secret.windows(8).any(|other| window == other)));
    assert_eq!(format!("{vault:?}"), "Vault(prefix vault/, MasterKeys { sealing: MasterKey(7), opening: [] })");
    let prepared = block_on(vault.get(&name("ada"))).expect("a key");
    assert_eq!(format!("{key:?} {prepared:?}"), "PrivateKey(Ed25519) SigningKey(Ed25519)");
}

#[test]
fn an_unknown_key_is_named() {
    let vault = vault(&store(), MasterKeys::new(master(1)));
    assert_eq!(block_on(vault.get(&name("eve"))).map(|_| ()), Err(VaultError::UnknownKey { name: name("eve") }));
}

#[test]
fn a_missing_master_key_is_asked_for_by_number() {
    let store = store();
    block_on(vault(&store, MasterKeys::new(master(1))).put(&name("ada"), &pem(ED25519))).expect("put");
    let other = vault(&store, MasterKeys::new(master(2)));
    let error = block_on(other.get(&name("ada"))).map(|_| ()).expect_err("no key");
    assert_eq!(error, VaultError::MasterKeyMissing { name: name("ada"), needed: 1, given: vec![2] });
    let wrong = vault(&store, MasterKeys::new(MasterKey::from_bytes(1, [9; 32])));
    let error = block_on(wrong.get(&name("ada"))).map(|_| ()).expect_err("no key");
    assert_eq!(error, VaultError::MasterKeyDiffers { name: name("ada"), needed: 1 });
}

#[test]
fn any_altered_byte_is_noticed() {
    let store = store();
    let vault = vault(&store, MasterKeys::new(master(1))).with_cache(CacheLimits { keys_max: 0, age_max: Duration::ZERO });
    block_on(vault.put(&name("ada"), &pem(ED25519))).expect("put");
    let good = record(&store, &vault, "ada").as_bytes().to_vec();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        overwrite(&store, vault.key(&name("ada")), Value::from(bad));
        let error = block_on(vault.get(&name("ada"))).map(|_| ()).expect_err("altered");
        match at {
            0 => assert!(matches!(error, VaultError::UnknownFormat { format: 0, .. }), "{at}: {error:?}"),
            1..=4 => assert!(matches!(error, VaultError::MasterKeyMissing { .. }), "{at}: {error:?}"),
            5..=12 => assert!(matches!(error, VaultError::MasterKeyDiffers { .. }), "{at}: {error:?}"),
            _ => assert!(matches!(error, VaultError::Tampered { .. }), "{at}: {error:?}"),
        }
    }
    for len in 0..good.len() {
        overwrite(&store, vault.key(&name("ada")), Value::from(&good[..len]));
        assert!(matches!(block_on(vault.get(&name("ada"))), Err(VaultError::Tampered { .. })), "{len} bytes");
    }
}

#[test]
fn records_cannot_be_swapped() {
    let store = store();
    let vault = vault(&store, MasterKeys::new(master(1)));
    for of in ["ada", "eve"] {
        block_on(vault.put(&name(of), &pem(ED25519))).expect("put");
    }
    overwrite(&store, vault.key(&name("ada")), record(&store, &vault, "eve"));
    assert_eq!(block_on(vault.get(&name("ada"))).map(|_| ()), Err(VaultError::Tampered { name: name("ada") }));
}

#[test]
fn rotation_seals_every_record_anew_and_is_idempotent() {
    let store = store();
    let old = vault(&store, MasterKeys::new(master(1)));
    for of in ["a", "b", "c", "d", "e"] {
        block_on(old.put(&name(of), &pem(ED25519))).expect("put");
    }
    let both = vault(&store, MasterKeys::new(master(2)).opening(master(1)).expect("two keys"));
    // Broken off: one commit never happens, one answer is lost.
    store.late.store(1, Ordering::Relaxed);
    store.lost.store(1, Ordering::Relaxed);
    let first = block_on(both.rotate()).expect("rotated");
    assert_eq!((first.resealed, first.current, first.left.len()), (4, 0, 1));
    assert!(!first.left[0].1.is_definite() && !first.is_complete());
    let second = block_on(both.rotate()).expect("rotated");
    assert_eq!((second.resealed, second.current, second.left.len()), (1, 4, 0));
    let third = block_on(both.rotate()).expect("rotated");
    assert_eq!((third.resealed, third.current, third.is_complete()), (0, 5, true));

    let new = vault(&store, MasterKeys::new(master(2)));
    let listed = block_on(new.list()).expect("listed");
    assert!(listed.iter().all(|key| key.master_key == Some(2)), "{listed:?}");
    assert_eq!(listed.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c", "d", "e"]);
    assert!(block_on(new.get(&name("a"))).is_ok());
}

#[test]
fn one_bad_record_does_not_keep_the_others_from_rotation() {
    let store = store();
    let old = vault(&store, MasterKeys::new(master(1)));
    for of in ["a", "b", "c"] {
        block_on(old.put(&name(of), &pem(ED25519))).expect("put");
    }
    overwrite(&store, old.key(&name("b")), Value::from(&b"\x09"[..]));
    let both = vault(&store, MasterKeys::new(master(2)).opening(master(1)).expect("two keys"));
    let rotation = block_on(both.rotate()).expect("rotated");
    assert_eq!(rotation.resealed, 2);
    assert_eq!(rotation.left, [(name("b"), VaultError::UnknownFormat { name: name("b"), format: 9 })]);
}

#[test]
fn an_ambiguous_commit_stays_ambiguous_unless_its_record_is_there() {
    let store = store();
    let vault = vault(&store, MasterKeys::new(master(1)));
    store.late.store(1, Ordering::Relaxed);
    let error = block_on(vault.put(&name("ada"), &pem(ED25519))).expect_err("unknown");
    assert_eq!(error, VaultError::Store(StoreError::Ambiguous("late".to_owned())));
    store.lost.store(1, Ordering::Relaxed);
    assert_eq!(block_on(vault.put(&name("ada"), &pem(ED25519))), Ok(Put::Created));
    store.late.store(1, Ordering::Relaxed);
    assert!(!block_on(vault.remove(&name("ada"))).expect_err("unknown").is_definite());
    store.lost.store(1, Ordering::Relaxed);
    assert_eq!(block_on(vault.remove(&name("ada"))), Ok(true));
    assert_eq!(block_on(vault.remove(&name("ada"))), Ok(false));
}

#[test]
fn a_removed_key_leaves_the_cache_at_once() {
    let store = store();
    let vault = vault(&store, MasterKeys::new(master(1)));
    block_on(vault.put(&name("ada"), &pem(ED25519))).expect("put");
    block_on(vault.get(&name("ada"))).expect("a key");
    let reads = store.reads.load(Ordering::Relaxed);
    block_on(vault.get(&name("ada"))).expect("a key");
    assert_eq!(store.reads.load(Ordering::Relaxed), reads, "a parsed key is used again");
    block_on(vault.remove(&name("ada"))).expect("removed");
    assert!(matches!(block_on(vault.get(&name("ada"))), Err(VaultError::UnknownKey { .. })));
}

#[test]
fn a_vault_sees_nothing_outside_its_prefix() {
    let store = store();
    let vault = vault(&store, MasterKeys::new(master(1)));
    overwrite(&store, Key::from(&b"vault/x"[..]), Value::from(&b"other"[..]));
    overwrite(&store, Key::from(&b"vault/k"[..]), Value::from(&b"no tuple"[..]));
    overwrite(&store, Key::from(&b"other"[..]), Value::from(&b"other"[..]));
    assert_eq!(block_on(vault.list()), Ok(Vec::new()));
    assert_eq!(block_on(vault.rotate()), Ok(Rotation::default()));
}

#[test]
fn master_keys_are_read_as_hex_and_base64_and_nothing_of_them_is_told() {
    let hex = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
    let base64 = " AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";
    let expected: [u8; 32] = std::array::from_fn(|at| at as u8);
    for text in [hex, base64, base64.trim().trim_end_matches('=')] {
        assert_eq!(MasterKey::from_text(1, text).expect("a key").bytes(), &expected, "{text}");
    }
    for text in ["", "00", "AAEC", &hex.replace('0', "g"), &"ü".repeat(32)] {
        let error = MasterKey::from_text(3, text).map(|_| ()).expect_err("no key");
        assert_eq!(error, MasterKeyError::Malformed { number: 3 });
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), hex).expect("written");
    assert!(MasterKey::from_file(1, file.path()).is_ok());
    assert!(matches!(MasterKey::from_file(1, "absent"), Err(MasterKeyError::File { .. })));
    assert!(matches!(MasterKey::from_env(1, "RESTANTE_ABSENT"), Err(MasterKeyError::Variable { .. })));
    let twice = MasterKeys::new(master(1)).opening(master(1)).map(|_| ());
    assert_eq!(twice, Err(MasterKeyError::NumberTwice { number: 1 }));
}
