//! What a resource quota counts: which names concern which resource, what an object uses of them, and which objects a
//! quota's scopes choose. Shared by the API server, which refuses what is over quota, and the controller that counts.
//!
//! See <https://kubernetes.io/docs/concepts/policy/resource-quotas/>.

mod devices;
mod scopes;
#[cfg(test)]
mod tests;
mod usage;

use api_machinery::object::Object;
use api_machinery::quantity::Quantity;
use api_machinery::time::Time;
use api_types::core_v1::{Pod, ResourceList, ResourceQuotaSpec, ScopedResourceSelectorRequirement};
pub use devices::ExtendedDevices;
use scopes::Term;

/// Resources whose objects are never counted, in any group of this list.
const IGNORED: &[(&str, &str)] = &[
    ("", "bindings"),
    ("", "componentstatuses"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("", "events"),
    ("events.k8s.io", "events"),
];
/// Core resources that are counted under their bare name too.
const BARE_COUNTS: &[&str] = &["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];
/// What each container of a pod must state where a quota limits it.
const STATED: &[&str] = &["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// What decides over usage besides the object itself.
#[derive(Clone, Copy)]
pub struct Circumstances<'a> {
    /// The time: pods that should be gone use nothing any more.
    pub now: Time,
    /// Where devices can be had as extended resources (gate `DRAExtendedResource`), what is known of these.
    pub devices: Option<&'a dyn ExtendedDevices>,
}

/// How the objects of a resource are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evaluator {
    /// Pods: their number and what they ask for.
    Pods,
    /// Services: their number by kind, and node ports.
    Services,
    /// Volume claims: their number and storage, also by class.
    Claims,
    /// Claims for devices: their number and how many devices they ask for, by class.
    DeviceClaims,
    /// Any other resource: the number of objects, under these names.
    Count(Vec<String>),
}

/// `count/{resource}.{group}`, or `count/{resource}` for core.
fn count_name(group: &str, resource: &str) -> String {
    if group.is_empty() { format!("count/{resource}") } else { format!("count/{resource}.{group}") }
}

impl Evaluator {
    /// The evaluator of a resource; nothing for what is never counted.
    #[must_use]
    pub fn of(group: &str, resource: &str) -> Option<Self> {
        if IGNORED.contains(&(group, resource)) {
            return None;
        }
        Some(match (group, resource) {
            ("", "pods") => Self::Pods,
            ("", "services") => Self::Services,
            ("", "persistentvolumeclaims") => Self::Claims,
            ("resource.k8s.io", "resourceclaims") => Self::DeviceClaims,
            _ => {
                let mut names = vec![count_name(group, resource)];
                if group.is_empty() && BARE_COUNTS.contains(&resource) {
                    names.push(resource.to_owned());
                }
                Self::Count(names)
            }
        })
    }

    /// Whether a quota's name concerns the resource. Some names concern several.
    #[must_use]
    pub fn counts(&self, name: &str, devices: Option<&dyn ExtendedDevices>) -> bool {
        match self {
            Self::Pods => usage::of_pods(name),
            Self::Services => {
                matches!(name, "count/services" | "services" | "services.nodeports" | "services.loadbalancers")
            }
            Self::Claims => usage::of_claims(name),
            Self::DeviceClaims => devices::concern(name, devices),
            Self::Count(names) => names.iter().any(|own| own == name),
        }
    }

    /// What an object uses.
    #[must_use]
    pub fn usage(&self, object: &dyn Object, at: Circumstances<'_>) -> ResourceList {
        match self {
            Self::Pods => object.downcast_ref().map(|pod| usage::pod(pod, at.now)).unwrap_or_default(),
            Self::Services => object.downcast_ref().map(usage::service).unwrap_or_default(),
            Self::Claims => object.downcast_ref().map(usage::claim).unwrap_or_default(),
            Self::DeviceClaims => object.downcast_ref().map(|claim| devices::claim(claim, at)).unwrap_or_default(),
            Self::Count(names) => names.iter().map(|name| (name.clone(), whole(1))).collect(),
        }
    }

    /// Whether the quota's scopes all choose the object. Only pods and volume claims have scopes.
    #[must_use]
    pub fn chooses(&self, quota: &ResourceQuotaSpec, object: &dyn Object) -> bool {
        scopes::of(quota).iter().all(|term| self.meets(term, object))
    }

    fn meets(&self, term: &Term<'_>, object: &dyn Object) -> bool {
        match self {
            Self::Pods => object.downcast_ref().is_some_and(|pod| term.chooses_pod(pod)),
            Self::Claims => object.downcast_ref().is_some_and(|claim| term.chooses_claim(claim)),
            Self::Services | Self::DeviceClaims | Self::Count(_) => false,
        }
    }

    /// Those of the terms that choose the object.
    pub fn met<'a>(
        &'a self,
        terms: &'a [ScopedResourceSelectorRequirement],
        object: &'a dyn Object,
    ) -> impl Iterator<Item = &'a ScopedResourceSelectorRequirement> {
        terms.iter().filter(move |own| self.meets(&(*own).into(), object))
    }

    /// The scopes of the quota that choose the object.
    #[must_use]
    pub fn scopes_met(&self, quota: &ResourceQuotaSpec, object: &dyn Object) -> Vec<String> {
        let terms = scopes::of(quota);
        terms.iter().filter(|term| self.meets(term, object)).map(|term| term.scope().to_owned()).collect()
    }

    /// What a pod's containers leave out of that which these names limit, such as `cpu for: a,b; memory for: a`;
    /// nothing where all is said.
    #[must_use]
    pub fn unstated<'a>(&self, limited: impl Iterator<Item = &'a String>, object: &dyn Object) -> Option<String> {
        let pod = object.downcast_ref::<Pod>().filter(|_| *self == Self::Pods)?;
        if pod.spec.resources.is_some() {
            return None;
        }
        let mut parts = Vec::new();
        for name in limited.filter(|name| STATED.contains(&name.as_str())) {
            let (of_limits, resource) = match name.split_once('.') {
                Some((kind, resource)) => (kind == "limits", resource),
                None => (false, name.as_str()),
            };
            let lacks = |container: &&api_types::core_v1::Container| {
                let resources = &container.resources;
                let amounts = if of_limits { &resources.limits } else { &resources.requests };
                !amounts.contains_key(resource)
            };
            let all = pod.spec.containers.iter().chain(&pod.spec.init_containers);
            let mut lacking: Vec<&str> = all.filter(lacks).map(|container| container.name.as_str()).collect();
            lacking.sort_unstable();
            lacking.dedup();
            if !lacking.is_empty() {
                parts.push(format!("{name} for: {}", lacking.join(",")));
            }
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// A whole number as a quantity.
#[must_use]
pub fn whole(count: u64) -> Quantity {
    Quantity::parse(&count.to_string()).unwrap_or_default()
}
