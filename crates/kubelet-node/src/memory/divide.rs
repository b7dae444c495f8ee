//! Memory of a pod as a whole, and which container has which of it. Pure.
//!
//! Upstream: the memory manager's static policy for pods with resources of their own, KEP-5526.

use api_types::core_v1::{Container, Pod};
use component_helpers::pod_state::is_sidecar;

use super::tables::{Amounts, Block};
use crate::topology::{EmptyPool, NodeSet, OfPod, Share, pod_pool};

/// What each container of a pod has, by name, and how.
#[derive(Debug, PartialEq)]
pub(super) struct Divided(Vec<(String, Amounts, Share)>);

impl Divided {
    /// Divides what a pod has as a whole among its containers: `own` is what one has for itself, and all others share the
    /// rest.
    pub(super) fn new(pod: &Pod, whole: &Amounts, own: impl Fn(&Container) -> Amounts) -> Result<Self, EmptyPool> {
        pod_pool::check(pod, whole, &own)?;
        let (mut parts, mut taken, mut sharing) = (Vec::new(), Amounts::new(), Vec::new());
        for init in &pod.spec.init_containers {
            let wanted = own(init);
            match (wanted.is_empty(), is_sidecar(init)) {
                // It shares with the containers, whose rest is not known yet.
                (true, true) => sharing.push(init.name.clone()),
                // It has ended before anybody else starts, but for the sidecars before it.
                (true, false) => parts.push((init.name.clone(), pod_pool::rest(whole, &taken), Share::WithinPod)),
                (false, sidecar) => {
                    if sidecar {
                        pod_pool::add(&mut taken, &wanted);
                    }
                    parts.push((init.name.clone(), wanted, Share::OfPod));
                }
            }
        }
        for container in &pod.spec.containers {
            let wanted = own(container);
            if wanted.is_empty() {
                sharing.push(container.name.clone());
            } else {
                pod_pool::add(&mut taken, &wanted);
                parts.push((container.name.clone(), wanted, Share::OfPod));
            }
        }
        let rest = pod_pool::rest(whole, &taken);
        parts.extend(sharing.into_iter().map(|name| (name, rest.clone(), Share::WithinPod)));
        Ok(Self(parts))
    }

    /// How the containers have what they have.
    pub(super) fn shares(&self) -> impl Iterator<Item = Share> {
        self.0.iter().map(|(_, _, share)| *share)
    }

    /// All of it on some nodes.
    pub(super) fn on(self, nodes: NodeSet, whole: Amounts) -> OfPod<Vec<Block>> {
        let blocks = |amounts: Amounts| -> Vec<Block> {
            amounts.into_iter().map(|(kind, bytes)| Block { nodes, kind, bytes }).collect()
        };
        let containers = self.0.into_iter().map(|(name, amounts, _)| (name, blocks(amounts)));
        OfPod { containers: containers.collect(), whole: Some(blocks(whole)) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{wanted, wanted_by_pod};
    use super::*;
    use crate::topology::fixtures::{guaranteed, with_pool};

    #[test]
    fn the_pods_memory_is_divided() {
        let containers =
            [("side", "1", "1Gi"), ("init", "1", "3Gi"), ("early", "1", "1Gi"), ("a", "1", "2Gi"), ("b", "1", "1Gi")];
        let mut pod = with_pool(guaranteed("u", &containers), "4", "5Gi");
        let rest = pod.spec.containers.split_off(3);
        pod.spec.init_containers = std::mem::replace(&mut pod.spec.containers, rest);
        pod.spec.init_containers[0].restart_policy = Some("Always".into());
        for shared in [&mut pod.spec.init_containers[2], &mut pod.spec.containers[1]] {
            shared.resources.limits.clear();
        }
        let whole = wanted_by_pod(&pod, true);
        let divided = Divided::new(&pod, &whole, |container| wanted(&pod, container, true)).unwrap();
        let found: Vec<String> = divided
            .0
            .iter()
            .map(|(name, amounts, share)| format!("{name} {} {}", amounts["memory"] >> 30, share.name()))
            .collect();
        let expected = [
            "side 1 pod_exclusive",
            "init 3 pod_exclusive",
            "early 4 pod_shared",
            "a 2 pod_exclusive",
            "b 2 pod_shared",
        ];
        assert_eq!(found, expected);
        let nodes = [1].into_iter().collect();
        let given = divided.on(nodes, whole);
        assert_eq!(given.whole, Some(vec![Block { nodes, kind: "memory".into(), bytes: 5 << 30 }]));
        assert_eq!(given.containers["b"], [Block { nodes, kind: "memory".into(), bytes: 2 << 30 }]);
        pod.spec.containers[0].resources.requests.insert("memory".into(), "4Gi".parse().unwrap());
        pod.spec.containers[0].resources.limits.insert("memory".into(), "4Gi".parse().unwrap());
        let full = Divided::new(&pod, &wanted_by_pod(&pod, true), |container| wanted(&pod, container, true));
        assert_eq!(full, Err(EmptyPool::Shared { kind: "memory".into() }));
        assert!(wanted_by_pod(&pod, false).is_empty(), "the gate is off");
    }
}
