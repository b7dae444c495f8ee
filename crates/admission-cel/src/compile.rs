//! From text to programs, of the type that is wanted.

use cel::{Environment, Issues, Program, Type};

use crate::types::{OBJECT, PATCH};

/// Of which type an expression has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Whether something holds.
    Bool,
    /// A text.
    Text,
    /// A text or nothing.
    TextOrNull,
    /// Anything: a variable.
    Any,
    /// What is to be merged into an object.
    Object,
    /// Operations of a JSON patch.
    Patch,
}

/// Why there is no program; the texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// It is no expression, or does not fit what there is.
    #[error("compilation failed: {0}")]
    Issues(Issues),
    /// It is of another type than the one that is wanted.
    #[error("must evaluate to {wanted} but got {found}")]
    Type {
        /// What is wanted.
        wanted: String,
        /// What it is.
        found: Type,
    },
}

impl Wanted {
    fn types(self) -> Vec<Type> {
        match self {
            Self::Bool => vec![Type::Bool],
            Self::Text => vec![Type::String],
            Self::TextOrNull => vec![Type::String, Type::Null],
            Self::Any => Vec::new(),
            Self::Object => vec![Type::object(OBJECT)],
            Self::Patch => vec![Type::list(Type::object(PATCH))],
        }
    }
}

/// Compiles an expression.
///
/// # Errors
/// What is wrong with it.
pub fn compile(env: &Environment, source: &str, wanted: Wanted) -> Result<Program, CompileError> {
    let program = env.compile(source).map_err(CompileError::Issues)?;
    let (types, found) = (wanted.types(), program.result_type());
    if types.is_empty() || types.contains(found) {
        return Ok(program);
    }
    let texts: Vec<String> = types.iter().map(ToString::to_string).collect();
    let wanted = if let [one] = texts.as_slice() { one.clone() } else { format!("one of [{}]", texts.join(" ")) };
    Err(CompileError::Type { wanted, found: found.clone() })
}

/// An expression that is stored: one that does not compile fails when it is needed.
#[derive(Debug)]
pub struct Compiled {
    pub(crate) source: String,
    pub(crate) program: Result<Program, CompileError>,
}

impl Compiled {
    /// Compiles an expression.
    #[must_use]
    pub fn new(env: &Environment, source: &str, wanted: Wanted) -> Self {
        let source = source.trim();
        Self { source: source.to_owned(), program: compile(env, source, wanted) }
    }

    /// The expression.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Why it cannot be evaluated, where it cannot.
    #[must_use]
    pub fn error(&self) -> Option<&CompileError> {
        self.program.as_ref().err()
    }
}
