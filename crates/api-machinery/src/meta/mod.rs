//! meta.k8s.io/v1: one file per kind, with what it is made of.

mod condition;
pub mod constants;
mod discovery;
mod group_resource;
mod label_selector;
mod object_meta;
mod options;
mod partial;
mod status;
mod table;
mod watch_event;

pub use condition::Condition;
pub use discovery::{
    APIGroup, APIGroupList, APIResource, APIResourceList, APIVersions, GroupVersionForDiscovery, GroupVersionKind,
    GroupVersionResource, RootPaths, ServerAddressByClientCIDR,
};
pub use group_resource::GroupResource;
pub use label_selector::{FieldSelectorRequirement, LabelSelector, LabelSelectorRequirement};
pub use object_meta::{ListMeta, ManagedFieldsEntry, ObjectMeta, OwnerReference, ShardInfo};
pub use options::{
    CreateOptions, DeleteOptions, GetOptions, ListOptions, PatchOptions, Preconditions, TableOptions, UpdateOptions,
};
pub use partial::PartialObjectMetadata;
pub use status::{Status, StatusCause, StatusDetails};
pub use table::{Table, TableColumnDefinition, TableRow, TableRowCondition};
pub use watch_event::WatchEvent;

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
