//! The extension points: one trait each. All but binding are pure, so that a decision depends on nothing but what the cycle
//! was given; and all but binding and the look for a way out are synchronous. Who has to wait for others implements the
//! points in [`super::remote`].

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use async_trait::async_trait;
use base::{CancellationToken, Rng};

use super::candidate::Candidate;
use super::cycle_state::CycleState;
use super::diagnosis::Diagnosis;
use super::event::Registration;
use super::placements::{PlacementGenerate, PlacementScore};
use super::profile::Profile;
use super::remote::{RemoteBind, RemoteFilter, RemotePreempt, RemoteScore};
use super::signature::Sign;
use super::status::{Status, StatusResult};
use crate::cache::Snapshot;
use crate::node_info::NodeView;
use crate::pod_info::{NominatedPods, PodInfo};
use crate::queued_pod::{QueuedPod, SortKey};

/// The highest score a plugin may give; the lowest is 0.
pub const MAX_SCORE: i64 = 100;

/// What a cycle knows of the cluster.
#[derive(Clone, Copy)]
pub struct CycleCx<'a> {
    /// Nodes and their pods. Other objects are read through the listers that a plugin was built with.
    pub snapshot: &'a Snapshot,
}

/// Whether a pod may enter the active queue.
pub trait PreEnqueue: Send + Sync {
    /// Any status holds the pod back.
    fn pre_enqueue(&self, pod: &PodInfo) -> StatusResult;
}

/// The order of the active queue.
pub trait QueueSort: Send + Sync {
    /// Pods with smaller keys go first.
    fn key(&self, pod: &QueuedPod) -> SortKey;
}

/// What a pre-filter found.
#[derive(Debug, PartialEq, Eq)]
pub enum PreFiltered {
    /// Every node is worth a look.
    All,
    /// The plugin has nothing to say about this pod.
    Skip,
    /// Only these nodes can be right.
    Only(BTreeSet<String>),
}

/// Once for a pod, before its nodes are filtered.
pub trait PreFilter: Send + Sync {
    /// Computes what the filter needs and may already reject the pod.
    fn pre_filter(&self, cx: CycleCx<'_>, state: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status>;

    /// The node got one more pod, as an assumption; the state must follow.
    fn add_pod(&self, _: &mut CycleState, _pod: &PodInfo, _added: &PodInfo, _: NodeView<'_>) -> StatusResult {
        Ok(())
    }

    /// The node lost a pod, as an assumption; the state must follow.
    fn remove_pod(&self, _: &mut CycleState, _pod: &PodInfo, _removed: &PodInfo, _: NodeView<'_>) -> StatusResult {
        Ok(())
    }
}

/// Whether a node can run a pod. Called for many nodes: it must not allocate when the node fits, unless it finds something
/// there that the pod will have, such as volumes.
pub trait Filter: Send + Sync {
    /// A rejection, or nothing.
    fn filter(&self, state: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> StatusResult;

    /// Whether the answer depends on nothing but the node and the pod's shape (see `PodShape`). Then it is asked once
    /// for all pods of a shape, until the node changes.
    fn is_local(&self) -> bool {
        false
    }

    /// Whether a local answer is one for this pod, too. Where not, nothing is remembered of nodes for it.
    fn is_local_for(&self, _: &PodInfo) -> bool {
        true
    }
}

/// What becomes of a pod's nominated node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Nomination {
    /// It stays as it is.
    #[default]
    Keep,
    /// It has none any more.
    Clear,
    /// It is this node.
    Set(String),
}

/// What a post-filter found.
#[derive(Debug, Default)]
pub struct PostFiltered {
    /// What becomes of the nominated node.
    pub nomination: Nomination,
    /// Pods to evict so that the pod fits, the best choice first.
    pub candidates: Vec<Candidate>,
    /// Why the pod cannot be helped; none when it can.
    pub status: Option<Status>,
}

/// What a post-filter has to go by.
#[derive(Clone, Copy)]
pub struct PostFilterCx<'a> {
    /// The cluster.
    pub cycle: CycleCx<'a>,
    /// The profile, for running filters again.
    pub profile: &'a Profile,
    /// Why every node was rejected.
    pub diagnosis: &'a Diagnosis,
    /// Pods that wait for a node to become free.
    pub nominated: &'a NominatedPods,
    /// Randomness.
    pub rng: &'a Rng,
    /// The wall time.
    pub now: Time,
}

