//! ClusterRole of rbac.authorization.k8s.io/v1: its names, and its rules.

use api_types::rbac_v1::ClusterRole;

use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    kind: "ClusterRole",
    resource: "clusterroles",
    singular: "clusterrole",
    short_names: &[],
    categories: &[],
    namespaced: false,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo {
        prefix: "clusterroles",
        group: "rbac.authorization.k8s.io",
        version: "v1",
        hash: "bYE5ZWDrJ44=",
    }),
    create_on_update: true,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[],
    subresources: &[],
};

/// The rules of the kind.
pub(crate) struct ClusterRoleRules;

impl TypedRules for ClusterRoleRules {
    type Object = ClusterRole;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::path_segment(name, prefix)
    }
}
