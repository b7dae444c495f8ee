//! apiextensions.k8s.io/v1: one file per kind, with what it is made of.

pub mod constants;
mod custom_resource_definition;
mod json_schema_props;
mod schema_or;

pub use custom_resource_definition::{
    CustomResourceColumnDefinition, CustomResourceConversion, CustomResourceDefinition,
    CustomResourceDefinitionCondition, CustomResourceDefinitionNames, CustomResourceDefinitionSpec,
    CustomResourceDefinitionStatus, CustomResourceDefinitionVersion, CustomResourceSubresourceScale,
    CustomResourceSubresourceStatus, CustomResourceSubresources, CustomResourceValidation, SelectableField,
    ServiceReference, WebhookClientConfig, WebhookConversion,
};
pub use json_schema_props::{ExternalDocumentation, JSONSchemaProps, ValidationRule};
pub use schema_or::{JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, JSONSchemaPropsOrStringArray};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
/// The API group.
pub const GROUP: &str = "apiextensions.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
