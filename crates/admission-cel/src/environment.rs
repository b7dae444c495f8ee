//! Which variables, types and libraries there are.

use std::sync::{Arc, OnceLock};

use cel::kubernetes::{self, COMPATIBLE, JSON_PATCH, Minor, authorizer};
use cel::{Environment, Type};

use crate::types::{self, PatchTypes};

/// Whatever this release knows.
const EVERYTHING: Minor = Minor(u16::MAX);

/// What a user of expressions offers them beside the objects and the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scope {
    /// `params`
    pub params: bool,
    /// `authorizer` and `authorizer.requestResource`
    pub authorizer: bool,
    /// `Object`, `JSONPatch` and what belongs to them.
    pub patches: bool,
}

/// Where an expression comes from, which decides how much of the language it may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It is to be stored.
    New,
    /// It is stored, perhaps by a newer release.
    Stored,
}

/// The environment of expressions, without variables of their own.
#[must_use]
pub fn environment(scope: Scope, origin: Origin) -> Environment {
    static MADE: [OnceLock<Environment>; 16] = [const { OnceLock::new() }; 16];
    let flags = [scope.params, scope.authorizer, scope.patches, origin == Origin::Stored];
    let place = flags.iter().fold(0, |sum, flag| sum * 2 + usize::from(*flag));
    match MADE.get(place) {
        Some(made) => made.get_or_init(|| make(scope, origin)).clone(),
        None => make(scope, origin),
    }
}

fn make(scope: Scope, origin: Origin) -> Environment {
    let version = if origin == Origin::New { COMPATIBLE } else { EVERYTHING };
    let mut env = kubernetes::environment(version)
        .with_types(Arc::new(types::declared()))
        .with_variable("object", Type::Dyn)
        .with_variable("oldObject", Type::Dyn)
        .with_variable("request", Type::object(types::REQUEST))
        .with_variable("namespaceObject", Type::object(types::NAMESPACE));
    if scope.params {
        env = env.with_variable("params", Type::Dyn);
    }
    if scope.authorizer {
        env = env
            .with_variable("authorizer", Type::opaque(authorizer::TYPE))
            .with_variable("authorizer.requestResource", Type::opaque(authorizer::RESOURCE_TYPE));
    }
    if scope.patches {
        env = env.with_library(&JSON_PATCH).with_types(Arc::new(PatchTypes));
    }
    env
}
