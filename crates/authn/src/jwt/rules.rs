//! What the tokens of an issuer mean: from verified claims to a user, and what has to be so of both.

use std::collections::BTreeMap;

use api_machinery::leaf::StringList;
use api_machinery::quote::go_quote;
use api_machinery::value::Value as Json;
use cel::{Program, Value};

use super::expressions::{self, Claims};
use crate::authenticator::AuthnError;
use crate::identity::{CREDENTIAL_ID_KEY, UserInfo};

/// Where something of a user comes from.
#[derive(Default)]
pub(super) enum Mapping {
    /// Nowhere.
    #[default]
    None,
    /// A claim, with something before it.
    Claim {
        /// The claim.
        name: String,
        /// What is put before it.
        prefix: String,
    },
    /// An expression about claims.
    Expression(Program),
}

/// Something that has to be so.
pub(super) struct Condition {
    pub(super) program: Program,
    /// What is said where it is not.
    pub(super) message: String,
}

/// What the tokens of an issuer mean.
#[derive(Default)]
pub struct Rules {
    pub(super) username: Mapping,
    pub(super) groups: Mapping,
    pub(super) uid: Mapping,
    pub(super) extra: Vec<(String, Program)>,
    pub(super) required_claims: BTreeMap<String, String>,
    pub(super) claim_conditions: Vec<Condition>,
    pub(super) user_conditions: Vec<Condition>,
}

fn refused(why: impl std::fmt::Display) -> AuthnError {
    AuthnError::Refused(format!("oidc: {why}"))
}

impl Rules {
    /// The claim that groups are, where they are one: it may stand elsewhere (a distributed claim).
    pub(super) fn groups_claim(&self) -> Option<&str> {
        if let Mapping::Claim { name, .. } = &self.groups { Some(name) } else { None }
    }

    /// The user that verified claims make.
    ///
    /// # Errors
    /// A claim is missing or of the wrong type, or something is not so that has to be; the texts are upstream's.
    pub(super) fn user(&self, claims: &Claims) -> Result<UserInfo, AuthnError> {
        let seen = expressions::with_escaped_names(claims);
        let user = UserInfo {
            username: self.username(claims, &seen)?,
            groups: self.groups(claims, &seen)?,
            uid: self.uid(claims, &seen)?,
            extra: self.extra(claims, &seen)?,
        };
        self.check_claims(claims, &seen)?;
        let what = "error evaluating user info validation rule";
        check(&self.user_conditions, what, |program| expressions::of_user(program, &user))?;
        Ok(user)
    }

    fn username(&self, claims: &Claims, seen: &Claims) -> Result<String, AuthnError> {
        match &self.username {
            Mapping::Expression(program) => {
                let name = text_of(program, seen, "username")?;
                if name.is_empty() {
                    return Err(refused("empty username via CEL expression is not allowed"));
                }
                Ok(name)
            }
            Mapping::Claim { name, prefix } => {
                let value =
                    text(claims, name).map_err(|why| refused(format!("parse username claims {name:?}: {why}")))?;
                if name == "email" {
                    check_email(claims)?;
                }
                Ok(format!("{prefix}{value}"))
            }
            Mapping::None => Err(refused("no claim names the user")),
        }
    }

    fn groups(&self, claims: &Claims, seen: &Claims) -> Result<Vec<String>, AuthnError> {
        match &self.groups {
            Mapping::None => Ok(Vec::new()),
            Mapping::Claim { name, prefix } => {
                let Some(value) = claims.get(name) else { return Ok(Vec::new()) };
                let groups =
                    text_or_list(value).map_err(|why| refused(format!("parse groups claim {name:?}: {why}")))?;
                Ok(groups.into_iter().map(|group| format!("{prefix}{group}")).collect())
            }
            Mapping::Expression(program) => {
                let failed = |why: &str| refused(format!("error evaluating group claim expression: {why}"));
                let value = expressions::of_claims(program, seen).map_err(|why| failed(&why))?;
                expressions::texts(&value).map_err(failed)
            }
        }
    }

