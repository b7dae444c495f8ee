//! What definitions are told, by what is wrong with them.

use api_machinery::object;
use api_machinery::value::Value;
use serde_json::json;

use super::*;
use crate::rules::{Endpoint, RuleContext, Rules};

fn definition(change: impl FnOnce(&mut Value)) -> CustomResourceDefinition {
    let mut value = json!({
        "metadata": {"name": "apples.example.com", "annotations": {}},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "apples", "singular": "apple", "kind": "Apple", "listKind": "AppleList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
                    "properties": {"color": {"type": "string"}, "size": {"type": "number"}}}}}}}],
        },
        "status": {"storedVersions": ["v1"]},
    });
    change(&mut value);
    object::from_value(&value).unwrap()
}

fn texts(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// Sets a member of the only version.
fn version(member: &'static str, to: Value) -> impl FnOnce(&mut Value) {
    move |value| value["spec"]["versions"][0][member] = to
}

/// Sets a member of the spec.
fn spec(member: &'static str, to: Value) -> impl FnOnce(&mut Value) {
    move |value| value["spec"][member] = to
}

fn check(change: impl FnOnce(&mut Value), expected: &[&str]) {
    let definition = definition(change);
    assert_eq!(texts(&validate(&definition)), expected);
}

const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                     character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
                     validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

#[test]
fn groups_and_names() {
    check(|_| {}, &[]);
    check(
        |value| value["metadata"]["name"] = "x".into(),
        &["metadata.name: Invalid value: \"x\": must be spec.names.plural+\".\"+spec.group"],
    );
    check(
        |value| value["metadata"] = json!({"generateName": "a-", "name": "a-x"}),
        &[
            "metadata.generateName: Invalid value: \"a-\": must be spec.names.plural+\".\"+spec.group",
            "metadata.name: Invalid value: \"a-x\": must be spec.names.plural+\".\"+spec.group",
        ],
    );
    check(
        |value| value["spec"]["names"]["categories"] = json!([""]),
        &[&format!("spec.names.categories[0]: Invalid value: \"\": {LABEL}")],
    );
    // That a name is missing is told by the rules of metadata.
    check(|value| value["metadata"]["name"] = "".into(), &[]);
    let group = |name: &'static str| {
        move |value: &mut Value| {
            value["metadata"]["name"] = format!("apples.{name}").into();
            value["spec"]["group"] = name.into();
        }
    };
    check(group(""), &["spec.group: Required value"]);
    check(group("example"), &["spec.group: Invalid value: \"example\": should be a domain with at least one dot"]);
    check(
        group("x.k8s.io"),
        &["metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval \
           annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"],
    );
    check(spec("scope", "".into()), &["spec.scope: Required value"]);
    check(
        spec("scope", "World".into()),
        &["spec.scope: Unsupported value: \"World\": supported values: \"Cluster\", \"Namespaced\""],
    );
    check(
        spec("names", json!({"plural": "apples"})),
        &[
            "spec.names.singular: Required value",
            "spec.names.kind: Required value",
            "spec.names.listKind: Required value",
        ],
    );
    let names = json!({"plural": "apples", "singular": "apple", "kind": "A_b", "listKind": "A_b", "shortNames": ["1"]});
    check(
        spec("names", names),
        &[
            &format!(
                "spec.names.kind: Invalid value: \"A_b\": may have mixed case, but should otherwise match: {LABEL}"
            ),
            &format!(
                "spec.names.listKind: Invalid value: \"A_b\": may have mixed case, but should otherwise match: {LABEL}"
            ),
            &format!("spec.names.shortNames[0]: Invalid value: \"1\": {LABEL}"),
            "spec.names.listKind: Invalid value: \"A_b\": kind and listKind may not be the same",
        ],
    );
}

