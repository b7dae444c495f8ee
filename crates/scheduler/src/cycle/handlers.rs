//! What the watches tell, in the order in which they tell it.

use std::sync::Arc;

use api_types::core_v1::{Node, Pod};

use super::Scheduler;
use crate::framework::{ClusterEvent, EventObject, node_update_events, pod_update_events};

fn is_assigned(pod: &Pod) -> bool {
    !pod.spec.node_name.is_empty()
}

fn deleted(pod: &Arc<Pod>) -> EventObject {
    EventObject::Pod { old: Some(Arc::clone(pod)), new: None }
}

impl Scheduler {
    fn is_mine(&self, pod: &Pod) -> bool {
        self.serves(&pod.spec.scheduler_name)
    }

    /// A pod has come.
    pub fn pod_added(&self, pod: &Arc<Pod>) {
        self.groups.put(pod);
        if is_assigned(pod) {
            self.assigned_pod_added(pod);
        } else if self.is_mine(pod) {
            self.queue.add(self.cache.pod_info(Arc::clone(pod)));
            if self.has_gangs {
                let object = EventObject::Pod { old: None, new: Some(Arc::clone(pod)) };
                self.queue.move_all(&ClusterEvent::UNSCHEDULABLE_POD_ADD, &object, |_| true);
            }
        }
    }

    fn assigned_pod_added(&self, pod: &Arc<Pod>) {
        self.cache.add_pod(Arc::clone(pod));
        let object = EventObject::Pod { old: None, new: Some(Arc::clone(pod)) };
        self.queue.move_all(&ClusterEvent::ASSIGNED_POD_ADD, &object, |_| true);
    }

    /// A pod has changed.
    pub fn pod_updated(&self, old: &Arc<Pod>, new: &Arc<Pod>) {
        if new.metadata.deletion_timestamp.is_some() {
            self.gate.victim_gone(&new.metadata.uid);
        }
        self.groups.put(new);
        match (is_assigned(old), is_assigned(new)) {
            (true, _) => self.assigned_pod_updated(old, new),
            (false, true) => {
                self.assigned_pod_added(new);
                if self.is_mine(new) {
                    self.queue.delete(new);
                }
            }
            (false, false) if self.is_mine(new) => self.waiting_pod_updated(old, new),
            (false, false) => {}
        }
    }

    fn assigned_pod_updated(&self, old: &Arc<Pod>, new: &Arc<Pod>) {
        self.cache.update_pod(Arc::clone(new));
        let (old, new) = (self.cache.seen(old), self.cache.seen(new));
        let events = pod_update_events(&old, &new);
        let object = EventObject::Pod { old: Some(old), new: Some(new) };
        for event in events {
            self.queue.move_all(&event, &object, |_| true);
        }
    }

    fn waiting_pod_updated(&self, old: &Arc<Pod>, new: &Arc<Pod>) {
        if !new.metadata.resource_version.is_empty() && old.metadata.resource_version == new.metadata.resource_version {
            return;
        }
        if self.cache.is_assumed(&new.metadata.uid) {
            if old.metadata.deletion_timestamp.is_none() && new.metadata.deletion_timestamp.is_some() {
                self.assumed_pod_deleted(new);
            }
            return;
        }
        self.queue.update(&self.cache.seen(old), self.cache.pod_info(Arc::clone(new)));
        let nominated = |pod: &Pod| pod.status.nominated_node_name.clone();
        if !nominated(old).is_empty() && nominated(old) != nominated(new) {
            self.nomination_gone(old);
        }
    }

    /// A pod is gone.
    pub fn pod_deleted(&self, pod: &Arc<Pod>) {
        self.groups.remove(pod);
        self.gate.victim_gone(&pod.metadata.uid);
        if is_assigned(pod) {
            self.cache.remove_pod(&pod.metadata.uid);
            self.queue.move_all(&ClusterEvent::ASSIGNED_POD_DELETE, &deleted(pod), |_| true);
            return;
        }
        if !self.is_mine(pod) {
            return;
        }
        self.queue.delete(pod);
        if self.cache.is_assumed(&pod.metadata.uid) {
            self.assumed_pod_deleted(pod);
        } else if !pod.status.nominated_node_name.is_empty() {
            self.nomination_gone(pod);
        }
    }

