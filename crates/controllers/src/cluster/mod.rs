//! What keeps a cluster in order: roles, namespaces, accounts and what nobody owns any more.

pub(crate) mod bootstrap_tokens;
pub(crate) mod cluster_role_aggregation;
pub(crate) mod garbage_collector;
pub(crate) mod legacy_tokens;
pub(crate) mod namespace;
pub(crate) mod pod_group_protection;
pub(crate) mod policy_status;
mod published;
pub(crate) mod resource_quota;
pub(crate) mod root_ca;
pub(crate) mod service_account;
pub(crate) mod service_account_tokens;
pub(crate) mod storage_version_collector;
pub(crate) mod storage_version_migrator;
pub(crate) mod trust_bundle;
