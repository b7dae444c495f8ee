//! What discovery, paths, storage and tables say of a resource, as data.

/// The names and facts of one resource in one version.
#[derive(Debug, Clone, Copy)]
pub struct ResourceInfo {
    /// The API group; empty for core.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The plural name in paths.
    pub resource: &'static str,
    /// The singular name.
    pub singular: &'static str,
    /// Short names that kubectl knows.
    pub short_names: &'static [&'static str],
    /// Categories such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The verbs of the resource itself, sorted.
    pub verbs: &'static [&'static str],
    /// Where and as what objects are stored; nothing for reviews and the like.
    pub storage: Option<StorageInfo>,
    /// `PUT` may create.
    pub create_on_update: bool,
    /// `PUT` without a resource version is allowed.
    pub unconditional_update: bool,
    /// Field selectors besides `metadata.name` and `metadata.namespace` that the kind supports.
    pub field_selectors: &'static [&'static str],
    /// Printed columns; empty for the default ones (name and creation time).
    pub columns: &'static [Column],
    /// Subresources, sorted by name.
    pub subresources: &'static [SubresourceInfo],
}

impl ResourceInfo {
    /// A question that is answered at once: it is created, and kept nowhere. For a version 1 that is not namespaced.
    #[must_use]
    pub const fn review(
        group: &'static str,
        kind: &'static str,
        resource: &'static str,
        singular: &'static str,
    ) -> Self {
        Self {
            group,
            version: "v1",
            kind,
            resource,
            singular,
            short_names: &[],
            categories: &[],
            namespaced: false,
            verbs: &["create"],
            storage: None,
            create_on_update: false,
            unconditional_update: false,
            field_selectors: &[],
            columns: &[],
            subresources: &[],
        }
    }
}

/// Where objects are stored.
#[derive(Debug, Clone, Copy)]
pub struct StorageInfo {
    /// Key prefix below the storage root, such as `pods` or `services/specs`, without slashes at the ends.
    pub prefix: &'static str,
    /// The version that is stored.
    pub version: &'static str,
    /// The group that is stored, as some kinds are served in two groups.
    pub group: &'static str,
    /// `storageVersionHash` of discovery.
    pub hash: &'static str,
}

/// A printed column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Heading.
    pub name: &'static str,
    /// `string`, `integer`, `date` or `boolean`.
    pub type_: &'static str,
    /// `name` for the name column.
    pub format: &'static str,
    /// 0 for always, 1 for `-o wide`.
    pub priority: i32,
}

impl Column {
    /// The column that tables begin with.
    pub const NAME: Self = Self { name: "Name", type_: "string", format: "name", priority: 0 };
    /// How old the object is.
    pub const AGE: Self = Self::text("Age");

    /// A column of texts.
    #[must_use]
    pub const fn text(name: &'static str) -> Self {
        Self { name, type_: "string", format: "", priority: 0 }
    }

    /// A column of texts that only wide tables have.
    #[must_use]
    pub const fn wide(name: &'static str) -> Self {
        Self { priority: 1, ..Self::text(name) }
    }

    /// A column of whole numbers.
    #[must_use]
    pub const fn number(name: &'static str) -> Self {
        Self { type_: "integer", ..Self::text(name) }
    }
}

/// The verbs of a resource that may be written, listed and watched, sorted.
pub const ALL_VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const READ_AND_WRITE: &[&str] = &["get", "patch", "update"];

/// A subresource in discovery.
#[derive(Debug, Clone, Copy)]
pub struct SubresourceInfo {
    /// Its name, such as `status`.
    pub name: &'static str,
    /// The kind it takes and gives.
    pub kind: &'static str,
    /// The kind's group where it is not the resource's.
    pub group: &'static str,
    /// The kind's version where it is not the resource's.
    pub version: &'static str,
    /// The verbs.
    pub verbs: &'static [&'static str],
}

impl SubresourceInfo {
    /// How many replicas are wanted.
    pub const SCALE: Self =
        Self { name: "scale", kind: "Scale", group: "autoscaling", version: "v1", verbs: READ_AND_WRITE };

    /// A part of the object itself, of the same kind.
    #[must_use]
    pub const fn part(name: &'static str, kind: &'static str) -> Self {
        Self { name, kind, group: "", version: "", verbs: READ_AND_WRITE }
    }

    /// The status of objects of a kind.
    #[must_use]
    pub const fn status(kind: &'static str) -> Self {
        Self::part("status", kind)
    }
}
