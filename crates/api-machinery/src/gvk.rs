//! Names of API groups, versions, kinds and resources, and the texts they are written as.
//!
//! The parts are `Cow<'static, str>`: built-in names cost nothing to clone, custom ones are owned.

use std::borrow::Cow;
use std::fmt;

/// One part of a name; static for everything that is built in.
pub type Name = Cow<'static, str>;

/// An API group and version; the core group is the empty name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersion {
    /// The group, empty for core.
    pub group: Name,
    /// The version, such as `v1`.
    pub version: Name,
}

/// A kind of some group in one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersionKind {
    /// The group, empty for core.
    pub group: Name,
    /// The version.
    pub version: Name,
    /// The kind, such as `Deployment`.
    pub kind: Name,
}

/// A resource of some group in one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersionResource {
    /// The group, empty for core.
    pub group: Name,
    /// The version.
    pub version: Name,
    /// The plural resource name, such as `deployments`.
    pub resource: Name,
}

/// A kind, whatever the version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    /// The group, empty for core.
    pub group: Name,
    /// The kind.
    pub kind: Name,
}

/// A resource, whatever the version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// The group, empty for core.
    pub group: Name,
    /// The plural resource name.
    pub resource: Name,
}

/// An `apiVersion` with more than one slash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected GroupVersion string: {0}")]
pub struct GroupVersionError(pub String);

impl GroupVersion {
    /// The group and version with static names.
    pub const fn new(group: &'static str, version: &'static str) -> Self {
        Self { group: Cow::Borrowed(group), version: Cow::Borrowed(version) }
    }

    /// Reads an `apiVersion`: `v1` or `apps/v1`. An empty text and `/` give the empty value.
    pub fn parse(text: &str) -> Result<Self, GroupVersionError> {
        if text.is_empty() || text == "/" {
            return Ok(Self::default());
        }
        let (group, version) = text.split_once('/').unwrap_or(("", text));
        if version.contains('/') {
            return Err(GroupVersionError(text.to_owned()));
        }
        Ok(Self { group: group.to_owned().into(), version: version.to_owned().into() })
    }

    /// Whether group and version are both empty.
    pub fn is_empty(&self) -> bool {
        self.group.is_empty() && self.version.is_empty()
    }

    /// A kind in this version.
    pub fn with_kind(&self, kind: impl Into<Name>) -> GroupVersionKind {
        GroupVersionKind { group: self.group.clone(), version: self.version.clone(), kind: kind.into() }
    }

    /// A resource in this version.
    pub fn with_resource(&self, resource: impl Into<Name>) -> GroupVersionResource {
        GroupVersionResource { group: self.group.clone(), version: self.version.clone(), resource: resource.into() }
    }
}

impl GroupVersionKind {
    /// The kind with static names.
    pub const fn new(group: &'static str, version: &'static str, kind: &'static str) -> Self {
        Self { group: Cow::Borrowed(group), version: Cow::Borrowed(version), kind: Cow::Borrowed(kind) }
    }

    /// The kind with names that were read.
    pub fn named(group: &str, version: &str, kind: &str) -> Self {
        let own = |name: &str| name.to_owned().into();
        Self { group: own(group), version: own(version), kind: own(kind) }
    }

    /// The kind that `apiVersion` and `kind` of an object name.
    pub fn from_type_meta(api_version: &str, kind: &str) -> Result<Self, GroupVersionError> {
        Ok(GroupVersion::parse(api_version)?.with_kind(kind.to_owned()))
    }

    /// Without the kind.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion { group: self.group.clone(), version: self.version.clone() }
    }

    /// Without the version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }
}

impl GroupVersionResource {
    /// The resource with static names.
    pub const fn new(group: &'static str, version: &'static str, resource: &'static str) -> Self {
        Self { group: Cow::Borrowed(group), version: Cow::Borrowed(version), resource: Cow::Borrowed(resource) }
    }

    /// Reads `resource.version.group`, where the group may hold dots; `None` with fewer than three parts.
    pub fn parse_argument(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.').map(|part| Name::from(part.to_owned()));
        let (resource, version, group) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self { group, version, resource })
    }

    /// Without the resource.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion { group: self.group.clone(), version: self.version.clone() }
    }

    /// Without the version.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group.clone(), resource: self.resource.clone() }
    }
}

