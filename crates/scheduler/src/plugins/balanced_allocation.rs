//! `NodeResourcesBalancedAllocation`: prefers nodes whose resources fill up evenly.

use std::sync::Arc;

use crate::framework::{
    BuildCx, CycleCx, CycleState, Plugin, PluginError, PreScore, PreScored, Score, Status, by_resources,
};
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;

pub(super) const NAME: &str = "NodeResourcesBalancedAllocation";

struct BalancedAllocation {
    resources: Vec<String>,
}

pub(super) fn build(_: &BuildCx, args: &PluginArgs) -> Result<Plugin, PluginError> {
    let PluginArgs::BalancedAllocation(args) = args else { return Err(PluginError::NoArguments) };
    let resources = args.resources.iter().map(|spec| spec.name.clone()).collect();
    let plugin = Arc::new(BalancedAllocation { resources });
    let plugin = Plugin::new(NAME).pre_score(plugin.clone()).score(plugin).wakes_on(Vec::new());
    Ok(plugin.signed_by(by_resources))
}

/// How even the used shares are, from 0 to 100.
fn balance(shares: impl Iterator<Item = f64> + Clone) -> i64 {
    let mut first = shares.clone();
    let deviation = match (first.next(), first.next(), first.next()) {
        (None, ..) | (Some(_), None, _) => 0.0,
        (Some(one), Some(other), None) => (one - other).abs() / 2.0,
        _ => {
            #[expect(clippy::cast_precision_loss, reason = "a handful of resources")]
            let count = shares.clone().count() as f64;
            let mean = shares.clone().sum::<f64>() / count;
            (shares.map(|share| (share - mean).powi(2)).sum::<f64>() / count).sqrt()
        }
    };
    #[expect(clippy::cast_possible_truncation, reason = "shares are at most 1; truncation is upstream's rounding")]
    let score = ((1.0 - deviation) * 100.0) as i64;
    score
}

impl BalancedAllocation {
    /// The used share of each resource that counts. Computed anew for each look, so that scoring allocates nothing.
    fn shares<'a>(
        &'a self,
        pod: &'a PodInfo,
        node: NodeView<'a>,
        with_pod: bool,
    ) -> impl Iterator<Item = f64> + Clone + 'a {
        let share = move |name: &'a String| {
            let allocatable = node.allocatable.named(name);
            let asked = pod.request.named(name);
            let scalar = !matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
            if allocatable <= 0 || (scalar && asked == 0) {
                return None;
            }
            let used = node.requested.named(name) + if with_pod { asked } else { 0 };
            #[expect(clippy::cast_precision_loss, reason = "a share needs no more precision")]
            let share = used as f64 / allocatable as f64;
            Some(share.min(1.0))
        };
        self.resources.iter().filter_map(share)
    }
}

impl PreScore for BalancedAllocation {
    fn pre_score(
        &self,
        _: CycleCx<'_>,
        _: &mut CycleState,
        pod: &PodInfo,
        _: &[NodeView<'_>],
    ) -> Result<PreScored, Status> {
        let asks = self.resources.iter().any(|name| pod.request.named(name) != 0);
        Ok(if asks { PreScored::Ready } else { PreScored::Skip })
    }
}

impl Score for BalancedAllocation {
    fn score(&self, _: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> Result<i64, Status> {
        let (with, without) = (self.shares(pod, node, true), self.shares(pod, node, false));
        Ok(50 + (50 + balance(with) - balance(without)) / 2)
    }

    fn is_local(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_shares_score_best() {
        for (shares, expected) in
            [(vec![], 100), (vec![0.3], 100), (vec![0.5, 0.5], 100), (vec![1.0, 0.0], 50), (vec![0.0, 0.5, 1.0], 59)]
        {
            assert_eq!(balance(shares.iter().copied()), expected, "{shares:?}");
        }
    }
}
