//! Structs: of declared types, and those that expressions make.

use std::fmt;
use std::sync::Arc;

use api_machinery::value::{Value as Json, ValueMap};

use crate::ast::Name;
use crate::error::{EvalError, Out};
use crate::kubernetes::declared::Declared;

use super::Value;

/// A struct. API objects are none: expressions see them as maps, as they see them where a schema is not known.
#[derive(Clone)]
pub enum Object<'a> {
    /// A free-form object whose type is declared.
    Declared(&'a ValueMap<String, Json>, &'a Declared),
    /// Made by the expression.
    Built(Arc<Built<'a>>),
}

/// A struct that an expression made.
#[derive(Debug)]
pub struct Built<'a> {
    pub type_name: Name,
    /// The fields that were set, in order.
    pub fields: Vec<(Name, Value<'a>)>,
}

impl<'a> Object<'a> {
    /// The name of its type.
    #[must_use]
    pub fn type_name(&self) -> &str {
        match self {
            Self::Declared(_, declared) => declared.type_name(),
            Self::Built(built) => &built.type_name,
        }
    }

    /// The field, where it is set.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Value<'a>> {
        match self {
            Self::Declared(map, declared) => declared.field_value(map, name),
            Self::Built(built) => {
                built.fields.iter().find(|(found, _)| &**found == name).map(|(_, value)| value.clone())
            }
        }
    }

    /// The names of the fields that are set.
    #[must_use]
    pub fn fields(&self) -> Vec<Name> {
        match self {
            Self::Declared(map, declared) => declared.field_names(map),
            Self::Built(built) => built.fields.iter().map(|(name, _)| Name::clone(name)).collect(),
        }
    }

    pub(crate) fn select(&self, name: &str) -> Out<Value<'a>> {
        self.field(name).ok_or_else(|| EvalError::NoSuchKey(name.to_owned()))
    }

    pub(crate) fn has(&self, name: &str) -> Out<bool> {
        Ok(self.field(name).is_some())
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.fields().is_empty()
    }
}

impl fmt::Debug for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct(self.type_name());
        for name in self.fields() {
            if let Some(value) = self.field(&name) {
                out.field(&name, &value);
            }
        }
        out.finish()
    }
}
