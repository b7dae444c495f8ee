//! The rules of every kind: an input is a line that names the kind, an object, a line `---`, and perhaps what it becomes. It
//! goes the way of a write and of a read: defaults, preparation, validation, warnings, columns, fields, scale, other versions.

use std::sync::Arc;

use api_machinery::json;
use api_machinery::object::Object;
use api_machinery::time::Time;
use kinds::rules::{Endpoint, RuleContext, Rules};
use rand::rngs::StdRng;

use super::{line_of, of_kind, parts};
use crate::engine::{Answer, Target};
use crate::objects;

pub(super) const KINDS: Target = Target {
    name: "kinds",
    words: &[
        "\n---\n",
        "a",
        "a.b/c",
        "10.0.0.1",
        "::1/128",
        "25%",
        "1Gi",
        "* * * * *",
        "$(A)",
        "self.◦ == ◦",
        "object.spec.all(x, ◦)",
        "device.attributes['a'].◦",
        "(a+)+$",
        "2020-01-01T00:00:00Z",
        "https://a:◦/?b",
        "{.a[?(@.b==◦)]}",
        "-----BEGIN CERTIFICATE-----\n◦",
        "TCP",
        "In",
        "\u{0}",
        "ä😀",
    ],
    made: Some(two_objects),
    inputs: 200,
    player: || {
        Box::new(|input| {
            let (rules, rest) = of_kind(input);
            let [one, other] = parts(rest);
            let Some(object) = read(rules, one) else { return Answer::nothing() };
            let becomes = read(rules, other).unwrap_or_else(|| object.clone());
            let answer = created(rules, object.clone());
            shown(rules, &*object);
            match converted(rules, &*object) {
                Some(text) => Answer::Refused(text),
                None => {
                    let changed = updated(rules, &*object, &*becomes);
                    if answer.is_empty() { Answer::Taken(changed) } else { Answer::Refused(answer + &changed) }
                }
            }
        })
    },
};

fn two_objects(rng: &mut StdRng) -> Vec<u8> {
    let (rules, one) = objects::any(rng);
    let other = objects::object(rng, rules);
    format!("{}\n{one}\n---\n{other}", line_of(rules)).into_bytes()
}

fn read(rules: &dyn Rules, text: &str) -> Option<Box<dyn Object>> {
    let mut object = rules.new_object();
    json::decode(text.as_bytes(), object.as_reflect_mut()).ok()?;
    rules.set_defaults(&mut *object);
    let before = object.to_json();
    rules.set_defaults(&mut *object);
    assert_eq!(object.to_json(), before, "defaults are set once");
    Some(object)
}

fn created(rules: &dyn Rules, mut object: Box<dyn Object>) -> String {
    let cx = RuleContext { forbids_privileged: true, ..RuleContext::default() };
    rules.prepare_create(&cx, &mut *object);
    let errors = rules.validate_create(&cx, &*object);
    let warnings = rules.warnings(&*object, None);
    if errors.is_empty() { String::new() } else { format!("{errors} {warnings:?}") }
}

/// Through each endpoint.
fn updated(rules: &dyn Rules, old: &dyn Object, new: &dyn Object) -> String {
    let cx = RuleContext::default();
    let others = rules.info().subresources.iter().filter_map(|subresource| other_endpoint(subresource.name));
    let mut answer = String::new();
    for endpoint in [Endpoint::Main, Endpoint::Status].into_iter().chain(others) {
        let mut object = new.clone_object();
        rules.prepare_update(&cx, endpoint, &mut *object, old);
        answer += &rules.validate_update(&cx, endpoint, &*object, old).to_string();
        if let Some(errors) = rules.validate_as_new(&cx, endpoint, &*object, old) {
            answer += &errors.to_string();
        }
        answer += &rules.update_warnings(endpoint, &*object, old).concat();
    }
    answer
}

fn other_endpoint(name: &str) -> Option<Endpoint> {
    let names = ["approval", "ephemeralcontainers", "finalize", "resize", "scale"];
    names.into_iter().find(|known| *known == name).map(Endpoint::Other)
}

/// Reads: none of them fails, whatever was stored.
fn shown(rules: &dyn Rules, object: &dyn Object) {
    let now = Time::parse("2024-01-01T00:00:00Z").expect("a time");
    assert_eq!(rules.cells(object, now).len(), rules.columns().len());
    rules.row_conditions(object);
    rules.table_rank(object);
    for path in rules.info().field_selectors {
        rules.field(object, path);
    }
    rules.grace(object, Some(-1));
    if let Some(replicas) = rules.scale(object).and_then(|scale| scale.spec_replicas.ok()) {
        let mut scaled = object.clone_object();
        rules.set_replicas(&mut *scaled, replicas);
    }
    rules.complete_stored(&mut *object.clone_object());
}

/// As another version and back; a text where the object is none of the stored version.
fn converted(rules: &dyn Rules, object: &dyn Object) -> Option<String> {
    let conversion = rules.conversion()?;
    let Some(stored) = conversion.to_stored(object) else { return Some("it cannot be stored".to_owned()) };
    let stored: Arc<dyn Object> = stored.into();
    let served = conversion.to_served(&stored).expect("what is stored is served");
    let again = conversion.to_stored(&*served).expect("what is served is stored");
    assert_eq!(without_average(&*again), without_average(&*stored), "served and stored again it is the same");
    None
}

/// The first version of autoscalers has no word for an average that is not there: it is 0 in what comes of it.
fn without_average(object: &dyn Object) -> String {
    const NO_AVERAGE: &str = "\"averageValue\":\"0\"";
    object.to_json().replace(&format!("{NO_AVERAGE},"), "").replace(NO_AVERAGE, "")
}
