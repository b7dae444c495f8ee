//! The language's own test vectors (cel-spec's conformance tests), all of them.
//!
//! `left-out.txt` lists those that do not pass, each with the reason; one of these that passes is a mistake of the list.

#![expect(clippy::unwrap_used, reason = "a test of a vector that cannot be read fails")]

mod textproto;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use cel::library;
use cel::{Budget, Environment, MacroSet, Map, Type, Value, Variables};
use textproto::{Field, Message};

const LEFT_OUT: &str = include_str!("left-out.txt");
/// How many vectors there are.
const COUNT: usize = 2456;

#[test]
fn vectors_pass_or_are_left_out_with_a_reason() {
    let Some(folder) = test_facts::outside("vectors/cel") else { return };
    let left_out = left_out();
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut count, mut wrong, mut failed) = (0, Vec::new(), BTreeMap::new());
    for path in files {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let content = textproto::read(&std::fs::read_to_string(&path).unwrap());
        for section in content.messages("section") {
            for (index, test) in section.messages("test").enumerate() {
                count += 1;
                let name = test.text("name").unwrap_or_default();
                let key = format!("{file}/{}/{name}#{index}", section.text("name").unwrap_or_default());
                let result = std::panic::catch_unwind(AssertUnwindSafe(|| run(test)))
                    .unwrap_or_else(|_| Err("panic".to_owned()));
                match (result, left_out.contains_key(key.as_str())) {
                    (Ok(()), true) => wrong.push(format!("{key}: passes, but is left out")),
                    (Err(why), false) => {
                        failed.insert(key, format!("{why}   [{}]", test.text("expr").unwrap_or_default()));
                    }
                    _ => {}
                }
            }
        }
    }
    wrong.extend(failed.iter().map(|(key, why)| format!("{key}: {why}")));
    assert!(wrong.is_empty(), "{} of {count} vectors:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(count, COUNT);
}

/// Lines of a reason (`# ...`) and the vectors below it.
fn left_out() -> BTreeMap<&'static str, &'static str> {
    let mut reason = "";
    let mut out = BTreeMap::new();
    for line in LEFT_OUT.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("# ") {
            Some(text) => reason = text,
            None => {
                assert!(!reason.is_empty(), "{line} has a reason");
                assert!(out.insert(line, reason).is_none(), "{line} is there twice");
            }
        }
    }
    out
}

fn environment(test: &Message) -> Environment {
    let mut libraries = library::ALL.to_vec();
    libraries.extend(cel::kubernetes::NETWORK);
    let env = Environment::new(&libraries).with_container(&test.text("container").unwrap_or_default());
    let env = env.with_macros(MacroSet { block: true, ..MacroSet::all() });
    test.messages("type_env").fold(env, |env, decl| {
        let name = decl.text("name").unwrap();
        match decl.message("ident").and_then(|ident| ident.message("type")) {
            Some(ty) => env.with_variable(&name, type_of(ty)),
            None => env,
        }
    })
}

fn run(test: &Message) -> Result<(), String> {
    let mut env = environment(test);
    let unchecked = test.text("disable_check").as_deref() == Some("true");
    let mut variables = Variables::default();
    for binding in test.messages("bindings") {
        let name = binding.text("key").unwrap();
        let value = binding.message("value").and_then(|value| value.message("value")).ok_or("no plain binding")?;
        if unchecked {
            env = env.with_variable(&name, Type::Dyn);
        }
        variables = variables.with(&name, value_of(value)?);
    }
    let source = test.text("expr").unwrap();
    let compiled = if unchecked { env.compile_unchecked(&source) } else { env.compile(&source) };
    let wants_error = test.message("eval_error").is_some() || test.message("any_eval_errors").is_some();
    let program = match compiled {
        Ok(program) => program,
        // Some errors are found early.
        Err(_) if wants_error => return Ok(()),
        Err(issues) => return Err(format!("does not compile: {issues}")),
    };
    let typed = test.message("typed_result");
    if let Some(wanted) = typed.and_then(|typed| typed.message("deduced_type")).map(type_of)
        && *program.result_type() != wanted
    {
        return Err(format!("type {} instead of {wanted}", program.result_type()));
    }
    if test.text("check_only").as_deref() == Some("true") {
        return Ok(());
    }
    let result = program.evaluate(&variables, Budget::default()).result;
    let wanted = test.message("value").or_else(|| typed.and_then(|typed| typed.message("result")));
    match (result, wanted) {
        (Err(_), _) if wants_error => Ok(()),
        (Ok(value), _) if wants_error => Err(format!("{value:?} instead of an error")),
        (Ok(value), wanted) => {
            let wanted = wanted.map_or(Ok(Value::Bool(true)), value_of)?;
            if same(&value, &wanted) { Ok(()) } else { Err(format!("{value:?} instead of {wanted:?}")) }
        }
        (Err(error), _) => Err(format!("error: {error}")),
    }
}

/// Equal, and of the same type all the way down.
fn same(one: &Value<'_>, other: &Value<'_>) -> bool {
    match (one, other) {
        (Value::Double(a), Value::Double(b)) => a == b || (a.is_nan() && b.is_nan()),
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(&a, &b)),
        (Value::Map(a), Value::Map(b)) => {
            let found = |(key, value): (Value<'_>, Value<'_>)| b.get(&key).unwrap().is_some_and(|it| same(&value, &it));
            a.len() == b.len() && a.iter().all(found)
        }
        (a, b) => a.type_of().name() == b.type_of().name() && a.equals(b),
    }
}

