//! What becomes of objects that were stored as another version than the one that is stored now: those of an etcd that
//! was taken over, or of a definition whose stored version moved on.
//!
//! Most beta versions became stable as they were: the same fields under the same names and numbers. Those are read as what
//! they are. Where a field changed its meaning it is mended here; anything else is refused, as reading it would lose
//! what nobody can bring back.

use api_machinery::object::{Object, Unstructured};
use api_types::discovery_v1::EndpointSlice;
use api_types::policy_v1::PodDisruptionBudget;

/// What has to be done with an object of an older version that was read as the current one.
type Mend = fn(&mut dyn Object);

/// An older version of some kinds.
struct Former {
    api_version: &'static str,
    kinds: &'static [&'static str],
    mend: Mend,
}

const WORKLOADS: &[&str] = &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"];
const ROLES: &[&str] = &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
const STORAGE: &[&str] = &["CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"];

const fn same(api_version: &'static str, kinds: &'static [&'static str]) -> Former {
    Former { api_version, kinds, mend: |_| {} }
}

const FORMER: &[Former] = &[
    same("apps/v1beta1", WORKLOADS),
    same("apps/v1beta2", WORKLOADS),
    same("extensions/v1beta1", &["DaemonSet", "Deployment", "NetworkPolicy", "ReplicaSet"]),
    same("batch/v1beta1", &["CronJob"]),
    same("coordination.k8s.io/v1beta1", &["Lease"]),
    same("networking.k8s.io/v1beta1", &["IngressClass"]),
    same("node.k8s.io/v1beta1", &["RuntimeClass"]),
    // Subjects of bindings had other fields then.
    same("rbac.authorization.k8s.io/v1alpha1", &["ClusterRole", "Role"]),
    same("rbac.authorization.k8s.io/v1beta1", ROLES),
    same("scheduling.k8s.io/v1alpha1", &["PriorityClass"]),
    same("scheduling.k8s.io/v1beta1", &["PriorityClass"]),
    same("storage.k8s.io/v1alpha1", &["CSIStorageCapacity", "VolumeAttachment"]),
    same("storage.k8s.io/v1beta1", STORAGE),
    Former { api_version: "policy/v1beta1", kinds: &["PodDisruptionBudget"], mend: empty_selects_nothing },
    Former { api_version: "discovery.k8s.io/v1beta1", kinds: &["EndpointSlice"], mend: zone_of_topology },
];

/// Makes an object that was read as the current version, but says that it is `stored`, one of the current version.
///
/// # Errors
/// When the version has another form.
pub(crate) fn bring_up_to_date(object: &mut dyn Object, stored: &str) -> Result<(), String> {
    let current = object.api_version();
    if stored == current {
        return Ok(());
    }
    if stored.is_empty() {
        return Err("Object 'apiVersion' is missing".to_owned());
    }
    let kind = object.kind().to_owned();
    if let Some(custom) = object.downcast_mut::<Unstructured>() {
        // The versions of a definition without a webhook differ in nothing but their names.
        if group_of(stored) == group_of(&current) {
            custom.type_meta.api_version = current;
            return Ok(());
        }
    } else if let Some(former) =
        FORMER.iter().find(|former| former.api_version == stored && former.kinds.contains(&kind.as_str()))
    {
        (former.mend)(object);
        return Ok(());
    }
    Err(format!("{kind} is stored as {stored}, which this server cannot read as {current}"))
}

fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// An empty selector selected nothing at first; now it selects everything, and none nothing.
fn empty_selects_nothing(object: &mut dyn Object) {
    let Some(budget) = object.downcast_mut::<PodDisruptionBudget>() else { return };
    let selector = &mut budget.spec.selector;
    if selector.as_ref().is_some_and(|own| own.match_labels.is_empty() && own.match_expressions.is_empty()) {
        *selector = None;
    }
}

/// The zone was one of many facts about where an endpoint is.
fn zone_of_topology(object: &mut dyn Object) {
    let Some(slice) = object.downcast_mut::<EndpointSlice>() else { return };
    for endpoint in &mut slice.endpoints {
        let zone = endpoint.deprecated_topology.remove("topology.kubernetes.io/zone");
        if endpoint.zone.is_none() {
            endpoint.zone = zone;
        }
    }
}

#[cfg(test)]
mod tests {
    use api_types::discovery_v1::Endpoint;

    use super::*;

    fn refusal(object: &mut dyn Object, stored: &str) -> String {
        bring_up_to_date(object, stored).expect_err(stored)
    }

    #[test]
    fn what_has_another_form_is_refused() {
        let mut ingress = api_types::networking_v1::Ingress::default();
        for stored in ["extensions/v1beta1", "networking.k8s.io/v1beta1"] {
            let text = format!("Ingress is stored as {stored}, which this server cannot read as networking.k8s.io/v1");
            assert_eq!(refusal(&mut ingress, stored), text);
        }
        assert_eq!(refusal(&mut ingress, ""), "Object 'apiVersion' is missing");
        let mut class = api_types::networking_v1::IngressClass::default();
        assert_eq!(bring_up_to_date(&mut class, "networking.k8s.io/v1beta1"), Ok(()));
        let mut binding = api_types::rbac_v1::RoleBinding::default();
        refusal(&mut binding, "rbac.authorization.k8s.io/v1alpha1");
        assert_eq!(bring_up_to_date(&mut binding, "rbac.authorization.k8s.io/v1beta1"), Ok(()));
        let mut custom = Unstructured::new("example.com/v2", "Apple");
        refusal(&mut custom, "example.org/v2");
        assert_eq!(bring_up_to_date(&mut custom, "example.com/v1"), Ok(()));
        assert_eq!(custom.type_meta.api_version, "example.com/v2");
    }

    #[test]
    fn what_changed_its_meaning_is_mended() {
        let mut budget = PodDisruptionBudget::default();
        budget.spec.selector = Some(Default::default());
        assert_eq!(bring_up_to_date(&mut budget, "policy/v1"), Ok(()));
        assert!(budget.spec.selector.is_some());
        assert_eq!(bring_up_to_date(&mut budget, "policy/v1beta1"), Ok(()));
        assert!(budget.spec.selector.is_none());
        let mut slice = EndpointSlice::default();
        let mut endpoint = Endpoint::default();
        endpoint.deprecated_topology.insert("topology.kubernetes.io/zone".into(), "z".into());
        slice.endpoints.push(endpoint);
        assert_eq!(bring_up_to_date(&mut slice, "discovery.k8s.io/v1beta1"), Ok(()));
        assert_eq!(slice.endpoints[0].zone.as_deref(), Some("z"));
    }
}
