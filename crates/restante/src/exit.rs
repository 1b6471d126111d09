//! How a command ends.

use std::process::ExitCode;

/// What a command came to, as a number for scripts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Exit {
    /// Done; where a question was asked, the answer is yes.
    Ok = 0,
    /// The answer is no: not drained, something found, a deadline missed.
    No = 1,
    /// Arguments, configuration, token or address cannot be used; nothing was done.
    Usage = 2,
    /// The store cannot be opened or used; nothing was done.
    Store = 3,
    /// It is unknown whether it was done.
    Unknown = 4,
    /// Refused, for a reason that lies in the backlog; nothing was done.
    Refused = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
