//! Objects of all kinds for tests: the golden ones, and others that differ a little.

use api_machinery::json;
use api_machinery::object::Object;
use api_machinery::value::{Value, ValueMap};
use kinds::rules::Rules;

/// A kind, and its golden object without a record of managers.
type Golden = (&'static dyn Rules, Box<dyn Object>);

/// The golden objects of all kinds, and the kinds that have none; nothing where they are not at hand.
pub(super) fn golden_objects() -> Option<(Vec<Golden>, Vec<&'static str>)> {
    let golden = test_facts::outside("api-roundtrip")?;
    let (mut found, mut without) = (Vec::new(), Vec::new());
    for rules in kinds::all() {
        let info = rules.info();
        let group = if info.group.is_empty() { "core" } else { info.group };
        let Ok(text) = std::fs::read(golden.join(format!("{group}.{}.{}.json", info.version, info.kind))) else {
            without.push(info.kind);
            continue;
        };
        let mut object = rules.new_object();
        json::decode(&text, object.as_reflect_mut()).expect("golden objects can be read");
        object.meta_mut().managed_fields.clear();
        found.push((rules, object));
    }
    Some((found, without))
}

/// So many variants are made of a document: the largest have thousands of places.
const MOST_VARIANTS: usize = 160;

/// Objects that differ from a document in one place, all over it: it is not there, or another.
pub(super) fn variants(document: &Value) -> Vec<Value> {
    let mut places = Vec::new();
    collect_places(document, "", &mut places);
    let step = places.len().div_ceil(MOST_VARIANTS / 2).max(1);
    let pairs = places.iter().step_by(step).flat_map(|place| [without(document, place), changed(document, place)]);
    pairs.flatten().collect()
}

/// The JSON pointers to all that is in a value.
fn collect_places(value: &Value, pointer: &str, out: &mut Vec<String>) {
    let mut visit = |name: &str, inner: &Value| {
        let place = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
        out.push(place.clone());
        collect_places(inner, &place, out);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(name, inner)| visit(name, inner)),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, inner)| visit(&index.to_string(), inner)),
        _ => {}
    }
}

fn without(document: &Value, place: &str) -> Option<Value> {
    let mut variant = document.clone();
    let (parent, name) = place.rsplit_once('/')?;
    match variant.pointer_mut(parent)? {
        Value::Object(map) => drop(map.remove(&name.replace("~1", "/").replace("~0", "~"))),
        Value::Array(items) => drop(items.remove(name.parse().ok()?)),
        _ => return None,
    }
    Some(variant)
}

fn changed(document: &Value, place: &str) -> Option<Value> {
    let mut variant = document.clone();
    let value = variant.pointer_mut(place)?;
    *value = match value {
        Value::String(text) => Value::String(format!("{text}0")),
        Value::Number(_) => Value::from(1),
        Value::Bool(value) => Value::Bool(!*value),
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Object(_) => Value::Object(ValueMap::new()),
        Value::Null => return None,
    };
    Some(variant)
}

/// The object that a document is, if it is one of the kind.
pub(super) fn read(rules: &dyn Rules, document: &Value) -> Option<Box<dyn Object>> {
    let mut object = rules.new_object();
    json::decode(json::encode_value(document).as_bytes(), object.as_reflect_mut()).ok()?;
    Some(object)
}
