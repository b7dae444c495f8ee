//! The scheduling framework: extension points, what plugins are given and what they answer, and profiles that run
//! them. See the Kubernetes documentation on the scheduling framework.

mod build;
mod candidate;
mod cycle_state;
mod diagnosis;
mod event;
mod placements;
mod plugin_metrics;
mod pod_groups;
mod points;
mod pre_binding;
mod preemption_gate;
mod profile;
mod remote;
mod signature;
mod status;
mod waiting_pods;

pub use build::{BuildCx, Descriptor, PluginError};
pub use candidate::Candidate;
pub use cycle_state::{CycleState, PluginMask};
pub use diagnosis::Diagnosis;
pub use event::{
    Action, ClusterEvent, EventObject, Hint, OtherKind, Registration, Resource, is_placed, node_update_events,
    pod_update_events,
};
pub use placements::{GroupCx, PlacedMember, Placement, PlacementGenerate, PlacementScore, Proposal};
pub use plugin_metrics::PluginMetrics;
pub(crate) use plugin_metrics::{Asked, FilterTally, SKIP, Started, names};
pub(crate) use pod_groups::{GANG_SCHEDULING, GENERIC_WORKLOAD, GROUP_PREEMPTION, TOPOLOGY_AWARE_GROUPS};
pub use pod_groups::{GroupKey, GroupSize, PodGroups};
pub use points::{
    Bind, Bound, CycleCx, Filter, MAX_SCORE, Nomination, Permit, Permitted, Plugin, PostBind, PostFilter, PostFilterCx,
    PostFiltered, PreBind, PreEnqueue, PreFilter, PreFiltered, PreScore, PreScored, QueueSort, Reserve, Score,
    normalize_by_maximum,
};
pub(crate) use pre_binding::PreBinding;
pub use preemption_gate::{PreemptionGate, PreemptorKey};
pub use profile::{At, Profile, Restriction, registrations_of};
pub use remote::{Remote, RemoteBind, RemoteFilter, RemotePreempt, RemoteScore};
pub use signature::{Sign, Signature};
pub(crate) use signature::{by_resources, by_tolerations, by_volumes};
pub use status::{Code, Reason, Status, StatusResult};
pub(crate) use waiting_pods::Parked;
pub use waiting_pods::{WaitingPod, WaitingPods};
