//! Two structs as free-form maps, but for what they have in common.

use super::{Value, ValueMap, to_value};
use crate::json::Writer;
use crate::leaf::encoding::Leaf;
use crate::quantity::Quantity;
use crate::reflect::{self, Field, List, Map, Reflect, StructType, View};

/// The members of two structs of one type in which they differ, as free-form maps. Structs on the way are looked into;
/// lists, maps and leaves are whole. Comparing the two maps finds what comparing the whole objects would, and most updates
/// change little of an object.
#[must_use]
pub fn differing(one: &dyn Reflect, other: &dyn Reflect) -> [ValueMap<String, Value>; 2] {
    let (mut left, mut right) = (ValueMap::new(), ValueMap::new());
    let table = one.struct_type();
    for index in reflect::set_bits(one.present() | other.present() | table.json_always) {
        let fields = [one.field(index), other.field(index)];
        if identical(fields[0], fields[1]) {
            continue;
        }
        let row = &table.fields[index];
        match fields.map(inner) {
            [View::Struct(one), View::Struct(other)] if row.inline => {
                let [one, other] = differing(one, other);
                left.extend(one);
                right.extend(other);
            }
            [View::Map(one), View::Map(other)] if row.rest => {
                differing_entries(one, other, &mut left);
                differing_entries(other, one, &mut right);
            }
            [View::Struct(one), View::Struct(other)] => {
                let written = [is_written(table, index, fields[0]), is_written(table, index, fields[1])];
                for ((members, map), written) in
                    differing(one, other).into_iter().zip([&mut left, &mut right]).zip(written)
                {
                    if written {
                        map.insert(row.name.to_owned(), Value::Object(members));
                    }
                }
            }
            _ => {
                for (field, map) in fields.into_iter().zip([&mut left, &mut right]) {
                    if is_written(table, index, field) {
                        map.insert(row.name.to_owned(), to_value(field));
                    }
                }
            }
        }
    }
    [left, right]
}

/// The value, or what a pointer that is set points to.
fn inner(field: &dyn Field) -> View<'_> {
    match field.view() {
        View::Optional(Some(value)) => value.view(),
        view => view,
    }
}

/// As [`reflect::written_fields`] says it.
fn is_written(table: &StructType, index: usize, field: &dyn Field) -> bool {
    let is_present = table.json_always >> index & 1 == 1 || !field.is_unset();
    is_present && reflect::is_row_written(&table.fields[index], field)
}

fn differing_entries(one: &dyn Map, other: &dyn Map, into: &mut ValueMap<String, Value>) {
    one.each(&mut |key, value| {
        if !other.entry(key).is_some_and(|twin| identical(value, twin)) {
            into.insert(key.to_owned(), to_value(value));
        }
    });
}

/// Whether two values are written alike: unlike [`reflect::equal`], which knows that `1000m` and `1` are one quantity.
fn identical(one: &dyn Field, other: &dyn Field) -> bool {
    match (one.view(), other.view()) {
        (View::Struct(a), View::Struct(b)) => {
            let (present, alike) = (a.present(), |index| identical(a.field(index), b.field(index)));
            reflect::is_shared(a, b) || (present == b.present() && reflect::set_bits(present).all(alike))
        }
        (View::List(a), View::List(b)) => a.len() == b.len() && identical_lists(a, b),
        (View::Map(a), View::Map(b)) => {
            let mut same = a.len() == b.len();
            a.each(&mut |key, value| same = same && b.entry(key).is_some_and(|twin| identical(value, twin)));
            same
        }
        (View::Optional(Some(a)), View::Optional(Some(b))) => identical(a, b),
        (View::Leaf(a), View::Leaf(b)) => are_written_alike(a, b),
        _ => reflect::equal(one, other),
    }
}

/// Of all leaves, only quantities that mean the same may be written in several ways.
fn are_written_alike(one: &dyn Leaf, other: &dyn Leaf) -> bool {
    let has_one_text = one.downcast_ref::<Quantity>().is_none();
    (has_one_text && one.equal(other)) || written(one) == written(other)
}

fn written(leaf: &dyn Leaf) -> String {
    let mut out = Writer::default();
    leaf.write_json(&mut out);
    out.into_string()
}

fn identical_lists(one: &dyn List, other: &dyn List) -> bool {
    (0..one.len()).all(|index| match (one.item(index), other.item(index)) {
        (Some(a), Some(b)) => identical(a, b),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intstr::IntOrString;
    use crate::leaf::RawJson;
    use crate::time::Time;

    #[test]
    fn leaves_are_told_apart_as_they_are_written() {
        let quantity = |text: &str| Quantity::parse(text).unwrap();
        let raw = |text: &str| RawJson::from_text(text.to_owned());
        let cases: [(&dyn Leaf, &dyn Leaf, bool); 9] = [
            (&quantity("1"), &quantity("1"), true),
            (&quantity("1Gi"), &quantity("1073741824"), false),
            (&quantity("1"), &quantity("2"), false),
            (&Time::from_unix_seconds(1), &Time::from_unix_seconds(1), true),
            (&Time::from_unix_seconds(1), &Time::from_unix_seconds(2), false),
            (&raw("{}"), &raw("{}"), true),
            (&raw("{}"), &raw(r#"{"a":1}"#), false),
            (&IntOrString::Int(80), &IntOrString::Int(80), true),
            (&IntOrString::Int(80), &IntOrString::Str("80".to_owned()), false),
        ];
        for (place, (one, other, expected)) in cases.into_iter().enumerate() {
            assert_eq!(are_written_alike(one, other), expected, "case {place}");
        }
    }
}
