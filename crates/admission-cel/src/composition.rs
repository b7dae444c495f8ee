//! A policy's own variables. Each may use those before it, and is computed when it is first used.

use std::collections::HashMap;
use std::sync::Arc;

use cel::{Environment, Issues, Program, Type, TypeProvider, Value};
use parking_lot::RwLock;

use crate::compile::{CompileError, Wanted, compile};
use crate::environment::{Origin, Scope, environment};
use crate::openapi_types::KnownType;

/// The variable that has all of a policy's own ones.
pub(crate) const VARIABLES: &str = "variables";
const TYPE: &str = "kubernetes.variables";

/// A variable of a policy.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) program: Result<Program, CompileError>,
    /// The places of the variables that it reads.
    pub(crate) reads: Vec<usize>,
    /// How many variables are computed within each other, at most, when it is used.
    pub(crate) depth: usize,
}

/// The fields of `variables`.
#[derive(Default)]
struct Fields(RwLock<HashMap<String, Type>>);

impl TypeProvider for Fields {
    fn has_type(&self, name: &str) -> bool {
        name == TYPE
    }

    fn field(&self, type_name: &str, field: &str) -> Option<Type> {
        if type_name == TYPE { self.0.read().get(field).cloned() } else { None }
    }

    fn constant(&self, _: &str) -> Option<Value<'static>> {
        None
    }
}

/// The environment of a policy's expressions, with its variables.
pub struct Composition {
    env: Environment,
    /// The same for messages.
    without_authorizer: Environment,
    fields: Arc<Fields>,
    variables: Vec<Variable>,
    /// Places by name; a later one hides an earlier one.
    places: HashMap<String, Vec<usize>>,
}

impl Composition {
    /// Without variables yet.
    #[must_use]
    pub fn new(scope: Scope, origin: Origin) -> Self {
        Self::over(|scope| environment(scope, origin), scope)
    }

    /// The same where it is known of which types objects and parameters are.
    #[must_use]
    pub fn typed(scope: Scope, origin: Origin, object: &KnownType, params: Option<&KnownType>) -> Self {
        let make = |scope| {
            let known =
                |env: Environment, own: &KnownType| env.with_types(Arc::clone(&own.types) as Arc<dyn TypeProvider>);
            let env = params
                .iter()
                .fold(environment(scope, origin), |env, own| known(env, own).with_variable("params", own.ty.clone()));
            known(env, object).with_variable("object", object.ty.clone()).with_variable("oldObject", object.ty.clone())
        };
        Self::over(make, scope)
    }

    fn over(make: impl Fn(Scope) -> Environment, scope: Scope) -> Self {
        let fields = Arc::new(Fields::default());
        let with_variables = |env: Environment| {
            env.with_types(Arc::clone(&fields) as Arc<dyn TypeProvider>).with_variable(VARIABLES, Type::object(TYPE))
        };
        let env = with_variables(make(scope));
        let without_authorizer = with_variables(make(Scope { authorizer: false, ..scope }));
        Self { env, without_authorizer, fields, variables: Vec::new(), places: HashMap::new() }
    }

    /// With one more variable, which those that follow may use. One that does not compile may be used, too, and fails then.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn add(&mut self, name: &str, source: &str) -> Result<(), CompileError> {
        let program = compile(&self.env, source.trim(), Wanted::Any);
        let outcome = program.as_ref().map(|_| ()).map_err(CompileError::clone);
        let ty = program.as_ref().map_or(Type::Dyn, |program| program.result_type().clone());
        let end = self.variables.len();
        let mut reads: Vec<usize> = program
            .iter()
            .flat_map(Program::variables)
            .filter_map(|read| self.place(read.strip_prefix("variables.")?, end))
            .collect();
        reads.sort_unstable();
        reads.dedup();
        let below = reads.iter().filter_map(|place| self.variables.get(*place)).map(|variable| variable.depth).max();
        self.variables.push(Variable { name: name.to_owned(), program, reads, depth: below.unwrap_or_default() + 1 });
        self.places.entry(name.to_owned()).or_default().push(end);
        self.fields.0.write().insert(name.to_owned(), ty.clone());
        let variable = format!("{VARIABLES}.{name}");
        for env in [&mut self.env, &mut self.without_authorizer] {
            *env = env.clone().with_variable(&variable, ty.clone());
        }
        outcome
    }

    /// What expressions of the policy may use.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.env
    }

    /// The same for messages, which may not ask who may do what.
    #[must_use]
    pub fn without_authorizer(&self) -> &Environment {
        &self.without_authorizer
    }

    /// What is wrong with an expression, whatever it is to be.
    #[must_use]
    pub fn issues(&self, source: &str) -> Option<Issues> {
        self.env.compile(source.trim()).err()
    }

    pub(crate) fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// The place of the last variable of a name before `end`.
    pub(crate) fn place(&self, name: &str, end: usize) -> Option<usize> {
        self.places.get(name)?.iter().rev().find(|place| **place < end).copied()
    }

    /// The variables that one needs to be computed, in an order in which each finds those that it needs.
    pub(crate) fn needed_by(&self, place: usize) -> Vec<usize> {
        let mut seen = std::collections::BTreeSet::new();
        let mut open = vec![place];
        while let Some(place) = open.pop() {
            let reads = self.variables.get(place).map_or(&[][..], |variable| &variable.reads);
            open.extend(reads.iter().copied().filter(|read| seen.insert(*read)));
        }
        seen.into_iter().collect()
    }
}
