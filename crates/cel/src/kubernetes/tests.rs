use std::sync::Arc;

use api_machinery::value::Value as Json;

use super::authorizer::{Authorizer, Decision, Question};
use super::declared::{Declared, DeclaredField, DeclaredKind, DeclaredTypes, ListOrder};
use super::*;
use crate::{Budget, EvalError, NoHints, Range, Type, Value, Variables};

const NEWEST: Minor = Minor(36);

fn evaluate(source: &str) -> Result<String, EvalError> {
    let env = environment(NEWEST).with_library(&JSON_PATCH).with_library(&library::BINDINGS);
    let program = env.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
    let variables = Variables::default();
    let result = program.evaluate(&variables, Budget::of(PER_CALL_LIMIT)).result;
    result.map(|value| value.to_display())
}

#[test]
fn libraries_do_as_upstream() {
    for source in [
        "quantity('1Gi').isGreaterThan(quantity('1G'))",
        "quantity('50k').add(20).sub(quantity('20')) == quantity('50000')",
        "quantity('500m').isInteger() == false && quantity('2').asInteger() == 2",
        "isQuantity('1.3Gi') && !isQuantity('nan')",
        "[1, 2, 2].isSorted() && [1, 2].sum() == 3 && [3, 1].min() == 1 && ['a', 'b'].max() == 'b'",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(5) == -1",
        "'abc 123'.find('[0-9]+') == '123' && '1, 2, 3'.findAll('[0-9]', 2) == ['1', '2']",
        "url('https://a.b:80/c d?x=1&x=2').getEscapedPath() == '/c%20d'",
        "url('https://[::1]:80/').getHostname() == '::1' && url('/a').getScheme() == '' && !isURL('../a')",
        "url('https://a.b:80/?x=1&x=2').getQuery() == {'x': ['1', '2']} && url('https://a:1/').getPort() == '1'",
        "format.dns1123Label().validate('my-label').orValue([]).size() == 0",
        "format.uuid().validate('x').value() == ['does not match the UUID format']",
        "!format.named('nothing').hasValue() && format.named('date').hasValue()",
        "semver('1.2.3-alpha').isLessThan(semver('1.2.3')) && semver('v1.0', true) == semver('1.0.0')",
        "isSemver('1.0.0') && !isSemver('1.0') && !isSemver('01.0.0') && isSemver('v01', true)",
        "sets.contains([1, 2], [2]) && sets.equivalent([1], [1, 1]) && sets.intersects([1], [1, 2])",
        "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3') && ip('::1').isLoopback()",
        "cel.bind(x, 'a/b', jsonpatch.escapeKey(x) == 'a~1b')",
        "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2} && [3, 1].sort() == [1, 3]",
    ] {
        assert_eq!(evaluate(source).as_deref(), Ok("true"), "{source}");
    }
}

#[test]
fn errors_have_upstreams_texts() {
    for (source, text) in [
        ("[1].filter(x, x > 1).min()", "min called on empty list"),
        ("quantity('1.5').asInteger()", "cannot convert value to integer"),
        ("ip('::ffff:1.2.3.4')", "IPv4-mapped IPv6 address \"::ffff:1.2.3.4\" is not allowed"),
        ("semver('1.0-a', true)", "short version cannot contain PreRelease/Build meta data"),
        ("{'a': 1}['b']", "no such key: b"),
        ("[1][3]", "index out of bounds: 3"),
        ("1 / 0", "division by zero"),
    ] {
        assert_eq!(evaluate(source).map_err(|error| error.to_string()), Err(text.to_owned()), "{source}");
    }
}

#[test]
fn a_version_has_what_upstream_had_then() {
    for (source, since) in [
        ("isURL('a')", 0),
        ("optional.none().hasValue()", 28),
        ("isIP('a')", 30),
        ("[1].all(i, v, v > i)", 32),
        ("isSemver('1')", 33),
        ("[1].distinct() == [1]", 34),
    ] {
        assert!(environment(Minor(since)).compile(source).is_ok(), "{source}");
        assert!(since == 0 || environment(Minor(since - 1)).compile(source).is_err(), "{source}");
    }
}

