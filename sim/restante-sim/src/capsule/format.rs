//! The capsule and its file.

use std::path::{Path, PathBuf};
use std::{fs, io};

use restante_engine::{DecisionRecord, SimTime, Tape, TapeEntry, Violation};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::{Environment, Origin};
use crate::RunResult;
use crate::campaign::{Difference, Divergence, FailedSeed, HarnessError, Planted, SeedOptions, Simulated, Workload, divergence};
use crate::explore::ScheduledMove;

/// Name of the schema; a number follows.
const SCHEMA_NAME: &str = "restante-capsule/";
/// Number of the schema that this version reads and writes.
const SCHEMA_NUMBER: u32 = 1;

/// A violation, to be seen again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capsule {
    /// `restante-capsule/1`.
    pub schema: String,
    /// The world; not written if it is the backlog's.
    #[serde(default, skip_serializing_if = "Simulated::is_backlog")]
    pub world: Simulated,
    /// Name of the scenario, or of the keyed queue's workload or bound.
    pub scenario: String,
    /// Text of the scenario, or of the keyed queue's bound.
    pub scenario_text: String,
    /// The seed.
    pub seed: u64,
    /// Overrides of single decisions.
    pub tape: Tape,
    /// Name of the planted bug, if there was one.
    pub mutant: Option<String>,
    /// What made the capsule.
    pub environment: Environment,
    /// The violation.
    pub failure: FailureNote,
    /// Digest of the run, 32 hexadecimal digits.
    pub digest: String,
    /// The decisions that were not benign, by name.
    pub fired: Vec<TapeEntry>,
    /// All decisions, to compare with.
    pub decisions: DecisionRecord,
    /// For a violation that an exploration found: the moves that lead to it, instead of a seed and a tape.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<ScheduledMove>,
}

/// What was violated.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureNote {
    /// Name of the property.
    pub property: String,
    /// What it promises.
    pub sentence: String,
    /// The property and who took part, by alias.
    pub fingerprint: String,
    /// When it was noticed, in simulated microseconds.
    pub at_us: SimTime,
}

impl FailureNote {
    fn of(violation: &Violation) -> Self {
        Self {
            property: violation.property.into(),
            sentence: sentence_of(violation.property).into(),
            fingerprint: violation.fingerprint(),
            at_us: violation.at,
        }
    }
}

/// Why a violation did not become a capsule.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CaptureError {
    /// It did not happen again.
    #[error(transparent)]
    Diverged(Box<Divergence>),
    /// The simulator failed.
    #[error(transparent)]
    Harness(Box<HarnessError>),
}

/// Why a file is not a usable capsule.
#[derive(Debug, Error)]
pub enum CapsuleError {
    /// It cannot be read.
    #[error("{}: cannot be read: {source}; give the path of a capsule, or a scenario with --seed", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not a capsule.
    #[error("{}: not a capsule: {message}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// It is a capsule of a later version.
    #[error("{}: its schema is {schema} and this version reads up to {SCHEMA_NAME}{SCHEMA_NUMBER}; replay it with a newer restante-sim", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        schema: String,
    },
}

/// Why a capsule could not be written.
#[derive(Debug, Error)]
#[error("{}: the capsule cannot be written: {source}; name a writable folder with --out", .path.display())]
pub struct WriteError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

impl Capsule {
    /// Runs the failed seed again, recorded and traced, and makes a capsule of it.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Diverged`] when it does something else this time.
    pub fn capture(
        workload: impl Into<Workload>,
        failed: &FailedSeed,
        planted: Option<impl Into<Planted>>,
    ) -> Result<(Self, RunResult, Violation), CaptureError> {
        let harness = |error| CaptureError::Harness(Box::new(error));
        let (workload, planted) = (workload.into(), planted.map(Into::into));
        let options = SeedOptions { planted, trace: true, record: true, ..SeedOptions::default() };
        let run = workload.run(failed.seed, &options).map_err(harness)?;
        let violation = match &run.violation {
            Some(violation) if violation.fingerprint() == failed.fingerprint && run.digest == failed.digest => violation.clone(),
            _ => {
                // The first run is only known by its digest; a comparison of later ones may show where they part.
                let found = divergence(&workload, failed.seed, &options, &run).map_err(harness)?;
                let difference = found.map_or(Difference::NotInTrace, |found| found.difference);
                let (scenario, seed) = (workload.name().to_owned(), failed.seed);
                let divergence = Divergence { scenario, seed, first: failed.digest, second: run.digest, difference };
                return Err(CaptureError::Diverged(Box::new(divergence)));
            }
        };
        Ok((Self::of((&workload).into(), failed.seed, planted, &run, &violation), run, violation))
    }

