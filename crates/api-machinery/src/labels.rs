//! Label selectors: the text form (`app=web,tier in (a,b),!old`), the object form, and matching.
//!
//! The text parser follows upstream token by token, because its error texts reach users.
//! Concept: <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/>

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crate::field_path::{ErrorList, Path};
use crate::meta::LabelSelector;
use crate::names;
use crate::quote::go_quote;

mod parser;

/// How a requirement compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `key in (a,b)`.
    In,
    /// `key notin (a,b)`: also matches when the key is absent.
    NotIn,
    /// `key=a`.
    Equals,
    /// `key==a`, which means the same as `=` and prints as given.
    DoubleEquals,
    /// `key!=a`: also matches when the key is absent.
    NotEquals,
    /// `key`.
    Exists,
    /// `!key`.
    DoesNotExist,
    /// `key>5`, both sides integers.
    GreaterThan,
    /// `key<5`, both sides integers.
    LessThan,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: Cow<'static, str>,
    operator: Operator,
    /// Sorted, without repeats.
    values: Vec<String>,
}

/// All requirements must hold; none at all match everything. A selector can also match nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    nothing: bool,
    /// Sorted by key.
    requirements: Vec<Requirement>,
}

/// A selector that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// One requirement is malformed; the text is the parser's.
    #[error("unable to parse requirement: {0}")]
    Requirement(String),
    /// The list as a whole is malformed; the text is the parser's.
    #[error("{0}")]
    Syntax(String),
    /// A key or value breaks the label rules.
    #[error(transparent)]
    Fields(#[from] ErrorList),
    /// A `matchExpressions` operator other than `In`, `NotIn`, `Exists`, `DoesNotExist`.
    #[error("{} is not a valid label selector operator", go_quote(.0))]
    Operator(String),
}

impl Requirement {
    /// A checked requirement.
    pub fn new(key: impl Into<Cow<'static, str>>, operator: Operator, values: Vec<String>) -> Result<Self, ErrorList> {
        let mut requirement = Self { key: key.into(), operator, values };
        requirement.values.sort_unstable();
        requirement.values.dedup();
        requirement.check().into_result()?;
        Ok(requirement)
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How it compares.
    pub const fn operator(&self) -> Operator {
        self.operator
    }

    /// The values compared with, sorted.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether the labels meet this requirement.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_value(labels.get(self.key.as_ref()).map(String::as_str))
    }

    /// Whether the label's value, or its absence, meets this requirement.
    pub fn matches_value(&self, value: Option<&str>) -> bool {
        let listed = || value.is_some_and(|value| self.values.iter().any(|wanted| wanted == value));
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => listed(),
            Operator::NotIn | Operator::NotEquals => !listed(),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.numbers(value).is_some_and(|(actual, bound)| actual > bound),
            Operator::LessThan => self.numbers(value).is_some_and(|(actual, bound)| actual < bound),
        }
    }

    fn numbers(&self, value: Option<&str>) -> Option<(i64, i64)> {
        Some((value?.parse().ok()?, self.values.first()?.parse().ok()?))
    }

    fn check(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        errors.extend(check_key(&self.key, &Path::new("key")).err());
        let path = Path::new("values");
        let refuse = |detail: &str| Some(path.invalid(crate::field_path::BadValue::list(&self.values), detail));
        let count = self.values.len();
        errors.extend(match self.operator {
            Operator::In | Operator::NotIn if count == 0 => {
                refuse("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if count != 1 => {
                refuse("exact-match compatibility requires one single value")
            }
            Operator::Exists | Operator::DoesNotExist if count != 0 => {
                refuse("values set must be empty for exists and does not exist")
            }
            Operator::GreaterThan | Operator::LessThan if count != 1 => {
                refuse("for 'Gt', 'Lt' operators, exactly one value is required")
            }
            _ => None,
        });
        for (index, value) in self.values.iter().enumerate() {
            let path = path.index(index);
            let ordered = matches!(self.operator, Operator::GreaterThan | Operator::LessThan);
            if ordered && value.parse::<i64>().is_err() {
                errors.push(path.invalid(value, "for 'Gt', 'Lt' operators, the value must be an integer"));
            }
            let details = names::label_value(value);
            if !details.is_empty() {
                errors.push(path.key(&self.key).invalid(value, details.join("; ")));
            }
        }
        errors
    }
}

