//! Pods that say what all of their containers may have together: which of them have a part of it for themselves, and
//! whether the others have something left to share. Pure.
//!
//! Upstream: KEP-5526, gate `PodLevelResourceManagers`.

use std::collections::BTreeMap;

use api_types::core_v1::{Container, Pod};
use component_helpers::pod_requests;
use component_helpers::pod_state::is_sidecar;

use crate::memory::Amounts;

/// What one pod has: each container by name, and the pod as a whole where it is the pod that is given something and its
/// containers have parts of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfPod<T> {
    pub whole: Option<T>,
    pub containers: BTreeMap<String, T>,
}

impl<T> Default for OfPod<T> {
    fn default() -> Self {
        Self { whole: None, containers: BTreeMap::new() }
    }
}

impl<T> OfPod<T> {
    /// What is taken from the machine.
    pub fn taken(&self) -> impl Iterator<Item = &T> {
        let containers = self.whole.is_none().then(|| self.containers.values());
        self.whole.iter().chain(containers.into_iter().flatten())
    }
}

/// Why containers of a pod cannot share what the pod has, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmptyPool {
    #[error("pod rejected, largest exclusive init container requests {}, but only {left} available", counted(.wanted, .kind))]
    Init { kind: String, wanted: u64, left: u64 },
    #[error("pod rejected, pod has shared init containers but no {} available for them", pooled(.0, .0))]
    SharedInit(String),
    #[error(
        "pod rejected, sum of exclusive container {kind} requests equals pod budget, leaving no {} for shared containers",
        pooled(.kind, "memory")
    )]
    Shared { kind: String },
}

const CPU: &str = "cpu";

fn counted(amount: &u64, kind: &str) -> String {
    if kind == CPU { format!("{amount} cpus") } else { format!("{amount} of {kind}") }
}

fn pooled<'a>(kind: &str, memory: &'a str) -> &'a str {
    if kind == CPU { "cpus" } else { memory }
}

/// Whether a pod says what all of its containers may have together.
#[must_use]
pub fn has_pod_level_resources(pod: &Pod) -> bool {
    let lists = pod.spec.resources.iter().flat_map(|all| [&all.requests, &all.limits]);
    lists.flat_map(|list| list.keys()).any(|name| pod_requests::is_pod_level(name))
}

/// Whether a container of such a pod may use just the processors and the memory that it asks for. Only then it has some for
/// itself.
pub(crate) fn is_guaranteed(container: &Container) -> bool {
    let (requests, limits) = (&container.resources.requests, &container.resources.limits);
    [CPU, "memory"].into_iter().all(|kind| {
        let asked = requests.get(kind);
        asked.is_some_and(|amount| amount.sign() > 0) && limits.get(kind) == asked
    })
}

/// Whether something of the `whole` is left for those that have nothing for themselves. `own` is what a container has.
pub(crate) fn check(pod: &Pod, whole: &Amounts, own: impl Fn(&Container) -> Amounts) -> Result<(), EmptyPool> {
    let (mut taken, mut shares) = (Amounts::new(), false);
    let mut lasts = |container: &Container, taken: &mut Amounts| {
        let wanted = own(container);
        shares |= wanted.is_empty();
        add(taken, &wanted);
    };
    for container in &pod.spec.init_containers {
        if is_sidecar(container) {
            lasts(container, &mut taken);
        } else {
            check_init(whole, &taken, &own(container))?;
        }
    }
    pod.spec.containers.iter().for_each(|container| lasts(container, &mut taken));
    match whole.keys().find(|kind| shares && left(whole, &taken, kind) == 0) {
        Some(kind) => Err(EmptyPool::Shared { kind: kind.clone() }),
        None => Ok(()),
    }
}

/// An init container that ends has what sidecars before it have left.
fn check_init(whole: &Amounts, taken: &Amounts, wanted: &Amounts) -> Result<(), EmptyPool> {
    for kind in whole.keys() {
        let left = left(whole, taken, kind);
        let wanted = if wanted.is_empty() { None } else { Some(wanted.get(kind).copied().unwrap_or_default()) };
        match wanted {
            None if left == 0 => return Err(EmptyPool::SharedInit(kind.clone())),
            Some(wanted) if wanted > left => return Err(EmptyPool::Init { kind: kind.clone(), wanted, left }),
            _ => {}
        }
    }
    Ok(())
}

