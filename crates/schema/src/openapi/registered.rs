//! The group versions in which requests for deletion and watch events are known, whether they are served or not.

/// A group, its versions, and whether custom kinds' documents name it.
pub(super) struct Registered {
    pub(super) group: &'static str,
    pub(super) versions: &'static [&'static str],
    pub(super) beside_custom: bool,
}

const fn known(group: &'static str, versions: &'static [&'static str]) -> Registered {
    Registered { group, versions, beside_custom: true }
}

const fn elsewhere(group: &'static str, versions: &'static [&'static str]) -> Registered {
    Registered { group, versions, beside_custom: false }
}

/// Whether upstream knows a group version, as `apiVersion` names it, be it served or not.
pub(crate) fn is_registered(api_version: &str) -> bool {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    REGISTERED.iter().any(|known| known.group == group && known.versions.contains(&version))
}

/// All of them, by name.
pub(super) static REGISTERED: &[Registered] = &[
    known("", &["v1"]),
    elsewhere("admission.k8s.io", &["v1", "v1beta1"]),
    known("admissionregistration.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    elsewhere("apiextensions.k8s.io", &["v1", "v1beta1"]),
    elsewhere("apiregistration.k8s.io", &["v1", "v1beta1"]),
    known("apps", &["v1", "v1beta1", "v1beta2"]),
    known("authentication.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    known("authorization.k8s.io", &["v1", "v1beta1"]),
    known("autoscaling", &["v1", "v2"]),
    known("batch", &["v1", "v1beta1"]),
    known("certificates.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    known("coordination.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    known("discovery.k8s.io", &["v1", "v1beta1"]),
    known("events.k8s.io", &["v1", "v1beta1"]),
    known("extensions", &["v1beta1"]),
    known("flowcontrol.apiserver.k8s.io", &["v1", "v1beta1", "v1beta2", "v1beta3"]),
    elsewhere("imagepolicy.k8s.io", &["v1alpha1"]),
    known("internal.apiserver.k8s.io", &["v1alpha1"]),
    known("networking.k8s.io", &["v1", "v1beta1"]),
    known("node.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    known("policy", &["v1", "v1beta1"]),
    known("rbac.authorization.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    known("resource.k8s.io", &["v1", "v1alpha3", "v1beta1", "v1beta2"]),
    known("scheduling.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    known("storage.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    known("storagemigration.k8s.io", &["v1beta1"]),
];
