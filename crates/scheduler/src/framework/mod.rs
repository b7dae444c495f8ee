//! The scheduling framework: extension points, what plugins are given and what they answer, and profiles that run
//! them. See the Kubernetes documentation on the scheduling framework.

mod cycle_state;
mod diagnosis;
mod event;
mod points;
mod profile;
mod status;

pub use cycle_state::{CycleState, PluginMask};
pub use diagnosis::Diagnosis;
pub use event::{
    Action, ClusterEvent, EventObject, Hint, Registration, Resource, is_placed, node_update_events, pod_update_events,
};
pub use points::{
    Bind, Bound, CycleCx, Filter, MAX_SCORE, Nomination, Plugin, PostBind, PostFilter, PostFilterCx, PostFiltered,
    PreBind, PreEnqueue, PreFilter, PreFiltered, PreScore, PreScored, QueueSort, Reserve, Score, normalize_by_maximum,
};
pub use profile::{At, Profile, Restriction, registrations_of};
pub use status::{Code, Reason, Status, Verdict};
