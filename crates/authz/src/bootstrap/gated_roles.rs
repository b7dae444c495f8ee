//! The default roles that are there only where a feature is on, most of them of a controller, and what other roles have besides
//! where one is. Elsewhere nobody is given them.

use api_types::rbac_v1::ClusterRole;
use component_base::shared_gates::{
    API_SERVER_IDENTITY, CLUSTER_TRUST_BUNDLE, CREDENTIAL_TOKENS, DEVICE_TAINT_RULES, GENERIC_WORKLOAD, GROUP_CLAIMS,
    POD_CERTIFICATE_REQUEST, POOL_STATUS, STORAGE_VERSION_API, STORAGE_VERSION_MIGRATOR, WORKLOAD_WITH_JOB,
};
use component_base::{Feature, Gates};

use super::facts::{BindingFact, RoleFact, RuleFact, SubjectFact, named, rule, subject};

/// A role, bound under its own name.
struct Gated {
    features: &'static [Feature],
    role: RoleFact,
    binding: BindingFact,
}

impl Gated {
    /// The role `name` of these subjects, with these rules.
    const fn bound(
        features: &'static [Feature],
        name: &'static str,
        subjects: &'static [SubjectFact],
        rules: &'static [RuleFact],
    ) -> Self {
        let role = RoleFact { name, namespace: "", labels: &[], aggregate: "", rules };
        let binding = BindingFact { name, namespace: "", role_kind: "ClusterRole", role: name, subjects };
        Self { features, role, binding }
    }
}

static ALL: &[Gated] = &[
    Gated::bound(
        &[CLUSTER_TRUST_BUNDLE],
        "system:cluster-trust-bundle-discovery",
        &[subject("Group", "", "system:serviceaccounts")],
        &[rule(&["get", "list", "watch"], &["certificates.k8s.io"], &["clustertrustbundles"])],
    ),
    Gated::bound(
        &[CLUSTER_TRUST_BUNDLE],
        "system:controller:kube-apiserver-serving-clustertrustbundle-publisher",
        &[subject("ServiceAccount", "kube-system", "kube-apiserver-serving-clustertrustbundle-publisher")],
        &[
            named(&["attest"], &["certificates.k8s.io"], &["signers"], &["kubernetes.io/kube-apiserver-serving"]),
            rule(&["create", "delete", "list", "update", "watch"], &["certificates.k8s.io"], &["clustertrustbundles"]),
            rule(&["create", "patch", "update"], &["", "events.k8s.io"], &["events"]),
        ],
    ),
    Gated::bound(
        &[POD_CERTIFICATE_REQUEST],
        "system:controller:podcertificaterequestcleaner",
        &[subject("ServiceAccount", "kube-system", "podcertificaterequestcleaner")],
        &[rule(&["delete", "get", "list", "watch"], &["certificates.k8s.io"], &["podcertificaterequests"])],
    ),
    Gated::bound(
        &[GENERIC_WORKLOAD],
        "system:controller:podgroup-protection-controller",
        &[subject("ServiceAccount", "kube-system", "podgroup-protection-controller")],
        &[
            rule(&["get", "list", "update", "watch"], &["scheduling.k8s.io"], &["podgroups"]),
            rule(&["get", "list", "watch"], &[""], &["pods"]),
        ],
    ),
    Gated::bound(
        &[POOL_STATUS],
        "system:controller:resourcepoolstatusrequest-controller",
        &[subject("ServiceAccount", "kube-system", "resourcepoolstatusrequest-controller")],
        &[
            rule(&["delete", "get", "list", "watch"], &["resource.k8s.io"], &["resourcepoolstatusrequests"]),
            rule(&["patch", "update"], &["resource.k8s.io"], &["resourcepoolstatusrequests/status"]),
            rule(&["get", "list", "watch"], &["resource.k8s.io"], &["resourceslices"]),
            rule(&["get", "list", "watch"], &["resource.k8s.io"], &["resourceclaims"]),
            rule(&["create", "patch", "update"], &["", "events.k8s.io"], &["events"]),
        ],
    ),
    Gated::bound(
        &[API_SERVER_IDENTITY, STORAGE_VERSION_API],
        "system:controller:storage-version-garbage-collector",
        &[subject("ServiceAccount", "kube-system", "storage-version-garbage-collector")],
        &[
            rule(&["get", "list", "watch"], &["coordination.k8s.io"], &["leases"]),
            rule(
                &["delete", "get", "list", "patch", "update", "watch"],
                &["internal.apiserver.k8s.io"],
                &["storageversions"],
            ),
            rule(&["get", "patch", "update"], &["internal.apiserver.k8s.io"], &["storageversions/status"]),
        ],
    ),
    Gated::bound(
        &[STORAGE_VERSION_MIGRATOR],
        "system:controller:storage-version-migrator-controller",
        &[subject("ServiceAccount", "kube-system", "storage-version-migrator-controller")],
        &[
            rule(&["create", "list", "patch"], &["*"], &["*"]),
            rule(&["get"], &["apiextensions.k8s.io"], &["customresourcedefinitions"]),
            rule(&["patch"], &["apiextensions.k8s.io"], &["customresourcedefinitions/status"]),
            rule(&["update"], &["storagemigration.k8s.io"], &["storageversionmigrations/status"]),
        ],
    ),
];

