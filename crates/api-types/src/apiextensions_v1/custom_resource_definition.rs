//! CustomResourceDefinition and what it is made of.

use std::sync::Arc;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::reflect::ByteString;
use api_machinery::time::Time;

use super::JSONSchemaProps;

/// Adds a custom resource to the API.
#[api(kind = "CustomResourceDefinition", resource = "customresourcedefinitions")]
pub struct CustomResourceDefinition {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// What the resource looks like.
    #[field(2, always, required)]
    pub spec: CustomResourceDefinitionSpec,
    /// Last observed state of the definition.
    #[field(3)]
    pub status: CustomResourceDefinitionStatus,
}

/// What a custom resource looks like.
#[api]
pub struct CustomResourceDefinitionSpec {
    /// API group of the resource, such as example.com.
    #[field(1, always, required)]
    pub group: String,
    /// Names of the resource and its kind.
    #[field(3, always, required)]
    pub names: CustomResourceDefinitionNames,
    /// Whether objects are Cluster or Namespaced.
    #[field(4, always, required, go = "v1.ResourceScope")]
    pub scope: String,
    /// Versions of the resource, in any order.
    #[field(7, always, required)]
    pub versions: Vec<CustomResourceDefinitionVersion>,
    /// How objects are converted between versions.
    #[field(9)]
    pub conversion: Option<CustomResourceConversion>,
    /// Deprecated: obsolete switch to keep unknown fields. Must be false for new definitions.
    #[field(10)]
    pub preserve_unknown_fields: bool,
}

/// Names of a custom resource.
#[api]
pub struct CustomResourceDefinitionNames {
    /// Plural name in lower case, used in URLs.
    #[field(1, always, required)]
    pub plural: String,
    /// Singular name in lower case. Default is kind in lower case.
    #[field(2)]
    pub singular: String,
    /// Short names for command line use, in lower case.
    #[field(3)]
    pub short_names: Vec<String>,
    /// Kind of the objects in camel case, singular.
    #[field(4, always, required)]
    pub kind: String,
    /// Kind of the list. Default is kind followed by List.
    #[field(5)]
    pub list_kind: String,
    /// Groupings the resource belongs to, such as all.
    #[field(6)]
    pub categories: Vec<String>,
}

/// One version of a custom resource.
#[api]
pub struct CustomResourceDefinitionVersion {
    /// Name of the version, such as v1 or v2beta1.
    #[field(1, always, required)]
    pub name: String,
    /// Whether the API offers this version.
    #[field(2, always, required)]
    pub served: bool,
    /// Whether objects are stored in this version. Exactly one must be.
    #[field(3, always, required)]
    pub storage: bool,
    /// Deprecated: whether requests for this version get a warning. Default is false.
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
    /// Columns shown in tables. Default is the age alone.
    #[field(6)]
    pub additional_printer_columns: Vec<CustomResourceColumnDefinition>,
    /// Fields usable in field selectors, at most 8.
    #[field(9)]
    pub selectable_fields: Vec<SelectableField>,
}

/// How custom objects are validated.
#[api]
pub struct CustomResourceValidation {
    /// OpenAPI v3 schema used for validation and pruning.
    #[field(1, name = "openAPIV3Schema")]
    pub open_apiv3_schema: Option<Arc<JSONSchemaProps>>,
}

/// Subresources of a custom resource.
#[api]
pub struct CustomResourceSubresources {
    /// Turns on the status subresource.
    #[field(1)]
    pub status: Option<CustomResourceSubresourceStatus>,
    /// Turns on the scale subresource.
    #[field(2)]
    pub scale: Option<CustomResourceSubresourceScale>,
}

/// Turns on the status subresource. Has no settings.
#[api]
pub struct CustomResourceSubresourceStatus {}

