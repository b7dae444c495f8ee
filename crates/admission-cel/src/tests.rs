use std::sync::Arc;

use api_machinery::value::Value as Json;
use api_types::authentication_v1::UserInfo;
use api_types::core_v1::{Namespace, Pod};
use cel::Value;
use cel::kubernetes::authorizer::Decision;

use super::*;

const ALL: Scope = Scope { params: true, authorizer: true, patches: false };

fn user() -> UserInfo {
    UserInfo { username: "ann".into(), groups: vec!["devs".into()], ..UserInfo::default() }
}

fn request(user: &UserInfo) -> Request<'_> {
    Request {
        kind: ["apps", "v1", "Deployment"],
        resource: ["apps", "v1", "deployments"],
        request_kind: ["apps", "v1", "Deployment"],
        request_resource: ["apps", "v1", "deployments"],
        subresource: "",
        name: "web",
        namespace: "shop",
        operation: "CREATE",
        user,
        dry_run: false,
        options: None,
    }
}

fn facts<'a>(request: &'a Request<'a>, object: &'a Json) -> Facts<'a> {
    Facts {
        object: Value::of_json(object),
        old_object: Value::Null,
        request: *request,
        namespace: Value::Null,
        answers: None,
        interrupted: None,
    }
}

fn composition(variables: &[(&str, &str)]) -> Composition {
    let mut composition = Composition::new(ALL, Origin::New);
    for (name, source) in variables {
        composition.add(name, source).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    composition
}

/// The value of an expression as messages show it, or why there is none, and what was paid.
fn run(variables: &[(&str, &str)], source: &str, object: &Json) -> (String, u64) {
    let user = user();
    let request = request(&user);
    let composition = composition(variables);
    let compiled = Compiled::new(composition.environment(), source, Wanted::Any);
    let facts = facts(&request, object);
    let scene = Scene::new(&facts, Value::Null, Some(&composition));
    let (mut budget, full) = (Budget::of(VALIDATIONS), VALIDATIONS);
    let shown = match evaluate(&compiled, &scene, &mut budget) {
        Ok(Ok(value)) => value.to_display(),
        Ok(Err(error)) => error.to_string(),
        Err(out) => out.to_string(),
    };
    (shown, full - budget.left())
}

#[test]
fn expressions_see_the_request() {
    let object = serde_json::json!({"metadata": {"name": "web"}, "spec": {"replicas": 3}});
    for source in [
        "object.spec.replicas == 3 && oldObject == null && namespaceObject == null && params == null",
        "request.kind.group == 'apps' && request.resource.resource == 'deployments' && request.operation == 'CREATE'",
        "request.userInfo.username == 'ann' && 'devs' in request.userInfo.groups && !has(request.userInfo.uid)",
        "request.name == 'web' && request.namespace == 'shop' && !request.dryRun && !has(request.subResource)",
        "variables.n == 4 && variables.text == '4' && has(variables.n)",
    ] {
        let variables = [("n", "object.spec.replicas + 1"), ("text", "string(variables.n)")];
        assert_eq!(run(&variables, source, &object).0, "true", "{source}");
    }
}

#[test]
fn api_objects_read_as_their_json() {
    let (mut pod, mut namespace, user) = (Pod::default(), Namespace::default(), user());
    pod.metadata.name = "web-0".into();
    pod.metadata.creation_timestamp = api_machinery::time::Time::from_unix_seconds(0);
    namespace.metadata.labels.insert("team".into(), "a".into());
    let request = request(&user);
    let facts = Facts {
        object: Value::of_object(&pod),
        namespace: Value::of_object(&namespace),
        ..facts(&request, &Json::Null)
    };
    let env = environment(ALL, Origin::New);
    for source in [
        "object.kind == 'Pod' && object.apiVersion == 'v1' && object.metadata.creationTimestamp == '1970-01-01T00:00:00Z'",
        "'metadata' in object && object.all(k, k in ['apiVersion', 'kind', 'metadata', 'spec', 'status'])",
        "namespaceObject.metadata.labels['team'] == 'a' && !has(object.spec.nodeName)",
    ] {
        let compiled = Compiled::new(&env, source, Wanted::Bool);
        let scene = Scene::new(&facts, Value::Null, None);
        let value = evaluate(&compiled, &scene, &mut Budget::of(VALIDATIONS));
        assert!(matches!(value, Ok(Ok(Value::Bool(true)))), "{source}: {value:?}");
    }
}

#[test]
fn mistakes_are_told_as_upstream_tells_them() {
    let env = environment(ALL, Origin::New);
    for (source, wanted, text) in [
        (
            "nothing",
            Wanted::Bool,
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'nothing' (in container '')\n | nothing\n | ^",
        ),
        ("1", Wanted::Bool, "must evaluate to bool but got int"),
        ("object.spec", Wanted::Bool, "must evaluate to bool but got dyn"),
        ("true", Wanted::TextOrNull, "must evaluate to one of [string null_type] but got bool"),
        (
            "request.nothing == ''",
            Wanted::Bool,
            "compilation failed: ERROR: <input>:1:8: undefined field 'nothing'\n | request.nothing == ''\n | .......^",
        ),
    ] {
        assert_eq!(compile(&env, source, wanted).map(|_| ()).unwrap_err().to_string(), text, "{source}");
    }
    for (scope, source, fits) in [
        (Scope::default(), "params.a == ''", false),
        (ALL, "params.a == ''", true),
        (Scope::default(), "authorizer.path('/x').check('get').allowed()", false),
        (ALL, "authorizer.requestResource.check('get').allowed()", true),
        (ALL, "Object{} == null", false),
        (Scope { patches: true, ..ALL }, "Object{spec: Object.spec{a: 1}}.spec == null", true),
        (Scope { patches: true, ..ALL }, "JSONPatch{op: 'add', path: jsonpatch.escapeKey('/')}.op == ''", true),
    ] {
        let env = environment(scope, Origin::New);
        assert_eq!(compile(&env, source, Wanted::Bool).is_ok(), fits, "{source}");
    }
}

#[test]
fn variables_are_computed_once_and_paid_by_their_user() {
    let object = serde_json::json!({"a": [1, 2, 3]});
    let variables = [("sum", "object.a.map(x, x * 2)"), ("bad", "object.b"), ("sum", "size(variables.sum)")];
    assert_eq!(run(&variables, "variables.sum == 3", &object).0, "true", "the later of two hides the former");
    let once = run(&variables, "variables.sum > 0", &object).1;
    let twice = run(&variables, "variables.sum > 0 && variables.sum > 0", &object).1;
    assert_eq!(twice, once + 3, "a selection and a comparison");
    assert_eq!(run(&variables, "true || variables.bad == 1", &object), ("true".into(), 0));
    assert_eq!(
        run(&variables, "variables.bad == 1", &object).0,
        "expression 'variables.bad == 1' resulted in error: composited variable \"bad\" fails to evaluate: no such key: b"
    );
}

#[test]
fn a_long_chain_of_variables_needs_no_long_stack() {
    let mut composition = composition(&[("v0", "1")]);
    for index in 1..5000 {
        composition.add(&format!("v{index}"), &format!("variables.v{} + 1", index - 1)).unwrap();
    }
    let user = user();
    let request = request(&user);
    let facts = facts(&request, &Json::Null);
    let scene = Scene::new(&facts, Value::Null, Some(&composition));
    let compiled = Compiled::new(composition.environment(), "variables.v4999", Wanted::Any);
    let value = evaluate(&compiled, &scene, &mut Budget::of(VALIDATIONS));
    assert!(matches!(value, Ok(Ok(Value::Int(5000)))), "{value:?}");
}

#[test]
fn budgets_end_what_costs_too_much() {
    let items: Vec<i64> = (0..1000).collect();
    let object = serde_json::json!({ "a": items });
    let bomb = "object.a.all(x, object.a.all(y, object.a.all(z, x + y + z >= 0)))";
    let (shown, cost) = run(&[], bomb, &object);
    let text = format!("expression '{bomb}' resulted in error: operation cancelled: actual cost limit exceeded");
    assert_eq!(shown, text);
    assert!(cost <= cel::kubernetes::PER_CALL_LIMIT + 1000, "{cost}");

    let bombs = [("a", bomb), ("b", bomb), ("c", bomb)];
    let composition = composition(&bombs);
    let user = user();
    let request = request(&user);
    let compiled = Compiled::new(composition.environment(), "variables.a || variables.b || variables.c", Wanted::Any);
    let facts = facts(&request, &object);
    let scene = Scene::new(&facts, Value::Null, Some(&composition));
    let paid = evaluate(&compiled, &scene, &mut Budget::of(MATCH_CONDITIONS));
    assert!(matches!(paid, Err(OutOfBudget)), "{paid:?}");
}

#[test]
fn what_was_overdrawn_has_nothing_left() {
    let user = user();
    let object = serde_json::json!({ "a": [1, 2, 3] });
    let request = request(&user);
    let facts = facts(&request, &object);
    let scene = Scene::new(&facts, Value::Null, None);
    let env = environment(ALL, Origin::New);
    let compiled = |source| Compiled::new(&env, source, Wanted::Any);
    let (dear, cheap) = (compiled("object.a.all(x, x > 0)"), compiled("object.a"));
    let mut budget = Budget::of(3);
    assert!(matches!(evaluate(&dear, &scene, &mut budget), Err(OutOfBudget)));
    assert_eq!(budget.left(), 0);
    assert!(
        matches!(evaluate(&cheap, &scene, &mut budget), Err(OutOfBudget)),
        "not even what would have fitted before"
    );
}

#[test]
fn conditions_decide_in_order() {
    let user = user();
    let request = request(&user);
    let object = serde_json::json!({"a": 1});
    let env = environment(ALL, Origin::Stored);
    let (yes, no, bad) = (("yes", "object.a == 1"), ("no", "object.a == 2"), ("bad", "object.b == 1"));
    let failed = "expression 'object.b == 1' resulted in error: no such key: b".to_owned();
    for (conditions, expected) in [
        (vec![], Matched::Yes),
        (vec![yes, yes], Matched::Yes),
        (vec![yes, no], Matched::No { condition: "no", failed: 0 }),
        (vec![bad, no], Matched::No { condition: "no", failed: 1 }),
        (vec![bad, yes], Matched::Failed(vec![failed])),
    ] {
        let compiled = MatchConditions::new(&env, conditions.clone());
        let facts = facts(&request, &object);
        let scene = Scene::new(&facts, Value::Null, None);
        assert_eq!(compiled.evaluate(&scene), expected, "{conditions:?}");
    }
}

#[test]
fn the_authorizer_is_asked_between_evaluations() {
    let user = user();
    let request = request(&user);
    let answers = Arc::new(Answers::default());
    let env = environment(ALL, Origin::New);
    let source = "authorizer.requestResource.check('create').allowed() && \
                  authorizer.serviceAccount('shop', 'x').group('').resource('pods').check('get').reason() == 'r'";
    let compiled = Compiled::new(&env, source, Wanted::Bool);
    let ask = || {
        let facts = Facts { answers: Some(Arc::clone(&answers)), ..facts(&request, &Json::Null) };
        let scene = Scene::new(&facts, Value::Null, None);
        matches!(evaluate(&compiled, &scene, &mut Budget::of(VALIDATIONS)), Ok(Ok(Value::Bool(true))))
    };
    let mut asked = Vec::new();
    let holds = loop {
        let holds = ask();
        let open = answers.take_open();
        if open.is_empty() {
            break holds;
        }
        for question in open {
            asked.push(question.clone());
            answers.note(question, Decision { allowed: true, reason: "r".into(), error: None });
        }
    };
    assert!(holds);
    let seen: Vec<_> = asked.iter().map(|own| (own.verb.as_str(), own.resource.as_str(), own.name.as_str())).collect();
    assert_eq!(seen, [("create", "deployments", "web"), ("get", "pods", "")]);
}

#[test]
fn mutations_become_json() {
    let scope = Scope { patches: true, ..ALL };
    let env = environment(scope, Origin::New);
    let user = user();
    let request = request(&user);
    let facts = facts(&request, &Json::Null);
    let scene = Scene::new(&facts, Value::Null, None);
    let value = |source: &str| {
        let compiled = Box::leak(Box::new(Compiled::new(&env, source, Wanted::Any)));
        evaluate(compiled, &scene, &mut Budget::of(MUTATION)).unwrap().unwrap()
    };
    let merged =
        object_as_json(&value("Object{spec: Object.spec{items: [Object.spec.items{a: 1, ?b: optional.none()}]}}"));
    assert_eq!(merged, Ok(serde_json::json!({"spec": {"items": [{"a": 1}]}})));
    let patch = json_patch(&value("[JSONPatch{op: 'add', path: '/a', value: Object.b{c: Object.b.c{d: [true]}}}]"));
    assert_eq!(patch, Ok(serde_json::json!([{"op": "add", "path": "/a", "value": {"c": {"d": [true]}}}])));
    assert_eq!(
        object_as_json(&value("Object{spec: Object.other{}}")).unwrap_err().to_string(),
        "type mismatch: unexpected type name \"Object.other\", expected \"Object.spec\", which matches field name path from \
         root Object type"
    );
    assert!(json_patch(&value("1")).is_err() && object_as_json(&value("{'a': 1}")).is_err());
}

#[test]
fn the_request_is_a_map_of_the_members_that_it_has() {
    let user = user();
    let named = request(&user);
    let scaled = Request { name: "", subresource: "scale", options: Some(("CreateOptions", &user)), ..named };
    let env = environment(ALL, Origin::New);
    for (request, source, expected) in [
        (
            named,
            "dyn(request).map(k, k).join(' ')",
            "name namespace kind resource requestKind requestResource operation userInfo dryRun",
        ),
        (
            scaled,
            "dyn(request).map(k, k).join(' ')",
            "subResource requestSubResource namespace kind resource requestKind requestResource operation userInfo dryRun options",
        ),
        (named, "dyn(request).size()", "9"),
        (named, "dyn(request).all(k, k in dyn(request) && dyn(request)[k] == dyn(request)[k])", "true"),
        (named, "dyn(request) == dyn(request) && request.kind == request.requestKind", "true"),
        (named, "has(request.name) && !has(request.options) && !has(request.subResource)", "true"),
        (scaled, "!has(request.name) && has(request.options) && has(request.subResource)", "true"),
        (scaled, "request.options.kind + request.options.username + request.subResource", "CreateOptionsannscale"),
        (scaled, "request.?name.orValue('none')", "none"),
        (scaled, "request.name", "no such key: name"),
        (named, "dyn(request).nope", "no such key: nope"),
        (named, "dyn(request)[1]", "no such key: 1"),
    ] {
        let compiled = Compiled::new(&env, source, Wanted::Any);
        let facts = facts(&request, &Json::Null);
        let scene = Scene::new(&facts, Value::Null, None);
        let shown = match evaluate(&compiled, &scene, &mut Budget::of(VALIDATIONS)).unwrap() {
            Ok(value) => value.to_display(),
            Err(ExpressionError::Evaluate { error, .. }) => error.to_string(),
            Err(other) => other.to_string(),
        };
        assert_eq!(shown, expected, "{source}");
    }
}

#[test]
fn conditions_are_of_all_where_they_read_what_all_see() {
    let composition = composition(&[("n", "1")]);
    for (sources, expected) in [
        (&["request.name == 'a'", "object.x == oldObject.x && namespaceObject == null"][..], true),
        (&["true"], true),
        (&["request.name == params.name"], false),
        (&["true", "variables.n == 1"], false),
        (&["authorizer.path('/x').check('get').allowed()"], false),
        (&["nobody.knows"], false),
    ] {
        let named = sources.iter().map(|source| ("c", *source));
        let conditions = MatchConditions::new(composition.environment(), named);
        assert_eq!(conditions.of_all(), expected.then(|| sources.to_vec()), "{sources:?}");
    }
}
