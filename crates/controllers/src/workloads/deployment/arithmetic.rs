//! The numbers of a rollout: how many pods may be there on top, how many may be missing.

use api_machinery::intstr::{IntOrString, Rounding};
use api_types::apps_v1::constants::deployment_strategy_type::ROLLING_UPDATE;
use api_types::apps_v1::{Deployment, ReplicaSet};

/// What an absent progress deadline or history limit is written as.
const UNLIMITED: i32 = i32::MAX;

/// The wanted number of pods.
pub(super) fn wanted(deployment: &Deployment) -> i32 {
    deployment.spec.replicas.unwrap_or(1)
}

/// The number of pods a replica set is told to have.
pub(super) fn size(set: &ReplicaSet) -> i32 {
    set.spec.replicas.unwrap_or(1)
}

/// Whether the update is a rolling one.
pub(super) fn rolls(deployment: &Deployment) -> bool {
    deployment.spec.strategy.type_ == ROLLING_UPDATE
}

/// Surge rounded up and unavailability rounded down; where both are none, one pod may be missing.
fn fenceposts(deployment: &Deployment) -> (i32, i32) {
    let settings = deployment.spec.strategy.rolling_update.clone().unwrap_or_default();
    let share = |value: Option<IntOrString>, rounding| {
        // Validation keeps other texts out; they count as nothing.
        value.and_then(|value| value.scaled(wanted(deployment), rounding).ok()).unwrap_or(0)
    };
    let surge = share(settings.max_surge, Rounding::Up);
    let unavailable = share(settings.max_unavailable, Rounding::Down);
    if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
}

/// How many pods there may be on top of the wanted ones.
pub(super) fn max_surge(deployment: &Deployment) -> i32 {
    if rolls(deployment) { fenceposts(deployment).0 } else { 0 }
}

/// How many of the wanted pods may be missing.
pub(super) fn max_unavailable(deployment: &Deployment) -> i32 {
    if !rolls(deployment) || wanted(deployment) == 0 {
        return 0;
    }
    fenceposts(deployment).1.min(wanted(deployment))
}

/// The size of the new replica set, being `own` now, when all together have `total`.
pub(super) fn new_set_size(deployment: &Deployment, total: i32, own: i32) -> i32 {
    if !rolls(deployment) {
        return wanted(deployment);
    }
    let limit = wanted(deployment).saturating_add(fenceposts(deployment).0);
    if total >= limit {
        return own;
    }
    own + (limit - total).min(wanted(deployment) - own)
}

/// The seconds that may pass without progress, where there is a limit.
pub(super) fn progress_deadline(deployment: &Deployment) -> Option<i32> {
    deployment.spec.progress_deadline_seconds.filter(|seconds| *seconds != UNLIMITED)
}

/// How many old replica sets are kept, where there is a limit.
pub(super) fn history_limit(deployment: &Deployment) -> Option<usize> {
    let limit = deployment.spec.revision_history_limit.filter(|limit| *limit != UNLIMITED)?;
    usize::try_from(limit).ok()
}

#[cfg(test)]
mod tests {
    use api_types::apps_v1::RollingUpdateDeployment;

    use super::*;

    fn deployment(replicas: i32, surge: &str, unavailable: &str) -> Deployment {
        let value = |text: &str| Some(text.parse::<i32>().map_or_else(|_| text.into(), IntOrString::Int));
        let mut deployment = Deployment::default();
        deployment.spec.replicas = Some(replicas);
        deployment.spec.strategy.type_ = ROLLING_UPDATE.into();
        deployment.spec.strategy.rolling_update =
            Some(RollingUpdateDeployment { max_surge: value(surge), max_unavailable: value(unavailable) });
        deployment
    }

    #[test]
    fn surge_rounds_up_and_unavailability_down() {
        for (replicas, surge, unavailable, expected) in [
            (10, "25%", "25%", (3, 2)),
            (1, "25%", "25%", (1, 0)),
            (10, "0", "0", (0, 1)),
            (3, "0", "10%", (0, 1)),
            (2, "0", "5", (0, 2)),
            (0, "25%", "25%", (0, 0)),
        ] {
            let deployment = deployment(replicas, surge, unavailable);
            let actual = (max_surge(&deployment), max_unavailable(&deployment));
            assert_eq!(actual, expected, "{replicas} {surge} {unavailable}");
        }
    }

    #[test]
    fn the_new_set_grows_into_the_room_that_is_left() {
        for (total, own, expected) in [(10, 0, 3), (13, 3, 3), (12, 3, 4), (5, 0, 8), (2, 2, 10), (0, 0, 10)] {
            assert_eq!(new_set_size(&deployment(10, "3", "0"), total, own), expected, "{total} {own}");
        }
    }
}
