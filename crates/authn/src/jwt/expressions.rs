//! Expressions about the claims of a token and about the user that they make: what they may use, and what they come to.

use std::borrow::Cow;
use std::sync::Arc;

use api_machinery::leaf::StringList;
use api_machinery::value::{Value as Json, ValueMap};
use cel::kubernetes::declared::{Declared, DeclaredTypes, escape};
use cel::kubernetes::{COMPATIBLE, PER_CALL_LIMIT, environment};
use cel::{Budget, Environment, Program, Type, Value, Variables};

use crate::identity::UserInfo;

const CLAIMS: &str = "claims";
const USER: &str = "user";

/// The claims of a token.
pub(super) type Claims = ValueMap<String, Json>;

/// What expressions of either kind may use.
pub(super) struct Environments {
    claims: Environment,
    user: Environment,
}

impl Environments {
    pub(super) fn new() -> Self {
        let types = DeclaredTypes::default().with(USER, Arc::new(Declared::user_info()));
        Self {
            claims: environment(COMPATIBLE).with_variable(CLAIMS, Type::map(Type::String, Type::Dyn)),
            user: environment(COMPATIBLE)
                .with_types(Arc::new(types))
                .with_variable(USER, Declared::user_info().cel_type()),
        }
    }

    /// An expression about claims, of any type.
    pub(super) fn mapping(&self, source: &str) -> Result<Program, String> {
        compile(&self.claims, source)
    }

    /// A condition about claims.
    pub(super) fn claims_condition(&self, source: &str) -> Result<Program, String> {
        condition(&self.claims, source)
    }

    /// A condition about the user.
    pub(super) fn user_condition(&self, source: &str) -> Result<Program, String> {
        condition(&self.user, source)
    }
}

fn compile(env: &Environment, source: &str) -> Result<Program, String> {
    env.compile(source).map_err(|issues| format!("compilation failed: {issues}"))
}

fn condition(env: &Environment, source: &str) -> Result<Program, String> {
    let program = compile(env, source)?;
    if program.result_type() == &Type::Bool { Ok(program) } else { Err("must evaluate to bool".to_owned()) }
}

/// Whether an expression reads this claim by its name.
pub(super) fn reads_claim(program: &Program, claim: &str) -> bool {
    program.selects(CLAIMS, claim)
}

/// The value of an expression about claims.
pub(super) fn of_claims<'a>(program: &'a Program, claims: &'a Claims) -> Result<Value<'a>, String> {
    evaluate(program, CLAIMS, Value::of_json_map(claims))
}

/// The value of an expression about a user. Also what the user does not have is there, and empty.
pub(super) fn of_user<'a>(program: &'a Program, user: &'a UserInfo) -> Result<Value<'a>, String> {
    let text = |text: &'a str| Value::text(text);
    let list = |items: &'a [String]| Value::list(items.iter().map(|item| text(item)).collect());
    let extra = user.extra.iter().map(|(key, StringList(values))| (text(key), list(values)));
    let members = [
        (text("username"), text(&user.username)),
        (text("uid"), text(&user.uid)),
        (text("groups"), list(&user.groups)),
        (text("extra"), Value::map(extra).map_err(|error| error.to_string())?),
    ];
    evaluate(program, USER, Value::map(members).map_err(|error| error.to_string())?)
}

fn evaluate<'a>(program: &'a Program, variable: &str, value: Value<'a>) -> Result<Value<'a>, String> {
    let variables = Variables::default().with(variable, value);
    let done = program.evaluate(&variables, Budget::of(PER_CALL_LIMIT));
    done.result.map_err(|error| format!("expression '{}' resulted in error: {error}", program.source()))
}

/// The claims as expressions see them: one whose name is no name in expressions is there under its escaped name, too.
pub(super) fn with_escaped_names(claims: &Claims) -> Cow<'_, Claims> {
    let escaped = |name: &String| escape(name).filter(|escaped| **escaped != **name);
    let added: Vec<_> = claims
        .iter()
        .filter_map(|(name, value)| Some((escaped(name)?.to_string(), value.clone())))
        .filter(|(name, _)| !claims.contains_key(name))
        .collect();
    if added.is_empty() {
        return Cow::Borrowed(claims);
    }
    let mut all = claims.clone();
    all.extend(added);
    Cow::Owned(all)
}

/// A text, a list of texts or nothing, as a list. Empty texts are nothing.
pub(super) fn texts(value: &Value<'_>) -> Result<Vec<String>, &'static str> {
    const WRONG: &str = "expression must return a string or a list of strings";
    let items = match value {
        Value::Null => return Ok(Vec::new()),
        Value::String(text) => vec![text.as_str().to_owned()],
        Value::List(list) => {
            let texts = list.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>().ok_or(WRONG)?
        }
        _ => return Err(WRONG),
    };
    Ok(items.into_iter().filter(|item| !item.is_empty()).collect())
}