/// What all versions declare alike is reported at the top of the spec, and so is all of an only version.
#[test]
fn schemas() {
    check(version("schema", json!({})), &["spec.versions[0].schema.openAPIV3Schema: Required value"]);
    let schema = |schema: Value| version("schema", json!({"openAPIV3Schema": schema}));
    check(
        schema(json!({"type": "object", "properties": {"a": {}}})),
        &[
            "spec.validation.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object \
           fields",
        ],
    );
    check(
        schema(json!({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}})),
        &["spec.validation.openAPIV3Schema.properties[a].default: Invalid value: \"string\":  in \
           body must be of type integer: \"string\""],
    );
    check(schema(json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.kind != 'x'"}]})), &[]);
    check(
        schema(json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.metadata.name"}]})),
        &["spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule: Invalid value: \
           {\"Rule\":\"self.metadata.name\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\
           \"OptionalOldSelf\":null}: cel expression must evaluate to a bool"],
    );
    // Where something else is wrong below, rules are not looked at.
    check(
        schema(json!({"type": "object", "properties": {"a": {"type": "string", "uniqueItems": true}},
            "x-kubernetes-validations": [{"rule": "nothing"}]})),
        &[
            "spec.validation.openAPIV3Schema.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the \
           runtime complexity becomes quadratic",
        ],
    );
    let mut two = json!([
        {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
        {"name": "v2", "served": true, "schema": {"openAPIV3Schema": {"type": "array", "items": {"type": "string"}}}},
    ]);
    check(
        spec("versions", two.clone()),
        &["spec.versions[1].schema.openAPIV3Schema.type: Invalid value: \"array\": must be object at the root"],
    );
    two[0]["schema"] = two[1]["schema"].clone();
    check(
        spec("versions", two),
        &["spec.validation.openAPIV3Schema.type: Invalid value: \"array\": must be object at the root"],
    );
}

#[test]
fn roots_beside_a_status() {
    let with_status = |schema: Value| {
        move |value: &mut Value| {
            value["spec"]["versions"][0]["subresources"] = json!({"status": {}});
            value["spec"]["versions"][0]["schema"] = json!({"openAPIV3Schema": schema});
        }
    };
    check(with_status(json!({"type": "object", "required": ["spec"], "description": "d"})), &[]);
    let found = texts(&validate(&definition(with_status(json!({"type": "object", "maxProperties": 5})))));
    let [only] = found.as_slice() else { panic!("{found:?}") };
    assert!(
        only.starts_with("spec.validation.openAPIV3Schema: Invalid value: {\"ID\":\"\",\"Schema\":\"\","),
        "{only}"
    );
    let detail = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength \
                  MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs \
                  Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status \
                  subresource is enabled";
    assert!(only.ends_with(detail), "{only}");
    let found = texts(&validate(&definition(with_status(json!({"type": "string"})))));
    let expected = "spec.validation.openAPIV3Schema.type: Invalid value: \"string\": only \"object\" is allowed as the \
                    type at the root of the schema if the status subresource is enabled";
    assert_eq!(found[0], expected);
}

#[test]
fn a_version_without_a_name_is_told_once() {
    let found = texts(&validate(&definition(version("name", "".into()))));
    assert!(found.contains(&format!("spec.versions[0].name: Invalid value: \"\": {LABEL}")), "{found:?}");
    assert!(!found.iter().any(|text| text.starts_with("spec.version:")), "{found:?}");
}

#[test]
fn versions_of_a_definition() {
    const PLAIN: &str = r#""DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}"#;
    check(
        version("storage", false.into()),
        &[&format!(
            "spec.versions: Invalid value: [{{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\
                 {PLAIN}]: must have exactly one version marked as storage version"
        )],
    );
    check(
        version("deprecationWarning", "go".into()),
        &["spec.versions[0].deprecationWarning: Invalid value: \"go\": can only be set for deprecated versions"],
    );
    check(
        |value| {
            value["spec"]["versions"][0]["deprecated"] = true.into();
            value["spec"]["versions"][0]["deprecationWarning"] = "a\nb".into();
        },
        &[
            "spec.versions[0].deprecationWarning: Invalid value: \"a\\nb\": must only contain printable UTF-8 characters; \
           non-printable character found at index 1",
        ],
    );
    check(
        |value| value["status"]["storedVersions"] = json!(["v1", "v0"]),
        &["status.storedVersions[1]: Invalid value: \"v0\": missing from spec.versions; v0 was previously a storage \
           version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v0 \
           and removes v0 from status.storedVersions"],
    );
}

#[test]
fn columns_scales_and_selectable_fields() {
    check(
        version("additionalPrinterColumns", json!([{"name": "", "type": "text", "format": "f", "jsonPath": "spec"}])),
        &[
            "spec.additionalPrinterColumns[0].name: Required value",
            "spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of \
             boolean,date,integer,number,string",
            "spec.additionalPrinterColumns[0].format: Invalid value: \"f\": must be one of \
             byte,date,date-time,double,float,int32,int64,password",
            "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"spec\": must be a simple json path starting \
             with .",
        ],
    );
    let odd = json!([{"name": "A", "type": "string", "jsonPath": ".a[?(@.b>1)]"}]);
    check(version("additionalPrinterColumns", odd), &[]);
    let scale = json!({"specReplicasPath": ".status.x", "statusReplicasPath": "", "labelSelectorPath": ".x"});
    check(
        version("subresources", json!({"scale": scale})),
        &[
            "spec.subresources.scale.specReplicasPath: Invalid value: \".status.x\": should be a json path under .spec",
            "spec.subresources.scale.statusReplicasPath: Required value",
            "spec.subresources.scale.labelSelectorPath: Invalid value: \".x\": should be a json path under either .spec \
             or .status",
        ],
    );
    let fields = |paths: &[&str]| json!(paths.iter().map(|path| json!({"jsonPath": path})).collect::<Vec<_>>());
    check(version("selectableFields", fields(&[".spec.color"])), &[]);
    check(
        version(
            "selectableFields",
            fields(&["", ".spec.other", ".spec[0]", ".metadata.name", ".spec.size", ".spec.color", ".spec.color"]),
        ),
        &[
            "spec.selectableFields[0].jsonPath: Required value",
            "spec.selectableFields[1].jsonPath: Invalid value: \".spec.other\": is an invalid path: does not refer to a \
             valid field",
            "spec.selectableFields[2].jsonPath: Invalid value: \".spec[0]\": is an invalid path: array notation is not \
             allowed",
            "spec.selectableFields[3].jsonPath: Invalid value: \".metadata.name\": is an invalid path: does not refer to a valid field",
            "spec.selectableFields[4].jsonPath: Invalid value: \".spec.size\": must point to a field of type string, \
             boolean or integer. Enum string fields and strings with formats are allowed.",
            "spec.selectableFields[6].jsonPath: Duplicate value: \".spec.color\"",
        ],
    );
}

/// Fields and schemas are to stand in the same place of upstream's internal form.
#[test]
fn selectable_fields_stand_beside_the_schema() {
    let second = |member: &'static str, to: Value| {
        move |value: &mut Value| {
            value["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
            let mut second = value["spec"]["versions"][0].clone();
            (second["name"], second["storage"], second[member]) = ("v2".into(), false.into(), to);
            value["spec"]["versions"].as_array_mut().unwrap().push(second);
        }
    };
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"color": {"type": "string"}}}}}});
    check(second("served", true.into()), &[]);
    check(
        second("schema", schema),
        &["spec.selectableFields: Invalid value: \"\": may only be set when validations.schema is included"],
    );
    check(
        second("selectableFields", json!([])),
        &["spec.versions[0].selectableFields: Invalid value: \"\": may only be set when \
           `version.schema.openAPIV3Schema` is not included"],
    );
}

