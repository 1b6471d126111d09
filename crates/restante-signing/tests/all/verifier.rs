//! The independent verifier: installs it from its lock file, starts it, stops it.

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Its files, as they lie beside the tests.
const FILES: [(&str, &str); 3] = [
    ("package.json", include_str!("../verifier/package.json")),
    ("package-lock.json", include_str!("../verifier/package-lock.json")),
    ("verify.mjs", include_str!("../verifier/verify.mjs")),
];

/// A receiver on 127.0.0.1 that checks signatures. Stopped when dropped.
pub(crate) struct Verifier {
    child: Child,
    pub(crate) port: u16,
}

impl Verifier {
    /// Starts it, knowing these key ids with the keys of these PEM files. `None` after it said why the test is skipped.
    pub(crate) fn start(keys: &[(&str, &Path)]) -> Option<Self> {
        match Self::try_start(keys) {
            Ok(verifier) => Some(verifier),
            Err(why) => {
                assert!(std::env::var("CI").as_deref() != Ok("true"), "the independent verifier does not start: {why}");
                // Not captured, so that it is seen although the test passes.
                let _ = writeln!(std::io::stderr(), "skipped: the independent verifier does not start: {why}");
                None
            }
        }
    }

    fn try_start(keys: &[(&str, &Path)]) -> Result<Self, String> {
        let folder = install()?;
        let mut command = Command::new("node");
        command.arg("verify.mjs").current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        for (key_id, pem) in keys {
            command.arg(key_id).arg(pem);
        }
        let mut child = command.spawn().map_err(|error| format!("node: {error}"))?;
        let mut line = String::new();
        let stdout = child.stdout.take().ok_or("no output")?;
        BufReader::new(stdout).read_line(&mut line).map_err(|error| format!("node: {error}"))?;
        match line.trim().parse() {
            Ok(port) => Ok(Self { child, port }),
            Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(format!("node printed {line:?} instead of a port"))
            }
        }
    }
}

impl Drop for Verifier {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Installs the verifier's packages once, whichever test comes first; another process waits its turn.
fn install() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("signature-verifier");
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(said)?;
    let turn = fs::File::create(folder.join("turn")).map_err(said)?;
    turn.lock().map_err(said)?;
    for (name, text) in FILES {
        fs::write(folder.join(name), text).map_err(said)?;
    }
    // What is installed is what this copy of the lock file says.
    let installed = folder.join("installed");
    if fs::read_to_string(&installed).is_ok_and(|lock| lock == FILES[1].1) {
        return Ok(folder);
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&folder);
    let output = npm.stdin(Stdio::null()).output().map_err(|error| format!("npm: {error}"))?;
    if !output.status.success() {
        return Err(format!("npm ci: {}", String::from_utf8_lossy(&output.stderr)));
    }
    fs::write(&installed, FILES[1].1).map_err(said)?;
    Ok(folder)
}
