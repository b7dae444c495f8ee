//! Claims, templates, classes and slices as the engine runs them.

use api_machinery::object::Object;
use api_machinery::time::Time;
use feature_gates::Gates;

use super::KINDS;
use crate::gates;
use crate::rules::{Endpoint, RuleContext, Rules};

fn kind(name: &str) -> &'static dyn Rules {
    *KINDS.iter().find(|rules| rules.info().kind == name).expect("a kind")
}

fn read(rules: &dyn Rules, text: &str) -> Box<dyn Object> {
    let mut object = rules.new_object();
    let decoded = api_machinery::json::decode(text.as_bytes(), object.as_reflect_mut());
    assert!(decoded.expect(text).problems.is_empty(), "{text}");
    rules.set_defaults(&mut *object);
    object
}

/// With every gate of the group on: by default what nobody has brought is off.
fn context() -> RuleContext {
    let on = gates::SWITCHED.iter().fold(Gates::default(), |all, feature| all.with(*feature, true));
    RuleContext { now: Time::from_unix_seconds(7), gates: on, ..RuleContext::default() }
}

fn created_with(cx: &RuleContext, name: &str, text: &str) -> Vec<String> {
    let rules = kind(name);
    let mut object = read(rules, text);
    rules.prepare_create(cx, &mut *object);
    rules.validate_create(cx, &*object).iter().map(ToString::to_string).collect()
}

fn created(name: &str, text: &str) -> Vec<String> {
    created_with(&context(), name, text)
}

fn updated(name: &str, endpoint: Endpoint, new: &str, old: &str) -> Vec<String> {
    let rules = kind(name);
    let (mut new, old) = (read(rules, new), read(rules, old));
    rules.prepare_update(&context(), endpoint, &mut *new, &*old);
    rules.validate_update(&context(), endpoint, &*new, &*old).iter().map(ToString::to_string).collect()
}

/// Each expected text begins one that is found, in this order.
#[track_caller]
fn check(what: &str, found: &[String], expected: &[&str]) {
    assert_eq!(found.len(), expected.len(), "{what}: {found:?}");
    for (text, expected) in found.iter().zip(expected) {
        assert!(text.starts_with(expected), "{what}: {text}");
    }
}

