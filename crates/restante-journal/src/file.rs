//! Writing and reading a journal: a line an event, each with a checksum.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::wire::{Event, FORMAT};

/// Where events go. Bounded: at its size it says so in a last line and records nothing more.
#[derive(Debug)]
pub struct Journal {
    state: Mutex<State>,
    has_ended: AtomicBool,
    path: PathBuf,
}

#[derive(Debug)]
struct State {
    /// `None` once it is full, or could not be written.
    file: Option<File>,
    left_bytes: u64,
    next_op: u64,
}

impl Journal {
    /// Creates the file at `path`, which must not exist, for at most `bytes_max` bytes. It names inboxes and keys: nobody else
    /// may read it.
    ///
    /// # Errors
    /// [`io::Error`] of the file system.
    pub fn create(path: &Path, bytes_max: u64) -> io::Result<Self> {
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let state = State { file: Some(file), left_bytes: bytes_max, next_op: 0 };
        Ok(Self { state: Mutex::new(state), has_ended: AtomicBool::new(false), path: path.to_owned() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of an operation that begins now.
    pub fn next_op(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.next_op += 1;
        state.next_op
    }

    /// Records an event. Once the journal is full, or could not be written, it is not even made: recording never stops the work it
    /// records. The write is a blocking one, under a lock that all who record share: a line waits for the lines before it.
    pub fn record(&self, event: impl FnOnce() -> Event) {
        if self.has_ended.load(Ordering::Relaxed) {
            return;
        }
        let line_of_event = line(&event());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let end = line(&Event::Full {});
        let full = line_of_event.len() as u64 > state.left_bytes.saturating_sub(end.len() as u64);
        let text = if full { end } else { line_of_event };
        state.left_bytes = state.left_bytes.saturating_sub(text.len() as u64);
        let Some(file) = &mut state.file else { return };
        // One write a call: a killed process leaves at most its last line torn.
        if file.write_all(text.as_bytes()).is_err() || full {
            state.file = None;
            self.has_ended.store(true, Ordering::Relaxed);
        }
    }

    /// Whether nothing is recorded any more: it is full, or could not be written.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}

/// An event as its line: checksum, blank, JSON.
pub fn line(event: &Event) -> String {
    let json = serde_json::to_string(event).unwrap_or_default();
    format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()))
}

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file system's.
    #[error("the journal cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A line that is not what was written.
    #[error("line {line} is damaged ({what}): the journal says nothing from here on")]
    Damaged {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// Another format.
    #[error("the journal has format {found}, this version reads {FORMAT}: use the version that wrote it")]
    OtherFormat {
        /// What it says.
        found: u32,
    },
    /// It does not begin as a journal does.
    #[error("this is no journal: its first line is not an `opened` event")]
    NoJournal,
}

/// A journal as read.
#[derive(Debug)]
pub struct Recorded {
    /// Its events with the numbers of their lines.
    pub events: Vec<(u64, Event)>,
    /// Whether its last line is torn, as a killed process leaves it.
    pub torn: bool,
}

/// Reads a whole journal.
///
/// # Errors
/// See [`ReadError`].
pub fn read(path: &Path) -> Result<Recorded, ReadError> {
    read_from(File::open(path)?)
}

/// Reads a whole journal from anywhere.
///
/// # Errors
/// See [`ReadError`].
pub fn read_from(source: impl Read) -> Result<Recorded, ReadError> {
    let mut reader = BufReader::new(source);
    let (mut events, mut number, mut bytes) = (Vec::new(), 0, Vec::new());
    loop {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        number += 1;
        let Some(whole) = bytes.strip_suffix(b"\n") else {
            return begun(events, true);
        };
        let event = parse(whole).map_err(|what| ReadError::Damaged { line: number, what })?;
        events.push((number, event));
    }
    begun(events, false)
}

fn begun(events: Vec<(u64, Event)>, torn: bool) -> Result<Recorded, ReadError> {
    match events.first() {
        Some((_, Event::Opened { format: FORMAT, .. })) => Ok(Recorded { events, torn }),
        Some((_, Event::Opened { format, .. })) => Err(ReadError::OtherFormat { found: *format }),
        _ => Err(ReadError::NoJournal),
    }
}

fn parse(line: &[u8]) -> Result<Event, String> {
    let text = std::str::from_utf8(line).map_err(|_| "not text".to_owned())?;
    let (sum, json) = text.split_once(' ').ok_or("no checksum")?;
    if u32::from_str_radix(sum, 16) != Ok(crc32fast::hash(json.as_bytes())) {
        return Err("its checksum is wrong".to_owned());
    }
    serde_json::from_str(json).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_journal_says_so_and_makes_nothing_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let journal = Journal::create(&path, 100).unwrap();
        let mut made = 0;
        for op in 0..100 {
            journal.record(|| {
                made += 1;
                Event::Stopped { op }
            });
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let (written, last) = (text.lines().count(), text.lines().last().unwrap());
        assert!(last.contains("full") && text.len() <= 100 && journal.has_ended(), "{text}");
        assert_eq!(made, written, "the one that did not fit is the last that was made");
    }
}
