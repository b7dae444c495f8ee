//! Cluster events: what happened that may let a waiting pod be scheduled, and how plugins say which of it matters.

use std::any::TypeId;
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use api_machinery::object::{Kind, Object};
use api_types::core_v1::{Node, Pod};
use client::{Change, Informers};

use crate::pod_info::taken;

/// What kind of object an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Any pod; only in registrations.
    Pod,
    /// A pod on a node.
    AssignedPod,
    /// A pod that waits.
    UnschedulablePod,
    /// A node.
    Node,
    /// Objects of another kind.
    Other(OtherKind),
    /// Everything.
    Wildcard,
}

impl Resource {
    /// The objects of a kind. A registration that names one makes the scheduler watch them.
    #[must_use]
    pub fn of<T: Kind + Object>() -> Self {
        let id = TypeId::of::<T>();
        if id == TypeId::of::<Pod>() {
            return Self::Pod;
        }
        if id == TypeId::of::<Node>() {
            return Self::Node;
        }
        Self::Other(OtherKind { id, group: T::TYPE.group, name: T::TYPE.kind, subscribe: subscribe::<T> })
    }
}

/// A kind that only plugins care for, by its type.
#[derive(Clone, Copy)]
pub struct OtherKind {
    id: TypeId,
    group: &'static str,
    name: &'static str,
    subscribe: fn(&Informers, Tell),
}

/// Hears of events.
type Tell = Arc<dyn Fn(&ClusterEvent, &EventObject) + Send + Sync>;

impl OtherKind {
    /// Tells of all that happens to objects of the kind, as the informers see it.
    pub(crate) fn subscribe(self, informers: &Informers, tell: Tell) {
        (self.subscribe)(informers, tell);
    }
}

impl PartialEq for OtherKind {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for OtherKind {}

impl Hash for OtherKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl fmt::Debug for OtherKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

fn subscribe<T: Kind + Object>(informers: &Informers, tell: Tell) {
    let resource = Resource::of::<T>();
    informers.of::<T>().subscribe(move |change| {
        let whole = |object: &Arc<T>| -> Arc<dyn Object> { object.clone() };
        let (old, new) = match change {
            Change::Added { object, .. } => (None, Some(whole(object))),
            Change::Updated { old, new } => (Some(whole(old)), Some(whole(new))),
            Change::Deleted { object, .. } => (Some(whole(object)), None),
        };
        let event = ClusterEvent::of_change(resource, old.is_some(), new.is_some());
        tell(&event, &EventObject::Other { old, new });
    });
}

/// What happened, as a set of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Action(u32);

impl Action {
    /// Added.
    pub const ADD: Self = Self(1);
    /// Deleted.
    pub const DELETE: Self = Self(1 << 1);
    /// A node's allocatable resources changed.
    pub const NODE_ALLOCATABLE: Self = Self(1 << 2);
    /// A node's labels changed.
    pub const NODE_LABEL: Self = Self(1 << 3);
    /// A node's taints changed, or it became schedulable.
    pub const NODE_TAINT: Self = Self(1 << 4);
    /// A node's conditions changed.
    pub const NODE_CONDITION: Self = Self(1 << 5);
    /// A node's annotations changed.
    pub const NODE_ANNOTATION: Self = Self(1 << 6);
    /// A node's declared features changed.
    pub const NODE_DECLARED_FEATURE: Self = Self(1 << 7);
    /// A pod's labels changed.
    pub const POD_LABEL: Self = Self(1 << 8);
    /// A pod asks for less.
    pub const POD_SCALE_DOWN: Self = Self(1 << 9);
    /// A pod has no scheduling gates any more.
    pub const POD_GATES_ELIMINATED: Self = Self(1 << 10);
    /// A pod has other tolerations.
    pub const POD_TOLERATION: Self = Self(1 << 11);
    /// A pod's generated claims changed.
    pub const POD_GENERATED_CLAIM: Self = Self(1 << 12);
    /// Some other update.
    const OTHER_UPDATE: Self = Self(1 << 13);
    /// Any update.
    pub const UPDATE: Self = Self(((1 << 14) - 1) & !3);
    /// Everything.
    pub const ALL: Self = Self((1 << 14) - 1);

    /// Both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in this set.
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One thing that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClusterEvent {
    /// To what.
    pub resource: Resource,
    /// What.
    pub action: Action,
    /// How metrics and logs call it; for another kind's objects, what stands behind the kind's name.
    label: &'static str,
}

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $resource:ident, $action:ident, $label:literal;)*) => {
        impl ClusterEvent {
            $($(#[$doc])* pub const $name: Self =
                Self { resource: Resource::$resource, action: Action::$action, label: $label };)*
        }
    };
}

