//! What an authorizer may know of a request.

use std::sync::Arc;

use api_types::authentication_v1::UserInfo;

/// One requirement of a field or label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectorRequirement {
    /// The label or field.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values.
    pub values: Vec<String>,
}

/// A request as authorizers see it: either of a resource or of a path.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attributes {
    /// The caller.
    pub user: Arc<UserInfo>,
    /// Such as `get`, `list`, `create`; the HTTP method in lower case for paths.
    pub verb: String,
    /// Whether it is about a resource.
    pub resource_request: bool,
    /// The namespace; empty for cluster-scoped resources and all namespaces.
    pub namespace: String,
    /// The API group; empty for core.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The plural resource name.
    pub resource: String,
    /// The subresource; usually empty.
    pub subresource: String,
    /// The object's name; empty for collections.
    pub name: String,
    /// The request's path.
    pub path: String,
    /// Parsed requirements of the field selector.
    pub field_selector: Vec<SelectorRequirement>,
    /// Parsed requirements of the label selector.
    pub label_selector: Vec<SelectorRequirement>,
}

impl Attributes {
    /// `resource` or `resource/subresource`, as rules name them.
    #[must_use]
    pub fn full_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// The value that a field selector pins a field to, if it does.
    #[must_use]
    pub fn selected_field(&self, key: &str) -> Option<&str> {
        self.field_selector.iter().find_map(|requirement| match requirement.values.as_slice() {
            [value] if requirement.key == key && requirement.operator == "In" => Some(value.as_str()),
            _ => None,
        })
    }
}

/// Whether the caller is in a group.
#[must_use]
pub fn in_group(user: &UserInfo, group: &str) -> bool {
    user.groups.iter().any(|own| own == group)
}