/// The key rule as one error, all details joined.
fn check_key(key: &str, path: &Path) -> Result<(), crate::field_path::FieldError> {
    let details = names::qualified_name(key);
    if details.is_empty() { Ok(()) } else { Err(path.invalid(key, details.join("; "))) }
}

impl Selector {
    /// Matches every object.
    pub const fn everything() -> Self {
        Self { nothing: false, requirements: Vec::new() }
    }

    /// Matches no object: what an absent selector field means.
    pub const fn nothing() -> Self {
        Self { nothing: true, requirements: Vec::new() }
    }

    /// A selector of these requirements.
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { nothing: false, requirements }
    }

    /// Reads the text form; an empty text matches everything.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parser::parse(text).map(Self::new)
    }

    /// Exactly these labels, unchecked; an empty map matches everything.
    pub fn from_set(labels: &BTreeMap<String, String>) -> Self {
        let exact = |(key, value): (&String, &String)| Requirement {
            key: key.clone().into(),
            operator: Operator::Equals,
            values: vec![value.clone()],
        };
        Self::new(labels.iter().map(exact).collect())
    }

    /// The object form: `matchLabels` and the key, operator and values of each of `matchExpressions`.
    /// Empty parts match everything; an absent `LabelSelector` is [`Selector::nothing`].
    pub fn from_parts<'a>(
        match_labels: &BTreeMap<String, String>,
        match_expressions: impl IntoIterator<Item = (&'a str, &'a str, &'a [String])>,
    ) -> Result<Self, SelectorError> {
        let mut requirements = Vec::with_capacity(match_labels.len());
        for (key, value) in match_labels {
            requirements.push(Requirement::new(key.clone(), Operator::Equals, vec![value.clone()])?);
        }
        for (key, operator, values) in match_expressions {
            let operator = match operator {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => return Err(SelectorError::Operator(other.to_owned())),
            };
            requirements.push(Requirement::new(key.to_owned(), operator, values.to_vec())?);
        }
        Ok(Self::new(requirements))
    }

    /// The object form as kinds hold it.
    pub fn from_label_selector(selector: &LabelSelector) -> Result<Self, SelectorError> {
        let expressions = selector.match_expressions.iter();
        Self::from_parts(
            &selector.match_labels,
            expressions.map(|part| (part.key.as_str(), part.operator.as_str(), part.values.as_slice())),
        )
    }

    /// Whether the labels meet all requirements.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        !self.nothing && self.requirements.iter().all(|requirement| requirement.matches(labels))
    }

    /// Whether it matches every object.
    pub const fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// Whether it matches no object by construction.
    pub const fn is_nothing(&self) -> bool {
        self.nothing
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// The one value that `key` must have, if the selector asks for one.
    pub fn required_value(&self, key: &str) -> Option<&str> {
        let exact = |requirement: &&Requirement| {
            requirement.key == key
                && requirement.values.len() == 1
                && matches!(requirement.operator, Operator::In | Operator::Equals | Operator::DoubleEquals)
        };
        self.requirements.iter().find(exact)?.values.first().map(String::as_str)
    }

    /// Adds requirements; a selector that matches nothing stays so.
    pub fn extend(&mut self, requirements: impl IntoIterator<Item = Requirement>) {
        if !self.nothing {
            self.requirements.extend(requirements);
            self.requirements.sort_by(|a, b| a.key.cmp(&b.key));
        }
    }
}

impl std::str::FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

/// The text form; both "everything" and "nothing" print empty.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            fmt::Display::fmt(requirement, f)?;
        }
        Ok(())
    }
}

/// Labels as text: `a=b,c=d`.
pub fn format_labels(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
