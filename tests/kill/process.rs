//! The process that is killed, and its store between two lives.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use restante_core::Env;
use restante_core::machine::{inspect_page, inspect_range};
use restante_kv::{AtomicKv as _, StoreTime};
use restante_kv_sqlite::SqliteKv;

pub(crate) const TOKEN: &str = "a-token-that-only-this-machine-knows";

/// Short times, so that what a kill leaves behind is taken up again soon.
const CONFIG: &str = r#"
max_retention = "1h"
lease = "4s"
request_timeout = "1s"
lease_margin = "500ms"
gate_freshness = "500ms"
backoff_initial = "50ms"
backoff_max = "500ms"
attempts_max = 100
poll_interval = "100ms"
sweep_interval = "2s"
concurrency = 32

[sender]
connect_timeout = "500ms"
allow_http = true
allow_private_addresses = true
allow_unsigned = true
"#;

/// Where everything lies.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    program: PathBuf,
    directory: PathBuf,
    pub(crate) store: PathBuf,
    config: PathBuf,
    token: PathBuf,
    journal: bool,
}

impl Site {
    pub(crate) fn new(program: &Path, directory: &Path, journal: bool) -> Self {
        let file = |name: &str, text: &str| {
            let path = directory.join(name);
            fs::write(&path, text).expect("a file");
            path
        };
        let token = file("token", TOKEN);
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("permissions");
        Self {
            program: program.to_owned(),
            directory: directory.to_owned(),
            store: directory.join("backlog.sqlite"),
            config: file("restante.toml", CONFIG),
            token,
            journal,
        }
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(name).arg("--store").arg(format!("sqlite:{}", self.store.display())).arg("--config").arg(&self.config);
        command
    }

    /// Runs a command of the program to its end: its exit code and what it said.
    pub(crate) fn ask(&self, name: &str, more: &[&str]) -> (Option<i32>, String) {
        let output = self.command(name).args(more).output().expect("the program");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text)
    }

    /// The journals of all lives, in order.
    pub(crate) fn journals(&self) -> Vec<PathBuf> {
        (0..).map(|life| self.journal_of(life)).take_while(|path| path.exists()).collect()
    }

    fn journal_of(&self, life: usize) -> PathBuf {
        self.directory.join(format!("life-{life}.journal"))
    }

    /// Entries that lie under a lease while no process runs, and how many leases still run.
    pub(crate) fn leases(&self) -> (BTreeSet<String>, usize) {
        let settings = restante::settings::Settings::from_toml(CONFIG).expect("the configuration");
        let env = Env::new(settings.config);
        let store = SqliteKv::builder(&self.store).open().expect("the store opens after a kill");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_millis() as u64;
        let (mut leased, mut live, mut next) = (BTreeSet::new(), 0, None);
        loop {
            let page = runtime.block_on(store.scan(inspect_range(&env, next), 500)).expect("a page");
            let shown = inspect_page(&env, &page);
            for row in shown.rows {
                if let Some(lease) = row.lease {
                    leased.insert(row.id.to_string());
                    live += usize::from(lease.expires_at > StoreTime::from_ms(now));
                }
            }
            match shown.next {
                Some(key) => next = Some(key),
                None => return (leased, live),
            }
        }
    }

    pub(crate) fn wait_until_drained(&self, deadline: Duration) -> bool {
        let ends = Instant::now() + deadline;
        while Instant::now() < ends {
            let (code, text) = self.ask("depth", &["--json"]);
            if code == Some(0) && text.contains("\"entries\":0") {
                return true;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        false
    }
}

/// One life of the process.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    address: String,
    began: Instant,
}

impl Process {
    pub(crate) fn start(site: &Site, life: usize) -> Self {
        let began = Instant::now();
        let log = fs::File::create(site.directory.join(format!("life-{life}.log"))).expect("a log");
        let mut command = site.command("serve");
        command.args(["--create", "--listen", "127.0.0.1:0", "--token-file"]).arg(&site.token);
        if site.journal {
            command.arg("--journal").arg(site.journal_of(life));
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on http://").map(str::to_owned);
        let address = address.unwrap_or_else(|| {
            let log = fs::read_to_string(site.directory.join(format!("life-{life}.log"))).unwrap_or_default();
            panic!("the program says {line:?}, and logs {log}")
        });
        Self { child, address, began }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// SIGKILL: no warning, no clean-up.
    pub(crate) fn kill(&mut self) -> Instant {
        self.child.kill().expect("it was running");
        self.child.wait().expect("it ends");
        Instant::now()
    }

    /// SIGTERM; whether it ended by itself and content.
    pub(crate) fn stop(&mut self) -> bool {
        let mut kill = Command::new("kill");
        kill.arg("-TERM").arg(self.child.id().to_string()).status().expect("kill");
        self.child.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Whatever went wrong, nothing keeps running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