#[test]
fn other_dialects_are_told_where_nothing_else_is_wrong() {
    let with = |member: &'static str| {
        move |value: &mut Value| {
            let schema = &mut value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            (schema["$schema"], schema[member]) = ("http://json-schema.org/schema#".into(), "x".into());
        }
    };
    let at = "spec.validation.openAPIV3Schema";
    check(with("title"), &[&format!("{at}: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported")]);
    check(with("id"), &[&format!("{at}.id: Forbidden: id is not supported")]);
}

#[test]
fn defaults_need_pruning() {
    let change = |value: &mut Value| {
        value["spec"]["preserveUnknownFields"] = true.into();
        value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["default"] = json!({});
    };
    check(
        change,
        &[
            "spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema",
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
             x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ],
    );
}

#[test]
fn conversions() {
    check(
        spec("conversion", json!({"strategy": "Webhook"})),
        &[
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            "spec.conversion.conversionReviewVersions: Required value",
        ],
    );
    let with = |config: Value, versions: Value| {
        let webhook = json!({"clientConfig": config, "conversionReviewVersions": versions});
        spec("conversion", json!({"strategy": "Webhook", "webhook": webhook}))
    };
    check(with(json!({"url": "https://a"}), json!(["v1"])), &[]);
    check(
        with(json!({"url": "http://a", "caBundle": "Z2FyYmFnZQ=="}), json!(["v2", "v2"])),
        &[
            "spec.conversion.webhookClientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; \
             desired format: https://host[/path]",
            "spec.conversion.conversionReviewVersions[1]: Invalid value: \"v2\": duplicate version",
            "spec.conversion.conversionReviewVersions: Invalid value: [\"v2\",\"v2\"]: must include at least one of v1, v1beta1",
        ],
    );
    check(
        with(json!({"url": "https://a", "service": {"namespace": "a", "name": "b"}}), json!(["v1"])),
        &["spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required"],
    );
    let webhook = json!({"clientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v1"]});
    check(
        spec("conversion", json!({"strategy": "None", "webhook": webhook})),
        &[
            "spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook",
            "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
        ],
    );
    check(
        spec("preserveUnknownFields", true.into()),
        &["spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
           x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"],
    );
}

