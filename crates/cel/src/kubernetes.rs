//! What only Kubernetes has: its libraries, its environments by version, types of structural schemas.
//!
//! <https://kubernetes.io/docs/reference/using-api/cel/>

use crate::environment::Environment;
use crate::library::{self, Library};

pub mod authorizer;
pub mod declared;
mod devices;
mod format;
mod json_patch;
mod lists;
mod network;
mod quantity;
mod regex;
mod semver;
mod url;

pub use authorizer::AUTHORIZER;
pub use devices::DEVICES;
pub use format::FORMAT;
pub use json_patch::JSON_PATCH;
pub use lists::LISTS;
pub use network::{CIDR, IP};
pub use quantity::{QUANTITY, QuantityValue};
pub use regex::REGEX;
pub use semver::{SEMVER, SemverValue};
pub use url::URLS;

/// Addresses and networks.
pub const NETWORK: [&Library; 2] = [&IP, &CIDR];

/// The most that one evaluation may cost.
pub const PER_CALL_LIMIT: u64 = 1_000_000;
/// The most that all evaluations for one object or policy may cost.
pub const RUNTIME_BUDGET: u64 = 10_000_000;

/// A minor version of Kubernetes 1 for which expressions have to compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minor(pub u16);

/// The release for which new expressions have to compile: the one before this, so that a server that is rolled back can
/// still read them.
pub const COMPATIBLE: Minor = Minor(35);

/// Libraries and the minor version since which expressions may use them.
const SINCE: [(u16, &Library); 15] = [
    (0, &library::STANDARD),
    (0, &library::STRINGS),
    (0, &URLS),
    (0, &REGEX),
    (0, &LISTS),
    (27, &AUTHORIZER),
    (28, &library::OPTIONAL),
    (28, &QUANTITY),
    (29, &library::SETS),
    (30, &IP),
    (30, &CIDR),
    (31, &FORMAT),
    (32, &library::TWO_VARIABLE),
    (33, &SEMVER),
    (34, &library::LISTS),
];
/// Since when constant patterns, durations and timestamps are looked at when compiled.
const LITERAL_CHECKS_SINCE: u16 = 29;

/// The environment of a version, to which users add their variables and types, and libraries that only they have:
/// [`JSON_PATCH`] for mutating policies, [`library::BINDINGS`] for selectors of devices.
#[must_use]
pub fn environment(version: Minor) -> Environment {
    let libraries: Vec<&Library> =
        SINCE.iter().filter(|(since, _)| *since <= version.0).map(|(_, library)| *library).collect();
    let env = Environment::new(&libraries).with_homogeneous_literals();
    if version.0 >= LITERAL_CHECKS_SINCE { env.with_literal_checks() } else { env }
}

/// Every library of Kubernetes.
pub const ALL: [&Library; 10] =
    [&URLS, &REGEX, &LISTS, &AUTHORIZER, &QUANTITY, &IP, &CIDR, &FORMAT, &SEMVER, &JSON_PATCH];

#[cfg(test)]
mod tests;
