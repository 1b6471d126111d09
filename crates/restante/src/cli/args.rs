//! What can be said on the command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use restante_kv::StoreTime;

use crate::api::{Scheme, SigningBody};
use crate::operate::{HoldEnd, PAGE_DEFAULT, PAGE_MAX};
use crate::settings::parse_duration_ms;
use crate::site::Place;
use crate::store::OpenOptions;
use crate::views::read_instant;

const EXIT_CODES: &str = "\
Exit codes: 0 done, or yes; 1 the answer is no (not drained, the doctor found something, a deadline was missed);
2 usage (arguments, configuration, token, address); 3 the store cannot be opened or used; 4 it is unknown whether
it was done; 5 refused (intake closed, conflict, unknown id). Only after 0, 1 and 4 can anything have changed.";

/// Own deliveries until each is delivered or visibly dropped
#[derive(Debug, Parser)]
#[command(name = "restante", version, after_help = EXIT_CODES, subcommand_required = true, arg_required_else_help = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
    #[command(flatten)]
    pub(super) log: LogArgs,
}

/// Logs go to standard error.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// How much is logged: a level, or levels by module, as in `info,restante_driver=debug` [default: info for serve, else warn]
    #[arg(long, global = true, value_name = "LEVEL", value_parser = super::log::levels)]
    pub(super) log: Option<tracing_subscriber::filter::Targets>,
    /// How logs are written
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    pub(super) log_format: LogFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum LogFormat {
    /// One line an event
    Text,
    /// One JSON object an event
    Json,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Deliver until stopped, with an HTTP API for a server beside it
    #[command(after_help = EXIT_CODES)]
    Serve(ServeArgs),
    /// Hand one message over
    #[command(after_help = EXIT_CODES)]
    Send(SendArgs),
    /// Deliver what is due and return: what cron calls
    #[command(after_help = EXIT_CODES)]
    RunOnce(RunOnceArgs),
    /// Show what the backlog owns
    #[command(after_help = EXIT_CODES)]
    Depth(Common),
    /// Say whether intake is closed and nothing is left to deliver
    #[command(after_help = EXIT_CODES)]
    Drained(Common),
    /// Show entries, or one
    #[command(after_help = EXIT_CODES)]
    Inspect(InspectArgs),
    /// Open, close or show intake
    #[command(after_help = EXIT_CODES, subcommand_required = true, arg_required_else_help = true)]
    Intake(IntakeArgs),
    /// Show, drop or revive what was put aside
    #[command(after_help = EXIT_CODES, subcommand_required = true, arg_required_else_help = true)]
    Quarantine(QuarantineArgs),
    /// Say that a destination wants no deliveries for a while, or wants them again
    #[command(after_help = EXIT_CODES, subcommand_required = true, arg_required_else_help = true)]
    Hold(HoldArgs),
    /// Show destinations of which something is known: holds, pauses, circuits
    #[command(after_help = EXIT_CODES)]
    Destinations(ListArgs),
    /// Show what was given up and is not forgotten yet
    #[command(after_help = EXIT_CODES)]
    DeadLetters(ListArgs),
    /// Hold every record against what must be true of it
    #[command(after_help = EXIT_CODES)]
    Doctor(DoctorArgs),
    /// Keep the private keys that sign
    #[command(after_help = EXIT_CODES, subcommand_required = true, arg_required_else_help = true)]
    Keys(KeysArgs),
    /// Print the description of the HTTP API (OpenAPI 3.1)
    Openapi,
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

/// What every command about a store knows.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// The store: sqlite:PATH, or memory: with --allow-volatile
    #[arg(long, value_name = "URL")]
    pub(super) store: String,
    /// The configuration file (TOML); the same for every process of one store [default: none]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// How long a delivery may live; goes before the configuration [default: what the configuration says]
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ms)]
    pub(super) max_retention: Option<u64>,
    /// Begin a new store where there is no file
    #[arg(long)]
    pub(super) create: bool,
    /// Accept a store that forgets everything when the process ends
    #[arg(long)]
    pub(super) allow_volatile: bool,
    /// Print the answer as one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

impl Common {
    pub(super) fn place(&self) -> Place {
        let Self { store, config, max_retention, create, allow_volatile, json: _ } = self;
        Place {
            store: store.clone(),
            config: config.clone(),
            max_retention_ms: *max_retention,
            options: OpenOptions { create: *create, allow_volatile: *allow_volatile },
            journal: None,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct JournalArgs {
    /// Record what is asked and answered in this new file, for `restante-sim replay --journal` [default: not recorded]
    #[arg(long = "journal", value_name = "FILE")]
    journal_file: Option<PathBuf>,
    /// Most bytes of it; once full, nothing more is recorded
    #[arg(long, value_name = "N", default_value_t = 64 * 1024 * 1024)]
    journal_bytes_max: u64,
}

impl JournalArgs {
    pub(super) fn bounded(&self) -> Option<(PathBuf, u64)> {
        self.journal_file.clone().map(|path| (path, self.journal_bytes_max))
    }
}

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(flatten)]
    pub(super) journal: JournalArgs,
    /// The address of the HTTP API; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7080")]
    pub(super) listen: SocketAddr,
    /// Accept an address that other machines reach; the API is not encrypted
    #[arg(long)]
    pub(super) allow_non_loopback: bool,
    /// The file that holds the token of the HTTP API [default: the environment variable RESTANTE_TOKEN holds it]
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// Most bytes of a request's body
    #[arg(long, value_name = "N", default_value_t = 1024 * 1024)]
    pub(super) body_bytes_max: usize,
    /// How long what is under way may take after a signal to stop
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration_ms)]
    pub(super) deadline: u64,
}