/// When no node can run a pod.
#[async_trait]
pub trait PostFilter: Send + Sync {
    /// Looks for a way to make the pod schedulable. It may take its time over many nodes, and lets others run between them.
    async fn post_filter(&self, cx: PostFilterCx<'_>, state: &CycleState, pod: &PodInfo) -> PostFiltered;

    /// Looks at a candidate again, as others may have been faster; it must not take long. Nothing when it is none any more.
    fn second_look(&self, _: PostFilterCx<'_>, _: &CycleState, _pod: &PodInfo, _: &Candidate) -> Option<Candidate> {
        None
    }
}

/// Whether a plugin scores the nodes of this pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreScored {
    /// It does.
    Ready,
    /// It has nothing to say about this pod.
    Skip,
}

/// Once for a pod, before its feasible nodes are scored.
pub trait PreScore: Send + Sync {
    /// Computes what scoring needs.
    fn pre_score(
        &self,
        cx: CycleCx<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        nodes: &[NodeView<'_>],
    ) -> Result<PreScored, Status>;
}

/// How well a node suits a pod.
pub trait Score: Send + Sync {
    /// A score, between 0 and [`MAX_SCORE`] unless [`Score::normalize`] brings it there.
    fn score(&self, state: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> Result<i64, Status>;

    /// Whether the score, not normalized yet, depends on nothing but the node, the number of nodes, and the pod's shape
    /// (see `PodShape`). Then it is asked once for all pods of a shape, until the node changes.
    fn is_local(&self) -> bool {
        false
    }

    /// Brings the scores of all nodes between 0 and [`MAX_SCORE`].
    fn normalize(&self, _: &CycleState, _: &PodInfo, _: &[NodeView<'_>], _scores: &mut [i64]) {}
}

/// Bookkeeping of plugins when a node was chosen.
pub trait Reserve: Send + Sync {
    /// Takes note of the choice.
    fn reserve(&self, state: &mut CycleState, pod: &PodInfo, node: &str) -> StatusResult;
    /// Forgets the choice; may be called without [`Reserve::reserve`].
    fn unreserve(&self, state: &CycleState, pod: &PodInfo, node: &str);
}

/// What a permit plugin says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permitted {
    /// The pod may be bound.
    Now,
    /// The pod waits for this plugin's word (see `WaitingPods`), for so long at most.
    Wait(Duration),
}

/// Whether a pod that has a node may be bound, or has to wait first.
pub trait Permit: Send + Sync {
    /// Lets it, rejects it, or lets it wait.
    fn permit(&self, state: &CycleState, pod: &PodInfo, node: &str) -> Result<Permitted, Status>;
}

/// Work that has to be done before a pod is bound.
#[async_trait]
pub trait PreBind: Send + Sync {
    /// Whether there is any for this pod.
    fn has_work(&self, state: &CycleState, pod: &PodInfo, node: &str) -> Result<bool, Status>;
    /// Whether it may be done while plugins beside this one do theirs.
    fn runs_beside_others(&self) -> bool {
        false
    }
    /// Does it. Once `stop` is cancelled the pod is not bound, whatever this says, and there is nothing to wait for any more;
    /// a write that is under way is waited for, so that it is known what has become of it.
    async fn pre_bind(&self, state: &CycleState, pod: &PodInfo, node: &str, stop: &CancellationToken) -> StatusResult;
}

/// Who binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// This plugin did.
    Done,
    /// The next plugin may.
    Skip,
}

/// Binds pods to nodes.
#[async_trait]
pub trait Bind: Send + Sync {
    /// Binds, or leaves it to the next plugin.
    async fn bind(&self, pod: &PodInfo, node: &str) -> Result<Bound, Status>;
}

/// Hears of pods that were bound.
pub trait PostBind: Send + Sync {
    /// The pod is bound.
    fn post_bind(&self, pod: &PodInfo, node: &str);
}

/// A plugin: the points that it implements and the events that may help pods that it rejected.
#[derive(Clone)]
pub struct Plugin {
    /// Its name.
    pub name: &'static str,
    /// At `PreEnqueue`.
    pub pre_enqueue: Option<Arc<dyn PreEnqueue>>,
    /// At `QueueSort`.
    pub queue_sort: Option<Arc<dyn QueueSort>>,
    /// At `PreFilter`.
    pub pre_filter: Option<Arc<dyn PreFilter>>,
    /// At `Filter`.
    pub filter: Option<Arc<dyn Filter>>,
    /// At `PostFilter`.
    pub post_filter: Option<Arc<dyn PostFilter>>,
    /// At `PreScore`.
    pub pre_score: Option<Arc<dyn PreScore>>,
    /// At `Score`.
    pub score: Option<Arc<dyn Score>>,
    /// At `Reserve`.
    pub reserve: Option<Arc<dyn Reserve>>,
    /// At `Permit`.
    pub permit: Option<Arc<dyn Permit>>,
    /// At `PreBind`.
    pub pre_bind: Option<Arc<dyn PreBind>>,
    /// At `Bind`.
    pub bind: Option<Arc<dyn Bind>>,
    /// At `PostBind`.
    pub post_bind: Option<Arc<dyn PostBind>>,
    /// At `PlacementGenerate`.
    pub placement_generate: Option<Arc<dyn PlacementGenerate>>,
    /// At `PlacementScore`.
    pub placement_score: Option<Arc<dyn PlacementScore>>,
    /// After the filters.
    pub remote_filter: Option<Arc<dyn RemoteFilter>>,
    /// After the scores.
    pub remote_score: Option<Arc<dyn RemoteScore>>,
    /// Before `Bind`.
    pub remote_bind: Option<Arc<dyn RemoteBind>>,
    /// After the search for pods to evict.
    pub remote_preempt: Option<Arc<dyn RemotePreempt>>,
    /// Events that may help; none means every event of pods and nodes.
    pub events: Option<Vec<Registration>>,
    /// What its answers to a pod depend on; none where they depend on more than that.
    pub sign: Option<Sign>,
}

macro_rules! point {
    ($($name:ident: $trait:ident),*) => {
        impl Plugin {
            /// A plugin that does nothing yet.
            #[must_use]
            pub fn new(name: &'static str) -> Self {
                Self { name, $($name: None,)* events: None, sign: None }
            }

            $(#[doc = concat!("Implements `", stringify!($trait), "`.")]
            #[must_use]
            pub fn $name(mut self, plugin: Arc<dyn $trait>) -> Self {
                self.$name = Some(plugin);
                self
            })*
        }
    };
}

point!(
    pre_enqueue: PreEnqueue, queue_sort: QueueSort, pre_filter: PreFilter, filter: Filter, post_filter: PostFilter,
    pre_score: PreScore, score: Score, reserve: Reserve, permit: Permit, pre_bind: PreBind, bind: Bind, post_bind: PostBind,
    placement_generate: PlacementGenerate, placement_score: PlacementScore,
    remote_filter: RemoteFilter, remote_score: RemoteScore, remote_bind: RemoteBind, remote_preempt: RemotePreempt
);

impl Plugin {
    /// Only these events may help pods that it rejected.
    #[must_use]
    pub fn wakes_on(mut self, events: Vec<Registration>) -> Self {
        self.events = Some(events);
        self
    }

    /// Its answers depend on this of a pod, and on the cluster.
    #[must_use]
    pub fn signed_by(mut self, sign: impl Fn(&PodInfo) -> Option<String> + Send + Sync + 'static) -> Self {
        self.sign = Some(Arc::new(sign));
        self
    }

    /// Whether it can reject pods.
    #[must_use]
    pub fn can_reject(&self) -> bool {
        self.pre_enqueue.is_some()
            || self.pre_filter.is_some()
            || self.filter.is_some()
            || self.remote_filter.is_some()
            || self.reserve.is_some()
            || self.permit.is_some()
    }
}

/// Raises the highest of non-negative scores to [`MAX_SCORE`] and the others with it.
pub fn normalize_by_maximum(scores: &mut [i64]) {
    let highest = scores.iter().copied().max().unwrap_or(0);
    if highest > 0 {
        for score in scores {
            *score = *score * MAX_SCORE / highest;
        }
    }
}