/// Maps custom fields to the scale subresource.
#[api]
pub struct CustomResourceSubresourceScale {
    /// Path to the wanted count, under .spec.
    #[field(1, always, required)]
    pub spec_replicas_path: String,
    /// Path to the observed count, under .status.
    #[field(2, always, required)]
    pub status_replicas_path: String,
    /// Path to the selector text, under .status or .spec. Needed for autoscaling.
    #[field(3)]
    pub label_selector_path: Option<String>,
}

/// A table column of a custom resource.
#[api]
pub struct CustomResourceColumnDefinition {
    /// Heading of the column.
    #[field(1, always, required)]
    pub name: String,
    /// OpenAPI type of the cells, such as string, integer or date.
    #[field(2, always, required)]
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
    #[field(6, always, required)]
    pub json_path: String,
}

/// A field usable in field selectors.
#[api]
pub struct SelectableField {
    /// Simple path to the field, such as .spec.color.
    #[field(1, always, required)]
    pub json_path: String,
}

/// How objects are converted between versions.
#[api]
pub struct CustomResourceConversion {
    /// None (default) only changes apiVersion, Webhook calls a service.
    #[field(1, always, required, go = "v1.ConversionStrategyType")]
    pub strategy: String,
    /// How to call the webhook. Required for strategy Webhook.
    #[field(2)]
    pub webhook: Option<WebhookConversion>,
}

/// How to call a conversion webhook.
#[api]
pub struct WebhookConversion {
    /// How to reach the webhook.
    #[field(2)]
    pub client_config: Option<WebhookClientConfig>,
    /// Review versions the webhook accepts, most preferred first.
    #[field(3, always, required)]
    pub conversion_review_versions: Vec<String>,
}

/// How to reach a webhook. Exactly one of url and service is set.
#[api]
pub struct WebhookClientConfig {
    /// HTTPS address of the webhook. Excludes service.
    #[field(3)]
    pub url: Option<String>,
    /// Service that runs the webhook. Excludes url.
    #[field(1)]
    pub service: Option<ServiceReference>,
    /// PEM certificates that verify the webhook. Default is the system roots.
    #[field(2)]
    pub ca_bundle: ByteString,
}

/// Points to the service that runs a webhook.
#[api]
pub struct ServiceReference {
    /// Namespace of the service.
    #[field(1, always, required)]
    pub namespace: String,
    /// Name of the service.
    #[field(2, always, required)]
    pub name: String,
    /// URL path to call.
    #[field(3)]
    pub path: Option<String>,
    /// Service port to call, 1 to 65535. Default is 443.
    #[field(4)]
    pub port: Option<i32>,
}

/// The observed state of a definition.
#[api]
pub struct CustomResourceDefinitionStatus {
    /// Latest observed conditions of the definition.
    #[field(1, always, keys("type"))]
    pub conditions: Vec<CustomResourceDefinitionCondition>,
    /// Names in use, which may differ from the wanted ones.
    #[field(2, always)]
    pub accepted_names: CustomResourceDefinitionNames,
    /// Versions in which objects may be stored. Remove only after migration.
    #[field(3, always)]
    pub stored_versions: Vec<String>,
    /// Latest generation the controller acts on.
    #[field(4)]
    pub observed_generation: i64,
}

/// One observed aspect of a definition.
#[api]
pub struct CustomResourceDefinitionCondition {
    /// Name of the condition, such as Established, NamesAccepted or Terminating.
    #[field(1, always, required, go = "v1.CustomResourceDefinitionConditionType")]
    pub type_: String,
    /// Whether the condition holds: True, False or Unknown.
    #[field(2, always, required, go = "v1.ConditionStatus")]
    pub status: String,
    /// Time at which the status last changed.
    #[field(3)]
    pub last_transition_time: Time,
    /// Short machine-readable reason for the last change.
    #[field(4)]
    pub reason: String,
    /// Text for people about the last change.
    #[field(5)]
    pub message: String,
    /// Object generation the condition was derived from.
    #[field(6)]
    pub observed_generation: i64,
}