#[derive(Debug, Args)]
pub(super) struct SendArgs {
    #[command(flatten)]
    pub(super) common: Common,
    /// Where to; may be given more than once
    #[arg(long = "inbox", value_name = "URL", required = true)]
    pub(super) inboxes: Vec<String>,
    /// The file whose bytes are POSTed; `-` is standard input
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(super) payload: PathBuf,
    /// Messages under one key are one send [default: every call is another send]
    #[arg(long, value_name = "KEY")]
    pub(super) idempotency_key: Option<String>,
    /// Deliveries of one order key to one destination happen in accepted order [default: in no order]
    #[arg(long, value_name = "KEY")]
    pub(super) order_key: Option<String>,
    #[command(flatten)]
    pub(super) signing: SigningArgs,
}

#[derive(Debug, Args)]
pub(super) struct SigningArgs {
    /// The name of the key that signs [default: not signed]
    #[arg(long, value_name = "NAME", requires = "sign_key_id")]
    pub(super) sign_key: Option<String>,
    /// The URL under which receivers find its public half [default: not signed]
    #[arg(long, value_name = "URL", requires = "sign_key")]
    pub(super) sign_key_id: Option<String>,
    /// How it signs
    #[arg(long, value_name = "SCHEME", default_value = "cavage", requires = "sign_key")]
    pub(super) sign_scheme: SchemeArg,
}

impl SigningArgs {
    pub(super) fn reference(&self) -> Option<SigningBody> {
        let (key, key_id) = (self.sign_key.clone()?, self.sign_key_id.clone()?);
        let scheme = match self.sign_scheme {
            SchemeArg::Cavage => Scheme::Cavage,
            SchemeArg::Rfc9421 => Scheme::Rfc9421,
        };
        Some(SigningBody { key, scheme, key_id })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum SchemeArg {
    /// HTTP Signatures as the fediverse uses them
    Cavage,
    /// HTTP Message Signatures
    Rfc9421,
}

#[derive(Debug, Args)]
pub(super) struct RunOnceArgs {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(flatten)]
    pub(super) journal: JournalArgs,
    /// Most deliveries
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) limit: u64,
}

#[derive(Debug, Args)]
pub(super) struct PageArgs {
    /// Most rows
    #[arg(long, value_name = "N", default_value_t = PAGE_DEFAULT as u64, value_parser = page_limit())]
    pub(super) limit: u64,
    /// Where to begin: what the page before ended with [default: at the beginning]
    #[arg(long, value_name = "CURSOR")]
    pub(super) cursor: Option<String>,
}

fn page_limit() -> impl TypedValueParser<Value = u64> {
    clap::value_parser!(u64).range(1..=PAGE_MAX as u64)
}

#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// One entry, by its id [default: all, page by page]
    #[arg(value_name = "ID", conflicts_with_all = ["limit", "cursor", "destination"])]
    pub(super) id: Option<String>,
    #[command(flatten)]
    pub(super) common: Common,
    #[command(flatten)]
    pub(super) page: PageArgs,
    /// Only what goes to this destination: https://host, or the host alone [default: everything]
    #[arg(long, value_name = "HOST")]
    pub(super) destination: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct IntakeArgs {
    #[command(subcommand)]
    pub(super) act: IntakeAct,
}

#[derive(Debug, Subcommand)]
pub(super) enum IntakeAct {
    /// Accept sends
    #[command(after_help = EXIT_CODES)]
    Open(Common),
    /// Refuse sends, in every process, from the moment this returns
    #[command(after_help = EXIT_CODES)]
    Close(Common),
    /// Say whether sends are accepted
    #[command(after_help = EXIT_CODES)]
    Show(Common),
}

#[derive(Debug, Args)]
pub(super) struct QuarantineArgs {
    #[command(subcommand)]
    pub(super) act: QuarantineAct,
}

#[derive(Debug, Subcommand)]
pub(super) enum QuarantineAct {
    /// Show what was put aside
    #[command(after_help = EXIT_CODES)]
    List(ListArgs),
    /// Show one record
    #[command(after_help = EXIT_CODES)]
    Show(OfRecord),
    /// Drop one record now
    #[command(after_help = EXIT_CODES)]
    Drop(OfRecord),
    /// Make one record an entry again, in its place, or at the front of a lane that has passed it
    #[command(after_help = EXIT_CODES)]
    Revive(OfRecord),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(flatten)]
    pub(super) page: PageArgs,
}