#[test]
fn issues_read_as_upstreams() {
    let env = environment(NEWEST).with_variable("x", Type::Int);
    for (source, text) in [
        ("y", "ERROR: <input>:1:1: undeclared reference to 'y' (in container '')\n | y\n | ^"),
        (
            "x + 'a'",
            "ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n | x + 'a'\n | ..^",
        ),
        ("x.", "ERROR: <input>:1:3: Syntax error: no viable alternative at input '.'\n | x.\n | ..^"),
        ("x y", "ERROR: <input>:1:3: Syntax error: extraneous input 'y' expecting <EOF>\n | x y\n | ..^"),
        ("x!/..", "ERROR: <input>:1:2: Syntax error: mismatched input '!' expecting <EOF>\n | x!/..\n | .^"),
        (
            "ü",
            "ERROR: <input>:1:1: Syntax error: token recognition error at: 'ü'\n | ü\n | ＾\n\
             ERROR: <input>:1:2: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', \
             'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | ü\n | ．^",
        ),
        (
            "x = 1",
            "ERROR: <input>:1:3: Syntax error: token recognition error at: '= '\n | x = 1\n | ..^\n\
             ERROR: <input>:1:5: Syntax error: extraneous input '1' expecting <EOF>\n | x = 1\n | ....^",
        ),
        ("x.a", "ERROR: <input>:1:2: type 'int' does not support field selection\n | x.a\n | .^"),
        ("[1, 'a']", "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a']\n | ....^"),
        ("'a'.matches('(')", "ERROR: <input>:1:13: invalid matches argument\n | 'a'.matches('(')\n | ............^"),
    ] {
        assert_eq!(env.compile(source).unwrap_err().to_string(), text);
    }
    let long = "a".repeat(16_385);
    let text = format!("ERROR: <input>:1:1: undeclared reference to '{long}' (in container '')");
    assert_eq!(env.compile(&long).unwrap_err().to_string(), text, "no line that is too long to be read is shown");
}

/// What upstream's own tests of its count expect.
#[test]
fn costs_are_counted_as_upstream_counts() {
    let long = "x".repeat(500);
    let numbers: Json = serde_json::json!({"val": {"single": 1}});
    let list: Json = serde_json::json!([{}]);
    let env = environment(NEWEST)
        .with_variable("s", Type::String)
        .with_variable("t", Type::String)
        .with_variable("m", Type::map(Type::String, Type::map(Type::String, Type::Int)))
        .with_variable("l", Type::list(Type::Dyn))
        .with_variable("a", Type::Bool)
        .with_variable("n", Type::Int);
    for (source, cost) in [
        ("'Hello World!'", 0),
        ("s", 1),
        ("m['val']", 2),
        ("m.val.single", 3),
        ("has(m.val.single)", 1),
        ("has(m.val)", 0),
        ("a || a || a || a", 4),
        ("s.matches('[0-9]')", 103),
        ("s.contains(t)", 2502),
        ("s.startsWith(t)", 52),
        ("s.size()", 2),
        ("string(bytes(s)) == s", 152),
        ("m.all(k, m[k].single > 3)", 9),
        ("(n > 2 ? l : l).all(y, true)", 6),
        ("l.all(x, true)", 5),
        ("[n, n].all(x, true)", 19),
        ("1 in [1, 2]", 0),
        ("1 < 2", 1),
    ] {
        let program = env.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
        let variables = Variables::default()
            .with("s", Value::text(long.as_str()))
            .with("t", Value::text(long.as_str()))
            .with("m", Value::of_json(&numbers))
            .with("l", Value::of_json(&list))
            .with("a", Value::Bool(false))
            .with("n", Value::Int(1));
        assert_eq!(program.evaluate(&variables, Budget::default()).cost, cost, "{source}");
        let limited = program.evaluate(&variables, Budget::of(cost.saturating_sub(1)));
        assert_eq!(cost > 0, matches!(limited.result, Err(EvalError::CostLimit)), "{source}");
    }
}

#[test]
fn nobody_waits_any_more() {
    let program = environment(NEWEST).with_variable("l", Type::list(Type::Dyn)).compile("l.all(x, true)").unwrap();
    let items: Json = (0..1000).collect::<Vec<i32>>().into();
    let variables = Variables::default().with("l", Value::of_json(&items));
    let budget = Budget { limit: None, interrupted: Some(&|| true) };
    assert_eq!(program.evaluate(&variables, budget).result.map(|_| ()), Err(EvalError::Interrupted));
}

fn schema() -> Arc<Declared> {
    let field = |json_name: &str, kind| {
        let declared = Declared { kind, max_size: Some(10) };
        let name = super::declared::escape(json_name).unwrap();
        (name, DeclaredField { json_name: json_name.to_owned(), declared: Arc::new(declared) })
    };
    let item = Arc::new(Declared { kind: DeclaredKind::String, max_size: Some(100) });
    let fields = [
        field("name", DeclaredKind::String),
        field("a.b-c", DeclaredKind::Int),
        field("at", DeclaredKind::Timestamp),
        field("whole", DeclaredKind::Int),
        field("gone", DeclaredKind::String),
        field("set", DeclaredKind::List { item, order: ListOrder::Set }),
    ];
    Arc::new(Declared::new(DeclaredKind::Object { name: "selfType".into(), fields: fields.into() }))
}