    fn of(origin: Origin, seed: u64, planted: Option<Planted>, run: &RunResult, violation: &Violation) -> Self {
        Self {
            schema: format!("{SCHEMA_NAME}{SCHEMA_NUMBER}"),
            world: origin.world,
            scenario: origin.name,
            scenario_text: origin.text,
            seed,
            tape: Tape::new(),
            mutant: planted.map(|planted| planted.name().to_owned()),
            environment: Environment::current(),
            failure: FailureNote::of(violation),
            digest: format!("{:032x}", run.digest),
            fired: run.log.fired().to_vec(),
            decisions: run.log.record(),
            schedule: Vec::new(),
        }
    }

    /// The capsule of a violation that an exploration found; `run` is its schedule taken again.
    pub fn of_schedule(
        bound: impl Into<Origin>,
        planted: Option<impl Into<Planted>>,
        schedule: Vec<ScheduledMove>,
        run: &RunResult,
        violation: &Violation,
    ) -> Self {
        Self { schedule, ..Self::of(bound.into(), 0, planted.map(Into::into), run, violation) }
    }

    /// The capsule of another run of its seed, with another scenario text and tape.
    pub(crate) fn with_run(&self, scenario_text: String, tape: Tape, run: &RunResult, violation: &Violation) -> Self {
        Self {
            schema: self.schema.clone(),
            world: self.world,
            scenario: self.scenario.clone(),
            scenario_text,
            seed: self.seed,
            tape,
            mutant: self.mutant.clone(),
            environment: Environment::current(),
            failure: FailureNote::of(violation),
            digest: format!("{:032x}", run.digest),
            fired: run.log.fired().to_vec(),
            decisions: run.log.record(),
            schedule: Vec::new(),
        }
    }

    /// The capsule as JSON.
    pub fn to_json(&self) -> String {
        // Only a map with keys that are no text cannot be written, and a capsule has no maps.
        serde_json::to_string_pretty(self).expect("a capsule is always JSON")
    }

    /// Reads a capsule from the text of the file at `path`.
    ///
    /// # Errors
    ///
    /// [`CapsuleError::Malformed`] and [`CapsuleError::Newer`]
    pub fn from_json(path: &Path, text: &str) -> Result<Self, CapsuleError> {
        let malformed = |message: String| CapsuleError::Malformed { path: path.to_owned(), message };
        let value: Value = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        let schema = value.get("schema").and_then(Value::as_str).unwrap_or_default().to_owned();
        match schema.strip_prefix(SCHEMA_NAME).and_then(|number| number.parse::<u32>().ok()) {
            Some(SCHEMA_NUMBER) => {}
            Some(number) if number > SCHEMA_NUMBER => return Err(CapsuleError::Newer { path: path.to_owned(), schema }),
            _ => return Err(malformed(format!("its schema has to be {SCHEMA_NAME}{SCHEMA_NUMBER}, and is {schema:?}"))),
        }
        serde_json::from_str(text).map_err(|error| malformed(error.to_string()))
    }

    /// Reads the capsule at `path`.
    ///
    /// # Errors
    ///
    /// [`CapsuleError`]
    pub fn read(path: &Path) -> Result<Self, CapsuleError> {
        let text = fs::read_to_string(path).map_err(|source| CapsuleError::Unreadable { path: path.to_owned(), source })?;
        Self::from_json(path, &text)
    }

    /// `<scenario>-<seed>[-<planted bug>].json`, with only letters, digits, `.`, `_` and `-`.
    pub fn file_name(&self) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let plain: String = self.scenario.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
        let mutant = self.mutant.as_ref().map_or(String::new(), |mutant| format!("-{mutant}"));
        format!("{}-{}{mutant}.json", plain.trim_start_matches(['.', '-']), self.seed)
    }

    /// Writes the capsule into `folder`, which is made if need be; returns its path.
    ///
    /// # Errors
    ///
    /// [`WriteError`]
    pub fn write_into(&self, folder: &Path) -> Result<PathBuf, WriteError> {
        self.write_as(folder, &self.file_name())
    }

    /// Writes the capsule into `folder`, which is made if need be, under `name`; returns its path.
    ///
    /// # Errors
    ///
    /// [`WriteError`]
    pub fn write_as(&self, folder: &Path, name: &str) -> Result<PathBuf, WriteError> {
        fs::create_dir_all(folder).map_err(|source| WriteError { path: folder.to_owned(), source })?;
        let path = folder.join(name);
        fs::write(&path, self.to_json() + "\n").map_err(|source| WriteError { path: path.clone(), source })?;
        Ok(path)
    }
}

/// What the property promises.
pub fn sentence_of(property: &str) -> &'static str {
    let mut known = Simulated::ALL.into_iter().flat_map(Simulated::properties);
    known.find(|known| known.name == property).map_or("", |known| known.sentence)
}
