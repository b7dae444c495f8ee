//! `jsonpatch.escapeKey`.

use crate::cost::Cost;
use crate::function::{Overload, overload};
use crate::library::{Library, NO_MACROS};
use crate::value::Value;

/// `jsonpatch.escapeKey`.
pub const JSON_PATCH: Library = Library { name: "jsonpatch", functions: FUNCTIONS, types: &[], macros: NO_MACROS };

const FUNCTIONS: &[Overload] = &[overload(
    "string_jsonpatch_escapeKey_string",
    "jsonpatch.escapeKey(string) -> string",
    Cost::Reads(0, 2),
    |args| Ok(Value::text(args.str(0).replace('~', "~0").replace('/', "~1"))),
)];
