//! Types, how they are written in tables, and how they print in messages.

use std::fmt;
use std::sync::Arc;

use crate::ast::Name;

/// The type of an expression or value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// Anything; checked when evaluated.
    Dyn,
    /// What an expression with a mistake has.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    /// A list of these.
    List(Arc<Self>),
    /// A map from these to those.
    Map(Arc<(Self, Self)>),
    /// A value of this type, or null.
    Nullable(Arc<Self>),
    /// A struct, by its name.
    Object(Name),
    /// A type that only functions look into, such as `optional_type`, with its parameters.
    Opaque(Name, Arc<[Self]>),
    /// A type parameter of a declaration.
    Param(Name),
    /// The type of a type.
    Type(Arc<Self>),
}

const OPTIONAL: &str = "optional_type";

impl Type {
    /// `list(item)`.
    #[must_use]
    pub fn list(item: Self) -> Self {
        Self::List(Arc::new(item))
    }

    /// `map(key, value)`.
    #[must_use]
    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    /// `optional_type(value)`.
    #[must_use]
    pub fn optional(value: Self) -> Self {
        Self::Opaque(OPTIONAL.into(), [value].into())
    }

    /// A struct of this name.
    #[must_use]
    pub fn object(name: &str) -> Self {
        Self::Object(name.into())
    }

    /// A type without structure of this name.
    #[must_use]
    pub fn opaque(name: &str) -> Self {
        Self::Opaque(name.into(), [].into())
    }

    pub(crate) fn type_of(of: Self) -> Self {
        Self::Type(Arc::new(of))
    }

    /// What an optional holds, if it is one.
    #[must_use]
    pub fn as_optional(&self) -> Option<&Self> {
        match self {
            Self::Opaque(name, params) if &**name == OPTIONAL => params.first(),
            _ => None,
        }
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// The types that this is made of.
    pub(crate) fn params(&self) -> Vec<&Self> {
        match self {
            Self::List(item) | Self::Nullable(item) | Self::Type(item) => vec![item],
            Self::Map(pair) => vec![&pair.0, &pair.1],
            Self::Opaque(_, params) => params.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The same type over other parameters.
    pub(crate) fn with(&self, each: &mut dyn FnMut(&Self) -> Self) -> Self {
        match self {
            Self::List(item) => Self::list(each(item)),
            Self::Nullable(item) => Self::Nullable(Arc::new(each(item))),
            Self::Type(item) => Self::type_of(each(item)),
            Self::Map(pair) => Self::map(each(&pair.0), each(&pair.1)),
            Self::Opaque(name, params) => Self::Opaque(Name::clone(name), params.iter().map(each).collect()),
            other => other.clone(),
        }
    }

    /// The name that a value of a type has at run time: without parameters.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Dyn => "dyn",
            Self::Error => "!error!",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Duration => "google.protobuf.Duration",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Type(_) => "type",
            Self::Nullable(inner) => inner.name(),
            Self::Object(name) | Self::Opaque(name, _) | Self::Param(name) => name,
        }
    }

    /// A type as tables write it, such as `map<string, list<A>>`; one capital letter is a parameter.
    ///
    /// Nothing where the text is no type.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (ty, rest) = parse(text.trim())?;
        rest.trim().is_empty().then_some(ty)
    }
}

fn parse(text: &str) -> Option<(Type, &str)> {
    let end = text.find(['<', '>', ',', ' ']).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    let mut params = Vec::new();
    if let Some(mut inner) = rest.strip_prefix('<') {
        loop {
            let (param, after) = parse(inner.trim_start())?;
            params.push(param);
            let after = after.trim_start();
            if let Some(more) = after.strip_prefix(',') {
                inner = more;
            } else {
                rest = after.strip_prefix('>')?;
                break;
            }
        }
    }
    named(name, params).map(|ty| (ty, rest))
}

fn named(name: &str, params: Vec<Type>) -> Option<Type> {
    let mut params = params.into_iter();
    Some(match name {
        "" => return None,
        "dyn" => Type::Dyn,
        "null_type" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "list" => Type::list(params.next()?),
        "map" => Type::map(params.next()?, params.next()?),
        "optional" => Type::optional(params.next()?),
        "type" => Type::type_of(params.next()?),
        _ if name.len() == 1 => Type::Param(name.into()),
        _ => Type::Opaque(name.into(), params.collect()),
    })
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nullable(inner) => return write!(f, "wrapper({inner})"),
            // What is not known prints as what it may be.
            Self::Type(inner) if inner.is_dyn() => return f.write_str("type"),
            _ => f.write_str(self.name())?,
        }
        for (index, param) in self.params().into_iter().enumerate() {
            write!(f, "{}{param}", if index == 0 { "(" } else { ", " })?;
        }
        f.write_str(if self.params().is_empty() { "" } else { ")" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_and_print() {
        for (text, printed) in [
            ("int", "int"),
            ("list<A>", "list(A)"),
            ("map<string, list<dyn>>", "map(string, list(dyn))"),
            ("optional<timestamp>", "optional_type(google.protobuf.Timestamp)"),
            ("net.IP", "net.IP"),
            ("type<dyn>", "type"),
            ("type<int>", "type(int)"),
        ] {
            assert_eq!(Type::parse(text).map(|ty| ty.to_string()).as_deref(), Some(printed), "{text}");
        }
        for text in ["", "list", "list<", "list<int", "map<int>", "int>"] {
            assert_eq!(Type::parse(text), None, "{text}");
        }
    }
}
