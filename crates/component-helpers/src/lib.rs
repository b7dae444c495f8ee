//! Domain maths that several sides share: what a pod asks for, whether it is ready, what a taint keeps away, which
//! nodes a pod accepts, who owns whom. Pure.

pub mod api_server_leases;
pub mod conditions;
pub mod cron;
pub mod fnv;
pub mod group_claims;
pub mod integers;
pub mod legacy_tokens;
pub mod node_affinity;
pub mod node_labels;
pub mod nodes;
pub mod owners;
pub mod pod_references;
pub mod pod_requests;
pub mod pod_state;
pub mod qos;
pub mod quota;
pub mod resource_claims;
pub mod resource_names;
pub mod selectors;
pub mod storage_versions;
pub mod taints;
pub mod time_zone;
pub mod tolerations;
pub mod volumes;
