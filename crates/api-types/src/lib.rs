//! Every kind of the API, one module per group version and one file per kind. Each struct is a table of fields by
//! `#[api]`; codecs, schemas and patches are written once over the tables (crate `api-machinery`).

#[macro_use]
mod values;

pub mod abac_v1beta1;
pub mod admission_v1;
pub mod admission_v1beta1;
pub mod admissionregistration_v1;
pub mod apidiscovery_v2;
pub mod apiextensions_v1;
pub mod apiextensions_v1beta1;
pub mod apiregistration_v1;
pub mod apiserver_config_v1;
pub mod apiserverinternal_v1alpha1;
pub mod apps_v1;
pub mod apps_v1beta1;
pub mod audit_v1;
pub mod authentication_v1;
pub mod authorization_v1;
pub mod authorization_v1beta1;
pub mod autoscaling_v1;
pub mod autoscaling_v2;
pub mod batch_v1;
pub mod certificates_v1;
pub mod certificates_v1beta1;
pub mod coordination_v1;
pub mod coordination_v1beta1;
pub mod core_v1;
pub mod credentialprovider_v1;
pub mod discovery_v1;
pub mod discovery_v1beta1;
mod document;
pub mod events_v1;
pub mod extensions_v1beta1;
pub mod flowcontrol_v1;
pub mod flowcontrol_v1beta1;
pub mod imagepolicy_v1alpha1;
pub mod kubelet_config_v1;
pub mod kubelet_config_v1beta1;
pub mod metrics_v1beta1;
pub mod networking_v1;
pub mod networking_v1beta1;
pub mod node_v1;
pub mod node_v1alpha1;
pub mod policy_v1;
pub mod proxy_config_v1alpha1;
pub mod rbac_v1;
pub mod rbac_v1alpha1;
pub mod resource_v1;
pub mod resource_v1alpha3;
pub mod resource_v1beta1;
pub mod scheduler_config_v1;
pub mod scheduling_v1;
pub mod scheduling_v1alpha2;
pub mod snapshot_v1;
pub mod storage_v1;
pub mod storagemigration_v1beta1;
mod tracing_api_v1;

pub use document::Document;

#[cfg(test)]
mod decode_errors_test;
#[cfg(test)]
mod defaults_test;
#[cfg(test)]
mod files_test;
