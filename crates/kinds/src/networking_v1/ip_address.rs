//! IPAddress of networking.k8s.io/v1: its names, and its rules.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::networking_v1::{IPAddress, ParentReference};
use feature_gates::MinorVersion;

use crate::field_rules::{self, IMMUTABLE};
use crate::info::{ResourceInfo, StorageInfo};
use crate::internal_json;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::table::Cell;
use crate::versions::Former;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["ip"],
    storage: Some(StorageInfo::of::<IPAddress>("ipaddresses", "3f/plJFChNE=")),
    unconditional_update: true,
    introduced: MinorVersion::one(33),
    ..ResourceInfo::of::<IPAddress>()
};

/// The rules of the kind.
pub(crate) struct IPAddressRules;

impl TypedRules for IPAddressRules {
    type Object = IPAddress;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<IPAddress>] =
        &[Cell::NAME, Cell::text("ParentRef", |object, _| parent(object.spec.parent_ref.as_ref()).into())];
    const FORMER: &'static [Former] = &[Former::same("networking.k8s.io/v1alpha1")];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update, MetadataCheck::Create];

    fn validate_name(name: &str, _: bool) -> Vec<String> {
        names::ip_strict(name)
    }

    fn validate(_: &RuleContext, object: &IPAddress) -> ErrorList {
        let (mut errors, path) = (ErrorList::new(), Path::new("spec").child("parentRef"));
        match &object.spec.parent_ref {
            Some(parent) => validate_parent(&path, parent, &mut errors),
            None => errors.push(path.required("")),
        }
        errors
    }

    fn validate_update(cx: &RuleContext, _: Endpoint, object: &IPAddress, old: &IPAddress) -> ErrorList {
        let mut errors = Self::validate(cx, object);
        if object.spec != old.spec {
            let value =
                object.spec.parent_ref.as_ref().map_or_else(BadValue::null, |own| internal_json::bad_value(own));
            errors.push(Path::new("spec").child("parentRef").invalid(value, IMMUTABLE));
        }
        errors
    }
}

fn parent(parent: Option<&ParentReference>) -> String {
    let Some(parent) = parent else { return String::new() };
    let parts = [&parent.group, &parent.resource, &parent.namespace, &parent.name];
    let parts: Vec<&str> = parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

fn validate_parent(path: &Path, parent: &ParentReference, errors: &mut ErrorList) {
    if !parent.group.is_empty() {
        errors.push_invalid(&path.child("group"), &parent.group, names::dns1123_subdomain(&parent.group));
    }
    field_rules::named(&path.child("resource"), &parent.resource, names::path_segment_name, errors);
    field_rules::named(&path.child("name"), &parent.name, names::path_segment_name, errors);
    if !parent.namespace.is_empty() {
        errors.push_invalid(&path.child("namespace"), &parent.namespace, names::path_segment_name(&parent.namespace));
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::time::Time;

    use super::*;
    use crate::rules::Rules;

    fn address(name: &str, parent: Option<&str>) -> IPAddress {
        let mut address = IPAddress::default();
        address.metadata.name = name.into();
        address.spec.parent_ref = parent.map(|name| ParentReference {
            resource: "services".into(),
            namespace: "default".into(),
            name: name.into(),
            ..ParentReference::default()
        });
        address
    }

    #[test]
    fn addresses_have_a_parent_that_stays() {
        let rules: &dyn Rules = crate::find("networking.k8s.io", "v1", "ipaddresses").expect("it is served");
        let cx = RuleContext::default();
        let texts = |errors: ErrorList| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (good, other) = (address("192.0.2.1", Some("a")), address("192.0.2.1", Some("b")));
        assert_eq!(texts(rules.validate_create(&cx, &good)), Vec::<String>::new());
        let orphan = address("192.0.2.1", None);
        assert_eq!(texts(rules.validate_create(&cx, &orphan)), ["spec.parentRef: Required value"]);
        let told = r#"spec.parentRef: Invalid value: {"Group":"","Resource":"services","Namespace":"default","Name":"b"}: field is immutable"#;
        assert_eq!(texts(IPAddressRules::validate_update(&cx, Endpoint::Main, &other, &good)), [told]);
        assert_eq!(
            texts(IPAddressRules::validate_update(&cx, Endpoint::Main, &orphan, &good)),
            ["spec.parentRef: Required value", "spec.parentRef: Invalid value: null: field is immutable"]
        );
        assert!(!rules.validate_name("192.0.02.1", false).is_empty());
        assert_eq!(rules.cells(&good, Time::default())[1], "services/default/a");
    }
}
