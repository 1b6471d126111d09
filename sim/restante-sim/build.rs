//! Names the build in capsules: the compiler, and a hash of every source file that a run depends on. A capsule that does not
//! reproduce is stale when another build made it, and a sign of nondeterminism when this very build did.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let workspace = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo names the package's folder")).join("../..");
    let mut files = vec![workspace.join("Cargo.lock")];
    for folder in ["crates", "sim"] {
        println!("cargo::rerun-if-changed={}", workspace.join(folder).display());
        collect(&workspace.join(folder), &mut files);
    }
    println!("cargo::rerun-if-changed={}", workspace.join("Cargo.lock").display());
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let name = file.strip_prefix(&workspace).map(|name| name.to_string_lossy().replace('\\', "/")).unwrap_or_default();
        // A file that vanishes meanwhile counts as empty.
        let bytes = fs::read(&file).unwrap_or_default();
        for byte in name.bytes().chain([0]).chain(bytes.into_iter().filter(|byte| *byte != b'\r')).chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=RESTANTE_SOURCE={hash:016x}");
    let rustc = env::var_os("RUSTC").expect("cargo names the compiler");
    let version = Command::new(rustc).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    println!("cargo::rustc-env=RESTANTE_TOOLCHAIN={}", String::from_utf8_lossy(&version).trim());
    println!("cargo::rustc-env=RESTANTE_PROFILE={}", env::var("PROFILE").unwrap_or_default());
}

/// Adds the sources and manifests under `folder`, but no tests, benches and examples.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if !["tests", "benches", "examples", "target", "snapshots"].iter().any(|skipped| name == *skipped) {
                collect(&path, files);
            }
        } else if name == "Cargo.toml" || path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
