//! Maps: of the expression, of a free-form value, of an API object.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;

use api_machinery::object::Object;
use api_machinery::reflect::{Field, Reflect};
use api_machinery::value::{Value as Json, ValueMap};

use crate::error::{EvalError, Out};
use crate::kubernetes::declared::Declared;

use super::{Value, compare, read, record};

/// Up to this many entries are found by looking at each.
const SMALL: usize = 16;

/// A map.
#[derive(Clone)]
pub enum Map<'a> {
    /// Made by the expression.
    Shared(Arc<Entries<'a>>),
    /// A free-form object.
    Json(&'a ValueMap<String, Json>),
    /// Of an API object.
    Field(&'a dyn Field),
    /// An API object.
    Object(&'a dyn Object),
    /// A part of an API object.
    Struct(&'a dyn Reflect),
    /// What the caller shows.
    View(&'a dyn View),
    /// A free-form object whose type is declared.
    Declared(&'a ValueMap<String, Json>, &'a Declared),
}

/// A map that the caller shows in its own way: values are made when they are read.
pub trait View: Send + Sync {
    /// The value of a key, where it is there.
    fn get(&self, key: &str) -> Option<Value<'_>>;
    /// The keys that are there.
    fn keys(&self) -> Vec<&str>;
}

/// Entries in the order they were added, found by key.
#[derive(Clone, Default)]
pub struct Entries<'a> {
    entries: Vec<(Value<'a>, Value<'a>)>,
    /// Places by hash, once there are many.
    places: HashMap<u64, Vec<usize>>,
    hasher: RandomState,
    /// The value of every key that is not there, for those who read one; whoever asks what is there does not see it.
    otherwise: Option<Value<'a>>,
}

impl<'a> Entries<'a> {
    /// Whoever reads a key that is not there gets this value, as with the attributes of devices.
    #[must_use]
    pub fn otherwise(mut self, value: Value<'a>) -> Self {
        self.otherwise = Some(value);
        self
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// The key is there already, or is no key.
    pub fn insert(&mut self, key: Value<'a>, value: Value<'a>) -> Out<()> {
        if !matches!(key, Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::String(_)) {
            return Err(EvalError::failed(format!("unsupported key type: {}", key.type_of())));
        }
        if self.find(&key).is_some() {
            return Err(EvalError::RepeatedKey(key.to_display()));
        }
        self.entries.push((key, value));
        let first = if self.entries.len() == SMALL + 1 { 0 } else { self.entries.len() - 1 };
        if self.entries.len() > SMALL {
            for (at, (key, _)) in self.entries.iter().enumerate().skip(first) {
                if let Some(hash) = compare::key_hash(key, &mut self.hasher.build_hasher()) {
                    self.places.entry(hash).or_default().push(at);
                }
            }
        }
        Ok(())
    }

    fn find(&self, key: &Value<'_>) -> Option<&(Value<'a>, Value<'a>)> {
        if self.entries.len() <= SMALL {
            return self.entries.iter().find(|(found, _)| compare::keys_equal(found, key));
        }
        let hash = compare::key_hash(key, &mut self.hasher.build_hasher())?;
        let places = self.places.get(&hash)?;
        places.iter().filter_map(|at| self.entries.get(*at)).find(|(found, _)| compare::keys_equal(found, key))
    }
}

impl<'a> Map<'a> {
    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Shared(map) => map.entries.len(),
            Self::Json(map) | Self::Declared(map, _) => map.len(),
            Self::Field(field) => read::map_of(*field).map_or(0, |map| map.len()),
            Self::Object(object) => record::members(*object).len(),
            Self::Struct(object) => record::names(*object).len(),
            Self::View(view) => view.keys().len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key that is a string.
    #[must_use]
    pub fn get_str(&self, key: &str) -> Option<Value<'a>> {
        match self {
            Self::Shared(map) => {
                if map.entries.len() <= SMALL {
                    let found = map.entries.iter().find(|(found, _)| found.as_str() == Some(key));
                    return found.map(|(_, value)| value.clone());
                }
                map.find(&Value::text(key)).map(|(_, value)| value.clone())
            }
            Self::Json(map) => map.get(key).map(Value::of_json),
            Self::Declared(map, declared) => map.get(key).map(|value| declared.item_value(value)),
            Self::Field(field) => read::map_of(*field)?.entry(key).map(Value::of_field),
            Self::Object(object) => record::member(*object, key),
            Self::Struct(object) => record::field(*object, key),
            Self::View(view) => view.get(key),
        }
    }

    /// Whether a key is there that is a string: no value is made of what it has.
    pub(super) fn has_str(&self, key: &str) -> bool {
        match self {
            Self::Shared(_) | Self::View(_) => self.get_str(key).is_some(),
            Self::Json(map) | Self::Declared(map, _) => map.contains_key(key),
            Self::Field(field) => read::map_of(*field).is_some_and(|map| map.entry(key).is_some()),
            Self::Object(object) => record::has_member(*object, key),
            Self::Struct(object) => record::found(*object, key).is_some(),
        }
    }

    /// Whether a key is there; as [`Self::get`].
    ///
    /// # Errors
    /// The value cannot be a key.
    pub(crate) fn has(&self, key: &Value<'_>) -> Out<bool> {
        match key {
            Value::String(key) => Ok(self.has_str(key.as_str())),
            key => self.get(key).map(|found| found.is_some()),
        }
    }

    /// The value of a key; numbers are the same key in whatever type they are.
    ///
    /// # Errors
    /// The value cannot be a key.
    pub fn get(&self, key: &Value<'_>) -> Out<Option<Value<'a>>> {
        match (self, key) {
            (_, Value::String(key)) => Ok(self.get_str(key.as_str())),
            (Self::Shared(map), Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_)) => {
                Ok(map.find(key).map(|(_, value)| value.clone()))
            }
            (_, Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_)) => Ok(None),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    /// What whoever reads a key gets that is not there.
    pub(super) fn otherwise(&self) -> Option<Value<'a>> {
        let Self::Shared(map) = self else { return None };
        map.otherwise.clone()
    }

    /// The keys, in the order of the map.
    #[must_use]
    pub fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Self::Object(object) => record::members(*object).into_iter().map(Value::String).collect(),
            Self::Struct(object) => record::names(*object).into_iter().map(Value::String).collect(),
            Self::Shared(map) => map.entries.iter().map(|(key, _)| key.clone()).collect(),
            Self::View(view) => view.keys().into_iter().map(|key| Value::String(super::Text::Borrowed(key))).collect(),
            Self::Json(map) | Self::Declared(map, _) => {
                map.keys().map(|key| Value::String(super::Text::Borrowed(key))).collect()
            }
            Self::Field(field) => {
                let mut keys = Vec::new();
                if let Some(map) = read::map_of(*field) {
                    map.each(&mut |key, _| keys.push(Value::text(key)));
                }
                keys
            }
        }
    }

    /// Keys and values, in the order of the map.
    pub fn iter(&self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> + '_ {
        self.keys().into_iter().filter_map(|key| Some((key.clone(), self.get(&key).ok()??)))
    }
}

impl<'a> Value<'a> {
    /// A map of its own.
    ///
    /// # Errors
    /// A key is there twice, or is no key.
    pub fn map(pairs: impl IntoIterator<Item = (Self, Self)>) -> Out<Self> {
        let pairs = pairs.into_iter();
        let mut entries = Entries { entries: Vec::with_capacity(pairs.size_hint().0), ..Entries::default() };
        for (key, value) in pairs {
            entries.insert(key, value)?;
        }
        Ok(Self::Map(Map::Shared(Arc::new(entries))))
    }
}

impl fmt::Debug for Map<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
