//! What discovery, paths, storage and tables say of a resource, as data: constants of a built-in kind; of a kind that
//! comes at run time, texts that its rules own and lend.

use api_machinery::object::Kind;
use feature_gates::{Feature, MinorVersion};

/// The names and facts of one resource in one version.
#[derive(Debug, Clone, Copy)]
pub struct ResourceInfo<'a> {
    /// The API group; empty for core.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The plural name in paths.
    pub resource: &'a str,
    /// The singular name.
    pub singular: &'a str,
    /// Short names that kubectl knows.
    pub short_names: &'a [&'a str],
    /// Categories such as `all`.
    pub categories: &'a [&'a str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The verbs of the resource itself, sorted.
    pub verbs: &'a [&'a str],
    /// Where and as what objects are stored; nothing for reviews and the like.
    pub storage: Option<StorageInfo<'a>>,
    /// `PUT` may create.
    pub create_on_update: bool,
    /// `PUT` without a resource version is allowed.
    pub unconditional_update: bool,
    /// Field selectors besides `metadata.name` and `metadata.namespace` that the kind supports.
    pub field_selectors: &'a [&'a str],
    /// Subresources, sorted by name.
    pub subresources: &'a [SubresourceInfo<'a>],
    /// The release that brought it in this version; the oldest where it is older than any that can be emulated.
    pub introduced: MinorVersion,
    /// The gates without which it is not served.
    pub gates: &'a [Feature],
}

impl<'a> ResourceInfo<'a> {
    /// `apiVersion` of its objects.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Its place among all resources: group, version and plural name.
    #[must_use]
    pub fn place(&self) -> [&'a str; 3] {
        [self.group, self.version, self.resource]
    }
}

impl ResourceInfo<'static> {
    /// The facts that the type of a built-in kind states, and what most kinds have beside them; kept nowhere.
    #[must_use]
    pub const fn of<T: Kind>() -> Self {
        Self {
            group: T::TYPE.group,
            version: T::TYPE.version,
            kind: T::TYPE.kind,
            resource: T::TYPE.resource,
            singular: T::TYPE.singular,
            short_names: &[],
            categories: &[],
            namespaced: T::TYPE.namespaced,
            verbs: ALL_VERBS,
            storage: None,
            create_on_update: false,
            unconditional_update: false,
            field_selectors: &[],
            subresources: &[],
            introduced: MinorVersion::one(0),
            gates: &[],
        }
    }

    /// A question that is answered at once: it is created, and kept nowhere.
    #[must_use]
    pub const fn review<T: Kind>() -> Self {
        Self { verbs: &["create"], ..Self::of::<T>() }
    }
}

/// Where objects are stored.
#[derive(Debug, Clone, Copy)]
pub struct StorageInfo<'a> {
    /// Key prefix below the storage root, such as `pods` or `services/specs`, without slashes at the ends.
    pub prefix: &'a str,
    /// The version that is stored.
    pub version: &'a str,
    /// The group that is stored, as some kinds are served in two groups.
    pub group: &'a str,
    /// `storageVersionHash` of discovery.
    pub hash: &'a str,
}

impl StorageInfo<'static> {
    /// Stored as the kind is served.
    #[must_use]
    pub const fn of<T: Kind>(prefix: &'static str, hash: &'static str) -> Self {
        Self { prefix, version: T::TYPE.version, group: T::TYPE.group, hash }
    }
}

/// A printed column.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    /// Heading.
    pub name: &'a str,
    /// `string`, `integer`, `date` or `boolean`.
    pub type_: &'a str,
    /// `name` for the name column.
    pub format: &'a str,
    /// 0 for always, 1 for `-o wide`.
    pub priority: i32,
}

impl<'a> Column<'a> {
    /// The column that tables begin with.
    pub const NAME: Self = Self { name: "Name", type_: "string", format: "name", priority: 0 };

    /// A column of texts.
    #[must_use]
    pub const fn text(name: &'a str) -> Self {
        Self { name, type_: "string", format: "", priority: 0 }
    }
}

/// The verbs of a resource that may be written, listed and watched, sorted.
pub const ALL_VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const READ_AND_WRITE: &[&str] = &["get", "patch", "update"];

/// A subresource in discovery.
#[derive(Debug, Clone, Copy)]
pub struct SubresourceInfo<'a> {
    /// Its name, such as `status`.
    pub name: &'a str,
    /// The kind it takes and gives.
    pub kind: &'a str,
    /// The kind's group where it is not the resource's.
    pub group: &'a str,
    /// The kind's version where it is not the resource's.
    pub version: &'a str,
    /// The verbs.
    pub verbs: &'a [&'a str],
}

impl<'a> SubresourceInfo<'a> {
    /// How many replicas are wanted.
    pub const SCALE: Self =
        Self { name: "scale", kind: "Scale", group: "autoscaling", version: "v1", verbs: READ_AND_WRITE };

    /// A part of the object itself, of the same kind.
    #[must_use]
    pub const fn part(name: &'a str, kind: &'a str) -> Self {
        Self { name, kind, group: "", version: "", verbs: READ_AND_WRITE }
    }

    /// The status of objects of a kind.
    #[must_use]
    pub const fn status(kind: &'a str) -> Self {
        Self::part("status", kind)
    }
}
