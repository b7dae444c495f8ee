//! `cel.bind`.

use super::Library;

/// `cel.bind`.
pub const BINDINGS: Library =
    Library { name: "bindings", functions: &[], types: &[], macros: |macros| macros.bindings = true };
