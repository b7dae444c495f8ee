//! What flags and configuration say about the node.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use api_types::core_v1::Taint;

use super::declared::DeclaredFeatures;
use crate::resources::reserve::Reservations;

/// The node's configuration.
#[derive(Debug, Clone, Default)]
pub struct NodeSettings {
    /// The node's name.
    pub name: String,
    /// The host name.
    pub hostname: String,
    /// `--node-labels`.
    pub labels: BTreeMap<String, String>,
    /// `registerWithTaints`.
    pub taints: Vec<Taint>,
    /// `providerID`.
    pub provider_id: String,
    /// `--node-ip`: none, one, or one of each family.
    pub node_ips: Vec<IpAddr>,
    /// `--cloud-provider=external`.
    pub external_cloud: bool,
    /// `registerNode`.
    pub register: bool,
    /// The port of the kubelet's API.
    pub port: i32,
    /// `maxPods`.
    pub max_pods: i64,
    /// `podsPerCore`; 0 for no limit.
    pub pods_per_core: i64,
    /// `nodeStatusMaxImages`; negative for all.
    pub max_images: i32,
    /// `enableControllerAttachDetach`.
    pub controller_attaches: bool,
    /// `nodeStatusUpdateFrequency`.
    pub update_frequency: Duration,
    /// `nodeStatusReportFrequency`.
    pub report_frequency: Duration,
    /// `nodeLeaseDurationSeconds`.
    pub lease_seconds: i32,
    /// `--root-dir`.
    pub root_dir: PathBuf,
    /// What `status.declaredFeatures` says.
    pub declared_features: DeclaredFeatures,
    /// Gate `KubeletRegistrationGetOnExistsOnly`: a node that may not be made is not looked for either.
    pub gives_up_where_forbidden: bool,
    /// What the node keeps for itself.
    pub reservations: Reservations,
}