impl GroupKind {
    /// The kind with static names.
    pub const fn new(group: &'static str, kind: &'static str) -> Self {
        Self { group: Cow::Borrowed(group), kind: Cow::Borrowed(kind) }
    }

    /// The kind with names that were read.
    pub fn named(group: &str, kind: &str) -> Self {
        Self { group: group.to_owned().into(), kind: kind.to_owned().into() }
    }

    /// Reads `Kind` or `Kind.group`.
    pub fn parse(text: &str) -> Self {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        Self::named(group, kind)
    }

    /// The kind in one version.
    pub fn with_version(&self, version: impl Into<Name>) -> GroupVersionKind {
        GroupVersionKind { group: self.group.clone(), version: version.into(), kind: self.kind.clone() }
    }
}

impl GroupResource {
    /// The resource with names that were read.
    pub fn named(group: &str, resource: &str) -> Self {
        Self { group: group.to_owned().into(), resource: resource.to_owned().into() }
    }

    /// The resource with static names.
    pub const fn new(group: &'static str, resource: &'static str) -> Self {
        Self { group: Cow::Borrowed(group), resource: Cow::Borrowed(resource) }
    }

    /// Reads `resource` or `resource.group`.
    pub fn parse(text: &str) -> Self {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        Self { group: group.to_owned().into(), resource: resource.to_owned().into() }
    }

    /// Whether neither part is set.
    pub fn is_empty(&self) -> bool {
        self.group.is_empty() && self.resource.is_empty()
    }

    /// The resource in one version.
    pub fn with_version(&self, version: impl Into<Name>) -> GroupVersionResource {
        GroupVersionResource { group: self.group.clone(), version: version.into(), resource: self.resource.clone() }
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.version) } else { write!(f, "{}/{}", self.group, self.version) }
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

impl fmt::Display for GroupVersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Resource={}", self.group, self.version, self.resource)
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_dotted(f, &self.kind, &self.group)
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_dotted(f, &self.resource, &self.group)
    }
}

fn write_dotted(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    if group.is_empty() { f.write_str(name) } else { write!(f, "{name}.{group}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_versions() {
        let cases = [("", "", ""), ("/", "", ""), ("v1", "", "v1"), ("apps/v1", "apps", "v1"), ("a/", "a", "")];
        for (text, group, version) in cases {
            let parsed = GroupVersion::parse(text).unwrap();
            assert_eq!((parsed.group.as_ref(), parsed.version.as_ref()), (group, version), "{text}");
        }
        assert_eq!(GroupVersion::new("apps", "v1").to_string(), "apps/v1");
        assert_eq!(GroupVersion::new("", "v1").to_string(), "v1");
        assert_eq!(GroupVersion::parse("a/b/c").unwrap_err().to_string(), "unexpected GroupVersion string: a/b/c");
    }

    #[test]
    fn kinds_and_resources() {
        let deployment = GroupVersionKind::from_type_meta("apps/v1", "Deployment").unwrap();
        assert_eq!(deployment.to_string(), "apps/v1, Kind=Deployment");
        assert_eq!(deployment.group_kind().to_string(), "Deployment.apps");
        assert_eq!(GroupVersionKind::new("", "v1", "Pod").to_string(), "/v1, Kind=Pod");
        assert_eq!(GroupVersionKind::new("", "v1", "Pod").group_kind().to_string(), "Pod");
        let resource = GroupVersionResource::new("apps", "v1", "deployments");
        assert_eq!(resource.to_string(), "apps/v1, Resource=deployments");
        assert_eq!(resource.group_resource().to_string(), "deployments.apps");
        assert_eq!(GroupResource::parse("ingresses.networking.k8s.io").group, "networking.k8s.io");
        assert_eq!(GroupKind::parse("Pod"), GroupKind::new("", "Pod"));
        let parsed = GroupVersionResource::parse_argument("ingresses.v1.networking.k8s.io");
        assert_eq!(parsed, Some(GroupVersionResource::new("networking.k8s.io", "v1", "ingresses")));
        assert_eq!(GroupVersionResource::parse_argument("pods.v1"), None);
    }
}
