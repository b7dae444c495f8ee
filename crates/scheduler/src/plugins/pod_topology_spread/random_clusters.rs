//! Clusters at random, to compare counting by domain with counting node by node.

use api_machinery::time::Time;
use base::Rng;

use crate::cache::{Cache, Snapshot};
use crate::test_objects::{PodBuilder, node, pod};

pub(super) const ZONE: &str = "topology.kubernetes.io/zone";
const NODES: u64 = 9;
const STEPS: u64 = 300;

/// One change of a cluster: a pod comes or goes, or a node gets other labels.
fn change(cache: &Cache, rng: &Rng, step: u64, all_in_zones: bool) {
    let name = format!("n{}", rng.below(NODES));
    match rng.below(20) {
        0 => {
            let made = node(&name);
            let zone = format!("z{}", rng.below(3));
            let made = if all_in_zones || rng.below(3) > 0 { made.label(ZONE, &zone) } else { made };
            cache.set_node(made.build());
        }
        1..=6 => cache.remove_pod(&format!("uid-p{}", rng.below(step + 1))),
        _ => {
            let mut made =
                pod(&format!("p{step}")).label("app", ["a", "b", "c"][usize::try_from(rng.below(3)).unwrap()]);
            if rng.below(4) == 0 {
                made = made.label("more", &rng.below(4).to_string());
            }
            made.0.metadata.namespace = ["default", "other"][usize::try_from(rng.below(2)).unwrap()].into();
            made.0.metadata.deletion_timestamp = (rng.below(6) == 0).then(|| Time::from_unix_seconds(1));
            cache.add_pod(made.on(&name).build());
        }
    }
}

/// Calls `check` with many clusters, each a change from the one before, and with a pod of `probe` for each.
pub(super) fn for_each(probe: impl Fn() -> PodBuilder, mut check: impl FnMut(&Snapshot, &Cache, PodBuilder)) {
    for seed in 0..6 {
        let (cache, rng) = (Cache::new(), Rng::seeded(seed));
        let mut snapshot = Snapshot::default();
        for number in 0..NODES {
            cache.set_node(node(&format!("n{number}")).label(ZONE, &format!("z{}", number % 3)).build());
        }
        for step in 0..STEPS {
            change(&cache, &rng, step, seed % 2 == 0);
            cache.update_snapshot(&mut snapshot);
            check(&snapshot, &cache, probe());
        }
    }
}