events! {
    /// A pod was put on a node, or seen there for the first time.
    ASSIGNED_POD_ADD = AssignedPod, ADD, "AssignedPodAdd";
    /// A pod on a node is gone.
    ASSIGNED_POD_DELETE = AssignedPod, DELETE, "AssignedPodDelete";
    /// A pod that waits was created.
    UNSCHEDULABLE_POD_ADD = UnschedulablePod, ADD, "UnschedulablePodAdd";
    /// A pod that waits changed in some other way.
    UNSCHEDULABLE_POD_UPDATE = UnschedulablePod, OTHER_UPDATE, "UnschedulablePodUpdate";
    /// A node was added.
    NODE_ADD = Node, ADD, "NodeAdd";
    /// A node is gone.
    NODE_DELETE = Node, DELETE, "NodeDelete";
    /// A pod waited longer than the limit.
    UNSCHEDULABLE_TIMEOUT = Wildcard, ALL, "UnschedulableTimeout";
    /// A pod was put forward on purpose.
    FORCE_ACTIVATE = Wildcard, ALL, "ForceActivate";
    /// A pod comes back after an attempt.
    SCHEDULE_ATTEMPT_FAILURE = Wildcard, ALL, "ScheduleAttemptFailure";
    /// A pod's back-off is over.
    BACKOFF_COMPLETE = Wildcard, ALL, "BackoffComplete";
    /// A pod was taken before its back-off was over, as nothing else was waiting.
    POP_FROM_BACKOFF_Q = Wildcard, ALL, "PopFromBackoffQ";
}

impl ClusterEvent {
    /// What happened to an object of a kind that only plugins care for, by whether it was there before and is there now.
    pub(crate) fn of_change(resource: Resource, was_there: bool, is_there: bool) -> Self {
        let (action, label) = match (was_there, is_there) {
            (false, _) => (Action::ADD, "Add"),
            (true, true) => (Action::UPDATE, "Update"),
            (true, false) => (Action::DELETE, "Delete"),
        };
        Self { resource, action, label }
    }

    /// Whether a registration covers this event.
    #[must_use]
    pub fn is_wanted_by(&self, resource: Resource, action: Action) -> bool {
        let same = resource == self.resource
            || resource == Resource::Wildcard
            || (resource == Resource::Pod
                && matches!(self.resource, Resource::AssignedPod | Resource::UnschedulablePod));
        same && self.resource != Resource::Wildcard && action.covers(self.action)
    }

    /// How metrics and logs call it.
    #[must_use]
    pub fn label(&self) -> Cow<'static, str> {
        match self.resource {
            Resource::Other(kind) if kind.group.is_empty() => format!("{}{}", kind.name, self.label).into(),
            Resource::Other(kind) => format!("{}/{}{}", kind.group, kind.name, self.label).into(),
            _ => self.label.into(),
        }
    }

    /// Whether it concerns every pod whatever its plugins registered.
    #[must_use]
    pub fn is_wildcard(&self) -> bool {
        self.resource == Resource::Wildcard
    }
}

/// The object of an event, before and after.
#[derive(Clone)]
pub enum EventObject {
    /// None.
    None,
    /// A pod.
    Pod {
        /// Before; none when it was added.
        old: Option<Arc<Pod>>,
        /// After; none when it was deleted.
        new: Option<Arc<Pod>>,
    },
    /// A node.
    Node {
        /// Before; none when it was added.
        old: Option<Arc<Node>>,
        /// After; none when it was deleted.
        new: Option<Arc<Node>>,
    },
    /// An object of another kind.
    Other {
        /// Before; none when it was added.
        old: Option<Arc<dyn Object>>,
        /// After; none when it was deleted.
        new: Option<Arc<dyn Object>>,
    },
}

impl EventObject {
    /// The pod, the newer one where there are two.
    #[must_use]
    pub fn pod(&self) -> Option<&Arc<Pod>> {
        match self {
            Self::Pod { old, new } => new.as_ref().or(old.as_ref()),
            _ => None,
        }
    }

    /// The object of another kind before and after, as far as it is there; nothing where it is of yet another.
    #[must_use]
    pub fn change<T: Object>(&self) -> (Option<&T>, Option<&T>) {
        let Self::Other { old, new } = self else { return (None, None) };
        (old.as_ref().and_then(|old| old.downcast_ref()), new.as_ref().and_then(|new| new.downcast_ref()))
    }

    /// The object of another kind, the newer one where there are two; none where it is of yet another.
    #[must_use]
    pub fn other<T: Object>(&self) -> Option<&T> {
        let Self::Other { old, new } = self else { return None };
        new.as_ref().or(old.as_ref())?.downcast_ref()
    }
}

/// What a hint says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// The pod may be schedulable now.
    Queue,
    /// Nothing changed for this pod.
    Skip,
}

impl Hint {
    /// `Queue` when the condition holds.
    #[must_use]
    pub const fn queue_if(condition: bool) -> Self {
        if condition { Self::Queue } else { Self::Skip }
    }
}

/// Says whether an event may have made a pod schedulable.
pub(crate) type HintFn = Arc<dyn Fn(&Pod, &EventObject) -> Hint + Send + Sync>;

