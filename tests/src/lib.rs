//! Tests only; see `all/`.
