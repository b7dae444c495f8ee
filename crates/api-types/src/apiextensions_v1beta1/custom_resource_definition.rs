//! CustomResourceDefinition with what its versions have in common beside them, said once.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use crate::apiextensions_v1::{
    CustomResourceDefinitionNames, CustomResourceDefinitionStatus, CustomResourceSubresources,
    CustomResourceValidation, SelectableField, WebhookClientConfig,
};

/// Adds a custom resource to the API.
#[api(kind = "CustomResourceDefinition", resource = "customresourcedefinitions")]
pub struct CustomResourceDefinition {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// What the resource looks like.
    #[field(2, always)]
    pub spec: CustomResourceDefinitionSpec,
    /// Last observed state of the definition.
    #[field(3)]
    pub status: CustomResourceDefinitionStatus,
}

/// What a custom resource looks like.
#[api]
pub struct CustomResourceDefinitionSpec {
    /// API group of the resource, such as example.com.
    #[field(1, always)]
    pub group: String,
    /// The first version, or the only one where no versions are listed.
    #[field(2)]
    pub version: String,
    /// Names of the resource and its kind.
    #[field(3, always)]
    pub names: CustomResourceDefinitionNames,
    /// Whether objects are Cluster or Namespaced (default).
    #[field(4, always)]
    pub scope: String,
    /// Schema of all versions. Excludes schemas of single ones.
    #[field(5)]
    pub validation: Option<CustomResourceValidation>,
    /// Subresources of all versions. Excludes those of single ones.
    #[field(6)]
    pub subresources: Option<CustomResourceSubresources>,
    /// Versions of the resource, in any order.
    #[field(7)]
    pub versions: Vec<CustomResourceDefinitionVersion>,
    /// Columns of all versions. Excludes those of single ones.
    #[field(8)]
    pub additional_printer_columns: Vec<CustomResourceColumnDefinition>,
    /// Fields usable in field selectors in all versions. Excludes those of single ones.
    #[field(11)]
    pub selectable_fields: Vec<SelectableField>,
    /// How objects are converted between versions.
    #[field(9)]
    pub conversion: Option<CustomResourceConversion>,
    /// Whether fields that no schema knows are kept. Default is true.
    #[field(10)]
    pub preserve_unknown_fields: Option<bool>,
}

/// One version of a custom resource.
#[api]
pub struct CustomResourceDefinitionVersion {
    /// Name of the version, such as v1 or v2beta1.
    #[field(1, always)]
    pub name: String,
    /// Whether the API offers this version.
    #[field(2, always)]
    pub served: bool,
    /// Whether objects are stored in this version. Exactly one must be.
    #[field(3, always)]
    pub storage: bool,
    /// Whether requests for this version get a warning.
    #[field(7)]
    pub deprecated: bool,
    /// Text that replaces the default warning.
    #[field(8)]
    pub deprecation_warning: Option<String>,
    /// Schema for validation, pruning and defaulting.
    #[field(4)]
    pub schema: Option<CustomResourceValidation>,
    /// Subresources of this version.
    #[field(5)]
    pub subresources: Option<CustomResourceSubresources>,
    /// Columns shown in tables.
    #[field(6)]
    pub additional_printer_columns: Vec<CustomResourceColumnDefinition>,
    /// Fields usable in field selectors.
    #[field(9)]
    pub selectable_fields: Vec<SelectableField>,
}

/// A table column of a custom resource.
#[api]
pub struct CustomResourceColumnDefinition {
    /// Heading of the column.
    #[field(1, always)]
    pub name: String,
    /// OpenAPI type of the cells, such as string, integer or date.
    #[field(2, always)]
    pub type_: String,
    /// OpenAPI format of the type, such as name for the main identifier.
    #[field(3)]
    pub format: String,
    /// Text that explains the column.
    #[field(4)]
    pub description: String,
    /// Importance of the column. 0 is always shown, higher only when wide.
    #[field(5)]
    pub priority: i32,
    /// Simple path to the value in each object.
    #[field(6, always, name = "JSONPath")]
    pub json_path: String,
}

/// How objects are converted between versions.
#[api]
pub struct CustomResourceConversion {
    /// None (default) only changes apiVersion, Webhook calls a service.
    #[field(1, always)]
    pub strategy: String,
    /// How to reach the webhook. Required for strategy Webhook.
    #[field(2)]
    pub webhook_client_config: Option<WebhookClientConfig>,
    /// Review versions the webhook accepts, most preferred first. Default is v1beta1.
    #[field(3)]
    pub conversion_review_versions: Vec<String>,
}
