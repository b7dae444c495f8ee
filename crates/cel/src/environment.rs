//! What expressions may use: variables, functions, types, macros.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{Expr, Name};
use crate::check;
use crate::cost::Cost;
use crate::function::{Overload, Run, Signature};
use crate::issue::Issues;
use crate::library::Library;
use crate::parser::{self, MacroSet};
use crate::program::Program;
use crate::types::Type;
use crate::value::Value;

/// Where the types of structs come from: a field table, a schema.
pub trait TypeProvider: Send + Sync {
    /// Whether there is a struct of this name.
    fn has_type(&self, name: &str) -> bool;
    /// The type of a field of a struct.
    fn field(&self, type_name: &str, field: &str) -> Option<Type>;
    /// The value of a constant, such as a member of an enumeration.
    fn constant(&self, _name: &str) -> Option<Value<'static>> {
        None
    }
}

/// An overload of an environment.
#[derive(Debug)]
pub(crate) struct OverloadDecl {
    pub(crate) id: &'static str,
    pub(crate) signature: Signature,
    pub(crate) run: Run,
    pub(crate) cost: Cost,
}

/// What expressions may use. Cheap to extend: what is there is shared.
#[derive(Clone)]
pub struct Environment {
    container: Name,
    variables: HashMap<Name, Type>,
    functions: Arc<HashMap<Name, Vec<Arc<OverloadDecl>>>>,
    types: Arc<HashMap<Name, Type>>,
    providers: Vec<Arc<dyn TypeProvider>>,
    macros: MacroSet,
    homogeneous: bool,
    literal_checks: bool,
}

/// The types that every environment names.
const TYPES: [(&str, &str); 13] = [
    ("bool", "bool"),
    ("int", "int"),
    ("uint", "uint"),
    ("double", "double"),
    ("string", "string"),
    ("bytes", "bytes"),
    ("list", "list<dyn>"),
    ("map", "map<dyn, dyn>"),
    ("type", "type<dyn>"),
    ("null_type", "null_type"),
    ("google.protobuf.Timestamp", "timestamp"),
    ("google.protobuf.Duration", "duration"),
    ("optional_type", "optional<dyn>"),
];

impl Environment {
    /// The language with these libraries.
    #[must_use]
    pub fn new(libraries: &[&Library]) -> Self {
        let types = TYPES.iter().filter_map(|(name, text)| Some(((*name).into(), Type::parse(text)?)));
        let empty = Self {
            container: "".into(),
            variables: HashMap::new(),
            functions: Arc::default(),
            types: Arc::new(types.collect()),
            providers: Vec::new(),
            macros: MacroSet::default(),
            homogeneous: false,
            literal_checks: false,
        };
        libraries.iter().fold(empty, |env, library| env.with_library(library))
    }

    /// With one more library; an overload that is there already stays.
    #[must_use]
    pub fn with_library(mut self, library: &Library) -> Self {
        (library.macros)(&mut self.macros);
        let types = Arc::make_mut(&mut self.types);
        types.extend(library.types.iter().filter_map(|name| Some(((*name).into(), Type::parse(name)?))));
        let functions = Arc::make_mut(&mut self.functions);
        for decl in library.functions.iter().filter_map(decl) {
            let rows = functions.entry(decl.signature.name.as_str().into()).or_default();
            if rows.iter().all(|other| other.id != decl.id) {
                rows.push(Arc::new(decl));
            }
        }
        self
    }

    /// With a variable; its name may have dots.
    #[must_use]
    pub fn with_variable(mut self, name: &str, ty: Type) -> Self {
        self.variables.insert(name.into(), ty);
        self
    }

    /// With the structs of a provider, which is asked before those that were added earlier.
    #[must_use]
    pub fn with_types(mut self, provider: Arc<dyn TypeProvider>) -> Self {
        self.providers.insert(0, provider);
        self
    }

    /// In which names are looked up first.
    #[must_use]
    pub fn with_container(mut self, container: &str) -> Self {
        self.container = container.into();
        self
    }

    /// With literals of lists and maps whose elements must be of one type.
    #[must_use]
    pub fn with_homogeneous_literals(mut self) -> Self {
        self.homogeneous = true;
        self
    }

    /// With patterns, durations and timestamps that are constant checked when compiled.
    #[must_use]
    pub fn with_literal_checks(mut self) -> Self {
        self.literal_checks = true;
        self
    }

