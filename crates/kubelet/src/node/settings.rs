//! What flags and configuration say about the node.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use api_types::core_v1::Taint;

use crate::resources::reserve::Reservations;

/// The node's configuration.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeSettings {
    /// The node's name.
    pub(crate) name: String,
    /// The host name.
    pub(crate) hostname: String,
    /// `--node-labels`.
    pub(crate) labels: BTreeMap<String, String>,
    /// `registerWithTaints`.
    pub(crate) taints: Vec<Taint>,
    /// `providerID`.
    pub(crate) provider_id: String,
    /// `--node-ip`: none, one, or one of each family.
    pub(crate) node_ips: Vec<IpAddr>,
    /// `--cloud-provider=external`.
    pub(crate) external_cloud: bool,
    /// `registerNode`.
    pub(crate) register: bool,
    /// The port of the kubelet's API.
    pub(crate) port: i32,
    /// `maxPods`.
    pub(crate) max_pods: i64,
    /// `podsPerCore`; 0 for no limit.
    pub(crate) pods_per_core: i64,
    /// `nodeStatusMaxImages`; negative for all.
    pub(crate) max_images: i32,
    /// `enableControllerAttachDetach`.
    pub(crate) controller_attaches: bool,
    /// `nodeStatusUpdateFrequency`.
    pub(crate) update_frequency: Duration,
    /// `nodeStatusReportFrequency`.
    pub(crate) report_frequency: Duration,
    /// `nodeLeaseDurationSeconds`.
    pub(crate) lease_seconds: i32,
    /// `--root-dir`.
    pub(crate) root_dir: PathBuf,
    /// What `status.declaredFeatures` says; sorted.
    pub(crate) declared_features: Vec<String>,
    /// What the node keeps for itself.
    pub(crate) reservations: Reservations,
}
