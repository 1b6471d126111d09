//! What is held against the contract: handles on one store.

use std::fmt::{self, Display};
use std::sync::Arc;

use restante_kv::AtomicKv;

type Open = dyn Fn() -> Result<Arc<dyn AtomicKv>, OpenError> + Send + Sync;

/// A store under trial: a way to open handles on it.
///
/// What belongs to it (a temporary folder, a server's process) goes into the function and is dropped after the last handle.
pub struct Subject {
    open: Box<Open>,
}

/// The store, or another handle on it, could not be opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the store could not be opened: {0}")]
pub struct OpenError(String);

impl OpenError {
    /// In the adapter's words.
    pub fn new(why: impl Display) -> Self {
        Self(why.to_string())
    }
}

impl Subject {
    /// A store on which `open` opens one handle after the other: all of them on the same records, each as independent of the
    /// others as the store allows.
    pub fn new<S: AtomicKv + 'static, E: Display>(open: impl Fn() -> Result<S, E> + Send + Sync + 'static) -> Self {
        let open = move || match open() {
            Ok(kv) => Ok(Arc::new(kv) as Arc<dyn AtomicKv>),
            Err(error) => Err(OpenError::new(error)),
        };
        Self { open: Box::new(open) }
    }

    /// A store that knows only one handle, which all callers share.
    pub fn shared(kv: impl AtomicKv + 'static) -> Self {
        let kv: Arc<dyn AtomicKv> = Arc::new(kv);
        Self { open: Box::new(move || Ok(Arc::clone(&kv))) }
    }

    /// Opens a handle.
    ///
    /// # Errors
    /// When the store says so.
    pub fn open(&self) -> Result<Arc<dyn AtomicKv>, OpenError> {
        (self.open)()
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").finish_non_exhaustive()
    }
}
