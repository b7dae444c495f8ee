//! Patches of every type on objects: an input is a document, a line `---`, and the patch.

use api_machinery::gvk::GroupVersionKind;
use api_machinery::json;
use api_machinery::meta::{ManagedFieldsEntry, ObjectMeta};
use api_machinery::time::Time;
use api_machinery::value::{self, json_type};
use rand::rngs::StdRng;
use schema::apply::{ApplyOptions, FieldManager, FieldSet, Versions};
use schema::json_patch::JsonPatch;
use schema::{TypeNode, merge_patch, strategic};
use serde_json::Value;

use super::{parts, text};
use crate::engine::{Answer, Target};
use crate::objects;

/// Documents and patches are mostly about pods.
const WORDS: &[&str] = &[
    "\"spec\":{\"containers\":[{\"name\":\"a\"",
    "\"$patch\":\"replace\"",
    "\"$patch\":\"delete\"",
    "\"$retainKeys\":[",
    "null",
    "\"$setElementOrder/containers\":[{\"name\":\"a\"}]",
    "\"$deleteFromPrimitiveList/finalizers\":[",
    "\"metadata\":{",
    "},{",
    "\"op\":\"move\"",
    "\"path\":\"/spec/containers/-\"",
    "\"from\":\"/\"",
    "~1",
    "~0",
    "\"value\":",
    "\"op\":\"test\"",
    "\"f:spec\":{",
    "\"k:{\\\"name\\\":\\\"a\\\"}\":{",
    "\".\":{}",
    "\"v:1\":{}",
    "\"i:0\":{}",
    "\"managedFields\":[",
    "\n---\n",
];

pub(super) const JSON_PATCH: Target = Target {
    name: "json-patch",
    words: WORDS,
    made: None,
    inputs: 500,
    player: || {
        Box::new(|input| {
            let Some([document, patch]) = values(input) else { return Answer::nothing() };
            Answer::of(JsonPatch::parse(&patch).and_then(|patch| patch.apply(document)), |_| "applied".to_owned())
        })
    },
};

pub(super) const MERGE_PATCH: Target = Target {
    name: "merge-patch",
    words: WORDS,
    made: Some(two_pods),
    inputs: 500,
    player: || {
        Box::new(|input| {
            let Some([document, patch]) = values(input) else { return Answer::nothing() };
            let patched = merge_patch::apply(document.clone(), &patch);
            assert_eq!(merge_patch::apply(patched.clone(), &patch), patched, "a second time changes nothing");
            let way = merge_patch::create(&document, &patched);
            assert_eq!(merge_patch::apply(document, &way), patched, "the way there leads there");
            Answer::Taken(json_type(&patched).to_owned())
        })
    },
};

pub(super) const STRATEGIC_PATCH: Target = Target {
    name: "strategic-patch",
    words: WORDS,
    made: Some(two_pods),
    inputs: 400,
    player: || {
        let node = pod();
        Box::new(move |input| {
            let Some([document, patch]) = values(input) else { return Answer::nothing() };
            Answer::of(strategic::apply(document, &patch, node), |_| "applied".to_owned())
        })
    },
};

pub(super) const APPLY: Target = Target {
    name: "apply",
    words: WORDS,
    made: Some(two_pods),
    inputs: 150,
    player: || {
        let manager = FieldManager {
            node: pod(),
            gvk: GroupVersionKind::named("", "v1", "Pod"),
            subresource: String::new(),
            reset: FieldSet::of_fields(&["status"]),
            versions: Versions::BuiltIn,
        };
        Box::new(move |input| {
            let Some([mut live, applied]) = values(input) else { return Answer::nothing() };
            let empty = Value::Object(serde_json::Map::new());
            let options = ApplyOptions { manager: "me", force: false, now: Time::default(), empty: &empty };
            let record = take_record(&mut live);
            let first = manager.apply(Some((&live, &record)), &applied, options);
            let forced = manager.apply(Some((&live, &record)), &applied, ApplyOptions { force: true, ..options });
            // Who applied nothing owns nothing, and then the fields are those of whoever was there before.
            if let Ok((object, record)) = &forced
                && !record.is_empty()
            {
                let again = manager.apply(Some((object, record)), &applied, options);
                let (again, record_again) = again.unwrap_or_else(|error| panic!("a second time: {error}"));
                assert_eq!((read(&again), &record_again), (read(object), record), "a second time changes nothing");
            }
            let told = first.map_or_else(|error| error.to_string(), |_| "applied".to_owned());
            Answer::of(forced, |_| told)
        })
    },
};

pub(super) const FIELD_SETS: Target = Target {
    name: "field-sets",
    words: WORDS,
    made: None,
    inputs: 500,
    player: || {
        Box::new(|input| {
            let Ok(value) = json::parse_value(text(input)) else { return Answer::nothing() };
            Answer::of(FieldSet::from_fields_v1(&value), |set| {
                let own = set.to_fields_v1();
                let read = json::parse_value(&own).expect("what was written is JSON");
                let again = FieldSet::from_fields_v1(&read).unwrap_or_else(|error| panic!("{own}: {error}"));
                assert_eq!(again.to_fields_v1(), own);
                assert!(again.difference(&set).is_empty());
                set.paths().len().to_string()
            })
        })
    },
};

fn pod() -> TypeNode<'static> {
    TypeNode::of_struct(kinds::find("", "v1", "pods").expect("there are pods").table())
}

fn values(input: &[u8]) -> Option<[Value; 2]> {
    let [one, other] = parts(input);
    Some([json::parse_value(one).ok()?, json::parse_value(other).ok()?])
}

/// A pod, and one that it may be patched with.
fn two_pods(rng: &mut StdRng) -> Vec<u8> {
    let pods = kinds::find("", "v1", "pods").expect("there are pods");
    let (one, other) = (objects::object(rng, pods), objects::object(rng, pods));
    format!("{one}\n---\n{other}").into_bytes()
}

/// Takes the record of managers out of a pod; nothing where it has none that can be read.
fn take_record(pod: &mut Value) -> Vec<ManagedFieldsEntry> {
    let metadata = pod.get_mut("metadata").and_then(Value::as_object_mut);
    let Some(list) = metadata.and_then(|metadata| metadata.remove("managedFields")) else { return Vec::new() };
    let mut read = ObjectMeta::default();
    let alone = Value::Object([("managedFields".to_owned(), list)].into_iter().collect());
    value::from_value(&alone, &mut read).map_or_else(|_| Vec::new(), |()| read.managed_fields)
}

/// A pod as whoever reads it sees it: what is null, empty or not there is the same.
fn read(pod: &Value) -> String {
    let mut read = kinds::find("", "v1", "pods").expect("there are pods").new_object();
    let decoded = json::decode(pod.to_string().as_bytes(), read.as_reflect_mut());
    decoded.map_or_else(|_| without_nothing(pod).to_string(), |_| read.to_json())
}

/// Without members that are null or empty.
fn without_nothing(value: &Value) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    let members = members.iter().map(|(name, own)| (name.clone(), without_nothing(own)));
    members.filter(|(_, own)| !own.is_null() && own.as_object().is_none_or(|own| !own.is_empty())).collect()
}
