//! Objects of every kind, made of nothing but the tables of their fields and of texts that may stand there.

use api_machinery::reflect::{FieldType, Shape, StructType};
use kinds::rules::Rules;
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Map, Value, json};

use crate::mutate::pick;

/// How deep structs are put into structs: a pod template in a cron job, with room below.
const DEEPEST: u32 = 12;
/// Texts that mean something to some field or other.
const TEXTS: &[&str] = &[
    "a",
    "web",
    "main",
    "a.b",
    "example.com/a",
    "kubernetes.io/b",
    "10.0.0.1",
    "10.0.0.0/8",
    "fd00::1",
    "fd00::/64",
    "/a",
    "/a/b",
    "../a",
    "80",
    "http",
    "1Gi",
    "100m",
    "25%",
    "*",
    "* * * * *",
    "@every 1h",
    "Europe/Berlin",
    "1h",
    "-1s",
    "2020-01-01T00:00:00Z",
    "TCP",
    "Always",
    "Never",
    "default",
    "v1",
    "apps/v1",
    "Pod",
    "https://a.example/x?y=z",
    "self.a > 1",
    "object.spec.replicas > 1",
    "self == oldSelf",
    "true",
    "device.driver == 'a'",
    "(a+)+$",
    "^[a-z]+$",
    "object",
    "string",
    "array",
    "integer",
    "In",
    "Exists",
    "a=b",
    "a in (b,c)",
    "",
    "*.a.example",
    "system:masters",
    "unconfined",
    "localhost/a",
    "sha256:00",
    "AAAA",
    "a:b",
    "{.a.b[?(@.c==\"d\")]}",
    ".spec.replicas",
    "metadata.name",
    "$(A)",
    "ß",
    "\u{0}",
    "pods",
    "get",
    "Deny",
    "batch/v1",
    "IPv4",
    "Ipv6",
    "ClusterIP",
    "NodePort",
    "Filesystem",
];

/// A kind, and an object of it.
pub(crate) fn any(rng: &mut StdRng) -> (&'static dyn Rules, Value) {
    let kinds: Vec<_> = kinds::all().collect();
    let rules = *pick(rng, &kinds).expect("there are kinds");
    (rules, object(rng, rules))
}

/// An object of a kind.
pub(crate) fn object(rng: &mut StdRng, rules: &dyn Rules) -> Value {
    let mut made = structure(rng, rules.table());
    made.insert("apiVersion".into(), rules.info().api_version().into());
    made.insert("kind".into(), rules.info().kind.into());
    Value::Object(made)
}

/// A value of a struct, with few of its fields or many.
fn structure(rng: &mut StdRng, of: &StructType) -> Map<String, Value> {
    let sparse = rng.random_range(2..8);
    Maker { sparse }.structure(rng, of, 0)
}

struct Maker {
    /// One in so many of the fields that need not be there are.
    sparse: u32,
}

impl Maker {
    fn structure(&self, rng: &mut StdRng, of: &StructType, depth: u32) -> Map<String, Value> {
        let mut made = Map::new();
        for field in of.fields {
            // The deeper, the fewer.
            let is_there =
                rng.random_range(0..self.sparse + depth) == 0 || (field.required && rng.random_range(0..8) > 0);
            if depth > DEEPEST || !(is_there || field.inline) {
                continue;
            }
            let value = self.value(rng, (field.shape)(), field, depth);
            match value {
                Value::Object(members) if field.inline => made.extend(members),
                _ if field.name.is_empty() => {}
                value => drop(made.insert(field.name.to_owned(), value)),
            }
        }
        made
    }

    fn value(&self, rng: &mut StdRng, shape: Shape, field: &FieldType, depth: u32) -> Value {
        let few = if depth > DEEPEST { 0 } else { rng.random_range(0..3_usize) };
        match shape {
            Shape::Bool => rng.random::<bool>().into(),
            Shape::Int32 => integer(rng, i64::from(i32::MIN), i64::from(i32::MAX)).into(),
            Shape::Int64 => integer(rng, i64::MIN, i64::MAX).into(),
            Shape::Float => json!(f64::from(rng.random_range(-4..100_i32)) / 4.0),
            Shape::Str => text(rng, field),
            Shape::Bytes => json!("AAEC"),
            Shape::Struct(of) => Value::Object(self.structure(rng, of, depth + 1)),
            Shape::List(of) => (0..few).map(|_| self.value(rng, of(), field, depth + 1)).collect(),
            Shape::Map(of) => {
                let entry = |_| {
                    (
                        text(rng, &FieldType::PLAIN).as_str().unwrap_or_default().to_owned(),
                        self.value(rng, of(), field, depth + 1),
                    )
                };
                Value::Object((0..few).map(entry).collect())
            }
            Shape::Optional(of) => self.value(rng, of(), field, depth),
            Shape::Leaf(leaf) => leaf_value(rng, leaf.name),
            Shape::Dynamic => json!({"a": text(rng, &FieldType::PLAIN)}),
        }
    }
}

fn integer(rng: &mut StdRng, least: i64, most: i64) -> i64 {
    match rng.random_range(0..12_u8) {
        0 => least,
        1 => most,
        2 => 0,
        3 => -1,
        4 => 65_535,
        _ => rng.random_range(1..100),
    }
}

fn text(rng: &mut StdRng, field: &FieldType) -> Value {
    let own = pick(rng, field.values()).filter(|_| rng.random_range(0..8) > 0);
    own.or_else(|| pick(rng, TEXTS)).copied().unwrap_or_default().into()
}

fn leaf_value(rng: &mut StdRng, name: &str) -> Value {
    let texts: &[&str] = match name {
        "v1.Time" => &["2020-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"],
        "v1.MicroTime" => &["2020-01-01T00:00:00.000001Z", "9999-12-31T23:59:59.999999Z"],
        "v1.Duration" => &["1h", "-1s", "0s", "2562047h47m16.854775807s"],
        "resource.Quantity" => &["1", "100m", "1Gi", "0", "-1", "9223372036854775807", "1n", "1E", "0.5"],
        "intstr.IntOrString" => &["25%", "http", "-1%", "200%", "a"],
        "[]string" => return json!(["a"]),
        _ => return json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
    };
    if name == "intstr.IntOrString" && rng.random::<bool>() {
        return integer(rng, i64::from(i32::MIN), i64::from(i32::MAX)).into();
    }
    pick(rng, texts).copied().unwrap_or_default().into()
}