/// What is left of one kind.
fn left(whole: &Amounts, taken: &Amounts, kind: &str) -> u64 {
    let of = |amounts: &Amounts| amounts.get(kind).copied().unwrap_or_default();
    of(whole).saturating_sub(of(taken))
}

/// All that is left, without kinds of which there is nothing.
pub(crate) fn rest(whole: &Amounts, taken: &Amounts) -> Amounts {
    let amounts = whole.keys().map(|kind| (kind.clone(), left(whole, taken, kind)));
    amounts.filter(|(_, amount)| *amount > 0).collect()
}

pub(crate) fn add(total: &mut Amounts, more: &Amounts) {
    for (kind, amount) in more {
        let sum = total.entry(kind.clone()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::guaranteed;
    use super::*;

    /// A pod of init containers, some of them sidecars (`+`), and containers; each has so many of one kind.
    fn checked(kind: &str, whole: u64, init: &[(&str, u64)], containers: &[u64]) -> String {
        let mut pod = Pod::default();
        let named = |name: String| Container { name, ..Container::default() };
        for (index, (policy, amount)) in init.iter().enumerate() {
            let sidecar = (*policy == "+").then(|| "Always".to_owned());
            pod.spec.init_containers.push(Container { restart_policy: sidecar, ..named(format!("i{index}-{amount}")) });
        }
        pod.spec.containers = (0..).zip(containers).map(|(index, own)| named(format!("c{index}-{own}"))).collect();
        let own = |container: &Container| -> Amounts {
            let amount = container.name.split_once('-').map_or(0, |(_, amount)| amount.parse().unwrap());
            [(kind.to_owned(), amount)].into_iter().filter(|(_, amount)| *amount > 0).collect()
        };
        let found = check(&pod, &[(kind.to_owned(), whole)].into(), own);
        found.map_or_else(|error| error.to_string(), |()| "fits".to_owned())
    }

    #[test]
    fn something_is_left_for_those_who_share() {
        let equals = "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared \
                      containers";
        let of_memory = "pod rejected, sum of exclusive container memory requests equals pod budget, leaving no memory for \
                         shared containers";
        type Case<'a> = (&'a str, u64, &'a [(&'a str, u64)], &'a [u64], &'a str);
        let cases: [Case<'_>; 10] = [
            ("cpu", 4, &[], &[2, 0], "fits"),
            ("cpu", 4, &[], &[4], "fits"),
            ("cpu", 4, &[], &[4, 0], equals),
            ("cpu", 4, &[("+", 0)], &[4], equals),
            ("memory", 4, &[("+", 2)], &[2, 0], of_memory),
            ("cpu", 4, &[("", 4), ("", 0)], &[4], "fits"),
            ("cpu", 4, &[("+", 1), ("", 3)], &[2], "fits"),
            (
                "cpu",
                4,
                &[("+", 1), ("", 4)],
                &[2],
                "pod rejected, largest exclusive init container requests 4 cpus, but only 3 available",
            ),
            (
                "memory",
                4,
                &[("+", 1), ("", 4)],
                &[2],
                "pod rejected, largest exclusive init container requests 4 of memory, but only 3 available",
            ),
            (
                "cpu",
                4,
                &[("+", 4), ("", 0)],
                &[],
                "pod rejected, pod has shared init containers but no cpus available for them",
            ),
        ];
        for (kind, whole, init, containers, expected) in cases {
            assert_eq!(checked(kind, whole, init, containers), expected, "{kind} {whole} {init:?} {containers:?}");
        }
        let text = EmptyPool::SharedInit("hugepages-2Mi".into()).to_string();
        assert_eq!(text, "pod rejected, pod has shared init containers but no hugepages-2Mi available for them");
    }

    #[test]
    fn containers_have_something_for_themselves_only_with_both_in_full() {
        let mut pod = guaranteed("u", &[("a", "2", "1Gi"), ("b", "1500m", "1Gi"), ("c", "2", "1Gi")]);
        pod.spec.containers[2].resources.limits.remove("memory");
        let all: Vec<bool> = pod.spec.containers.iter().map(is_guaranteed).collect();
        assert_eq!(all, [true, true, false]);
        assert!(!has_pod_level_resources(&pod));
        pod.spec.resources = Some(Default::default());
        assert!(!has_pod_level_resources(&pod), "it says nothing");
        pod.spec.resources = Some(pod.spec.containers[0].resources.clone());
        assert!(has_pod_level_resources(&pod));
    }
}