fn claim(devices: &str) -> String {
    format!(r#"{{"spec":{{"devices":{devices}}}}}"#)
}

#[test]
fn claims_ask_in_one_form() {
    let one = r#"{"name":"r","exactly":{"deviceClassName":"c"}}"#;
    for (devices, expected) in [
        (format!(r#"{{"requests":[{one}]}}"#), &[] as &[&str]),
        (format!(r#"{{"requests":[{one},{one}]}}"#), &[r#"spec.devices.requests[1]: Duplicate value: "r""#]),
        (
            r#"{"requests":[{"name":"r"}]}"#.to_owned(),
            &["spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"],
        ),
        (
            r#"{"requests":[{"name":"r","exactly":{"deviceClassName":"c"},"firstAvailable":[{"name":"a"}]}]}"#
                .to_owned(),
            &[
                "spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, \
               but multiple fields are set",
            ],
        ),
        (
            r#"{"requests":[{"name":"r","exactly":{"allocationMode":"All","count":2}}]}"#.to_owned(),
            &[
                "spec.devices.requests[0].exactly.deviceClassName: Required value",
                "spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'",
            ],
        ),
        (
            r#"{"requests":[{"name":"r","firstAvailable":[{"name":"a","deviceClassName":"c","count":-1},
                {"name":"a","deviceClassName":"c","allocationMode":"Some"}]}]}"#
                .to_owned(),
            &[
                "spec.devices.requests[0].firstAvailable[0].count: Invalid value: -1: must be greater than zero",
                r#"spec.devices.requests[0].firstAvailable[1].allocationMode: Unsupported value: "Some""#,
                r#"spec.devices.requests[0].firstAvailable[1]: Duplicate value: "a""#,
            ],
        ),
    ] {
        check(&devices, &created("ResourceClaim", &claim(&devices)), expected);
    }
}

#[test]
fn tolerations_constraints_and_configuration_name_what_there_is() {
    let with = |more: &str| {
        let request = r#"{"name":"r","firstAvailable":[{"name":"s","deviceClassName":"c"}]}"#;
        claim(&format!(r#"{{"requests":[{request}],{more}}}"#))
    };
    let config = r#""opaque":{"driver":"d","parameters":{}}"#;
    for (text, expected) in [
        (with(r#""constraints":[{"requests":["r","r/s"],"matchAttribute":"a.b/c"}]"#), &[] as &[&str]),
        (
            with(r#""constraints":[{"requests":["r/t","s","r","r"],"distinctAttribute":"c"}]"#),
            &[
                r#"spec.devices.constraints[0].requests[0]: Invalid value: "r/t": must be the name of a request"#,
                r#"spec.devices.constraints[0].requests[1]: Invalid value: "s": must be the name of a request"#,
                r#"spec.devices.constraints[0].requests[3]: Duplicate value: "r""#,
                r#"spec.devices.constraints[0].distinctAttribute: Invalid value: "c": a fully qualified name"#,
            ],
        ),
        (with(r#""constraints":[{}]"#), &["spec.devices.constraints[0]: Required value: exactly one of"]),
        (
            with(&format!(r#""config":[{{{config}}},{{"requests":["x"],{config}}}]"#)),
            &[r#"spec.devices.config[1].requests[0]: Invalid value: "x""#],
        ),
        (
            with(r#""config":[{},{"opaque":{"driver":"","parameters":[]}}]"#),
            &[
                "spec.devices.config[0].opaque: Required value",
                "spec.devices.config[1].opaque.driver: Required value",
                r#"spec.devices.config[1].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object"#,
            ],
        ),
        (
            claim(
                r#"{"requests":[{"name":"r","exactly":{"deviceClassName":"c","tolerations":[
                    {"key":"a b","operator":"Exists","value":"v","effect":"No"},{"operator":"Like"}]}}]}"#,
            ),
            &[
                "spec.devices.requests[0].exactly.tolerations[0].key: Invalid value",
                r#"spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "v": must be empty for operator `Exists`"#,
                "spec.devices.requests[0].exactly.tolerations[0].effect: Unsupported value",
                "spec.devices.requests[0].exactly.tolerations[1].operator: Unsupported value",
            ],
        ),
    ] {
        check(&text, &created("ResourceClaim", &text), expected);
    }
}

#[test]
fn devices_for_administrators_need_a_marked_namespace() {
    let text = claim(r#"{"requests":[{"name":"r","exactly":{"deviceClassName":"c","adminAccess":true}}]}"#);
    let template = format!(r#"{{"spec":{text}}}"#);
    let labels = |value: &str| Some(Ok([("resource.kubernetes.io/admin-access".to_owned(), value.to_owned())].into()));
    for (namespace_labels, expected) in [
        (labels("true"), &[] as &[&str]),
        (labels("false"), &["spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires"]),
        (None, &["spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires"]),
        (
            Some(Err("gone".to_owned())),
            &[
                "spec.devices.requests[0].adminAccess: Internal error: could not retrieve namespace to verify admin access: gone",
            ],
        ),
    ] {
        let cx = RuleContext { namespace_labels, ..context() };
        check(&text, &created_with(&cx, "ResourceClaim", &text), expected);
        check(&template, &created_with(&cx, "ResourceClaimTemplate", &template), expected);
    }
    let rules = kind("ResourceClaim");
    assert!(rules.reads_namespace(&*read(rules, &text)) && !rules.reads_namespace(&*read(rules, "{}")));
}

const ALLOCATED: &str =
    r#""allocation":{"devices":{"results":[{"request":"r","driver":"d","pool":"p","device":"x"}]}}"#;

fn with_status(status: &str) -> String {
    format!(r#"{{"spec":{{"devices":{{"requests":[{{"name":"r"}}]}}}},"status":{{{status}}}}}"#)
}

#[test]
fn a_status_tells_of_devices_that_the_claim_has() {
    let user = r#""reservedFor":[{"resource":"pods","name":"p","uid":"u"}]"#;
    let device = r#""devices":[{"driver":"d","pool":"p","device":"x"}]"#;
    let both = |more: &str| with_status(&format!("{ALLOCATED},{more}"));
    for (new, old, expected) in [
        (both(user), with_status(""), &[] as &[&str]),
        (both(device), with_status(""), &[]),
        (with_status(user), with_status(""), &["status.reservedFor: Forbidden: may not be specified when `allocated`"]),
        (
            both(r#""reservedFor":[{"resource":"pods","name":"p","uid":"u"},{"resource":"","name":"","uid":"u"}]"#),
            with_status(""),
            &[
                "status.reservedFor[1].resource: Required value",
                "status.reservedFor[1].name: Required value",
                r#"status.reservedFor[1]: Duplicate value: "u""#,
            ],
        ),
        (
            both(r#""devices":[{"driver":"d","pool":"p","device":"y"}]"#),
            both(""),
            &["status.devices[0]: Invalid value: \"d/p/y\": must be an allocated device in the claim"],
        ),
        (
            with_status(&ALLOCATED.replace("\"x\"", "\"y\"")),
            both(r#""devices":[]"#),
            &["status.allocation: Invalid value: {\"Devices\":"],
        ),
        (
            with_status(&ALLOCATED.replace("\"r\"", "\"s\"")),
            with_status(""),
            &[r#"status.allocation.devices.results[0].request: Invalid value: "s": must be the name of a request"#],
        ),
        (
            both(r#""devices":[{"driver":"d","pool":"p","device":"x","data":1,"networkData":{"ips":["1.2.3.4"]}}]"#),
            with_status(""),
            &[
                r#"status.devices[0].data: Invalid value: "<value omitted>": must be a valid JSON object"#,
                r#"status.devices[0].networkData.ips[0]: Invalid value: "1.2.3.4": must be a valid address in CIDR form"#,
            ],
        ),
    ] {
        let (new, old) = (new.replace(",}", "}"), old.replace(",}", "}"));
        check(&new, &updated("ResourceClaim", Endpoint::Status, &new, &old), expected);
    }
}

/// What was told of a device goes with it; the rest of the status stays.
#[test]
fn devices_that_are_freed_are_forgotten() {
    let rules = kind("ResourceClaim");
    let device = r#""devices":[{"driver":"d","pool":"p","device":"x"}]"#;
    let old = read(rules, &with_status(&format!("{ALLOCATED},{device}")));
    let mut new = read(rules, &with_status(device));
    rules.prepare_update(&context(), Endpoint::Status, &mut *new, &*old);
    assert!(!api_machinery::json::encode(new.as_reflect()).contains("\"devices\":[{\"driver\""));
}

#[test]
fn a_spec_never_changes() {
    let (new, old) = (claim(r#"{"requests":[{"name":"b"}]}"#), claim(r#"{"requests":[{"name":"a"}]}"#));
    let expected = &[
        r#"spec: Invalid value: {"Devices":{"Requests":[{"Name":"b","Exactly":null,"FirstAvailable":null}],"Constraints":null,"Config":null}}: field is immutable"#,
    ];
    check("claim", &updated("ResourceClaim", Endpoint::Main, &new, &old), expected);
    let template = |text: &str| format!(r#"{{"spec":{text}}}"#);
    let found = updated("ResourceClaimTemplate", Endpoint::Main, &template(&new), &template(&old));
    check("template", &found, &["spec.spec.devices.requests[0]: Required value", "spec: Invalid value: {\"Spec\":"]);
}

#[test]
fn classes_select_by_expressions() {
    for (text, expected) in [
        (r#"{"spec":{"selectors":[{"cel":{"expression":"device.driver == 'd'"}}]}}"#, &[] as &[&str]),
        (
            r#"{"spec":{"selectors":[{}],"config":[{}]}}"#,
            &["spec.selectors[0].cel: Required value", "spec.config[0].opaque: Required value"],
        ),
        (
            r#"{"spec":{"selectors":[{"cel":{"expression":"1"}}],"extendedResourceName":"cpu"}}"#,
            &[
                "spec.selectors[0].cel.expression: Invalid value: \"1\": must evaluate to bool or the unknown type, not int",
                "spec.extendedResourceName: Invalid value: \"cpu\": must be a valid extended resource name",
            ],
        ),
    ] {
        check(text, &created("DeviceClass", text), expected);
    }
}

fn slice(more: &str) -> String {
    format!(r#"{{"spec":{{"driver":"d","pool":{{"name":"p","resourceSliceCount":1}},{more}}}}}"#)
}

#[test]
fn slices_say_where_their_devices_are_in_one_way() {
    let one_place = "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`";
    for (more, expected) in [
        (r#""nodeName":"n""#, &[] as &[&str]),
        (r#""devices":[]"#, &[one_place]),
        (
            r#""nodeName":"""#,
            &["spec.nodeName: Invalid value: \"\": must be either unset or set to a non-empty", one_place],
        ),
        (r#""nodeName":"n","allNodes":true"#, &["spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of"]),
        (
            r#""nodeName":"n","allNodes":false"#,
            &["spec.allNodes: Invalid value: false: must be either unset or set to true"],
        ),
        (
            r#""nodeSelector":{"nodeSelectorTerms":[{},{}]}"#,
            &["spec.nodeSelector.nodeSelectorTerms: Invalid value: null: must have exactly one node selector term"],
        ),
        (
            r#""allNodes":true,"devices":[{"name":"a","nodeName":"n"}]"#,
            &["spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if"],
        ),
        (
            r#""perDeviceNodeSelection":true,"devices":[{"name":"a"},{"name":"b","nodeName":"n"}]"#,
            &["spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required"],
        ),
        (
            r#""allNodes":true,"devices":[{"name":"a"}],"sharedCounters":[{"name":"c","counters":{"x":{"value":"1"}}}]"#,
            &["spec: Invalid value: \"\": only one of `sharedCounters` or `devices` is allowed"],
        ),
    ] {
        check(more, &created("ResourceSlice", &slice(more)), expected);
    }
    let (new, old) = (slice(r#""nodeName":"n""#).replace("\"d\"", "\"e\""), slice(r#""nodeName":"m""#));
    let expected = &[
        "spec.driver: Invalid value: \"e\": field is immutable",
        "spec.nodeName: Invalid value: \"n\": field is immutable",
    ];
    check("update", &updated("ResourceSlice", Endpoint::Main, &new, &old), expected);
}

#[test]
fn devices_have_good_values() {
    let device = |more: &str| slice(&format!(r#""allNodes":true,"devices":[{{"name":"a",{more}}}]"#));
    for (more, expected) in [
        (r#""attributes":{"a":{"int":1},"x.y/b":{"version":"1.0.0"}}"#, &[] as &[&str]),
        (
            r#""attributes":{"a":{},"-":{"bool":true}}"#,
            &[
                "spec.devices[0].attributes: Invalid value: \"-\": a valid C identifier",
                "spec.devices[0].attributes[a]: Invalid value: \"\": exactly one value must be specified",
            ],
        ),
        (
            r#""attributes":{"a":{"version":"1.0"}}"#,
            &[
                "spec.devices[0].attributes[a].version: Invalid value: \"1.0\": must be a string compatible with semver.org spec 2.0.0",
            ],
        ),
        (
            r#""taints":[{"key":"","value":"-","effect":"Go"}]"#,
            &[
                "spec.devices[0].taints[0].key: Required value",
                "spec.devices[0].taints[0].value: Invalid value",
                "spec.devices[0].taints[0].effect: Unsupported value: \"Go\": supported values: \"NoExecute\", \"NoSchedule\", \"None\"",
            ],
        ),
        (
            r#""bindingConditions":["a"],"bindingFailureConditions":["a"]"#,
            &[
                "spec.devices[0].bindingFailureConditions[0]: Invalid value: \"a\": bindingFailureConditions must not overlap",
            ],
        ),
        (
            r#""bindingConditions":["a"]"#,
            &["spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailure"],
        ),
        (
            r#""consumesCounters":[{"counterSet":"s","counters":{}}]"#,
            &["spec.devices[0].consumesCounters[0].counters: Required value"],
        ),
    ] {
        check(more, &created("ResourceSlice", &device(more)), expected);
    }
}

#[test]
fn parts_of_a_capacity_fit_it() {
    let device = |policy: &str| {
        let capacity = format!(r#""capacity":{{"m":{{"value":"10","requestPolicy":{{{policy}}}}}}}"#);
        slice(&format!(r#""allNodes":true,"devices":[{{"name":"a","allowMultipleAllocations":true,{capacity}}}]"#))
    };
    let at = "spec.devices[0].capacity[m].requestPolicy";
    for (policy, expected) in [
        (r#""default":"2","validValues":["1","2"]"#, vec![]),
        (
            r#""default":"3","validValues":["2","1","11"]"#,
            vec![
                ".validValues: Invalid value: [\"2\",\"1\",\"11\"]: values must be sorted in ascending order",
                ".validValues[2]: Invalid value: \"11\": option is larger than capacity value: 10",
                ".validValues: Invalid value: \"3\": default value is not valid according to the requestPolicy",
            ],
        ),
        (r#""validValues":["1"]"#, vec![".default: Required value: required when validValues is defined"]),
        (r#""default":"4","validRange":{"min":"2","max":"8","step":"2"}"#, vec![]),
        (
            r#""default":"5","validRange":{"min":"2","max":"12","step":"2"}"#,
            vec![
                ".validRange.max: Invalid value: \"12\": max is larger than capacity value: 10",
                ".validRange.step: Invalid value: \"5\": value is not a multiple of a given step (2) from (2)",
            ],
        ),
        (
            r#""default":"1","validRange":{"min":"2","step":"0"}"#,
            vec![
                ".validRange.min: Invalid value: \"1\": default is less than min: 2",
                ".validRange.step: Invalid value: \"1\": value is not a multiple of a given step (0) from (2)",
            ],
        ),
        (
            r#""default":"1","validRange":{}"#,
            vec![".validRange.min: Required value: required when validRange is defined"],
        ),
    ] {
        let expected: Vec<String> = expected.iter().map(|text| format!("{at}{text}")).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check(policy, &created("ResourceSlice", &device(policy)), &expected);
    }
    let plain = slice(r#""allNodes":true,"devices":[{"name":"a","capacity":{"m":{"value":"1","requestPolicy":{}}}}]"#);
    check(
        "plain",
        &created("ResourceSlice", &plain),
        &[&format!("{at}: Forbidden: allowMultipleAllocations must be true")],
    );
}

/// A request that has lost its only form has none.
#[test]
fn without_the_feature_alternatives_go() {
    let cx = RuleContext { gates: context().gates.with(gates::PRIORITIZED_LIST, false), ..context() };
    let text = claim(r#"{"requests":[{"name":"r","firstAvailable":[{"name":"a","deviceClassName":"c"}]}]}"#);
    let expected =
        &["spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"];
    check(&text, &created_with(&cx, "ResourceClaim", &text), expected);
}

#[test]
fn new_taints_are_dated() {
    let rules = kind("ResourceSlice");
    let mut object = read(rules, &slice(r#""devices":[{"name":"a","taints":[{"key":"k","effect":"None"}]}]"#));
    rules.prepare_create(&context(), &mut *object);
    assert!(api_machinery::json::encode(object.as_reflect()).contains(r#""timeAdded":"1970-01-01T00:00:07Z""#));
}
