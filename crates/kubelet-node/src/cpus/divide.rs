//! Processors of a pod as a whole, and which container has which of them. Pure.
//!
//! Upstream: the CPU manager's static policy for pods with resources of their own, KEP-5526.

use api_types::core_v1::Pod;
use component_helpers::pod_state::is_sidecar;
use sys::cpu_set::CpuSet;

use super::exclusive::{Assignments, CPU, CpuError, Static};
use crate::memory::Amounts;
use crate::topology::{NodeSet, OfPod, Share, pod_pool};

/// What a pod and its containers are given, and how each container has it.
#[derive(Debug)]
pub(super) struct Divided {
    pub(super) given: OfPod<CpuSet>,
    pub(super) shares: Vec<Share>,
}

impl Divided {
    fn put(&mut self, container: &str, cpus: CpuSet, share: Share) {
        self.given.containers.insert(container.to_owned(), cpus);
        self.shares.push(share);
    }
}

impl Static {
    /// The processors that a pod is to have as a whole, near to `nodes` if that can be, divided among its containers: those
    /// that have some for themselves, and all others, which share the rest. None where it has nothing to be divided, or has
    /// it already.
    pub(super) fn divide(
        &self,
        pod: &Pod,
        nodes: Option<NodeSet>,
        assigned: &Assignments,
    ) -> Result<Option<Divided>, CpuError> {
        let wanted = self.wanted_by_pod(pod);
        let has = assigned.get(&pod.metadata.uid).is_some_and(|own| own.whole.is_some());
        if wanted == 0 || has {
            return Ok(None);
        }
        self.check_pool(pod)?;
        let whole = self.take(wanted, nodes, &CpuSet::default(), assigned)?;
        let given = OfPod { whole: Some(whole.clone()), ..OfPod::default() };
        let mut divided = Divided { given, shares: Vec::new() };
        let mut left = whole;
        for init in &pod.spec.init_containers {
            let wanted = self.wanted(pod, init);
            match (wanted, is_sidecar(init)) {
                // It shares with the containers, whose rest is not known yet.
                (0, true) => {}
                // It has ended before anybody else starts, but for the sidecars before it.
                (0, false) => divided.put(&init.name, left.clone(), Share::WithinPod),
                (_, sidecar) => {
                    let own = self.of(&left, wanted)?;
                    if sidecar {
                        left = left.minus(&own);
                    }
                    divided.put(&init.name, own, Share::OfPod);
                }
            }
        }
        for container in &pod.spec.containers {
            let wanted = self.wanted(pod, container);
            if wanted > 0 {
                let own = self.of(&left, wanted)?;
                left = left.minus(&own);
                divided.put(&container.name, own, Share::OfPod);
            }
        }
        for container in pod.spec.init_containers.iter().chain(&pod.spec.containers) {
            if !divided.given.containers.contains_key(&container.name) {
                divided.put(&container.name, left.clone(), Share::WithinPod);
            }
        }
        Ok(Some(divided))
    }

