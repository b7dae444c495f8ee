//! The default roles inside the system namespaces.

use super::facts::{BindingFact, RoleFact, named, rule, subject};

/// The roles.
pub(super) static ROLES: &[RoleFact] = &[
    RoleFact {
        name: "system:controller:bootstrap-signer",
        namespace: "kube-public",
        labels: &[],
        aggregate: "",
        rules: &[
            rule(&["get", "list", "watch"], &[""], &["configmaps"]),
            named(&["update"], &[""], &["configmaps"], &["cluster-info"]),
            rule(&["create", "patch", "update"], &["", "events.k8s.io"], &["events"]),
        ],
    },
    RoleFact {
        name: "extension-apiserver-authentication-reader",
        namespace: "kube-system",
        labels: &[],
        aggregate: "",
        rules: &[named(&["get", "list", "watch"], &[""], &["configmaps"], &["extension-apiserver-authentication"])],
    },
    RoleFact {
        name: "system:controller:bootstrap-signer",
        namespace: "kube-system",
        labels: &[],
        aggregate: "",
        rules: &[rule(&["get", "list", "watch"], &[""], &["secrets"])],
    },
    RoleFact {
        name: "system:controller:cloud-provider",
        namespace: "kube-system",
        labels: &[],
        aggregate: "",
        rules: &[rule(&["create", "get", "list", "watch"], &[""], &["configmaps"])],
    },
    RoleFact {
        name: "system:controller:token-cleaner",
        namespace: "kube-system",
        labels: &[],
        aggregate: "",
        rules: &[
            rule(&["delete", "get", "list", "watch"], &[""], &["secrets"]),
            rule(&["create", "patch", "update"], &["", "events.k8s.io"], &["events"]),
        ],
    },
    RoleFact {
        name: "system::leader-locking-kube-controller-manager",
        namespace: "kube-system",
        labels: &[],
        aggregate: "",
        rules: &[
            rule(&["create", "get", "list", "update", "watch"], &["coordination.k8s.io"], &["leases"]),
            rule(&["create", "get", "list", "update", "watch"], &["coordination.k8s.io"], &["leasecandidates"]),
        ],
    },
    RoleFact {
        name: "system::leader-locking-kube-scheduler",
        namespace: "kube-system",
        labels: &[],
        aggregate: "",
        rules: &[
            rule(&["create", "get", "list", "update", "watch"], &["coordination.k8s.io"], &["leases"]),
            rule(&["create", "get", "list", "update", "watch"], &["coordination.k8s.io"], &["leasecandidates"]),
        ],
    },
];

/// The bindings.
pub(super) static BINDINGS: &[BindingFact] = &[
    BindingFact {
        name: "system:controller:bootstrap-signer",
        namespace: "kube-public",
        role_kind: "Role",
        role: "system:controller:bootstrap-signer",
        subjects: &[subject("ServiceAccount", "kube-system", "bootstrap-signer")],
    },
    BindingFact {
        name: "system::extension-apiserver-authentication-reader",
        namespace: "kube-system",
        role_kind: "Role",
        role: "extension-apiserver-authentication-reader",
        subjects: &[
            subject("User", "", "system:kube-controller-manager"),
            subject("User", "", "system:kube-scheduler"),
        ],
    },
    BindingFact {
        name: "system::leader-locking-kube-controller-manager",
        namespace: "kube-system",
        role_kind: "Role",
        role: "system::leader-locking-kube-controller-manager",
        subjects: &[
            subject("User", "", "system:kube-controller-manager"),
            subject("ServiceAccount", "kube-system", "kube-controller-manager"),
            subject("ServiceAccount", "kube-system", "leader-election-controller"),
        ],
    },
    BindingFact {
        name: "system::leader-locking-kube-scheduler",
        namespace: "kube-system",
        role_kind: "Role",
        role: "system::leader-locking-kube-scheduler",
        subjects: &[
            subject("User", "", "system:kube-scheduler"),
            subject("ServiceAccount", "kube-system", "kube-scheduler"),
        ],
    },
    BindingFact {
        name: "system:controller:bootstrap-signer",
        namespace: "kube-system",
        role_kind: "Role",
        role: "system:controller:bootstrap-signer",
        subjects: &[subject("ServiceAccount", "kube-system", "bootstrap-signer")],
    },
    BindingFact {
        name: "system:controller:cloud-provider",
        namespace: "kube-system",
        role_kind: "Role",
        role: "system:controller:cloud-provider",
        subjects: &[subject("ServiceAccount", "kube-system", "cloud-provider")],
    },
    BindingFact {
        name: "system:controller:token-cleaner",
        namespace: "kube-system",
        role_kind: "Role",
        role: "system:controller:token-cleaner",
        subjects: &[subject("ServiceAccount", "kube-system", "token-cleaner")],
    },
];
