//! How libraries declare functions: one row for each overload, with its signature as text.

use regex::Regex;

use crate::cost::Cost;
use crate::error::Out;
use crate::types::Type;
use crate::value::Value;

/// The arguments of a call; a receiver is the first of them.
pub struct Args<'c, 'v> {
    pub values: &'c [Value<'v>],
    /// The pattern, compiled before, where it is constant.
    pub regex: Option<&'c Regex>,
}

impl<'v> Args<'_, 'v> {
    /// The argument at a place; null where the signature has none there.
    #[must_use]
    pub fn get(&self, index: usize) -> &Value<'v> {
        self.values.get(index).unwrap_or(&Value::Null)
    }

    /// The string at a place; empty where the signature has none there.
    #[must_use]
    pub fn str(&self, index: usize) -> &str {
        self.get(index).as_str().unwrap_or_default()
    }

    /// The integer at a place; 0 where the signature has none there.
    #[must_use]
    pub fn int(&self, index: usize) -> i64 {
        if let Value::Int(value) = self.get(index) { *value } else { 0 }
    }
}

/// What a call does.
pub type Run = for<'v> fn(&Args<'_, 'v>) -> Out<Value<'v>>;

/// A row of a library's table.
#[derive(Clone, Copy)]
pub struct Overload {
    /// Upstream's name of the overload.
    pub id: &'static str,
    /// `name(int, list<A>) -> A`, or `string::name(int) -> int` for a method.
    pub signature: &'static str,
    pub run: Run,
    pub cost: Cost,
}

/// A row of a library's table.
pub const fn overload(id: &'static str, signature: &'static str, cost: Cost, run: Run) -> Overload {
    Overload { id, signature, run, cost }
}

/// A signature that was read.
#[derive(Debug, Clone)]
pub(crate) struct Signature {
    pub(crate) name: String,
    pub(crate) member: bool,
    pub(crate) params: Vec<Type>,
    pub(crate) result: Type,
}

impl Signature {
    /// Nothing where the text is no signature.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (call, result) = text.split_once(" -> ")?;
        let (head, params) = call.strip_suffix(')')?.split_once('(')?;
        let mut types = Vec::new();
        let name = match head.split_once("::") {
            Some((receiver, name)) => {
                types.push(Type::parse(receiver)?);
                name
            }
            None => head,
        };
        let member = !types.is_empty();
        // A map's type has a comma of its own.
        let mut depth = 0_i32;
        for part in params.split(|c: char| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            c == ',' && depth == 0
        }) {
            if !part.trim().is_empty() {
                types.push(Type::parse(part)?);
            }
        }
        Some(Self { name: name.to_owned(), member, params: types, result: Type::parse(result)? })
    }
}
