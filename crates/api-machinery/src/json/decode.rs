//! Reading typed and free-form values.

use std::borrow::Cow;
use std::collections::BTreeSet;

use base64::Engine as _;
use serde_json::{Map as ValueMap, Number, Value};

use super::document::TypeMeta;
use super::reader::{DecodeError, Named, Reader, Token};
use crate::reflect::{Field, FieldType, List, Map, Reflect, Shape, StructType, ViewMut};

/// The unnamed type that Go looks for a document's kind with, as its errors tell it.
const TYPE_META: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Finds a document's `kind` and `apiVersion` without decoding the rest.
///
/// # Errors
/// When the text is not a JSON object, or one of the two is not a string.
pub fn read_type_meta(text: &str) -> Result<TypeMeta, DecodeError> {
    let mut reader = Reader::new(text);
    let mut meta = TypeMeta::default();
    let mut first = true;
    match reader.token()? {
        Token::Object => {}
        other => return Err(reader.mismatch_text(other.kind(), TYPE_META)),
    }
    while let Some(key) = reader.key(&mut first)? {
        match key.as_ref() {
            "kind" => reader.read_named("kind", &mut meta.kind)?,
            "apiVersion" => reader.read_named("apiVersion", &mut meta.api_version)?,
            _ => reader.skip_value()?,
        }
    }
    reader.end()?;
    Ok(meta)
}

const KIND: &str = "kind";
const API_VERSION: &str = "apiVersion";

/// Where a member's name leads.
enum Slot {
    Own(usize),
    /// The inline field, and where in its struct: places of the struct inline in that follow its own.
    Inline(usize, usize),
    Rest(usize),
    TypeMeta(&'static str),
    Unknown,
}

/// Which members of a struct were seen; structs have fewer than 128 fields.
#[derive(Default)]
struct Seen {
    own: u128,
    inline: u128,
    type_meta: u128,
}

impl Seen {
    /// Marks a slot, and says whether it was marked before.
    fn mark(&mut self, slot: &Slot) -> bool {
        let (set, index) = match slot {
            Slot::Own(index) => (&mut self.own, *index),
            Slot::Inline(_, index) => (&mut self.inline, *index),
            Slot::TypeMeta(name) => (&mut self.type_meta, usize::from(*name == KIND)),
            Slot::Rest(_) | Slot::Unknown => return false,
        };
        let bit = 1_u128.checked_shl(u32::try_from(index).unwrap_or(u32::MAX)).unwrap_or(0);
        let seen = *set & bit != 0;
        *set |= bit;
        seen
    }
}

/// Finds the field of a name. `hint` is where the next one is expected, as members usually come in order.
fn find(table: &'static StructType, name: &str, hint: usize) -> Slot {
    let fields = table.fields;
    for index in (hint..fields.len()).chain(0..hint.min(fields.len())) {
        if fields[index].name == name && !fields[index].inline && !fields[index].rest {
            return Slot::Own(index);
        }
    }
    if let Some((outer, index)) = find_inline(table, name) {
        return Slot::Inline(outer, index);
    }
    if table.type_meta
        && let Some(name) = [KIND, API_VERSION].into_iter().find(|known| *known == name)
    {
        return Slot::TypeMeta(name);
    }
    fields.iter().position(|field| field.rest).map_or(Slot::Unknown, Slot::Rest)
}

impl Named for FieldType {
    fn name(&self) -> &'static str {
        self.name
    }
    fn go_type(&self) -> &'static str {
        self.go_type()
    }
}

/// Finds a field in the structs that are inline in another.
fn find_inline(table: &'static StructType, name: &str) -> Option<(usize, usize)> {
    let outer = table.inline()?;
    let Shape::Struct(inner) = (table.fields[outer].shape)() else { return None };
    let below = || find_inline(inner, name).map(|(_, index)| inner.fields.len() + index);
    inner.index_of(name).or_else(below).map(|index| (outer, index))
}

