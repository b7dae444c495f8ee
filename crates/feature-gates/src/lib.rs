//! Feature gates: every gate of Kubernetes with its history, and what a process has switched by
//! `--feature-gates=A=true,B=false`. Nothing here is global: a process is handed its [`Gates`], and code that acts asks
//! them by a [`Feature`], a name that the compiler has found in the table. `docs/adr/0006-gates.md`.

mod feature;
mod gate;
mod gates;
mod inner;
mod known;
mod parts;
pub mod shared;
mod table;
#[cfg(test)]
mod tests;

pub use feature::Feature;
pub use gate::{BINARY, DefinedIn, Gate, MinorVersion, Stage, Step};
pub use gates::Gates;
pub use known::{GateError, Known, Resolved};
pub use parts::Part;

/// Every gate, by name.
#[must_use]
pub const fn all() -> &'static [Gate] {
    table::ALL
}
