//! Finding and setting conditions, which are lists with one entry for each type.

use api_machinery::time::Time;
use api_types::core_v1::{NodeCondition, PodCondition};

/// A condition of some kind of object.
pub trait Condition {
    /// Its type.
    fn type_(&self) -> &str;
    /// Its status: `True`, `False` or `Unknown`.
    fn status(&self) -> &str;
    /// Sets when the status last changed.
    fn set_transition(&mut self, at: Time);
    /// When the status last changed.
    fn transition(&self) -> Time;
}

macro_rules! condition {
    ($($type:ty),*) => {$(
        impl Condition for $type {
            fn type_(&self) -> &str {
                &self.type_
            }
            fn status(&self) -> &str {
                &self.status
            }
            fn set_transition(&mut self, at: Time) {
                self.last_transition_time = at;
            }
            fn transition(&self) -> Time {
                self.last_transition_time
            }
        }
    )*};
}

condition!(
    PodCondition,
    NodeCondition,
    api_machinery::meta::Condition,
    api_types::apiserverinternal_v1alpha1::StorageVersionCondition,
    api_types::apps_v1::DeploymentCondition,
    api_types::apps_v1::ReplicaSetCondition,
    api_types::apps_v1::DaemonSetCondition,
    api_types::apps_v1::StatefulSetCondition,
    api_types::autoscaling_v2::HorizontalPodAutoscalerCondition,
    api_types::batch_v1::JobCondition,
    api_types::core_v1::ReplicationControllerCondition,
    api_types::core_v1::NamespaceCondition,
    api_types::core_v1::PersistentVolumeClaimCondition
);

/// The condition of a type, if there is one.
pub fn find<'a, C: Condition>(conditions: &'a [C], type_: &str) -> Option<&'a C> {
    conditions.iter().find(|condition| condition.type_() == type_)
}

/// Whether the condition of a type is there and `True`.
pub fn is_true<C: Condition>(conditions: &[C], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status() == "True")
}

/// Adds or replaces the condition of the new one's type. The time of transition is `now` where the status changed
/// and stays as it was otherwise. Says whether anything but the times changed.
pub fn set<C: Condition + PartialEq + Clone>(conditions: &mut Vec<C>, mut new: C, now: Time) -> bool {
    new.set_transition(now);
    let Some(old) = conditions.iter_mut().find(|condition| condition.type_() == new.type_()) else {
        conditions.push(new);
        return true;
    };
    if old.status() == new.status() {
        new.set_transition(old.transition());
    }
    let changed = *old != new;
    *old = new;
    changed
}

/// Removes the condition of a type; says whether there was one.
pub fn remove<C: Condition>(conditions: &mut Vec<C>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_() != type_);
    conditions.len() != before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(status: &str) -> PodCondition {
        PodCondition { type_: "Ready".into(), status: status.into(), ..PodCondition::default() }
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let at = Time::from_unix_seconds;
        let mut conditions = Vec::new();
        assert!(set(&mut conditions, ready("False"), at(1)));
        assert!(!set(&mut conditions, ready("False"), at(2)));
        assert_eq!(conditions[0].last_transition_time, at(1));
        assert!(set(&mut conditions, ready("True"), at(3)));
        assert_eq!((conditions.len(), conditions[0].last_transition_time), (1, at(3)));
        assert!(remove(&mut conditions, "Ready") && !remove(&mut conditions, "Ready"));
    }
}
