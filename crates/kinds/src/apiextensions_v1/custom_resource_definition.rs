//! CustomResourceDefinition of apiextensions.k8s.io/v1: its names, and its rules.

use api_types::apiextensions_v1::CustomResourceDefinition;

use crate::info::{ALL_VERBS, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    resource: "customresourcedefinitions",
    singular: "customresourcedefinition",
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    namespaced: false,
    verbs: ALL_VERBS,
    storage: Some(StorageInfo {
        prefix: "apiextensions.k8s.io/customresourcedefinitions",
        group: "apiextensions.k8s.io",
        version: "v1beta1",
        hash: "jfWCUB31mvA=",
    }),
    create_on_update: false,
    unconditional_update: false,
    field_selectors: &[],
    columns: &[],
    subresources: &[SubresourceInfo::status("CustomResourceDefinition")],
};

/// The rules of the kind.
pub(crate) struct CustomResourceDefinitionRules;

impl TypedRules for CustomResourceDefinitionRules {
    type Object = CustomResourceDefinition;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
