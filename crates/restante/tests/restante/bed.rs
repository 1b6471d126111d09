//! A folder with a store and a configuration, and the program run on them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;

use crate::http::{Answer, Client};

/// The token of every server under test.
pub(crate) const TOKEN: &str = "a-token-for-tests-only";

/// A configuration under which a receiver on this machine is delivered to, and nothing waits for long.
const CONFIG: &str = r#"
max_retention = "7d"
backoff_initial = "20ms"
backoff_max = "40ms"
poll_interval = "50ms"
[sender]
allow_http = true
allow_private_addresses = true
allow_unsigned = true
[sqlite]
busy_timeout = "200ms"
"#;

/// A folder of its own, deleted at the end.
pub(crate) struct Bed {
    folder: tempfile::TempDir,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// The answer, as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The complaint, as JSON.
    pub(crate) fn fault(&self) -> Value {
        serde_json::from_str(&self.stderr).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            // A signal has no code, and no command here ends by one.
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Bed {
    /// A folder with a configuration and no store.
    pub(crate) fn new() -> Self {
        let bed = Self { folder: tempfile::tempdir().expect("a folder") };
        bed.write("restante.toml", CONFIG);
        bed
    }

    /// A folder with a configuration and an empty store.
    pub(crate) fn with_store() -> Self {
        let bed = Self::new();
        let depth = bed.run(&["depth", "--create"]);
        assert_eq!(depth.code, 0, "{depth:?}");
        bed
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    pub(crate) fn configure(&self, more: &str) {
        self.write("restante.toml", &format!("{more}\n{CONFIG}"));
    }

    /// The URL of the store.
    pub(crate) fn store(&self) -> String {
        format!("sqlite:{}", self.path("backlog.sqlite").display())
    }

    /// The program, in the folder, with this store and this configuration unless others are named.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program(self.folder.path());
        command.args(arguments);
        if !arguments.contains(&"--store") {
            command.args(["--store", &self.store()]);
        }
        if !arguments.contains(&"--config") {
            command.arg("--config").arg(self.path("restante.toml"));
        }
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        self.command(arguments).stdin(Stdio::null()).output().expect("the program").into()
    }

    /// Runs a command and reads its answer.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Value {
        let done = self.run(&[arguments, &["--json"]].concat());
        assert!(done.code <= 1, "{done:?}");
        done.json()
    }

    /// Runs a command with this on standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Done {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program");
        // It may end without reading.
        let _ = child.stdin.take().expect("its input").write_all(input);
        child.wait_with_output().expect("its end").into()
    }

    /// Hands a message over, and returns the id of its first entry.
    pub(crate) fn send(&self, inbox: &str, payload: &str) -> String {
        let done = self.run_with(&["send", "--json", "--inbox", inbox], payload.as_bytes());
        assert_eq!(done.code, 0, "{done:?}");
        format!("{}.0", done.json()["send"].as_str().expect("an id"))
    }

    /// Starts a server on a free port, and waits until it listens.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Server {
        let mut command = self.command(&[&["serve", "--json", "--listen", "127.0.0.1:0"], arguments].concat());
        command.env("RESTANTE_TOKEN", TOKEN).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        let mut stdout = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("its output");
        let Ok(said) = serde_json::from_str::<Value>(&line) else {
            panic!("it does not listen: {:?}", Done::from(child.wait_with_output().expect("its end")));
        };
        assert_eq!(said["event"], "listening");
        let address = said["address"].as_str().and_then(|url| url.strip_prefix("http://")).expect("an address").to_owned();
        Server { child, stdout, client: Client { address } }
    }
}

/// The program, with nothing of the surroundings.
pub(crate) fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_restante"));
    command.current_dir(folder).env_remove("RESTANTE_TOKEN").env_remove("RESTANTE_MASTER_KEY");
    command
}

/// A server, ended with the test.
pub(crate) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) client: Client,
}

impl Server {
    /// Asks with the right token.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        self.client.ask(method, path, Some(TOKEN), body)
    }

    /// Sends it a signal, by name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().expect("kill");
        assert!(status.success());
    }

    /// Waits for its end: exit code, last word, log.
    pub(crate) fn end(mut self) -> (i32, Value, String) {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("its output");
        let code = self.child.wait().expect("its end").code().unwrap_or(-1);
        let mut log = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            std::io::Read::read_to_string(&mut stderr, &mut log).expect("its log");
        }
        let last = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}, {log}"));
        (code, last, log)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