#[test]
fn declared_types_check_and_read() {
    let declared = schema();
    let types = DeclaredTypes::default().with("self", Arc::clone(&declared));
    let env = environment(NEWEST).with_variable("self", declared.cel_type()).with_types(Arc::new(types.clone()));
    let object =
        serde_json::json!({"name": "n", "a.b-c": 3, "at": "2024-01-01", "set": ["a", "b"], "whole": 4.0, "gone": null});
    let variables = Variables::default().with("self", declared.value(&object));
    for source in [
        "self.name == 'n' && self.a__dot__b__dash__c == 3",
        "self.at.getFullYear() == 2024",
        "self.set == ['b', 'a'] && has(self.name)",
        "self.set + ['b', 'c'] == ['a', 'b', 'c']",
        "self.whole + 1 == 5 && !has(self.gone)",
    ] {
        let program = env.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
        let result = program.evaluate(&variables, Budget::default()).result;
        assert!(matches!(result, Ok(Value::Bool(true))), "{source}: {result:?}");
    }
    let issues = env.compile("self.other").unwrap_err();
    assert_eq!(issues.list()[0].message, "undefined field 'other'");
    // 10 items of 100 characters: range 2, result 1, and each round costs 3 and reads an item twice.
    let program = env.compile("self.set.all(x, x.startsWith('a'))").unwrap();
    assert_eq!(program.estimate(&types), Range::new(3, 3 + 10 * 5));
    assert_eq!(program.estimate(&NoHints).max, u64::MAX);
}

struct Recorder;

impl Authorizer for Recorder {
    fn check(&self, question: &Question) -> Decision {
        Decision { allowed: question.resource == "pods", reason: question.verb.clone(), error: None }
    }
}

#[test]
fn the_authorizer_is_asked() {
    let env = environment(NEWEST).with_variable("authorizer", Type::opaque(super::authorizer::TYPE));
    let variables = Variables::default().with("authorizer", super::authorizer::value(Arc::new(Recorder)));
    for (source, allowed) in [
        ("authorizer.group('').resource('pods').namespace('a').check('get').allowed()", true),
        ("authorizer.serviceAccount('a', 'b').group('').resource('secrets').check('get').allowed()", false),
        ("authorizer.path('/healthz').check('get').reason() == 'get'", true),
    ] {
        let program = env.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
        let done = program.evaluate(&variables, Budget::of(PER_CALL_LIMIT));
        assert!(matches!(done.result, Ok(Value::Bool(found)) if found == allowed), "{source}: {:?}", done.result);
        assert!(done.cost >= 350_000, "{source}");
    }
}

#[test]
fn api_objects_are_read_in_place() {
    let meta = api_machinery::meta::ObjectMeta {
        name: "web".into(),
        labels: [("app".to_owned(), "shop".to_owned())].into(),
        creation_timestamp: api_machinery::time::Time::from_unix_seconds(0),
        finalizers: vec!["a/b".into()],
        ..Default::default()
    };
    let env = environment(NEWEST).with_variable("meta", Type::Dyn);
    let variables = Variables::default().with("meta", Value::of_struct(&meta));
    for source in [
        "meta.name == 'web' && meta.labels.app == 'shop' && meta.labels == {'app': 'shop'}",
        "has(meta.labels) && !has(meta.annotations) && !has(meta.labels.other)",
        "timestamp(meta.creationTimestamp).getFullYear() == 1970 && 'labels' in meta && meta.finalizers[0] == 'a/b'",
        "meta.all(k, k != 'annotations') && size(meta) == 4 && meta.labels.all(k, v, k == 'app' && v == 'shop') && meta.finalizers.exists(f, f.startsWith('a/'))",
    ] {
        let program = env.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
        let result = program.evaluate(&variables, Budget::default()).result;
        assert!(matches!(result, Ok(Value::Bool(true))), "{source}: {result:?}");
    }
    let program = env.compile("meta.namespace").unwrap();
    let result = program.evaluate(&variables, Budget::default()).result.map(|_| ());
    assert_eq!(result, Err(EvalError::NoSuchKey("namespace".into())));
}