#[test]
fn updates_keep_what_objects_hang_on() {
    let old = |established: &'static str| {
        definition(move |value| {
            value["status"]["conditions"] = json!([{"type": "Established", "status": established}]);
        })
    };
    let new = definition(|value| {
        value["spec"]["scope"] = "Cluster".into();
        value["spec"]["names"]["kind"] = "Pear".into();
        value["spec"]["names"]["plural"] = "pears".into();
    });
    let plural = "spec.names.plural: Invalid value: \"pears\": field is immutable";
    assert_eq!(texts(&validate_update(&new, &old("False"))), [plural]);
    assert_eq!(
        texts(&validate_update(&new, &old("True"))),
        [
            "spec.scope: Invalid value: \"Cluster\": field is immutable",
            "spec.names.kind: Invalid value: \"Pear\": field is immutable",
            plural,
        ]
    );
}

/// Those who migrate stored objects take versions out of the status, which says nothing more about the spec.
#[test]
fn statuses_are_free_but_for_accepted_names() {
    let rules: &dyn Rules =
        crate::find("apiextensions.k8s.io", "v1", "customresourcedefinitions").expect("definitions");
    let old = definition(|_| {});
    let new = definition(|value| {
        value["status"] = json!({"storedVersions": ["v9"], "acceptedNames": {"plural": "A", "kind": ""}});
    });
    let errors = rules.validate_update(&RuleContext::default(), Endpoint::Status, &new, &old);
    assert_eq!(texts(&errors), [format!("status.acceptedNames.plural: Invalid value: \"A\": {LABEL}")]);
}

#[test]
fn formats_that_nothing_enforces_are_told_once() {
    let rules: &dyn Rules =
        crate::find("apiextensions.k8s.io", "v1", "customresourcedefinitions").expect("definitions");
    let with = |formats: Value| {
        definition(version(
            "schema",
            json!({"openAPIV3Schema": {"type": "object", "properties": {
                "a": {"type": "string", "format": formats[0]},
                "b": {"type": "integer", "format": formats[1]},
                "c": {"type": "string", "format": "date-time"},
            }}}),
        ))
    };
    let (odd, odder) = (with(json!(["email", "int16"])), with(json!(["shape", "int16"])));
    assert_eq!(rules.warnings(&odd, None), ["unrecognized format \"int16\""]);
    assert_eq!(rules.warnings(&odder, Some(&odd)), ["unrecognized format \"shape\""]);
    assert_eq!(rules.warnings(&odder, Some(&odder)), Vec::<String>::new());
}
