//! The Common Expression Language as Kubernetes v1.36 uses it: validation rules of custom resources, admission policies,
//! match conditions, configuration of authentication and authorization, selectors of devices.
//!
//! An [`Environment`] says what expressions may use, [`Environment::compile`] checks one and plans it, and
//! [`Program::evaluate`] computes it over an [`Activation`], within a [`Budget`]. Values borrow from what they were read
//! from: nothing of an object is copied. Costs are counted and estimated as upstream does, by one rule for each overload.
//! Not here: protobuf messages and their enumerations, which Kubernetes has no use for in expressions.
//!
//! ```
//! use cel::kubernetes::{Minor, PER_CALL_LIMIT, environment};
//! use cel::{Budget, NoHints, Type, Value, Variables};
//!
//! let env = environment(Minor(36)).with_variable("object", Type::Dyn);
//! let program = env.compile("object.spec.replicas <= 5").map_err(|issues| issues.to_string())?;
//! assert_eq!(program.result_type(), &Type::Bool);
//! assert_eq!(program.estimate(&NoHints).min, 2);
//!
//! let object = serde_json::json!({"spec": {"replicas": 3}});
//! let variables = Variables::default().with("object", Value::of_json(&object));
//! let done = program.evaluate(&variables, Budget::of(PER_CALL_LIMIT));
//! assert!(matches!(done.result, Ok(Value::Bool(true))));
//! assert_eq!(done.cost, 4);
//!
//! let issues = env.compile("object.spec.replicas < 'a' + 1").unwrap_err();
//! assert_eq!(issues.list()[0].message, "found no matching overload for '_+_' applied to '(string, int)'");
//! # Ok::<(), String>(())
//! ```
//!
//! <https://github.com/google/cel-spec>, <https://kubernetes.io/docs/reference/using-api/cel/>

pub mod ast;
mod cache;
mod check;
mod cost;
mod environment;
mod error;
mod estimate;
mod eval;
mod function;
mod issue;
pub mod kubernetes;
mod lexer;
pub mod library;
mod parser;
mod pattern;
mod plan;
mod program;
mod time;
mod types;
mod value;

pub use cache::ProgramCache;
pub use cost::Cost;
pub use environment::{Environment, TypeProvider};
pub use error::{EvalError, Out};
pub use estimate::{Hints, NoHints, Range};
pub use function::{Args, Overload, Run, overload};
pub use issue::{Issue, Issues};
pub use library::Library;
pub use parser::MacroSet;
pub use program::{Activation, Budget, Evaluation, Meter, Program, Variables};
pub use time::Timestamp;
pub use types::Type;
pub use value::{Blob, Built, Entries, List, Map, Object, Opaque, Text, Value, View};
