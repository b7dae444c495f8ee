//! APIService of apiregistration.k8s.io/v1: its names, and its rules.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_machinery::object::Kind as _;
use api_machinery::time::Time;
use api_types::apiregistration_v1::constants::{AVAILABLE, condition_status};
use api_types::apiregistration_v1::{APIService, APIServiceCondition, APIServiceSpec, ServiceReference};

use crate::field_rules;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::{Lifecycle, Written};
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::Cell;
use crate::versions::Former;

const HTTPS: i32 = 443;

static INFO: ResourceInfo<'static> = ResourceInfo {
    categories: &["api-extensions"],
    storage: Some(StorageInfo::of::<APIService>("apiregistration.k8s.io/apiservices", "InPBPD7+PqM=")),
    subresources: &[SubresourceInfo::status(APIService::TYPE.kind)],
    ..ResourceInfo::of::<APIService>()
};

/// The rules of the kind.
pub(crate) struct APIServiceRules;

impl TypedRules for APIServiceRules {
    type Object = APIService;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<APIService>] = &[
        Cell::NAME,
        Cell::text("Service", |object, _| match &object.spec.service {
            Some(service) => format!("{}/{}", service.namespace, service.name).into(),
            None => "Local".into(),
        }),
        Cell::text("Available", |object, _| availability(object).into()),
        Cell::AGE,
    ];
    const LIFECYCLE: Lifecycle = Lifecycle { written: Written::Json, ..Lifecycle::DEFAULT };
    const FORMER: &'static [Former] = &[Former::same("apiregistration.k8s.io/v1beta1")];
    const STRATEGY: Strategy = Strategy::Status;
    const STATUS_KEEPS_METADATA: bool = true;

    fn set_defaults(object: &mut APIService) {
        if let Some(service) = &mut object.spec.service {
            service.port.get_or_insert(HTTPS);
        }
    }

    fn prepare_create(cx: &RuleContext, object: &mut APIService) {
        if object.spec.service.is_none() {
            object.status.conditions = vec![local_condition(cx.now)];
        }
    }

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::path_segment(name, prefix)
    }

    fn validate(_: &RuleContext, object: &APIService) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_place(object, &mut errors);
        validate_spec(&object.spec, &mut errors);
        errors
    }

    fn validate_update(cx: &RuleContext, endpoint: Endpoint, object: &APIService, _: &APIService) -> ErrorList {
        if endpoint != Endpoint::Status {
            return Self::validate(cx, object);
        }
        let mut errors = ErrorList::new();
        let path = Path::new("status").child("conditions");
        for (index, condition) in object.status.conditions.iter().enumerate() {
            let supported = [condition_status::TRUE, condition_status::FALSE, condition_status::UNKNOWN];
            field_rules::choice_in_order(
                &path.index(index).child("status"),
                &condition.status,
                &supported,
                &mut errors,
            );
        }
        errors
    }
}

/// Why a version is available that the server itself answers for.
pub const LOCAL_REASON: &str = "Local";
/// The same for people.
pub const LOCAL_MESSAGE: &str = "Local APIServices are always available";

/// What is true of such a version.
fn local_condition(now: Time) -> APIServiceCondition {
    APIServiceCondition {
        type_: AVAILABLE.to_owned(),
        status: condition_status::TRUE.to_owned(),
        last_transition_time: now,
        reason: LOCAL_REASON.to_owned(),
        message: LOCAL_MESSAGE.to_owned(),
    }
}

/// The word of the condition, with the reason unless all is well.
fn availability(object: &APIService) -> String {
    match object.status.conditions.iter().find(|own| own.type_ == AVAILABLE) {
        None => condition_status::UNKNOWN.to_owned(),
        Some(own) if own.status == condition_status::TRUE => own.status.clone(),
        Some(own) => format!("{} ({})", own.status, own.reason),
    }
}

const LAST_GROUP: i32 = 20_000;
const LAST_VERSION: i32 = 1_000;
const CORE_VERSION: &str = "v1";

/// The name, the group and the version, which have to agree. One that is no part of a path has been told so.
fn validate_place(object: &APIService, errors: &mut ErrorList) {
    let (name, spec) = (&object.metadata.name, &object.spec);
    let needed = format!("{}.{}", spec.version, spec.group);
    if *name != needed && names::path_segment_name(name).is_empty() {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {needed:?}");
        errors.push(Path::new("metadata").child("name").invalid(name, detail));
    }
    let path = Path::new("spec");
    let group = path.child("group");
    if !spec.group.is_empty() {
        errors.push_invalid(&group, &spec.group, names::dns1123_subdomain(&spec.group));
    } else if spec.version != CORE_VERSION {
        errors.push(group.required("only v1 may have an empty group and it better be legacy kube"));
    }
    errors.push_invalid(&path.child("version"), &spec.version, names::dns1035_label(&spec.version));
}

