//! Patches of small parts: only what a patch names goes through a free-form value and back, the rest of the object stays as
//! it is. Most patches tell a status, and most of an object is not that.

use api_machinery::json;
use api_machinery::object::{Object, Unstructured};
use api_machinery::reflect::{Field, FieldType, Reflect, View, ViewMut, written_fields};
use api_machinery::renamed::Renamed;
use api_machinery::value::{Value, ValueMap, to_value};

/// Members of merge and strategic patches by name.
type Named = ValueMap<String, Value>;

/// What a patch makes of an object of a built-in kind, where it fits and nothing has to be told of it; `apply` is what it
/// does to a free-form value. Nothing where that has to be seen with the whole object.
pub(super) fn patched(
    live: &dyn Object,
    patch: &Named,
    apply: impl FnOnce(Value) -> Option<Value>,
) -> Option<Box<dyn Object>> {
    if live.downcast_ref::<Unstructured>().is_some() || live.downcast_ref::<Renamed>().is_some() {
        return None;
    }
    if !is_open(live.as_reflect(), patch) {
        return None;
    }
    let mut document = shown(live.as_reflect(), patch);
    document.insert("apiVersion".into(), live.api_version().into());
    document.insert("kind".into(), live.kind().into());
    let text = json::encode_value(&apply(Value::Object(document))?);
    let mut object = live.clone_object();
    blank(object.as_reflect_mut(), patch);
    let decoded = json::decode(text.as_bytes(), object.as_reflect_mut()).ok()?;
    decoded.problems.is_empty().then_some(object)
}

/// The members that a patch names, as far as the object has them.
fn shown(object: &dyn Reflect, patch: &Named) -> Named {
    let member = |(name, index): (&str, usize)| {
        let (row, field) = (&object.struct_type().fields[index], object.field(index));
        let value = match within(row, field, patch.get(name)?) {
            Some((inner, change)) => Value::Object(shown(inner, change)),
            None => to_value(field),
        };
        Some((name.to_owned(), value))
    };
    named(object, patch).into_iter().filter_map(member).collect()
}

/// Empties what [`shown`] shows: it comes back from the patched document, or not at all.
fn blank(object: &mut dyn Reflect, patch: &Named) {
    for (name, index) in named(object, patch) {
        let row = &object.struct_type().fields[index];
        match patch.get(name).and_then(|change| within(row, object.field(index), change)) {
            Some((_, change)) => blank_within(object.field_mut(index), change),
            None => object.field_mut(index).reset(),
        }
    }
}

fn blank_within(field: &mut dyn Field, patch: &Named) {
    match field.view_mut() {
        ViewMut::Struct(inner) => blank(inner, patch),
        ViewMut::Optional(slot) => blank_within(slot.ensure(), patch),
        _ => {}
    }
}

/// The members that a patch names and JSON output has, with their places in the table.
fn named<'p>(object: &dyn Reflect, patch: &'p Named) -> Vec<(&'p str, usize)> {
    let rows = object.struct_type().fields;
    let named = |index: usize| Some((patch.get_key_value(rows[index].name)?.0.as_str(), index));
    written_fields(object).filter_map(named).collect()
}

/// The struct that a field is, and what a patch changes within it; nothing where the field changes as a whole.
fn within<'a, 'p>(row: &FieldType, field: &'a dyn Field, change: &'p Value) -> Option<(&'a dyn Reflect, &'p Named)> {
    let Value::Object(change) = change else { return None };
    let view = match field.view() {
        View::Optional(Some(inner)) => inner.view(),
        view => view,
    };
    match view {
        View::Struct(inner) if !row.patch.replace && is_open(inner, change) => Some((inner, change)),
        _ => None,
    }
}

/// Whether a patch of a struct is about the members that it names: directives are about others, and members of inline
/// structs stand elsewhere.
fn is_open(object: &dyn Reflect, patch: &Named) -> bool {
    let is_plain = !object.struct_type().fields.iter().any(|row| row.inline || row.rest);
    is_plain && patch.keys().all(|name| !name.starts_with('$'))
}

#[cfg(test)]
mod tests {
    use schema::{TypeNode, merge_patch, strategic};
    use serde_json::json;

    use super::super::golden::{golden_objects, read, variants};
    use super::*;

    /// Every small change of every kind comes to the same, by way of what the patch names and by way of the whole object.
    #[test]
    fn a_patch_changes_a_part_as_it_changes_the_whole() {
        let Some((golden, _)) = golden_objects() else { return };
        let (mut tried, mut focused) = (0, 0);
        for (rules, object) in golden {
            let whole = object.to_value();
            for variant in variants(&whole) {
                let Value::Object(patch) = merge_patch::create(&whole, &variant) else { continue };
                let change = Value::Object(patch.clone());
                let expected = read(rules, &merge_patch::apply(whole.clone(), &change));
                tried += 1;
                let Some(found) = patched(&*object, &patch, |document| Some(merge_patch::apply(document, &change)))
                else {
                    continue;
                };
                focused += 1;
                let expected = expected.expect("what fits in part fits as a whole");
                assert_eq!(found.to_value(), expected.to_value(), "{} {change}", rules.info().kind);
                assert!(found.to_protobuf() == expected.to_protobuf(), "{} {change}", rules.info().kind);
            }
        }
        assert!(tried > 5_000 && focused > tried / 2, "{focused} of {tried}");
    }

    fn pod() -> Box<dyn Object> {
        let rules = kinds::all().find(|rules| rules.info().kind == "Pod").expect("pods are served");
        let document = json!({
            "metadata": {"name": "p", "labels": {"a": "1", "b": "2"}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "securityContext": {"runAsUser": 1}},
            "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]},
        });
        read(rules, &document).expect("a pod")
    }

    #[test]
    fn strategic_patches_of_parts_see_what_they_would_see_of_the_whole() {
        let pod = pod();
        let node = TypeNode::of_struct(pod.struct_type());
        for (patch, is_focused) in [
            (json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}), true),
            (json!({"status": {"$setElementOrder/conditions": [{"type": "Ready"}], "conditions": []}}), true),
            (json!({"status": {"startTime": null, "podIPs": [{"ip": "1.2.3.4"}]}}), true),
            (json!({"metadata": {"labels": {"a": null}, "annotations": {"x": "y"}}}), true),
            (json!({"metadata": {"labels": {"$patch": "replace", "c": "3"}}}), true),
            (json!({"spec": {"$patch": "replace", "nodeName": "m"}}), true),
            (json!({"spec": {"securityContext": {"runAsUser": null, "fsGroup": 2}}}), true),
            (json!({"spec": {"affinity": {"nodeAffinity": {}}, "containers": [{"name": "d", "image": "j"}]}}), true),
            (json!({"spec": null}), true),
            (json!({}), true),
            // Something has to be told of these, or the whole object decides.
            (json!({"$patch": "delete"}), false),
            (json!({"status": {"phase": 1}}), false),
            (json!({"status": {"nothing": 1}}), false),
            (json!({"spec": {"containers": [{"image": "without a name"}]}}), false),
        ] {
            let Value::Object(named) = &patch else { continue };
            let found = patched(&*pod, named, |document| strategic::apply(document, &patch, node).ok());
            assert_eq!(found.is_some(), is_focused, "{patch}");
            let Some(found) = found else { continue };
            let rules = kinds::all().find(|rules| rules.info().kind == "Pod").expect("pods are served");
            let expected = strategic::apply(pod.to_value(), &patch, node).ok().and_then(|whole| read(rules, &whole));
            assert_eq!(Some(found.to_value()), expected.map(|object| object.to_value()), "{patch}");
        }
    }
}
