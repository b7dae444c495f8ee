//! The kinds of apiextensions.k8s.io/v1.

pub mod approval;
mod custom_resource_definition;
mod definition_conversion;
mod definition_names;
mod definition_parts;
mod definition_schema;
mod definition_validation;
pub mod embedded;
mod first_form;
mod schema_defaults;

use crate::rules::{Rules, Typed};

pub use custom_resource_definition::{FINALIZER, schema_of, schema_value};
pub use definition_conversion::has_readable_bundle;

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<custom_resource_definition::CustomResourceDefinitionRules>::new()];