fn value_of(message: &Message) -> Result<Value<'static>, String> {
    let (kind, field) = message.0.first().ok_or("an empty value")?;
    let word = message.text(kind).unwrap_or_default();
    Ok(match (kind.as_str(), field) {
        ("null_value", _) => Value::Null,
        ("bool_value", _) => Value::Bool(word == "true"),
        ("int64_value", _) => Value::Int(integer(&word).try_into().unwrap()),
        ("uint64_value", _) => Value::Uint(integer(&word).try_into().unwrap()),
        ("double_value", _) => Value::Double(match word.as_str() {
            "Infinity" | "inf" | "infinity" => f64::INFINITY,
            "-Infinity" | "-inf" | "-infinity" => f64::NEG_INFINITY,
            word => word.parse().map_err(|_| word.to_owned())?,
        }),
        ("string_value", _) => Value::text(word),
        ("bytes_value", Field::Text(bytes)) => Value::blob(bytes.as_slice()),
        ("type_value", _) => Value::Type(named(&word)),
        ("list_value", Field::Message(list)) => {
            Value::list(list.messages("values").map(value_of).collect::<Result<_, _>>()?)
        }
        ("map_value", Field::Message(map)) => {
            let mut pairs = Vec::new();
            for entry in map.messages("entries") {
                let part = |name| entry.message(name).ok_or("an entry is whole".to_owned()).and_then(value_of);
                pairs.push((part("key")?, part("value")?));
            }
            Value::map(pairs).map_err(|error| error.to_string())?
        }
        ("object_value", Field::Message(object)) => return any(object),
        (kind, _) => return Err(format!("no value of kind {kind}")),
    })
}

fn any(object: &Message) -> Result<Value<'static>, String> {
    let (name, content) = object.0.first().ok_or("an empty object")?;
    let Field::Message(content) = content else { return Err("no object".to_owned()) };
    let number = |name| -> i64 { content.text(name).map_or(0, |word| integer(&word).try_into().unwrap()) };
    match name.rsplit('/').next().unwrap_or_default() {
        "google.protobuf.Timestamp" => {
            cel::Timestamp::new(number("seconds"), number("nanos")).map(Value::Timestamp).ok_or("no time".to_owned())
        }
        "google.protobuf.Duration" => Ok(Value::Duration(number("seconds") * 1_000_000_000 + number("nanos"))),
        other => Err(format!("a message {other}")),
    }
}

fn integer(word: &str) -> i128 {
    let (negative, digits) = word.strip_prefix('-').map_or((false, word), |rest| (true, rest));
    let value = digits.strip_prefix("0x").map_or_else(|| digits.parse(), |hex| i128::from_str_radix(hex, 16)).unwrap();
    if negative { -value } else { value }
}

fn named(name: &str) -> Type {
    match name {
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        "type" => Type::parse("type<dyn>").unwrap(),
        "optional_type" => Type::optional(Type::Dyn),
        name => Type::parse(name).unwrap_or_else(|| Type::object(name)),
    }
}

fn type_of(message: &Message) -> Type {
    let (kind, field) = message.0.first().expect("a type");
    let word = message.text(kind).unwrap_or_default();
    let inner = |field: &Field, name: &str| match field {
        Field::Message(message) => message.message(name).map_or(Type::Dyn, type_of),
        _ => Type::Dyn,
    };
    match kind.as_str() {
        "primitive" => primitive(&word),
        "well_known" => match word.as_str() {
            "TIMESTAMP" => Type::Timestamp,
            "DURATION" => Type::Duration,
            _ => Type::Dyn,
        },
        "wrapper" => Type::Nullable(primitive(&word).into()),
        "null" => Type::Null,
        "list_type" => Type::list(inner(field, "elem_type")),
        "map_type" => Type::map(inner(field, "key_type"), inner(field, "value_type")),
        "message_type" if matches!(word.as_str(), "google.protobuf.Timestamp" | "google.protobuf.Duration") => {
            named(&word)
        }
        "message_type" => Type::object(&word),
        "type" => Type::Type(if let Field::Message(of) = field { type_or_dyn(of).into() } else { Type::Dyn.into() }),
        "abstract_type" => {
            let Field::Message(of) = field else { return Type::Dyn };
            let params: Vec<Type> = of.messages("parameter_types").map(type_of).collect();
            Type::Opaque(of.text("name").unwrap().as_str().into(), params.into())
        }
        _ => Type::Dyn,
    }
}

fn type_or_dyn(message: &Message) -> Type {
    if message.0.is_empty() { Type::Dyn } else { type_of(message) }
}

fn primitive(word: &str) -> Type {
    match word {
        "BOOL" => Type::Bool,
        "INT64" => Type::Int,
        "UINT64" => Type::Uint,
        "DOUBLE" => Type::Double,
        "STRING" => Type::String,
        "BYTES" => Type::Bytes,
        other => panic!("no primitive type {other}"),
    }
}

/// Maps of vectors are small; a large one takes the other road.
#[test]
fn large_maps_find_their_keys() {
    let pairs = (0..100).map(|n| (Value::Int(n), Value::Int(n * 2)));
    let Value::Map(map) = Value::map(pairs).unwrap() else { panic!("a map") };
    for (key, wanted) in [(Value::Int(7), Some(14)), (Value::Uint(99), Some(198)), (Value::Double(1.0), Some(2))] {
        assert_eq!(found(&map, &key), wanted, "{key:?}");
    }
    assert_eq!(found(&map, &Value::Int(100)), None);
    assert_eq!(found(&map, &Value::text("7")), None);
}

fn found(map: &Map<'_>, key: &Value<'_>) -> Option<i64> {
    map.get(key).unwrap().map(|value| if let Value::Int(value) = value { value } else { panic!("{value:?}") })
}
