//! Labels of the project's own domains that a kubelet may give its node.

/// Each of them by name: where a node is, and what it is.
pub const OF_KUBELETS: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];

/// Domains in which, and below which, a kubelet may use all labels.
pub const DOMAINS_OF_KUBELETS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