impl<'a> Reader<'a> {
    /// Reads a struct; `null` leaves it as it is.
    ///
    /// # Errors
    /// When the text is not JSON or does not fit.
    pub fn read_struct(&mut self, target: &mut dyn Reflect) -> Result<(), DecodeError> {
        let table = target.struct_type();
        match self.token()? {
            Token::Null => return Ok(()),
            Token::Object => {}
            other => return Err(self.mismatch(other.kind(), &Shape::Struct(table).go_name())),
        }
        let outer = std::mem::replace(&mut self.within, table.name);
        let (mut first, mut next, mut seen) = (true, 0, Seen::default());
        while let Some(key) = self.key(&mut first)? {
            let slot = find(table, &key, next);
            if seen.mark(&slot) {
                self.report("duplicate", &key);
            }
            if let Slot::Own(index) = slot {
                next = index + 1;
            }
            self.read_member(target, &slot, key)?;
        }
        self.within = outer;
        Ok(())
    }

    fn read_member(&mut self, target: &mut dyn Reflect, slot: &Slot, key: Cow<'a, str>) -> Result<(), DecodeError> {
        match *slot {
            Slot::Own(index) => {
                self.enter_field(&target.struct_type().fields[index]);
                self.read_field(target.field_mut(index))?;
                self.step_out();
            }
            Slot::Inline(outer, index) => {
                if let ViewMut::Struct(inner) = target.field_mut(outer).view_mut() {
                    let table = inner.struct_type();
                    self.enter_embedded(table.name);
                    let slot = match (index.checked_sub(table.fields.len()), table.inline()) {
                        (Some(index), Some(below)) => Slot::Inline(below, index),
                        _ => Slot::Own(index),
                    };
                    self.read_member(inner, &slot, key)?;
                    self.step_out();
                }
            }
            Slot::Rest(index) => {
                if let ViewMut::Map(rest) = target.field_mut(index).view_mut() {
                    self.read_entry(rest, key, false)?;
                }
            }
            Slot::TypeMeta(name) => self.read_type_meta_member(name)?,
            Slot::Unknown => {
                self.report("unknown", &key);
                self.skip_value()?;
            }
        }
        Ok(())
    }

    fn read_type_meta_member(&mut self, name: &'static str) -> Result<(), DecodeError> {
        let mut text = String::new();
        let root = self.at_root();
        self.enter_embedded("TypeMeta");
        self.read_named(name, &mut text)?;
        self.step_out();
        if root {
            let slot = if name == KIND { &mut self.type_meta.kind } else { &mut self.type_meta.api_version };
            *slot = text;
        }
        Ok(())
    }

    fn read_named(&mut self, name: &'static str, target: &mut String) -> Result<(), DecodeError> {
        self.enter_name(name);
        self.read_field(target)?;
        self.step_out();
        Ok(())
    }

    /// Reads a value into a field.
    ///
    /// # Errors
    /// When the text is not JSON or does not fit.
    pub fn read_field(&mut self, target: &mut dyn Field) -> Result<(), DecodeError> {
        match target.view_mut() {
            ViewMut::Struct(target) => return self.read_struct(target),
            ViewMut::List(target) => return self.read_list(target),
            ViewMut::Map(target) => return self.read_map(target),
            ViewMut::Leaf(target) => return target.read_json(self),
            ViewMut::Dynamic(target) => *target = self.read_value()?,
            ViewMut::Optional(target) => {
                if self.take_null()? {
                    target.clear();
                } else {
                    return self.read_field(target.ensure());
                }
            }
            ViewMut::Bool(target) => match self.token()? {
                Token::Null => {}
                Token::Bool(value) => *target = value,
                other => return Err(self.mismatch(other.kind(), &Shape::Bool.go_name())),
            },
            ViewMut::Int32(target) => *target = self.read_number(*target, Shape::Int32)?,
            ViewMut::Int64(target) => *target = self.read_number(*target, Shape::Int64)?,
            ViewMut::Float(target) => *target = self.read_number(*target, Shape::Float)?,
            ViewMut::Str(target) => match self.token()? {
                Token::Null => {}
                Token::Str(text) => *target = text.into_owned(),
                other => return Err(self.mismatch(other.kind(), &Shape::Str.go_name())),
            },
            ViewMut::Bytes(target) => match self.token()? {
                Token::Null => target.clear(),
                Token::Str(text) => *target = decode_base64(&text)?,
                other => return Err(self.mismatch(other.kind(), &Shape::Bytes.go_name())),
            },
        }
        Ok(())
    }