    /// With other macros than the libraries bring.
    #[must_use]
    pub fn with_macros(mut self, macros: MacroSet) -> Self {
        self.macros = macros;
        self
    }

    /// The macros that there are.
    #[must_use]
    pub fn macros(&self) -> MacroSet {
        self.macros
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn compile(&self, source: &str) -> Result<Program, Issues> {
        let parsed = parser::parse(source, &self.macros)?;
        let checked = check::check(self, parsed)?;
        Ok(Program::new(self, checked))
    }

    /// Reads an expression without saying what its names stand for, for those who take it apart themselves.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(&self, source: &str) -> Result<Expr, Issues> {
        parser::parse(source, &self.macros).map(|parsed| parsed.expr)
    }

    /// Compiles an expression without checking types; what does not fit fails when evaluated.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn compile_unchecked(&self, source: &str) -> Result<Program, Issues> {
        let parsed = parser::parse(source, &self.macros)?;
        Ok(Program::new(self, check::resolve_only(self, parsed)))
    }

    pub(crate) fn container(&self) -> &str {
        &self.container
    }

    pub(crate) fn is_homogeneous(&self) -> bool {
        self.homogeneous
    }

    pub(crate) fn checks_literals(&self) -> bool {
        self.literal_checks
    }

    /// The names that a name may stand for, by the container, the innermost first.
    pub(crate) fn candidates(&self, name: &str) -> Vec<String> {
        if let Some(absolute) = name.strip_prefix('.') {
            return vec![absolute.to_owned()];
        }
        let mut out = Vec::new();
        let mut container = &*self.container;
        while !container.is_empty() {
            out.push(format!("{container}.{name}"));
            container = container.rfind('.').and_then(|at| container.get(..at)).unwrap_or_default();
        }
        out.push(name.to_owned());
        out
    }

    pub(crate) fn variable(&self, name: &str) -> Option<(&Name, &Type)> {
        self.variables.get_key_value(name)
    }

    pub(crate) fn constant(&self, name: &str) -> Option<Value<'static>> {
        let own = self.types.get(name).map(|ty| Value::Type(ty.clone()));
        own.or_else(|| {
            let mut providers = self.providers.iter();
            providers.find_map(|provider| {
                let ty = provider.has_type(name).then(|| Value::Type(Type::object(name)));
                ty.or_else(|| provider.constant(name))
            })
        })
    }

    pub(crate) fn has_struct(&self, name: &str) -> bool {
        self.providers.iter().any(|provider| provider.has_type(name))
    }

    pub(crate) fn field(&self, type_name: &str, field: &str) -> Option<Type> {
        self.providers.iter().find_map(|provider| provider.field(type_name, field))
    }

    pub(crate) fn overloads(&self, function: &str) -> &[Arc<OverloadDecl>] {
        self.functions.get(function).map_or(&[], Vec::as_slice)
    }

    /// The full name of a function that is called by this name, if there is one.
    pub(crate) fn function_name(&self, name: &str) -> Option<Name> {
        let candidates = self.candidates(name);
        candidates
            .iter()
            .find_map(|name| self.functions.get_key_value(name.as_str()))
            .map(|(name, _)| Name::clone(name))
    }

    /// The name of a function whose namespace looks like a receiver: `math.abs(x)`.
    pub(crate) fn qualified_function(&self, target: &Expr, function: &str) -> Option<Name> {
        let prefix = target.as_qualified_name()?;
        self.function_name(&format!("{prefix}.{function}"))
    }
}

fn decl(row: &Overload) -> Option<OverloadDecl> {
    let signature = Signature::parse(row.signature)?;
    Some(OverloadDecl { id: row.id, signature, run: row.run, cost: row.cost })
}

#[cfg(test)]
mod tests {
    use crate::library;

    use super::*;

    #[test]
    fn every_row_of_every_library_is_read_and_named_once() {
        let mut ids = std::collections::HashSet::new();
        for library in library::ALL.into_iter().chain(crate::kubernetes::ALL) {
            for row in library.functions {
                assert!(Signature::parse(row.signature).is_some(), "{}: {}", library.name, row.signature);
                assert!(ids.insert((library.name, row.id)), "{}: {} twice", library.name, row.id);
            }
            for ty in library.types {
                assert!(Type::parse(ty).is_some(), "{ty}");
            }
        }
    }
}