/// Rules that a default role has only where a feature is on.
struct More {
    feature: Feature,
    role: &'static str,
    rules: &'static [RuleFact],
}

static MORE: &[More] = &[
    More { feature: CREDENTIAL_TOKENS, role: "system:node", rules: &[rule(&["get"], &[""], &["serviceaccounts"])] },
    More {
        feature: CLUSTER_TRUST_BUNDLE,
        role: "system:node",
        rules: &[rule(&["get", "list", "watch"], &["certificates.k8s.io"], &["clustertrustbundles"])],
    },
    More {
        feature: POD_CERTIFICATE_REQUEST,
        role: "system:node",
        rules: &[rule(&["create", "get", "list", "watch"], &["certificates.k8s.io"], &["podcertificaterequests"])],
    },
    More {
        feature: GENERIC_WORKLOAD,
        role: "system:aggregate-to-edit",
        rules: &[rule(
            &["create", "delete", "deletecollection", "patch", "update"],
            &["scheduling.k8s.io"],
            &["podgroups", "workloads"],
        )],
    },
    More {
        feature: GENERIC_WORKLOAD,
        role: "system:aggregate-to-view",
        rules: &[rule(
            &["get", "list", "watch"],
            &["scheduling.k8s.io"],
            &["podgroups", "podgroups/status", "workloads"],
        )],
    },
    More {
        feature: GENERIC_WORKLOAD,
        role: "system:kube-scheduler",
        rules: &[
            rule(&["get", "list", "watch"], &["scheduling.k8s.io"], &["podgroups"]),
            rule(&["patch", "update"], &["scheduling.k8s.io"], &["podgroups/status"]),
        ],
    },
    More {
        feature: GROUP_CLAIMS,
        role: "system:controller:resource-claim-controller",
        rules: &[
            rule(&["get", "list", "watch"], &["scheduling.k8s.io"], &["podgroups"]),
            rule(&["patch", "update"], &["scheduling.k8s.io"], &["podgroups/status"]),
        ],
    },
    More {
        feature: WORKLOAD_WITH_JOB,
        role: "system:controller:job-controller",
        rules: &[rule(&["create", "get", "list", "watch"], &["scheduling.k8s.io"], &["podgroups", "workloads"])],
    },
    More {
        feature: DEVICE_TAINT_RULES,
        role: "system:kube-scheduler",
        rules: &[rule(&["get", "list", "watch"], &["resource.k8s.io"], &["devicetaintrules"])],
    },
    More {
        feature: DEVICE_TAINT_RULES,
        role: "system:controller:device-taint-eviction-controller",
        rules: &[
            rule(&["patch", "update"], &["resource.k8s.io"], &["devicetaintrules/status"]),
            rule(&["get", "list", "watch"], &["resource.k8s.io"], &["devicetaintrules"]),
        ],
    },
];

/// Adds the rules that default roles have besides, where these gates are switched so.
pub(super) fn add_rules(roles: &mut [ClusterRole], gates: &Gates) {
    for more in MORE.iter().filter(|more| gates.enabled(more.feature)) {
        for role in roles.iter_mut().filter(|role| role.metadata.name == more.role) {
            role.rules.extend(more.rules.iter().map(RuleFact::policy_rule));
        }
    }
}

/// The roles and their bindings where these gates are switched so.
pub(super) fn of(gates: &Gates) -> impl Iterator<Item = (&'static RoleFact, &'static BindingFact)> + '_ {
    let is_on = |own: &&Gated| own.features.iter().all(|feature| gates.enabled(*feature));
    ALL.iter().filter(is_on).map(|own| (&own.role, &own.binding))
}
