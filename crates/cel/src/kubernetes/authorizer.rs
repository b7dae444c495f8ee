//! Questions to the authorizer, put together step by step.

use std::sync::Arc;

use crate::cost::Cost;
use crate::error::{EvalError, Out};
use crate::function::{Args, Overload, overload};
use crate::library::{Library, NO_MACROS};
use crate::value::{Opaque, Value};

/// The authorizer.
pub const AUTHORIZER: Library = Library { name: "authorizer", functions: FUNCTIONS, types: TYPES, macros: NO_MACROS };

/// The type of the variable that the caller declares.
pub const TYPE: &str = "kubernetes.authorization.Authorizer";
/// The type of `authorizer.requestResource`.
pub const RESOURCE_TYPE: &str = "kubernetes.authorization.ResourceCheck";
/// What `group` gives, `path` gives, and so on.
const TYPES: &[&str] = &[
    TYPE,
    "kubernetes.authorization.PathCheck",
    "kubernetes.authorization.GroupCheck",
    RESOURCE_TYPE,
    "kubernetes.authorization.Decision",
];

/// What a question costs: two of them fit into one expression.
const CHECK: Cost = Cost::Fixed(350_000);
const ONE: Cost = Cost::Fixed(1);

/// Who answers.
pub trait Authorizer: Send + Sync {
    /// Whether it may be done.
    fn check(&self, question: &Question) -> Decision;
}

/// What is asked. Empty is not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// Namespace and name of the service account that is asked for instead of the user of the request.
    pub service_account: Option<(String, String)>,
    /// Of a question that is for no resource.
    pub path: String,
    pub verb: String,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub field_selector: String,
    pub label_selector: String,
}

/// The answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    pub allowed: bool,
    pub reason: String,
    pub error: Option<String>,
}

/// How far a question is put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Start,
    Path,
    Group,
    Resource,
}

#[derive(Clone)]
struct Builder {
    authorizer: Arc<dyn Authorizer>,
    question: Question,
    stage: Stage,
}

/// The value of the variable that the caller declares.
pub fn value<'v>(authorizer: Arc<dyn Authorizer>) -> Value<'v> {
    Value::opaque(Builder { authorizer, question: Question::default(), stage: Stage::Start })
}

/// The value of `authorizer.requestResource`: a question for a resource, begun with what the request is for.
pub fn resource_value<'v>(authorizer: Arc<dyn Authorizer>, question: Question) -> Value<'v> {
    Value::opaque(Builder { authorizer, question, stage: Stage::Resource })
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.question.fmt(f)
    }
}

impl Opaque for Builder {
    fn type_name(&self) -> &'static str {
        match self.stage {
            Stage::Start => TYPE,
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource => RESOURCE_TYPE,
        }
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.downcast_ref::<Self>().is_some_and(|it| it.stage == self.stage && it.question == self.question)
    }
}

impl Opaque for Decision {
    fn type_name(&self) -> &'static str {
        "kubernetes.authorization.Decision"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.downcast_ref::<Self>() == Some(self)
    }
}

/// A signature of this library: types have a long prefix.
macro_rules! row {
    ($id:literal, $from:literal, $call:literal, $to:literal, $cost:expr, $run:expr) => {
        overload(
            $id,
            concat!("kubernetes.authorization.", $from, "::", $call, " -> kubernetes.authorization.", $to),
            $cost,
            $run,
        )
    };
}

/// A row that sets a part of the question for a resource.
macro_rules! part {
    ($id:literal, $call:literal, $cost:expr, $field:ident) => {
        row!($id, "ResourceCheck", $call, "ResourceCheck", $cost, |args| {
            next(args, Stage::Resource, |question, text| question.$field = text)
        })
    };
}

const FUNCTIONS: &[Overload] = &[
    row!("authorizer_path", "Authorizer", "path(string)", "PathCheck", ONE, |args| {
        given(args, "path must not be empty")?;
        next(args, Stage::Path, |question, text| question.path = text)
    }),
    row!("authorizer_group", "Authorizer", "group(string)", "GroupCheck", ONE, |args| {
        next(args, Stage::Group, |question, text| question.group = text)
    }),
    row!("authorizer_serviceaccount", "Authorizer", "serviceAccount(string, string)", "Authorizer", ONE, |args| {
        let (namespace, name) = (args.str(1).to_owned(), args.str(2).to_owned());
        if !api_machinery::names::dns1123_subdomain(&name).is_empty() {
            return Err(EvalError::failed("Invalid service account name"));
        }
        if !api_machinery::names::dns1123_label(&namespace).is_empty() {
            return Err(EvalError::failed("Invalid service account namespace"));
        }
        next(args, Stage::Start, |question, _| question.service_account = Some((namespace, name)))
    }),
    row!("groupcheck_resource", "GroupCheck", "resource(string)", "ResourceCheck", ONE, |args| {
        given(args, "resource must not be empty")?;
        next(args, Stage::Resource, |question, text| question.resource = text)
    }),
    part!("resourcecheck_subresource", "subresource(string)", ONE, subresource),
    part!("resourcecheck_namespace", "namespace(string)", ONE, namespace),
    part!("resourcecheck_name", "name(string)", ONE, name),
    part!("resourcecheck_fieldselector", "fieldSelector(string)", Cost::Parses, field_selector),
    part!("resourcecheck_labelselector", "labelSelector(string)", Cost::Parses, label_selector),
    row!("pathcheck_check", "PathCheck", "check(string)", "Decision", CHECK, check),
    row!("resourcecheck_check", "ResourceCheck", "check(string)", "Decision", CHECK, check),
    overload("decision_allowed", "kubernetes.authorization.Decision::allowed() -> bool", ONE, |args| {
        Ok(Value::Bool(decision(args)?.allowed))
    }),
    overload("decision_reason", "kubernetes.authorization.Decision::reason() -> string", ONE, |args| {
        Ok(Value::text(decision(args)?.reason.as_str()))
    }),
    overload("decision_errored", "kubernetes.authorization.Decision::errored() -> bool", ONE, |args| {
        Ok(Value::Bool(decision(args)?.error.is_some()))
    }),
    overload("decision_error", "kubernetes.authorization.Decision::error() -> string", ONE, |args| {
        Ok(Value::text(decision(args)?.error.as_deref().unwrap_or_default()))
    }),
];

fn given(args: &Args<'_, '_>, message: &str) -> Out<()> {
    if args.str(1).is_empty() { Err(EvalError::failed(message)) } else { Ok(()) }
}

fn builder<'c>(args: &'c Args<'_, '_>) -> Out<&'c Builder> {
    args.get(0).as_opaque().ok_or(EvalError::NoSuchOverload)
}

fn decision<'c>(args: &'c Args<'_, '_>) -> Out<&'c Decision> {
    args.get(0).as_opaque().ok_or(EvalError::NoSuchOverload)
}

/// The question with one thing more.
fn next<'v>(args: &Args<'_, 'v>, stage: Stage, change: impl FnOnce(&mut Question, String)) -> Out<Value<'v>> {
    let mut out = builder(args)?.clone();
    out.stage = stage;
    change(&mut out.question, args.str(1).to_owned());
    Ok(Value::opaque(out))
}

fn check<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    let builder = builder(args)?;
    let question = Question { verb: args.str(1).to_owned(), ..builder.question.clone() };
    Ok(Value::opaque(builder.authorizer.check(&question)))
}