    /// A pod whose last state nobody saw is gone: it may have had a node or not.
    pub fn pod_lost(&self, pod: &Arc<Pod>) {
        self.groups.remove(pod);
        self.cache.remove_pod(&pod.metadata.uid);
        self.queue.delete(pod);
        self.gate.victim_gone(&pod.metadata.uid);
        self.queue.move_all(&ClusterEvent::ASSIGNED_POD_DELETE, &deleted(pod), |_| true);
    }

    /// The binding under way will fail; its room is given back at once.
    fn assumed_pod_deleted(&self, pod: &Arc<Pod>) {
        let mut placed = (**pod).clone();
        placed.spec.node_name = self.cache.node_of(&pod.metadata.uid).map(|node| node.to_string()).unwrap_or_default();
        // One that waits for plugins is forgotten by its own task, which ends now.
        if !self.waiting.reject(&pod.metadata.uid)
            && let Err(error) = self.cache.forget(&pod.metadata.uid)
        {
            tracing::error!(%error, "Scheduler cache forget pod failed");
        }
        self.queue.move_all(&ClusterEvent::ASSIGNED_POD_DELETE, &deleted(&Arc::new(placed)), |_| true);
    }

    /// Room that was kept for a pod is free again, for pods that are no more important.
    fn nomination_gone(&self, pod: &Arc<Pod>) {
        let priority = pod.spec.priority.unwrap_or(0);
        self.queue.move_all(&ClusterEvent::ASSIGNED_POD_DELETE, &deleted(pod), |other| other.priority <= priority);
    }

    /// Something happened to an object that only plugins care for.
    pub(crate) fn other_changed(&self, event: &ClusterEvent, object: &EventObject) {
        self.queue.move_all(event, object, |_| true);
    }

    /// A node has come.
    pub fn node_added(&self, node: &Arc<Node>) {
        self.cache.set_node(Arc::clone(node));
        let object = EventObject::Node { old: None, new: Some(Arc::clone(node)) };
        self.queue.move_all(&ClusterEvent::NODE_ADD, &object, |_| true);
    }

    /// A node has changed.
    pub fn node_updated(&self, old: &Arc<Node>, new: &Arc<Node>) {
        self.cache.set_node(Arc::clone(new));
        let object = EventObject::Node { old: Some(Arc::clone(old)), new: Some(Arc::clone(new)) };
        for event in node_update_events(old, new) {
            self.queue.move_all(&event, &object, |_| true);
        }
    }

    /// A node is gone.
    pub fn node_deleted(&self, node: &Arc<Node>) {
        let object = EventObject::Node { old: Some(Arc::clone(node)), new: None };
        self.queue.move_all(&ClusterEvent::NODE_DELETE, &object, |_| true);
        self.cache.remove_node(&node.metadata.name);
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;
    use api_types::core_v1::ResourceRequirements;
    use component_base::shared_gates::POD_LEVEL_RESOURCES;

    use crate::config::default_configuration;
    use crate::cycle::tests::Fixture;
    use crate::framework::BuildCx;
    use crate::plugins::build_cx;
    use crate::test_objects::{PodBuilder, node, pod};

    /// A pod that asks for so much as a whole.
    fn whole(mut pod: PodBuilder, cpu: &str) -> PodBuilder {
        let requests = [("cpu".to_owned(), Quantity::parse(cpu).unwrap())].into();
        pod.0.spec.resources = Some(ResourceRequirements { requests, ..ResourceRequirements::default() });
        pod
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_pod_asks_for_as_a_whole_wakes_others_where_it_counts() {
        for (on, still_there) in [(true, 0), (false, 1)] {
            let cx = BuildCx { gates: build_cx().gates.with(POD_LEVEL_RESOURCES, on), ..build_cx() };
            let fixture = Fixture::of_cx(&default_configuration(), cx, |_| {});
            fixture.scheduler.node_added(&node("a").build());
            let placed = |cpu: &str| whole(pod("placed").request("cpu", "4").priority(9).on("a"), cpu);
            let before = fixture.pod(placed("4"));
            fixture.pod(pod("waits").request("cpu", "1"));
            assert_eq!(fixture.step().await, None);
            assert_eq!(fixture.scheduler.queue().size().unschedulable, 1, "{on}");
            fixture.scheduler.pod_updated(&before, &placed("2").build());
            assert_eq!(fixture.scheduler.queue().size().unschedulable, still_there, "{on}");
        }
    }
}
