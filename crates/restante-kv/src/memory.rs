//! The executable specification: [`Model`] (pure), [`MemoryKv`] (a store around it) and the write rules of [`check_strict`].

mod model;
mod store;
mod strict;

pub use model::Model;
pub use store::MemoryKv;
pub use strict::{StrictViolation, check_strict};

#[cfg(test)]
mod tests;