    fn uid(&self, claims: &Claims, seen: &Claims) -> Result<String, AuthnError> {
        match &self.uid {
            Mapping::None => Ok(String::new()),
            Mapping::Claim { name, .. } => {
                text(claims, name).map_err(|why| refused(format!("parse uid claim {}: {why}", go_quote(name))))
            }
            Mapping::Expression(program) => text_of(program, seen, "uid"),
        }
    }

    fn extra(&self, claims: &Claims, seen: &Claims) -> Result<BTreeMap<String, StringList>, AuthnError> {
        let mut extra = BTreeMap::new();
        if let Some(id) = claims.get("jti").and_then(Json::as_str).filter(|id| !id.is_empty()) {
            extra.insert(CREDENTIAL_ID_KEY.to_owned(), StringList(vec![format!("JTI={id}")]));
        }
        for (key, program) in &self.extra {
            let failed = |why: &str| refused(format!("error evaluating extra claim expression: {why}"));
            let value = expressions::of_claims(program, seen).map_err(|why| failed(&why))?;
            let values = expressions::texts(&value).map_err(|why| failed(&format!("{}: {why}", program.source())))?;
            if !values.is_empty() {
                extra.insert(key.clone(), StringList(values));
            }
        }
        Ok(extra)
    }

    fn check_claims(&self, claims: &Claims, seen: &Claims) -> Result<(), AuthnError> {
        for (name, wanted) in &self.required_claims {
            if !claims.contains_key(name) {
                return Err(refused(format!("required claim {name} not present in ID token")));
            }
            let found = text(claims, name).map_err(|why| refused(format!("parse claim {name}: {why}")))?;
            if found != *wanted {
                let problem = format!("required claim {name} value does not match. Got = {found}, want = {wanted}");
                return Err(refused(problem));
            }
        }
        let what = "error evaluating claim validation expression";
        check(&self.claim_conditions, what, |program| expressions::of_claims(program, seen))
    }
}

/// All conditions have to be evaluated, and all have to hold.
fn check<'a>(
    conditions: &'a [Condition],
    what: &str,
    evaluate: impl Fn(&'a Program) -> Result<Value<'a>, String>,
) -> Result<(), AuthnError> {
    let values: Result<Vec<_>, _> = conditions.iter().map(|own| evaluate(&own.program)).collect();
    let values = values.map_err(|why| refused(format!("{what}: {why}")))?;
    for (condition, value) in conditions.iter().zip(values) {
        if !matches!(value, Value::Bool(true)) {
            let (source, message) = (condition.program.source(), &condition.message);
            return Err(refused(format!("{what}: validation expression '{source}' failed: {message}")));
        }
    }
    Ok(())
}

fn text_of(program: &Program, claims: &Claims, what: &str) -> Result<String, AuthnError> {
    let failed = |why: &str| refused(format!("error evaluating {what} claim expression: {why}"));
    let value = expressions::of_claims(program, claims).map_err(|why| failed(&why))?;
    let text = value.as_str().ok_or_else(|| failed(&format!("{what} claim expression must return a string")))?;
    Ok(text.to_owned())
}

/// An address that is said to be somebody else's is nobody's name.
fn check_email(claims: &Claims) -> Result<(), AuthnError> {
    match claims.get("email_verified") {
        None | Some(Json::Bool(true)) => Ok(()),
        Some(Json::Bool(false) | Json::Null) => Err(refused("email not verified")),
        Some(other) => Err(refused(format!("parse 'email_verified' claim: {}", mismatch(other, "bool")))),
    }
}

fn text(claims: &Claims, name: &str) -> Result<String, String> {
    match claims.get(name) {
        None => Err("claim not present".to_owned()),
        Some(Json::String(text)) => Ok(text.clone()),
        Some(Json::Null) => Ok(String::new()),
        Some(other) => Err(mismatch(other, "string")),
    }
}

/// Some issuers have a role in one text where others have a list of groups.
fn text_or_list(value: &Json) -> Result<Vec<String>, String> {
    match value {
        Json::Null => Ok(Vec::new()),
        Json::String(text) => Ok(vec![text.clone()]),
        Json::Array(items) => {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>().ok_or_else(|| mismatch(value, "string"))
        }
        other => Err(mismatch(other, "string")),
    }
}

fn mismatch(found: &Json, wanted: &str) -> String {
    let found = match found {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    };
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
