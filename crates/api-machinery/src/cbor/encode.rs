//! Writing typed and free-form values.

use super::float::half_bits;
use super::{SELF_DESCRIBED, info, major, simple, tag};
use crate::reflect::{self, Field, Reflect, View};
use crate::value::{Number, Value};

/// A struct as an item, such as one of a list: without its kind, and without the tag that begins a document.
#[must_use]
pub fn encode(value: &dyn Reflect) -> Vec<u8> {
    let mut out = Vec::new();
    members_of(value).write(&mut out);
    out
}

/// A struct with its `kind` and `apiVersion`, as a document.
#[must_use]
pub fn encode_typed(kind: &str, api_version: &str, value: &dyn Reflect) -> Vec<u8> {
    let mut members = members_of(value);
    members.put_type(kind, api_version);
    members.document()
}

/// A free-form value as a document.
#[must_use]
pub fn encode_value(value: &Value) -> Vec<u8> {
    let mut out = SELF_DESCRIBED.to_vec();
    write_value(&mut out, value);
    out
}

/// A string as an item.
#[must_use]
pub fn text(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 9);
    write_text(&mut out, text);
    out
}

/// An array of items.
#[must_use]
pub fn array<T: AsRef<[u8]>>(items: &[T]) -> Vec<u8> {
    let mut out = Vec::new();
    head(&mut out, major::ARRAY, size(items.len()));
    items.iter().for_each(|item| out.extend_from_slice(item.as_ref()));
    out
}

/// The members of a map in the making; they are put in order when it is written.
#[derive(Default)]
pub struct Members(Vec<(String, Vec<u8>)>);

impl Members {
    /// Adds a member, whose value is an item.
    pub fn put(&mut self, name: &str, item: Vec<u8>) {
        self.0.push((name.to_owned(), item));
    }

    /// Adds what an object says it is.
    pub fn put_type(&mut self, kind: &str, api_version: &str) {
        self.put("kind", text(kind));
        self.put("apiVersion", text(api_version));
    }

    /// The map as a document.
    #[must_use]
    pub fn document(self) -> Vec<u8> {
        let mut out = SELF_DESCRIBED.to_vec();
        self.write(&mut out);
        out
    }

    fn write(mut self, out: &mut Vec<u8>) {
        self.0.sort_unstable_by(|(one, _), (other, _)| (one.len(), one).cmp(&(other.len(), other)));
        head(out, major::MAP, size(self.0.len()));
        for (name, item) in &self.0 {
            write_text(out, name);
            out.extend_from_slice(item);
        }
    }
}

fn members_of(value: &dyn Reflect) -> Members {
    let mut members = Members::default();
    collect(value, &mut members);
    members
}

fn collect(value: &dyn Reflect, members: &mut Members) {
    let fields = value.struct_type().fields;
    for index in reflect::written_fields(value) {
        let (row, view) = (&fields[index], value.field(index).view());
        match view {
            View::Struct(inner) if row.inline => collect(inner, members),
            View::Map(rest) if row.rest => rest.each(&mut |name, entry| members.put(name, item(entry))),
            view => {
                let mut out = Vec::new();
                write_view(&mut out, view);
                members.put(row.name, out);
            }
        }
    }
}

fn item(field: &dyn Field) -> Vec<u8> {
    let mut out = Vec::new();
    write_view(&mut out, field.view());
    out
}

fn write_view(out: &mut Vec<u8>, view: View<'_>) {
    match view {
        View::Bool(value) => write_bool(out, value),
        View::Int32(value) => write_int(out, i64::from(value)),
        View::Int64(value) => write_int(out, value),
        View::Float(value) => write_float(out, value),
        View::Str(value) => write_text(out, value),
        View::Bytes([]) => write_null(out),
        View::Bytes(value) => write_bytes(out, value),
        View::Struct(value) => {
            let mut members = members_of(value);
            // Kinds that stand within objects say what they are, as in JSON.
            if let Some(kind) = value.struct_type().core_kind() {
                members.put_type(kind, "v1");
            }
            members.write(out);
        }
        // As in JSON, an empty list or map that is written at all is Go's nil.
        View::List(list) if list.is_empty() => write_null(out),
        View::List(list) => {
            head(out, major::ARRAY, size(list.len()));
            (0..list.len()).filter_map(|index| list.item(index)).for_each(|entry| write_view(out, entry.view()));
        }
        View::Map(map) if map.is_empty() => write_null(out),
        View::Map(map) => {
            let mut members = Members::default();
            map.each(&mut |name, entry| match entry.view() {
                View::Bytes([]) => members.put(name, vec![major::TAG << 5 | 22, major::BYTES << 5]),
                _ => members.put(name, item(entry)),
            });
            members.write(out);
        }
        View::Optional(None) => write_null(out),
        View::Optional(Some(value)) => write_view(out, value.view()),
        View::Leaf(leaf) => write_value(out, &leaf.to_value()),
        View::Dynamic(value) => write_value(out, value),
    }
}

fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => write_null(out),
        Value::Bool(value) => write_bool(out, *value),
        Value::Number(number) => write_number(out, number),
        Value::String(value) => write_text(out, value),
        Value::Array(items) => {
            head(out, major::ARRAY, size(items.len()));
            items.iter().for_each(|item| write_value(out, item));
        }
        Value::Object(map) => {
            let mut sorted: Vec<_> = map.iter().collect();
            sorted.sort_unstable_by(|(one, _), (other, _)| (one.len(), one).cmp(&(other.len(), other)));
            head(out, major::MAP, size(sorted.len()));
            for (name, item) in sorted {
                write_text(out, name);
                write_value(out, item);
            }
        }
    }
}

fn write_number(out: &mut Vec<u8>, number: &Number) {
    match number.as_i64() {
        Some(integer) => write_int(out, integer),
        None => write_float(out, number.as_f64().unwrap_or_default()),
    }
}

fn write_null(out: &mut Vec<u8>) {
    out.push(major::OTHER << 5 | simple::NULL);
}

fn write_bool(out: &mut Vec<u8>, value: bool) {
    out.push(major::OTHER << 5 | if value { simple::TRUE } else { simple::FALSE });
}

fn write_int(out: &mut Vec<u8>, value: i64) {
    match u64::try_from(value) {
        Ok(positive) => head(out, major::UNSIGNED, positive),
        // -1 is written as 0, and so on.
        Err(_) => head(out, major::NEGATIVE, (!value).cast_unsigned()),
    }
}

/// What is not finite is null, as in JSON; upstream does not write it at all.
fn write_float(out: &mut Vec<u8>, value: f64) {
    #[expect(clippy::cast_possible_truncation, reason = "whether it is the same is looked at")]
    let single = value as f32;
    if !value.is_finite() {
        write_null(out);
    } else if f64::from(single).to_bits() != value.to_bits() {
        out.push(major::OTHER << 5 | info::EIGHT_BYTES);
        out.extend_from_slice(&value.to_be_bytes());
    } else if let Some(half) = half_bits(single) {
        out.push(major::OTHER << 5 | info::TWO_BYTES);
        out.extend_from_slice(&half.to_be_bytes());
    } else {
        out.push(major::OTHER << 5 | info::FOUR_BYTES);
        out.extend_from_slice(&single.to_be_bytes());
    }
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    head(out, major::BYTES, size(text.len()));
    out.extend_from_slice(text.as_bytes());
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    head(out, major::TAG, tag::BASE64);
    head(out, major::BYTES, size(bytes.len()));
    out.extend_from_slice(bytes);
}

/// The beginning of an item: its kind, and a number in as few bytes as it needs.
fn head(out: &mut Vec<u8>, major: u8, number: u64) {
    let first = major << 5;
    match number {
        0..=23 => out.push(first | u8::try_from(number).unwrap_or_default()),
        24..=0xff => out.extend([first | info::ONE_BYTE, u8::try_from(number).unwrap_or_default()]),
        0x100..=0xffff => {
            out.push(first | info::TWO_BYTES);
            out.extend_from_slice(&u16::try_from(number).unwrap_or_default().to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(first | info::FOUR_BYTES);
            out.extend_from_slice(&u32::try_from(number).unwrap_or_default().to_be_bytes());
        }
        _ => {
            out.push(first | info::EIGHT_BYTES);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

fn size(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