/// An event that a plugin wants to hear of for the pods that it rejected.
#[derive(Clone)]
pub struct Registration {
    /// The kind of object.
    pub resource: Resource,
    /// The actions.
    pub action: Action,
    /// Asked for each pod; none means always.
    pub hint: Option<HintFn>,
}

impl Registration {
    /// Every such event counts.
    #[must_use]
    pub fn always(resource: Resource, action: Action) -> Self {
        Self { resource, action, hint: None }
    }

    /// Events count when the hint says so.
    pub fn hinted(
        resource: Resource,
        action: Action,
        hint: impl Fn(&Pod, &EventObject) -> Hint + Send + Sync + 'static,
    ) -> Self {
        Self { resource, action, hint: Some(Arc::new(hint)) }
    }
}

/// Whether the pod has a node or a node in mind.
#[must_use]
pub fn is_placed(pod: &Pod) -> bool {
    !pod.spec.node_name.is_empty() || !pod.status.nominated_node_name.is_empty()
}

/// What an update of a pod means, in the order in which it is announced.
#[must_use]
pub fn pod_update_events(old: &Pod, new: &Pod) -> Vec<ClusterEvent> {
    let assigned = !new.spec.node_name.is_empty();
    let resource = if assigned { Resource::AssignedPod } else { Resource::UnschedulablePod };
    let label = |yes: &'static str, no: &'static str| if assigned { yes } else { no };
    let mut events = Vec::new();
    let mut add = |when: bool, action, label| {
        if when {
            events.push(ClusterEvent { resource, action, label });
        }
    };
    add(
        old.metadata.labels != new.metadata.labels,
        Action::POD_LABEL,
        label("AssignedPodUpdatePodLabel", "UnschedulablePodUpdatePodLabel"),
    );
    add(
        scales_down(old, new),
        Action::POD_SCALE_DOWN,
        label("AssignedPodUpdatePodScaleDown", "UnschedulablePodUpdatePodScaleDown"),
    );
    add(
        !old.spec.scheduling_gates.is_empty() && new.spec.scheduling_gates.is_empty(),
        Action::POD_GATES_ELIMINATED,
        label("AssignedPodUpdatePodSchedulingGatesEliminated", "UnschedulablePodUpdatePodSchedulingGatesEliminated"),
    );
    add(
        old.spec.tolerations.len() != new.spec.tolerations.len(),
        Action::POD_TOLERATION,
        label("AssignedPodUpdatePodToleration", "UnschedulablePodUpdatePodToleration"),
    );
    add(
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
            || old.status.extended_resource_claim_status != new.status.extended_resource_claim_status,
        Action::POD_GENERATED_CLAIM,
        label("AssignedPodUpdatePodGeneratedResourceClaim", "UnschedulablePodUpdatePodGeneratedResourceClaim"),
    );
    if events.is_empty() {
        let label = label("AssignedPodUpdate", "UnschedulablePodUpdate");
        events.push(ClusterEvent { resource, action: Action::OTHER_UPDATE, label });
    }
    events
}

/// Whether the pod takes up less than before: one that is to have less gives nothing back until its kubelet has seen to it.
fn scales_down(old: &Pod, new: &Pod) -> bool {
    let (old, new) = (taken(old), taken(new));
    old.iter().any(|(name, before)| new.get(name).is_none_or(|after| after.milli_value() < before.milli_value()))
}

/// What an update of a node means, in the order in which it is announced.
#[must_use]
pub fn node_update_events(old: &Node, new: &Node) -> Vec<ClusterEvent> {
    let mut events = Vec::new();
    let mut add = |when: bool, action, label| {
        if when {
            events.push(ClusterEvent { resource: Resource::Node, action, label });
        }
    };
    add(old.spec.unschedulable && !new.spec.unschedulable, Action::NODE_TAINT, "NodeUpdateNodeTaint");
    add(old.status.allocatable != new.status.allocatable, Action::NODE_ALLOCATABLE, "NodeUpdateNodeAllocatable");
    add(old.metadata.labels != new.metadata.labels, Action::NODE_LABEL, "NodeUpdateNodeLabel");
    add(old.spec.taints != new.spec.taints, Action::NODE_TAINT, "NodeUpdateNodeTaint");
    add(conditions_differ(old, new), Action::NODE_CONDITION, "NodeUpdateNodeCondition");
    add(old.metadata.annotations != new.metadata.annotations, Action::NODE_ANNOTATION, "NodeUpdateNodeAnnotation");
    add(
        old.status.declared_features != new.status.declared_features,
        Action::NODE_DECLARED_FEATURE,
        "NodeUpdateNodeDeclaredFeature",
    );
    events
}

/// Heartbeats, reasons and messages do not count.
fn conditions_differ(old: &Node, new: &Node) -> bool {
    let statuses = |node: &Node| -> std::collections::BTreeMap<String, String> {
        node.status.conditions.iter().map(|condition| (condition.type_.clone(), condition.status.clone())).collect()
    };
    old.status.conditions.len() != new.status.conditions.len() || statuses(old) != statuses(new)
}
