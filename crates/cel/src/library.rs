//! Libraries: functions, types and macros, one file for each.

use crate::function::Overload;
use crate::parser::MacroSet;

mod bindings;
mod encoders;
mod lists;
mod math;
mod number;
mod optional;
mod sets;
mod standard;
mod strings;
mod two_variable;

pub use bindings::BINDINGS;
pub use encoders::ENCODERS;
pub use lists::LISTS;
pub use math::MATH;
pub(crate) use number::print_double;
pub use optional::OPTIONAL;
pub use sets::SETS;
pub use standard::STANDARD;
pub use strings::STRINGS;
pub use two_variable::TWO_VARIABLE;

/// Functions, types and macros that belong together.
pub struct Library {
    pub name: &'static str,
    pub functions: &'static [Overload],
    /// Names of types that have no structure.
    pub types: &'static [&'static str],
    /// Which macros it brings.
    pub macros: fn(&mut MacroSet),
}

/// No macros.
pub const NO_MACROS: fn(&mut MacroSet) = |_| {};

/// Every library that knows nothing of Kubernetes.
pub const ALL: [&Library; 9] =
    [&STANDARD, &OPTIONAL, &BINDINGS, &TWO_VARIABLE, &STRINGS, &MATH, &ENCODERS, &LISTS, &SETS];