    fn read_number<T: std::str::FromStr>(&mut self, old: T, shape: Shape) -> Result<T, DecodeError> {
        match self.token()? {
            Token::Null => Ok(old),
            Token::Number(text) => text.parse().map_err(|_| self.mismatch_number(text, &shape.go_name())),
            other => Err(self.mismatch(other.kind(), &shape.go_name())),
        }
    }

    fn read_list(&mut self, target: &mut dyn List) -> Result<(), DecodeError> {
        target.clear();
        match self.token()? {
            Token::Null => return Ok(()),
            Token::Array => {}
            other => return Err(self.mismatch(other.kind(), &target.list_shape().go_name())),
        }
        let (mut first, mut index) = (true, 0);
        while self.entry(&mut first)? {
            self.enter_index(index);
            self.read_field(target.push_default())?;
            self.step_out();
            index += 1;
        }
        Ok(())
    }

    fn read_map(&mut self, target: &mut dyn Map) -> Result<(), DecodeError> {
        match self.token()? {
            Token::Null => {
                target.clear();
                return Ok(());
            }
            Token::Object => {}
            other => return Err(self.mismatch(other.kind(), &target.map_shape().go_name())),
        }
        // A name that came twice fills its map twice; what the first one left there was not told twice itself.
        let mut before = if self.is_strict() { keys(target) } else { BTreeSet::new() };
        let mut first = true;
        while let Some(key) = self.key(&mut first)? {
            let left = before.remove(key.as_ref());
            self.read_entry(target, key, left)?;
        }
        Ok(())
    }

    fn read_entry(&mut self, target: &mut dyn Map, key: Cow<'a, str>, left: bool) -> Result<(), DecodeError> {
        let (slot, existed) = target.upsert(&key);
        if existed && !left {
            self.report("duplicate", &key);
        }
        self.enter_key(key);
        self.read_field(slot)?;
        self.step_out();
        Ok(())
    }

    /// Reads any value.
    ///
    /// # Errors
    /// When the text is not JSON.
    pub fn read_value(&mut self) -> Result<Value, DecodeError> {
        Ok(match self.token()? {
            Token::Null => Value::Null,
            Token::Bool(value) => Value::Bool(value),
            Token::Str(text) => Value::String(text.into_owned()),
            Token::Number(text) => Value::Number(free_number(text)?),
            Token::Array => {
                let (mut first, mut items) = (true, Vec::new());
                while self.entry(&mut first)? {
                    self.enter_index(items.len());
                    items.push(self.read_value()?);
                    self.step_out();
                }
                Value::Array(items)
            }
            Token::Object => {
                let (mut first, mut map) = (true, ValueMap::new());
                while let Some(key) = self.key(&mut first)? {
                    if self.is_strict() && map.contains_key(key.as_ref()) {
                        self.report("duplicate", &key);
                    }
                    self.enter_key(key.clone());
                    let value = self.read_value()?;
                    self.step_out();
                    map.insert(key.into_owned(), value);
                }
                Value::Object(map)
            }
        })
    }
}

/// The keys of a map; most are empty when they are read into.
fn keys(map: &dyn Map) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    if !map.is_empty() {
        map.each(&mut |key, _| {
            keys.insert(key.to_owned());
        });
    }
    keys
}

/// An integer where the text is one and fits, a double otherwise.
fn free_number(text: &str) -> Result<Number, DecodeError> {
    if let Ok(integer) = text.parse::<i64>() {
        return Ok(integer.into());
    }
    text.parse::<f64>()
        .ok()
        .and_then(Number::from_f64)
        .ok_or_else(|| DecodeError(format!("json: cannot unmarshal number {text} into Go value of type float64")))
}

/// Go skips line ends inside base64 text.
fn decode_base64(text: &str) -> Result<Vec<u8>, DecodeError> {
    let engine = &base64::engine::general_purpose::STANDARD;
    let decoded =
        if text.contains(['\n', '\r']) { engine.decode(text.replace(['\n', '\r'], "")) } else { engine.decode(text) };
    decoded.map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
            base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => text.len() / 4 * 4,
        };
        DecodeError(format!("illegal base64 data at input byte {at}"))
    })
}
