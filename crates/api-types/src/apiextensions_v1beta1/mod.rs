//! apiextensions.k8s.io/v1beta1: what has another form there than it has in `apiextensions_v1`. Nobody serves that any more;
//! definitions are stored in it.

mod custom_resource_definition;

pub use custom_resource_definition::{
    CustomResourceColumnDefinition, CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1";
/// The API group.
pub const GROUP: &str = "apiextensions.k8s.io";
/// The version.
pub const VERSION: &str = "v1beta1";
