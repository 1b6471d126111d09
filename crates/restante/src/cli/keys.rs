//! `keys`: the private keys that sign, sealed in the store.

use restante_signing::{KeyName, ListedKey, PrivateKey, Put, VaultError};
use zeroize::Zeroizing;

use super::args::{Common, KeysAct, KeysAddArgs, KeysArgs, OfKey};
use super::output::Output;
use super::send::read;
use super::table::table;
use crate::Exit;
use crate::fault::{Code, Fault};
use crate::views::{DoneView, KeyView, KeysView, RotationView};

pub(super) async fn keys(args: &KeysArgs, output: &mut Output) -> Result<Exit, Fault> {
    match &args.act {
        KeysAct::Add(args) => add(args, output).await,
        KeysAct::List(common) => show_all(common, output).await,
        KeysAct::Remove(args) => remove(args, output).await,
        KeysAct::Rotate(common) => rotate(common, output).await,
    }
}

async fn add(args: &KeysAddArgs, output: &mut Output) -> Result<Exit, Fault> {
    let name = name(&args.key.name)?;
    let bytes = Zeroizing::new(read(&args.pem, "the private key")?);
    let pem = std::str::from_utf8(&bytes).map_err(|_| wrong("the private key is not PEM text".to_owned()))?;
    let key = PrivateKey::from_pem(pem).map_err(|error| wrong(error.to_string()))?;
    let put = args.key.common.place().open_vault()?.put(&name, &key).await.map_err(fault)?;
    output.answer(&DoneView::new(name.as_str()), || match put {
        Put::Created => format!("key {name} ({}) is there\n", key.kind()),
        Put::Replaced => format!("key {name} ({}) is in the place of the one that was there\n", key.kind()),
    });
    Ok(Exit::Ok)
}

async fn show_all(common: &Common, output: &mut Output) -> Result<Exit, Fault> {
    let listed = common.place().open_vault()?.list().await.map_err(fault)?;
    let view = |key: &ListedKey| KeyView { name: key.name.to_string(), master_key: key.master_key };
    let keys = KeysView { keys: listed.iter().map(view).collect() };
    output.answer(&keys, || {
        let master_key =
            |key: &KeyView| key.master_key.map_or_else(|| "(cannot be read)".to_owned(), |number| number.to_string());
        table(["name", "master key"], keys.keys.iter().map(|key| [key.name.clone(), master_key(key)]).collect())
    });
    Ok(Exit::Ok)
}

async fn remove(args: &OfKey, output: &mut Output) -> Result<Exit, Fault> {
    let name = name(&args.name)?;
    if !args.common.place().open_vault()?.remove(&name).await.map_err(fault)? {
        return Err(fault(VaultError::UnknownKey { name }));
    }
    output.answer(&DoneView::new(name.as_str()), || format!("key {name} is gone\n"));
    Ok(Exit::Ok)
}

async fn rotate(common: &Common, output: &mut Output) -> Result<Exit, Fault> {
    let rotation = common.place().open_vault()?.rotate().await.map_err(fault)?;
    let left = rotation.left.iter().map(|(name, why)| (name.to_string(), why.to_string())).collect();
    let view = RotationView { resealed: rotation.resealed as u64, current: rotation.current as u64, left };
    output.answer(&view, || {
        let left: String = view.left.iter().map(|(name, why)| format!("{name} is left: {why}\n")).collect();
        format!("{left}{} sealed anew, {} were already, {} are left\n", view.resealed, view.current, view.left.len())
    });
    Ok(if rotation.is_complete() { Exit::Ok } else { Exit::No })
}

fn name(text: &str) -> Result<KeyName, Fault> {
    KeyName::new(text).map_err(|error| wrong(error.to_string()))
}

fn wrong(what: String) -> Fault {
    Fault::new(Code::InvalidRequest, what, "correct it; nothing was written")
}

fn fault(error: VaultError) -> Fault {
    let message = error.to_string();
    match error {
        VaultError::Store(error) => error.into(),
        VaultError::UnknownKey { name } => {
            Fault::new(Code::UnknownId, format!("there is no key {name}"), "see `restante keys list` for those there are")
        }
        VaultError::Contention { .. } => Fault::new(Code::Contention, message, "try again"),
        VaultError::MasterKeyMissing { .. } | VaultError::MasterKeyDiffers { .. } => {
            Fault::new(Code::Configuration, message, "see [signing] in the configuration file")
        }
        VaultError::Tampered { .. } | VaultError::UnknownFormat { .. } | VaultError::Key { .. } => {
            Fault::new(Code::RecordUnreadable, message, "put the key anew, or use the version that wrote it")
        }
        VaultError::NoEntropy { .. } => Fault::new(Code::Internal, message, "try again; nothing was written"),
    }
}
