//! Schemas of custom resources made of chance, with objects that mostly fit them.

use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Map, Value, json};

use crate::mutate::pick;

/// How deep schemas are put into schemas.
const DEEPEST: u32 = 5;
/// Names of members: few, so that rules and objects find them.
const NAMES: &[&str] = &["a", "b", "spec", "name", "k"];
/// Rules for values of each type.
const RULES: &[(&str, &[&str])] = &[
    (
        "object",
        &[
            "has(self.a)",
            "self == oldSelf",
            "!has(self.b) || self.b == self.a",
            "self.all(k, k != 'a')",
            "self.map(k, self[k]).size() < 5",
            "size(self) < 3",
            "self.spec.a == oldSelf.spec.a",
            "self.?a.orValue(1) == 1",
        ],
    ),
    (
        "array",
        &[
            "self.all(x, self.exists_one(y, x == y))",
            "size(self) <= 5",
            "self.isSorted()",
            "self.filter(x, x in oldSelf) == oldSelf",
            "self.map(x, [x, x]).size() > 0",
            "self.sum() < 10",
            "sets.contains(self, oldSelf)",
            "self.indexOf(self[0]) == 0",
        ],
    ),
    (
        "string",
        &[
            "self.matches('^[a-z]+$')",
            "self.size() < 10",
            "self.split('').all(c, c != 'x')",
            "self == oldSelf",
            "isQuantity(self)",
            "self.contains('a')",
            "self.replace('a', self).size() < 100",
            "self.format([]) == self",
            "url(self).getHost() != ''",
        ],
    ),
    (
        "integer",
        &["self > 0", "self * self > self", "self >= oldSelf", "1 / self == 0", "lists.range(self).size() < 100"],
    ),
    ("number", &["self > 0.0", "int(self) == 1", "self / 0.0 > 1.0"]),
    ("boolean", &["self", "self || !self", "oldSelf == self"]),
];

/// A schema, an object, and another that it was.
pub(crate) fn with_objects(rng: &mut StdRng) -> Vec<u8> {
    let schema = schema(rng, "object", 0);
    let (object, old) = (fitting(rng, &schema), fitting(rng, &schema));
    format!("{schema}\n---\n{object}\n---\n{old}").into_bytes()
}

fn schema(rng: &mut StdRng, kind: &str, depth: u32) -> Value {
    let mut made = Map::from_iter([("type".to_owned(), Value::from(kind))]);
    let number = rng.random_range(0..6_i64);
    // Without limits most rules may cost too much.
    if rng.random_range(0..8) > 0 {
        made.insert(limit_of(kind).to_owned(), (number + 2).into());
    }
    let mut sometimes = |rng: &mut StdRng, one_in: u32, name: &str, value: Value| {
        if rng.random_range(0..one_in) == 0 {
            made.insert(name.to_owned(), value);
        }
    };
    sometimes(rng, 8, "nullable", true.into());
    sometimes(rng, 8, "x-kubernetes-preserve-unknown-fields", true.into());
    sometimes(rng, 8, "enum", json!(["a", 1, {"a": 1}]));
    sometimes(rng, 12, "not", json!({"required": ["a"]}));
    sometimes(rng, 12, "anyOf", json!([{"minimum": 1}, {"minLength": 1}, {"required": ["b"]}]));
    if let Some(rule) = rules_for(kind).and_then(|rules| pick(rng, rules)) {
        let rule = match kind {
            "string" => json!([{"rule": rule, "messageExpression": "'no ' + string(self)"}]),
            _ => json!([{"rule": rule}]),
        };
        sometimes(rng, 2, "x-kubernetes-validations", rule);
    }
    match kind {
        "object" => object_members(rng, &mut made, depth),
        "array" => list_members(rng, &mut made, depth),
        "string" => {
            let formats =
                ["date-time", "duration", "ipv4", "cidr", "byte", "uuid", "email", "uri", "hostname", "other"];
            // Some of them make it another type, for which the rules are none.
            if let Some(format) = (rng.random_range(0..4) == 0).then(|| pick(rng, &formats)).flatten() {
                made.insert("format".into(), (*format).into());
            }
        }
        _ => {}
    }
    let mut made = Value::Object(made);
    if rng.random_range(0..4) == 0 && depth > 0 {
        made["default"] = fitting(rng, &made);
    }
    made
}

fn limit_of(kind: &str) -> &'static str {
    match kind {
        "object" => "maxProperties",
        "array" => "maxItems",
        "string" => "maxLength",
        _ => "maximum",
    }
}

fn rules_for(kind: &str) -> Option<&'static [&'static str]> {
    RULES.iter().find(|(of, _)| *of == kind).map(|(_, rules)| *rules)
}

fn below(rng: &mut StdRng, depth: u32) -> Value {
    let kinds = if depth < DEEPEST { RULES } else { &RULES[2..] };
    let kind = pick(rng, kinds).map_or("object", |(kind, _)| kind);
    schema(rng, kind, depth + 1)
}

fn object_members(rng: &mut StdRng, made: &mut Map<String, Value>, depth: u32) {
    if depth > 0 && rng.random_range(0..3) == 0 {
        made.insert("additionalProperties".into(), below(rng, depth));
        return;
    }
    let few = rng.random_range(1..4_usize);
    let mut properties = Map::new();
    for name in NAMES {
        if rng.random_range(0..NAMES.len()) < few {
            properties.insert((*name).to_owned(), below(rng, depth));
        }
    }
    if let Some(first) = properties.keys().next().filter(|_| few == 2) {
        made.insert("required".into(), json!([first]));
    }
    made.insert("properties".into(), properties.into());
}

fn list_members(rng: &mut StdRng, made: &mut Map<String, Value>, depth: u32) {
    let mut items = below(rng, depth);
    let of_maps = items["type"] == "object" && rng.random();
    if of_maps {
        items["properties"] = json!({"k": {"type": "string"}});
        items["required"] = json!(["k"]);
        made.insert("x-kubernetes-list-map-keys".into(), json!(["k"]));
    }
    let list_type = if of_maps { "map" } else { pick(rng, &["set", "atomic"]).copied().unwrap_or_default() };
    made.insert("x-kubernetes-list-type".into(), list_type.into());
    made.insert("items".into(), items);
}

/// A value that mostly is as a schema wants it.
fn fitting(rng: &mut StdRng, schema: &Value) -> Value {
    if rng.random_range(0..20) == 0 {
        return pick(rng, &[Value::Null, json!(1), json!("a"), json!([]), json!({})]).cloned().unwrap_or_default();
    }
    let few = rng.random_range(0..4_usize);
    match schema["type"].as_str().unwrap_or_default() {
        "object" => {
            let declared = schema["properties"].as_object().into_iter().flatten();
            let mut members: Map<String, Value> = Map::new();
            for (name, below) in declared.filter(|_| few > 0) {
                members.insert(name.clone(), fitting(rng, below));
            }
            if let Some(below) = schema.get("additionalProperties") {
                for name in &NAMES[..few] {
                    members.insert((*name).to_owned(), fitting(rng, below));
                }
            }
            members.into()
        }
        "array" => (0..few).map(|_| fitting(rng, &schema["items"])).collect(),
        "string" => {
            pick(rng, &["a", "b", "", "abc", "10.0.0.1", "2020-01-01T00:00:00Z", "AAAA", "1Gi"]).copied().into()
        }
        "integer" => pick(rng, &[0, 1, 2, -1, i64::MAX]).copied().into(),
        "number" => pick(rng, &[0.5, 1.0, -1.0, 1e300]).copied().into(),
        "boolean" => rng.random::<bool>().into(),
        _ => Value::Null,
    }
}