    /// Whether those who share have something left.
    pub(super) fn check_pool(&self, pod: &Pod) -> Result<(), CpuError> {
        let amounts = |count: usize| -> Amounts {
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            [(CPU.to_owned(), count)].into_iter().filter(|(_, count)| *count > 0).collect()
        };
        let whole = amounts(self.wanted_by_pod(pod));
        Ok(pod_pool::check(pod, &whole, |container| amounts(self.wanted(pod, container)))?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine::fixtures::{DUAL, SINGLE, Shape};
    use super::super::options::CpuOptions;
    use super::*;
    use crate::topology::fixtures::{guaranteed, with_pool};

    fn policy(shape: &Shape) -> Static {
        let reserved = Some("0".parse().unwrap());
        let options = CpuOptions { strict: true, ..CpuOptions::default() };
        let policy = Static::new(shape.processors(), options, 1000, reserved).unwrap();
        Static { pod_level: true, ..policy }
    }

    /// What the pod has, then what each container has and how.
    fn divided(policy: &Static, pod: &Pod, near: Option<NodeSet>, had: &Assignments) -> Result<Vec<String>, String> {
        let divided = policy.divide(pod, near, had).map_err(|error| error.to_string())?;
        let Some(Divided { given, shares }) = divided else { return Ok(Vec::new()) };
        let mut out = vec![given.whole.unwrap().to_string()];
        out.extend(given.containers.iter().map(|(name, cpus)| format!("{name} {cpus}")));
        out.push(shares.iter().map(|share| share.name().trim_start_matches("pod_")).collect::<Vec<_>>().join(" "));
        Ok(out)
    }

    /// A pod whose first `init` containers are init containers, the first of them a sidecar.
    fn pod(init: usize, whole: &str, containers: &[(&str, &str, &str)]) -> Pod {
        let mut pod = with_pool(guaranteed("u", containers), whole, "8Gi");
        let rest = pod.spec.containers.split_off(init);
        pod.spec.init_containers = std::mem::replace(&mut pod.spec.containers, rest);
        if let Some(first) = pod.spec.init_containers.first_mut() {
            first.restart_policy = Some("Always".into());
        }
        pod
    }

    #[test]
    fn the_pods_processors_are_divided() {
        let (policy, none) = (policy(&SINGLE), Assignments::new());
        let all = |pod: &Pod| divided(&policy, pod, None, &none);
        let mixed = pod(0, "4", &[("a", "2", "1Gi"), ("b", "500m", "1Gi"), ("c", "1500m", "1Gi")]);
        assert_eq!(all(&mixed).unwrap(), ["1-2,5-6", "a 1,5", "b 2,6", "c 2,6", "exclusive shared shared"]);
        let mut init = pod(3, "6", &[("s", "2", "1Gi"), ("i", "4", "1Gi"), ("j", "500m", "1Gi"), ("a", "2", "1Gi")]);
        init.spec.containers.push(guaranteed("", &[("b", "500m", "1Gi")]).spec.containers.remove(0));
        let expected = ["1-3,5-7", "a 2,6", "b 3,7", "i 2-3,6-7", "j 2-3,6-7", "s 1,5"];
        assert_eq!(all(&init).unwrap()[..6], expected);
        assert_eq!(all(&init).unwrap()[6], "exclusive exclusive shared exclusive shared");
        let shared_sidecar = pod(1, "3", &[("s", "500m", "1Gi"), ("a", "2", "1Gi")]);
        assert_eq!(all(&shared_sidecar).unwrap(), ["1,4-5", "a 1,5", "s 4", "exclusive shared"]);
        let full = pod(0, "2", &[("a", "2", "1Gi"), ("b", "500m", "1Gi")]);
        assert!(all(&full).unwrap_err().starts_with("pod rejected, sum of exclusive container cpu requests"));
        assert_eq!(all(&pod(0, "1500m", &[("a", "1", "1Gi")])), Ok(vec![]), "not whole processors");
        assert!(all(&pod(0, "8", &[("a", "1", "1Gi")])).unwrap_err().contains("requested=8, available=7"));
    }

    #[test]
    fn it_is_near_to_a_node_and_stays_what_it_is() {
        let policy = policy(&DUAL);
        let own = pod(0, "3", &[("a", "2", "1Gi"), ("b", "500m", "1Gi")]);
        let near = Some([1].into_iter().collect());
        let Some(Divided { given, .. }) = policy.divide(&own, near, &Assignments::new()).unwrap() else { panic!() };
        assert_eq!(given.whole.as_ref().unwrap().to_string(), "3-4,9");
        let had = Assignments::from([("u".to_owned(), given)]);
        assert_eq!(divided(&policy, &own, near, &had), Ok(vec![]), "it has them");
        assert_eq!(policy.shared(&had).to_string(), "1-2,5-8,10-11", "nobody else runs on what the pod has");
    }
}
