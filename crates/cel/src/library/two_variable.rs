//! Comprehensions with two variables: the index beside the element, the key beside the value.

use crate::cost::Cost;
use crate::error::EvalError;
use crate::function::{Overload, overload};

use super::Library;

/// Comprehensions with two variables.
pub const TWO_VARIABLE: Library = Library {
    name: "two-variable comprehensions",
    functions: FUNCTIONS,
    types: &[],
    macros: |macros| macros.two_variable = true,
};

/// Only macros write these, and the evaluator does them itself.
const FUNCTIONS: &[Overload] = &[
    overload("@mapInsert_map_key_value", "cel.@mapInsert(map<K, V>, K, V) -> map<K, V>", Cost::Fixed(1), |_| {
        Err(EvalError::NoSuchOverload)
    }),
    overload("@mapInsert_map_map", "cel.@mapInsert(map<K, V>, map<K, V>) -> map<K, V>", Cost::Fixed(1), |_| {
        Err(EvalError::NoSuchOverload)
    }),
];
