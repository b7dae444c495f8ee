//! The kinds of apiextensions.k8s.io/v1.

mod custom_resource_definition;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<custom_resource_definition::CustomResourceDefinitionRules>::new()];
