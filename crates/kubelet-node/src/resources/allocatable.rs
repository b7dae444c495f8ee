//! The limit of all pods together: what the node has, less what it keeps.
//!
//! See <https://kubernetes.io/docs/tasks/administer-cluster/reserve-compute-resources/>.

use std::time::Duration;

use sys::cgroups::Limits;

use super::PodGroups;
use crate::interfaces::Level;

/// Pause before limits that the kernel did not take are tried again.
const PAUSE: Duration = Duration::from_secs(60);

/// Limits all pods together, and tells how that went. It is tried until it works: pods that use more now, as after a change of
/// what is kept, are expected to be evicted, which takes its time.
pub async fn enforce(groups: &PodGroups, limits: &Limits, tell: impl Fn(Level, &'static str, &str)) {
    if !groups.are_kept() {
        return;
    }
    while let Err(error) = groups.limit_all(limits).await {
        let text = format!("Failed to update Node Allocatable Limits {}: {error}", groups.name_of_all());
        tell(Level::Warning, "FailedNodeAllocatableEnforcement", &text);
        tokio::time::sleep(PAUSE).await;
    }
    tell(Level::Normal, "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use sys::cgroups::{CgroupPath, FakeCgroups, Limit};
    use tokio::time::Instant;

    use super::*;
    use crate::resources::{CgroupNames, CgroupSettings, Driver, all_pods_limits};

    #[tokio::test(start_paused = true)]
    async fn limits_are_tried_until_the_kernel_takes_them() {
        let group = CgroupPath::new("/kubepods").unwrap();
        for (per_class, refusals, minutes, reasons) in [
            (true, 0, 0, &["NodeAllocatableEnforced"][..]),
            (true, 2, 2, &["FailedNodeAllocatableEnforcement"; 2]),
            (false, 0, 0, &[]),
        ] {
            let cgroups = Arc::new(FakeCgroups::new());
            let names = CgroupNames::new(Driver::Cgroupfs, "/").unwrap();
            let settings = CgroupSettings::new(names, per_class, true, Duration::from_millis(100), -1);
            let groups = PodGroups::new(cgroups.clone(), settings);
            groups.start().await.unwrap();
            assert_eq!(cgroups.limits(&group).is_some(), per_class, "pods have a place before they are limited");
            cgroups.refuse_limits(refusals);
            let (told, began) = (Mutex::new(Vec::new()), Instant::now());
            let tell = |_, reason, text: &str| told.lock().push((reason, text.to_owned()));
            enforce(&groups, &all_pods_limits(2000, 1 << 30, None), tell).await;
            assert_eq!(began.elapsed(), PAUSE * minutes);
            let told = told.into_inner();
            assert!(told.iter().map(|(reason, _)| *reason).take(reasons.len()).eq(reasons.iter().copied()), "{told:?}");
            if refusals > 0 {
                let text = "Failed to update Node Allocatable Limits [\"kubepods\"]: ";
                assert!(told[0].1.starts_with(text), "{told:?}");
            }
            if per_class {
                assert_eq!(told.last().unwrap().0, "NodeAllocatableEnforced");
                assert_eq!(cgroups.limits(&group).unwrap().memory_bytes, Some(Limit::To(1 << 30)));
            }
        }
    }
}
