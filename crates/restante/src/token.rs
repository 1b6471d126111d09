//! The bearer token of the HTTP API. It cannot be printed, and comparing it takes the same time wherever a guess goes wrong.

use std::fmt;
use std::path::Path;

use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::fault::{Code, Fault};

/// The environment variable that may hold the token.
pub const TOKEN_VARIABLE: &str = "RESTANTE_TOKEN";

/// Fewest bytes of a token: shorter ones can be guessed.
const BYTES_MIN: usize = 16;

/// A token; wiped when dropped.
pub struct Token(Zeroizing<Vec<u8>>);

impl Token {
    /// From the file, or else from the environment. It is never an argument: arguments can be read by every user of a machine.
    ///
    /// # Errors
    /// A [`Fault`] that quotes nothing of it.
    pub fn find(file: Option<&Path>) -> Result<Self, Fault> {
        let Some(path) = file else {
            let what_to_do = format!("write one to a file and give --token-file, or set {TOKEN_VARIABLE}");
            let missing = || Fault::new(Code::Configuration, "there is no token for the HTTP API", what_to_do);
            let text = std::env::var_os(TOKEN_VARIABLE).ok_or_else(missing)?;
            return Self::new(Zeroizing::new(text.into_encoded_bytes()), TOKEN_VARIABLE);
        };
        let bytes = std::fs::read(path).map_err(|error| {
            let message = format!("the token file {path:?} cannot be read ({error})");
            Fault::new(Code::Configuration, message, "correct the path, or make it readable")
        })?;
        if can_others_read(path) {
            tracing::warn!(?path, "other users of this machine can read the token: chmod 600");
        }
        Self::new(Zeroizing::new(bytes), &format!("the file {path:?}"))
    }

    fn new(bytes: Zeroizing<Vec<u8>>, place: &str) -> Result<Self, Fault> {
        let token = Zeroizing::new(bytes.trim_ascii().to_vec());
        let refused = |what: String| Fault::new(Code::Configuration, what, "make one of 32 random bytes: openssl rand -hex 32");
        if token.len() < BYTES_MIN {
            return Err(refused(format!("the token in {place} has {} bytes, fewer than {BYTES_MIN}", token.len())));
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            return Err(refused(format!("the token in {place} holds bytes that no header can carry")));
        }
        Ok(Self(token))
    }

    /// Whether this is it.
    pub fn is(&self, given: &[u8]) -> bool {
        self.0.ct_eq(given).into()
    }
}

#[cfg(unix)]
fn can_others_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o044 != 0)
}

#[cfg(not(unix))]
fn can_others_read(_path: &Path) -> bool {
    false
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Result<Token, Fault> {
        Token::new(Zeroizing::new(text.as_bytes().to_vec()), "the test")
    }

    #[test]
    fn only_the_whole_token_is_it() {
        let token = token(" 0123456789abcdef\n").expect("a token");
        assert!(token.is(b"0123456789abcdef"));
        for other in [&b""[..], b"0123456789abcde", b"0123456789abcdeF", b"0123456789abcdef0"] {
            assert!(!token.is(other));
        }
        assert_eq!(format!("{token:?}"), "Token(..)");
    }

    #[test]
    fn a_token_that_can_be_guessed_or_not_be_sent_is_refused_and_not_quoted() {
        for text in ["short", "0123456789 abcdef", "0123456789abcdé"] {
            let error = token(text).expect_err(text).to_string();
            assert!(!error.contains(text), "{error}");
        }
    }
}
