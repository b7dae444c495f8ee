//! Values as Go's `spew` prints them with `%#v`: each struct with all its members, each member with its type, pointers
//! without addresses, maps by key.

use std::fmt::{self, Write};
use std::sync::LazyLock;

use api_machinery::value::{Value, ValueMap};

use super::amount::Amount;
use super::layout::{Found, Layout};

type Object = ValueMap<String, Value>;

/// A named type that is a map.
const RESOURCE_LIST: &str = "core.ResourceList";
/// Zero times; others depend on the time zone of the process that prints them, and manifests have none.
const ZERO_TIME: &str = "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}";
static NO_OBJECT: LazyLock<Object> = LazyLock::new(Object::new);

/// A pod, as a pointer to it is printed.
pub(super) fn pod(out: &mut impl Write, pod: &Object) -> fmt::Result {
    out.write_str("(*core.Pod)")?;
    structure(out, "core.Pod", pod, &NO_OBJECT)
}

/// A struct without its type; `outer` is the object around it.
fn structure(out: &mut impl Write, go_type: &str, object: &Object, outer: &Object) -> fmt::Result {
    out.write_char('{')?;
    for (index, member) in Layout::get().members(go_type).unwrap_or_default().iter().enumerate() {
        if index > 0 {
            out.write_char(' ')?;
        }
        write!(out, "{}:({})", member.name, member.go_type)?;
        match &member.found {
            Found::Nowhere => value(out, member.go_type, None, object)?,
            Found::Inline => structure(out, member.go_type, object, outer)?,
            Found::Outside(name) => value(out, member.go_type, outer.get(*name), object)?,
            Found::Under(names) => {
                let found = names.iter().find_map(|name| object.get(*name));
                value(out, member.go_type, found, object)?;
            }
        }
    }
    out.write_char('}')
}

/// A value without its type.
fn value(out: &mut impl Write, go_type: &str, found: Option<&Value>, outer: &Object) -> fmt::Result {
    let found = found.filter(|value| !value.is_null());
    if let Some(pointed) = go_type.strip_prefix('*') {
        return if found.is_some() { value(out, pointed, found, outer) } else { out.write_str("<nil>") };
    }
    if let Some(item) = go_type.strip_prefix("[]") {
        return list(out, item, found, outer);
    }
    if go_type == RESOURCE_LIST {
        return map(out, found, |out, item| Amount::read(text(item).as_ref()).rounded().print(out));
    }
    if let Some(item) = go_type.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
        return map(out, found, |out, own| value(out, item.1, Some(own), outer));
    }
    match go_type {
        "bool" => write!(out, "{}", found.and_then(Value::as_bool).unwrap_or_default()),
        "int32" | "int64" => write!(out, "{}", found.and_then(Value::as_i64).unwrap_or_default()),
        "resource.Quantity" => found.map_or_else(Amount::default, |own| Amount::read(text(own).as_ref())).print(out),
        "intstr.IntOrString" => number_or_name(out, found),
        "v1.Time" => out.write_str(ZERO_TIME),
        _ if Layout::get().members(go_type).is_some() => {
            structure(out, go_type, found.and_then(Value::as_object).unwrap_or(&NO_OBJECT), outer)
        }
        _ => out.write_str(found.and_then(Value::as_str).unwrap_or_default()),
    }
}

fn list(out: &mut impl Write, item: &str, found: Option<&Value>, outer: &Object) -> fmt::Result {
    let Some(items) = found.and_then(Value::as_array) else { return out.write_str("<nil>") };
    out.write_char('[')?;
    for (index, own) in items.iter().enumerate() {
        if index > 0 {
            out.write_char(' ')?;
        }
        value(out, item, Some(own), outer)?;
    }
    out.write_char(']')
}

fn map<W: Write>(
    out: &mut W,
    found: Option<&Value>,
    mut print: impl FnMut(&mut W, &Value) -> fmt::Result,
) -> fmt::Result {
    let Some(object) = found.and_then(Value::as_object) else { return out.write_str("<nil>") };
    let mut entries: Vec<_> = object.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| key.as_str());
    out.write_str("map[")?;
    for (index, (key, own)) in entries.into_iter().enumerate() {
        let space = if index > 0 { " " } else { "" };
        write!(out, "{space}{key}:")?;
        print(out, own)?;
    }
    out.write_char(']')
}

fn number_or_name(out: &mut impl Write, found: Option<&Value>) -> fmt::Result {
    let name = found.and_then(Value::as_str);
    let number = found.and_then(Value::as_i64).unwrap_or_default();
    let kind = i32::from(name.is_some());
    write!(out, "{{Type:(intstr.Type){kind} IntVal:(int32){number} StrVal:(string){}}}", name.unwrap_or_default())
}

/// A quantity as it was written: a text, or a number.
fn text(value: &Value) -> std::borrow::Cow<'_, str> {
    value.as_str().map_or_else(|| value.to_string().into(), Into::into)
}