#[derive(Debug, Args)]
pub(super) struct OfRecord {
    /// Its id
    #[arg(value_name = "ID")]
    pub(super) id: String,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Debug, Args)]
pub(super) struct HoldArgs {
    #[command(subcommand)]
    pub(super) act: HoldAct,
}

#[derive(Debug, Subcommand)]
pub(super) enum HoldAct {
    /// Keep what goes to a destination, and post nothing there meanwhile
    #[command(after_help = EXIT_CODES)]
    Set(HoldSetArgs),
    /// Deliver there again, whatever was said before
    #[command(after_help = EXIT_CODES)]
    Release(NoticeArgs),
}

#[derive(Debug, Args)]
pub(super) struct HoldSetArgs {
    #[command(flatten)]
    pub(super) notice: NoticeArgs,
    /// Until when: RFC 3339, as in 2026-01-01T12:00:00Z [default: until it is released, and at most for hold_cap]
    #[arg(long, value_name = "TIME", value_parser = read_instant, conflicts_with = "duration")]
    until: Option<StoreTime>,
    /// For how long from its beginning [default: as for --until]
    #[arg(long = "for", id = "duration", value_name = "DURATION", value_parser = parse_duration_ms)]
    duration: Option<u64>,
}

impl HoldSetArgs {
    pub(super) fn end(&self) -> HoldEnd {
        let after = self.duration.map(HoldEnd::After);
        self.until.map(HoldEnd::At).or(after).unwrap_or(HoldEnd::Unknown)
    }
}

#[derive(Debug, Args)]
pub(super) struct NoticeArgs {
    /// The destination: https://host, or the host alone for https
    #[arg(value_name = "DESTINATION")]
    pub(super) destination: String,
    #[command(flatten)]
    pub(super) common: Common,
    /// From when on: RFC 3339, as in 2026-01-01T12:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = read_instant)]
    pub(super) from: Option<StoreTime>,
}

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    pub(super) common: Common,
    /// Also repair what can be repaired
    #[arg(long)]
    pub(super) repair: bool,
}

#[derive(Debug, Args)]
pub(super) struct KeysArgs {
    #[command(subcommand)]
    pub(super) act: KeysAct,
}

#[derive(Debug, Subcommand)]
pub(super) enum KeysAct {
    /// Seal a private key under a name, in the place of one that is there
    #[command(after_help = EXIT_CODES)]
    Add(KeysAddArgs),
    /// Show the names, and which master key seals each
    #[command(after_help = EXIT_CODES)]
    List(Common),
    /// Remove a key
    #[command(after_help = EXIT_CODES)]
    Remove(OfKey),
    /// Seal every key anew with the master key that seals
    #[command(after_help = EXIT_CODES)]
    Rotate(Common),
}

#[derive(Debug, Args)]
pub(super) struct KeysAddArgs {
    #[command(flatten)]
    pub(super) key: OfKey,
    /// The file that holds the private key in PEM; `-` is standard input
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(super) pem: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct OfKey {
    /// Its name
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(super) shell: Shell,
}

impl Command {
    /// Whether the answer is to be JSON.
    pub(super) fn is_json(&self) -> bool {
        match self {
            Self::Serve(args) => args.common.json,
            Self::Send(args) => args.common.json,
            Self::RunOnce(args) => args.common.json,
            Self::Depth(common) | Self::Drained(common) => common.json,
            Self::Inspect(args) => args.common.json,
            Self::Intake(args) => match &args.act {
                IntakeAct::Open(common) | IntakeAct::Close(common) | IntakeAct::Show(common) => common.json,
            },
            Self::Quarantine(args) => match &args.act {
                QuarantineAct::List(args) => args.common.json,
                QuarantineAct::Show(args) | QuarantineAct::Drop(args) | QuarantineAct::Revive(args) => args.common.json,
            },
            Self::Hold(args) => match &args.act {
                HoldAct::Set(args) => args.notice.common.json,
                HoldAct::Release(args) => args.common.json,
            },
            Self::Destinations(args) | Self::DeadLetters(args) => args.common.json,
            Self::Doctor(args) => args.common.json,
            Self::Keys(args) => match &args.act {
                KeysAct::Add(args) => args.key.common.json,
                KeysAct::List(common) | KeysAct::Rotate(common) => common.json,
                KeysAct::Remove(args) => args.common.json,
            },
            Self::Openapi | Self::Completions(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_consistent() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn every_command_says_what_it_does_and_every_argument_what_it_is_when_not_given() {
        let mut cli = super::Cli::command();
        cli.build();
        let mut commands = vec![&cli];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().filter(|command| command.get_name() != "help"));
            let name = command.get_name();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && !about.contains('\n'), "{name}: {about:?}");
            for argument in command.get_arguments().filter(|argument| argument.get_action().takes_values()) {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let is_said = !argument.get_default_values().is_empty() || help.contains("[default: ");
                assert!(!help.is_empty() && (is_said || argument.is_required_set()), "{name} {}: {help:?}", argument.get_id());
            }
        }
    }
}