fn validate_spec(spec: &APIServiceSpec, errors: &mut ErrorList) {
    let path = Path::new("spec");
    for (name, value, last) in [
        ("groupPriorityMinimum", spec.group_priority_minimum, LAST_GROUP),
        ("versionPriority", spec.version_priority, LAST_VERSION),
    ] {
        if !(1..=last).contains(&value) {
            errors.push(path.child(name).invalid(value, format!("must be positive and less than {last}")));
        }
    }
    let (bundle, insecure) = (path.child("caBundle"), path.child("insecureSkipTLSVerify"));
    let has_bundle = !spec.ca_bundle.is_empty();
    let Some(service) = &spec.service else {
        if has_bundle {
            let size = format!("{} bytes", spec.ca_bundle.len());
            errors.push(bundle.invalid(size, "local APIServices may not have a caBundle"));
        }
        if spec.insecure_skip_tls_verify {
            errors.push(insecure.invalid(true, "local APIServices may not have insecureSkipTLSVerify"));
        }
        return;
    };
    validate_service(&path.child("service"), service, errors);
    if spec.insecure_skip_tls_verify && has_bundle {
        errors.push(insecure.invalid(true, "may not be true if caBundle is present"));
    }
}

fn validate_service(path: &Path, service: &ServiceReference, errors: &mut ErrorList) {
    field_rules::required(&path.child("namespace"), &service.namespace, errors);
    field_rules::required(&path.child("name"), &service.name, errors);
    if let Some(port) = service.port
        && !(1..=i32::from(u16::MAX)).contains(&port)
    {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(path.child("port").invalid(port, detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, spec: &str) -> APIService {
        let text = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{spec}}}"#);
        let mut object = APIService::default();
        api_machinery::json::decode(text.as_bytes(), &mut object).expect("an object");
        object
    }

    #[test]
    fn names_priorities_and_services_are_checked() {
        let good = r#""group":"g.io","version":"v1","groupPriorityMinimum":1,"versionPriority":1"#;
        let cases: &[(&str, String, &[&str])] = &[
            ("v1.g.io", format!("{{{good}}}"), &[]),
            (
                "v2.g.io",
                format!("{{{good}}}"),
                &["metadata.name: Invalid value: \"v2.g.io\": must be `spec.version+\".\"+spec.group`: \"v1.g.io\""],
            ),
            ("v1.", r#"{"version":"v1","groupPriorityMinimum":20000,"versionPriority":1000}"#.into(), &[]),
            (
                "v2.",
                r#"{"version":"v2","groupPriorityMinimum":20001,"versionPriority":1001}"#.into(),
                &[
                    "spec.group: Required value: only v1 may have an empty group and it better be legacy kube",
                    "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000",
                    "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
                ],
            ),
            (
                "v1.g.io",
                format!(r#"{{{good},"caBundle":"eHh4","insecureSkipTLSVerify":true}}"#),
                &[
                    "spec.caBundle: Invalid value: \"3 bytes\": local APIServices may not have a caBundle",
                    "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
                ],
            ),
            (
                "v1.g.io",
                format!(r#"{{{good},"service":{{"port":0}},"caBundle":"eHh4","insecureSkipTLSVerify":true}}"#),
                &[
                    "spec.service.namespace: Required value",
                    "spec.service.name: Required value",
                    "spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
                    "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
                ],
            ),
        ];
        for (name, spec, expected) in cases {
            let errors = APIServiceRules::validate(&RuleContext::default(), &read(name, spec));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), *expected, "{name} {spec}");
        }
    }

    #[test]
    fn who_answers_is_told_and_whether() {
        let mut object = read("v1.g.io", "{}");
        APIServiceRules::prepare_create(&RuleContext::default(), &mut object);
        assert_eq!(availability(&object), "True");
        object.status.conditions[0].status = "False".to_owned();
        assert_eq!(availability(&object), "False (Local)");
        let mut remote = read("v1.g.io", r#"{"service":{"namespace":"n","name":"s"}}"#);
        APIServiceRules::prepare_create(&RuleContext::default(), &mut remote);
        assert_eq!(availability(&remote), "Unknown");
    }

    #[test]
    fn a_status_is_one_of_three_words() {
        let mut object = read("v1.g.io", "{}");
        object.status.conditions =
            vec![APIServiceCondition { status: "Maybe".into(), ..local_condition(Time::default()) }];
        let errors = APIServiceRules::validate_update(&RuleContext::default(), Endpoint::Status, &object, &object);
        assert_eq!(
            errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "status.conditions[0].status: Unsupported value: \"Maybe\": supported values: \"True\", \"False\", \"Unknown\""
            ]
        );
    }
}
