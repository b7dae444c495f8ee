//! Checksums of state files: 32-bit FNV-1a over what Go's deep dump prints of the record that a file holds.
//!
//! Upstream sums up its record in memory and not the file (`checkpointmanager/checksum`): each member with its type, maps
//! in the order of their keys, pointers without their addresses. A [`Shape`] says how a value of the file is printed that way.

use std::fmt::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use component_helpers::fnv::Fnv32;
use serde_json::Value;
use sys::cpu_set::CpuSet;

/// How a JSON value is printed.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A text or a number, as it stands.
    Plain,
    /// Text in Base64, as a list of numbers.
    Bytes,
    /// Processors in the kernel's list form, as the keys of a map.
    CpuSet,
    List(&'static Shape),
    /// Entries in the order of their keys as texts.
    Map(&'static Shape),
    /// Entries in the order of their keys as numbers.
    Numbered(&'static Shape),
    Struct(&'static [Member]),
    /// The struct that a pointer leads to.
    Pointer(&'static [Member]),
    /// The checksum, which is 0 while it is made.
    Unset,
}

/// A member of a struct.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its name and type in Go.
    pub(crate) name: &'static str,
    pub(crate) go_type: &'static str,
    /// Its name in the file.
    pub(crate) key: &'static str,
    pub(crate) shape: Shape,
}

/// Each line: name in Go, type in Go, name in the file, shape.
macro_rules! members {
    ($($name:literal $go_type:literal $key:literal $shape:expr;)*) => {
        &[$($crate::go_dump::Member { name: $name, go_type: $go_type, key: $key, shape: $shape }),*]
    };
}
pub(crate) use members;

/// The checksum of a struct of this type; none if the value is none.
pub(crate) fn checksum(go_type: &str, members: &'static [Member], value: &Value) -> Option<u32> {
    let mut hash = Fnv32::default();
    write!(hash, "({go_type})").ok()?;
    structure(&mut hash, members, value).ok()?;
    Some(hash.value())
}

fn print(out: &mut Fnv32, shape: &Shape, value: &Value) -> fmt::Result {
    match (shape, value) {
        (Shape::Unset, _) => out.write_char('0'),
        (Shape::Plain, Value::String(text)) => out.write_str(text),
        (Shape::Plain, Value::Number(number)) => write!(out, "{number}"),
        (Shape::Struct(members), _) => structure(out, members, value),
        (Shape::Plain, _) => Err(fmt::Error),
        (_, Value::Null) => out.write_str("<nil>"),
        (Shape::Pointer(members), _) => {
            out.write_str("<*>")?;
            structure(out, members, value)
        }
        (Shape::Bytes, _) => {
            let bytes = value.as_str().and_then(|text| STANDARD.decode(text).ok()).ok_or(fmt::Error)?;
            joined(out, "[", &bytes, "]", |out, byte| write!(out, "{byte}"))
        }
        (Shape::CpuSet, _) => {
            let set: CpuSet = value.as_str().and_then(|text| text.parse().ok()).ok_or(fmt::Error)?;
            let cpus: Vec<u32> = set.iter().collect();
            joined(out, "{elems:(map[int]struct {})map[", &cpus, "]}", |out, cpu| write!(out, "{cpu}:{{}}"))
        }
        (Shape::List(item), _) => {
            joined(out, "[", value.as_array().ok_or(fmt::Error)?, "]", |out, own| print(out, item, own))
        }
        (Shape::Map(item), _) => map(out, item, value, |_| Ok(0)),
        (Shape::Numbered(item), _) => map(out, item, value, str::parse),
    }
}

fn structure(out: &mut Fnv32, members: &[Member], value: &Value) -> fmt::Result {
    let object = value.as_object().ok_or(fmt::Error)?;
    joined(out, "{", members, "}", |out, member| {
        write!(out, "{}:({})", member.name, member.go_type)?;
        print(out, &member.shape, object.get(member.key).unwrap_or(&Value::Null))
    })
}

/// Keys go by their numbers, and those without by their text.
fn map(
    out: &mut Fnv32,
    item: &Shape,
    value: &Value,
    number: impl Fn(&str) -> Result<i64, std::num::ParseIntError>,
) -> fmt::Result {
    let entries = value.as_object().ok_or(fmt::Error)?.iter();
    let entries = entries.map(|(key, own)| Ok((number(key)?, key, own)));
    let mut entries: Vec<_> =
        entries.collect::<Result<_, std::num::ParseIntError>>().map_err(|_not_a_number| fmt::Error)?;
    entries.sort_unstable_by_key(|(number, key, _)| (*number, *key));
    joined(out, "map[", &entries, "]", |out, (_, key, own)| {
        write!(out, "{key}:")?;
        print(out, item, own)
    })
}

fn joined<T>(
    out: &mut Fnv32,
    open: &str,
    items: &[T],
    close: &str,
    mut print: impl FnMut(&mut Fnv32, &T) -> fmt::Result,
) -> fmt::Result {
    out.write_str(open)?;
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.write_char(' ')?;
        }
        print(out, item)?;
    }
    out.write_str(close)
}
