//! CSIDriver and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

/// What the cluster has to know of a CSI driver; its name is the driver's.
#[api(kind = "CSIDriver", resource = "csidrivers")]
pub struct CSIDriver {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// What the driver needs and offers.
    #[field(2, always, required)]
    pub spec: CSIDriverSpec,
}

/// What a CSI driver needs and offers.
#[api]
pub struct CSIDriverSpec {
    /// Whether volumes are attached to a node before they are mounted. Immutable.
    #[field(1, fill = "true")]
    pub attach_required: Option<bool>,
    /// Whether the driver is told of the pod when a volume is mounted.
    #[field(2, fill = "false")]
    pub pod_info_on_mount: Option<bool>,
    /// How volumes may be used: Persistent (default), Ephemeral. Immutable.
    #[field(3, set, fill = "[\"Persistent\"]", go = "[]v1.VolumeLifecycleMode")]
    pub volume_lifecycle_modes: Vec<String>,
    /// Whether scheduling looks at the capacities that the driver publishes.
    #[field(4, fill = "false")]
    pub storage_capacity: Option<bool>,
    /// Whether volumes are given to the pod's group: ReadWriteOnceWithFSType (default), File or None.
    #[field(5, fill = "\"ReadWriteOnceWithFSType\"", go = "v1.FSGroupPolicy")]
    pub fs_group_policy: Option<String>,
    /// The tokens of the pod's account that the driver gets when a volume is mounted.
    #[field(6, atomic)]
    pub token_requests: Vec<TokenRequest>,
    /// Whether mounting is repeated from time to time, for what changes.
    #[field(7, fill = "false")]
    pub requires_republish: Option<bool>,
    /// Whether volumes can be mounted with the pod's SELinux label.
    #[field(8, fill = "false")]
    pub se_linux_mount: Option<bool>,
    /// How often the node's limits are asked for anew, in seconds; at least 10. Never where absent.
    #[field(9)]
    pub node_allocatable_update_period_seconds: Option<i64>,
    /// Whether tokens are passed as secrets and not among the volume's attributes.
    #[field(10)]
    pub service_account_token_in_secrets: Option<bool>,
    /// Whether pods stay unscheduled from nodes that have not this driver.
    #[field(11)]
    pub prevent_pod_scheduling_if_missing: Option<bool>,
}

/// A token that a driver wants of a pod's account.
#[api]
pub struct TokenRequest {
    /// Whom it is for; the API server where empty.
    #[field(1, always, required)]
    pub audience: String,
    /// How long it is good, in seconds; at least 600.
    #[field(2)]
    pub expiration_seconds: Option<i64>,
}
