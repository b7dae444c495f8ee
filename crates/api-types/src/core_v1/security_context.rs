//! SecurityContext and what it is made of.

use api_machinery::api;

use super::constants::{
    app_armor_profile_type, pod_fs_group_change_policy, proc_mount_type, seccomp_profile_type,
    supplemental_groups_policy,
};

/// Security settings of a container; they override the pod's.
#[api]
pub struct SecurityContext {
    /// Capabilities to add or drop; default is the runtime's set.
    #[field(1)]
    pub capabilities: Option<Capabilities>,
    /// Runs the container with root-like access to the host; default false.
    #[field(2)]
    pub privileged: Option<bool>,
    /// SELinux context of the container.
    #[field(3)]
    pub se_linux_options: Option<SELinuxOptions>,
    /// Windows settings of the container.
    #[field(10)]
    pub windows_options: Option<WindowsSecurityContextOptions>,
    /// User ID of the process; default comes from the image.
    #[field(4)]
    pub run_as_user: Option<i64>,
    /// Primary group ID of the process; default comes from the runtime.
    #[field(8)]
    pub run_as_group: Option<i64>,
    /// Requires a user other than root.
    #[field(5)]
    pub run_as_non_root: Option<bool>,
    /// Makes the root filesystem read-only; default false.
    #[field(6)]
    pub read_only_root_filesystem: Option<bool>,
    /// Whether a process may gain more privileges than its parent.
    #[field(7)]
    pub allow_privilege_escalation: Option<bool>,
    /// Masking of /proc: Default or Unmasked.
    #[field(9, go = "v1.ProcMountType", values = proc_mount_type::ALL)]
    pub proc_mount: Option<String>,
    /// Seccomp settings of the container.
    #[field(11)]
    pub seccomp_profile: Option<SeccompProfile>,
    /// AppArmor settings of the container.
    #[field(12)]
    pub app_armor_profile: Option<AppArmorProfile>,
}

/// Linux capabilities to add to or drop from a container.
#[api]
pub struct Capabilities {
    /// Capabilities to add.
    #[field(1, go = "[]v1.Capability")]
    pub add: Vec<String>,
    /// Capabilities to drop.
    #[field(2, go = "[]v1.Capability")]
    pub drop: Vec<String>,
}

/// SELinux labels of a container.
#[api]
pub struct SELinuxOptions {
    /// SELinux user label.
    #[field(1)]
    pub user: String,
    /// SELinux role label.
    #[field(2)]
    pub role: String,
    /// SELinux type label.
    #[field(3)]
    pub type_: String,
    /// SELinux level label.
    #[field(4)]
    pub level: String,
}

/// Windows-specific security settings.
#[api]
pub struct WindowsSecurityContextOptions {
    /// Name of the GMSA credential spec to use.
    #[field(1)]
    pub gmsa_credential_spec_name: Option<String>,
    /// Content of the GMSA credential spec, usually filled in by a webhook.
    #[field(2)]
    pub gmsa_credential_spec: Option<String>,
    /// Windows user of the process; default comes from the image.
    #[field(3)]
    pub run_as_user_name: Option<String>,
    /// Runs as a host process; all containers must agree; needs hostNetwork.
    #[field(4)]
    pub host_process: Option<bool>,
}

/// Seccomp profile of a pod or container.
#[api(union(discriminator = "type", localhostProfile = "LocalhostProfile"))]
pub struct SeccompProfile {
    /// Kind of profile: Localhost, RuntimeDefault or Unconfined.
    #[field(1, always, required, go = "v1.SeccompProfileType", values = seccomp_profile_type::ALL)]
    pub type_: String,
    /// Profile file on the node, relative; required with Localhost.
    #[field(2)]
    pub localhost_profile: Option<String>,
}

/// AppArmor profile of a pod or container.
#[api(union(discriminator = "type", localhostProfile = "LocalhostProfile"))]
pub struct AppArmorProfile {
    /// Kind of profile: Localhost, RuntimeDefault or Unconfined.
    #[field(1, always, required, go = "v1.AppArmorProfileType", values = app_armor_profile_type::ALL)]
    pub type_: String,
    /// Name of a profile loaded on the node; required with Localhost.
    #[field(2)]
    pub localhost_profile: Option<String>,
}

/// Security settings of a pod and defaults for its containers.
#[api]
pub struct PodSecurityContext {
    /// SELinux context of the containers.
    #[field(1)]
    pub se_linux_options: Option<SELinuxOptions>,
    /// Windows settings of the containers.
    #[field(8)]
    pub windows_options: Option<WindowsSecurityContextOptions>,
    /// User ID of the containers' processes; default comes from the image.
    #[field(2)]
    pub run_as_user: Option<i64>,
    /// Primary group ID of the processes; default comes from the runtime.
    #[field(6)]
    pub run_as_group: Option<i64>,
    /// Requires containers to run as a user other than root.
    #[field(3)]
    pub run_as_non_root: Option<bool>,
    /// Extra groups of each container's first process.
    #[field(4)]
    pub supplemental_groups: Vec<i64>,
    /// How extra groups are built: Merge (default) or Strict.
    #[field(12, go = "v1.SupplementalGroupsPolicy", values = supplemental_groups_policy::ALL)]
    pub supplemental_groups_policy: Option<String>,
    /// Group that owns the pod's volumes, where supported.
    #[field(5)]
    pub fs_group: Option<i64>,
    /// Kernel parameters set for the pod.
    #[field(7)]
    pub sysctls: Vec<Sysctl>,
    /// When volume ownership is changed: Always (default) or OnRootMismatch.
    #[field(9, go = "v1.PodFSGroupChangePolicy", values = pod_fs_group_change_policy::ALL)]
    pub fs_group_change_policy: Option<String>,
    /// Seccomp settings of the containers.
    #[field(10)]
    pub seccomp_profile: Option<SeccompProfile>,
    /// AppArmor settings of the containers.
    #[field(11)]
    pub app_armor_profile: Option<AppArmorProfile>,
    /// How SELinux labels are applied to volumes: MountOption or Recursive.
    #[field(13, go = "v1.PodSELinuxChangePolicy")]
    pub se_linux_change_policy: Option<String>,
}

/// A kernel parameter to set.
#[api]
pub struct Sysctl {
    /// Name of the parameter.
    #[field(1, always, required)]
    pub name: String,
    /// Value of the parameter.
    #[field(2, always, required)]
    pub value: String,
}
