//! The life of a pod's worker: syncing, terminating, terminated, finished; never backwards. Pure.

use api_types::core_v1::Pod;
use component_helpers::pod_state::is_terminal;

use crate::pod::status::Forced;

/// Where a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// The pod is started and kept running.
    Syncing,
    /// Its containers are stopped.
    Terminating,
    /// Its volumes and groups are taken away.
    Terminated,
    /// Nothing is left to do; kept so that the pod does not start again.
    Finished,
}

/// What a worker knows beside its pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorkerState {
    pub stage: Stage,
    /// Seconds the containers are given, once terminating. Only ever shrinks.
    pub grace: Option<i64>,
    /// The pod fails for this reason.
    pub forced: Option<Forced>,
    pub evicted: bool,
    /// The pod is being deleted, or gone from its source.
    pub deleted: bool,
    /// Only the runtime knows the pod; there is no status to report.
    pub orphan: bool,
    /// The same uid was configured again while the pod was ending (static pods).
    pub restart_requested: bool,
}

/// What happens to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// The pod is new in its source.
    Created,
    /// Its object changed, or it is time to look again.
    Updated,
    /// Its source has it no more.
    Removed,
    /// Somebody wants it stopped.
    Kill { grace: Option<i64>, forced: Option<Forced>, evict: bool },
    /// Its phase has come to an end by itself.
    SyncedToEnd,
    /// Its containers are stopped.
    Stopped,
    /// Its resources are gone.
    Cleaned,
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    /// Run the worker soon.
    Wake,
    /// Run it, and break off what it waits for.
    Interrupt,
}

/// Grace where a pod says nothing.
const DEFAULT_GRACE: i64 = 30;

impl WorkerState {
    /// The state of a pod seen for the first time. `quiet` says that the runtime shows nothing of it alive: a pod that
    /// had ended before the kubelet was restarted only needs cleaning.
    pub(super) fn new(pod: &Pod, quiet: bool) -> Self {
        let stage = if is_terminal(pod) && quiet { Stage::Terminated } else { Stage::Syncing };
        let deleted = pod.metadata.deletion_timestamp.is_some();
        Self { stage, grace: None, forced: None, evicted: false, deleted, orphan: false, restart_requested: false }
    }

    /// Takes what happened.
    pub(super) fn step(&mut self, pod: &Pod, input: Input) -> Effect {
        match (self.stage, input) {
            (Stage::Syncing, Input::Created | Input::Updated) => self.configured(pod),
            (Stage::Syncing, Input::Removed) => {
                self.deleted = true;
                self.terminate(pod, None)
            }
            (Stage::Syncing, Input::SyncedToEnd) => {
                self.terminate(pod, None);
                Effect::Wake
            }
            (Stage::Syncing | Stage::Terminating, Input::Kill { grace, forced, evict }) => {
                self.evicted |= evict;
                self.forced = self.forced.take().or(forced);
                self.terminate(pod, grace)
            }
            (_, Input::Created) => {
                self.restart_requested = true;
                Effect::Nothing
            }
            (Stage::Terminating, Input::Updated) => {
                self.deleted |= pod.metadata.deletion_timestamp.is_some();
                self.terminate(pod, None)
            }
            (Stage::Terminating, Input::Removed) => {
                self.deleted = true;
                self.terminate(pod, None)
            }
            (Stage::Terminating, Input::Stopped) => {
                self.stage = Stage::Terminated;
                Effect::Wake
            }
            (Stage::Terminated, Input::Cleaned) => {
                self.stage = Stage::Finished;
                Effect::Nothing
            }
            (Stage::Terminated | Stage::Finished, Input::Removed) => {
                self.deleted = true;
                Effect::Nothing
            }
            (Stage::Terminated | Stage::Finished, Input::Updated) => {
                self.deleted |= pod.metadata.deletion_timestamp.is_some();
                Effect::Nothing
            }
            _ => Effect::Nothing,
        }
    }

    fn configured(&mut self, pod: &Pod) -> Effect {
        if pod.metadata.deletion_timestamp.is_some() {
            self.deleted = true;
            return self.terminate(pod, None);
        }
        if is_terminal(pod) {
            return self.terminate(pod, None);
        }
        Effect::Wake
    }

    /// Begins to terminate, or takes a shorter grace period.
    fn terminate(&mut self, pod: &Pod, asked: Option<i64>) -> Effect {
        let candidates = [self.grace, asked, pod.metadata.deletion_grace_period_seconds];
        let least = candidates.into_iter().flatten().filter(|seconds| *seconds > 0).min();
        let zero = candidates.contains(&Some(0)).then_some(1);
        let of_spec = pod.spec.termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE);
        let grace = Some(zero.or(least).unwrap_or(of_spec).max(1));
        let news = self.stage == Stage::Syncing || grace < self.grace;
        self.stage = Stage::Terminating;
        self.grace = grace;
        if news { Effect::Interrupt } else { Effect::Nothing }
    }

    /// Whether containers of the pod may still run.
    pub(super) fn could_run(&self) -> bool {
        self.stage < Stage::Terminated
    }

    /// Whether logs and dead containers of the pod may go.
    pub(super) fn content_may_go(&self) -> bool {
        self.evicted || (self.deleted && self.stage >= Stage::Terminated)
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::time::Time;

    use super::*;

    fn pod(phase: &str) -> Pod {
        let mut pod = Pod::default();
        pod.status.phase = phase.into();
        pod.spec.termination_grace_period_seconds = Some(20);
        pod
    }

    #[test]
    fn a_life_in_order() {
        let mut pod = pod("Running");
        let mut state = WorkerState::new(&pod, false);
        assert_eq!(state.step(&pod, Input::Created), Effect::Wake);
        assert_eq!(state.step(&pod, Input::Stopped), Effect::Nothing, "out of turn");
        pod.metadata.deletion_timestamp = Some(Time::from_unix_seconds(1));
        pod.metadata.deletion_grace_period_seconds = Some(10);
        assert_eq!(state.step(&pod, Input::Updated), Effect::Interrupt);
        assert_eq!((state.stage, state.grace, state.deleted), (Stage::Terminating, Some(10), true));
        pod.metadata.deletion_grace_period_seconds = Some(15);
        assert_eq!((state.step(&pod, Input::Updated), state.grace), (Effect::Nothing, Some(10)), "grace never grows");
        pod.metadata.deletion_grace_period_seconds = Some(0);
        assert_eq!(state.step(&pod, Input::Updated), Effect::Interrupt);
        assert_eq!(state.grace, Some(1));
        assert!(state.could_run() && !state.content_may_go());
        assert_eq!(state.step(&pod, Input::Stopped), Effect::Wake);
        assert!(!state.could_run() && state.content_may_go());
        assert_eq!(state.step(&pod, Input::Cleaned), Effect::Nothing);
        assert_eq!(state.stage, Stage::Finished);
        assert_eq!(state.step(&pod, Input::Created), Effect::Nothing);
        assert!(state.restart_requested);
    }

    #[test]
    fn ends_by_itself_or_by_force() {
        let mut state = WorkerState::new(&pod("Running"), false);
        state.step(&pod("Running"), Input::SyncedToEnd);
        assert_eq!((state.stage, state.grace, state.deleted), (Stage::Terminating, Some(20), false));
        let mut state = WorkerState::new(&pod("Running"), false);
        let forced = Some(Forced { reason: "Evicted".into(), message: String::new(), disruption: None });
        let kill = Input::Kill { grace: Some(3), forced: forced.clone(), evict: true };
        assert_eq!(state.step(&pod("Running"), kill), Effect::Interrupt);
        assert_eq!((state.grace, &state.forced, state.evicted), (Some(3), &forced, true));
        let other = Some(Forced { reason: "Preempted".into(), message: String::new(), disruption: None });
        let kill = |grace| Input::Kill { grace, forced: other.clone(), evict: false };
        assert_eq!(state.step(&pod("Running"), kill(Some(9))), Effect::Nothing);
        assert_eq!((state.grace, &state.forced, state.evicted), (Some(3), &forced, true), "the first reason stays");
        assert_eq!(state.step(&pod("Running"), kill(Some(0))), Effect::Interrupt);
        assert_eq!(state.grace, Some(1), "at once is one second");
    }

    #[test]
    fn what_had_ended_before_is_only_cleaned() {
        assert_eq!(WorkerState::new(&pod("Failed"), true).stage, Stage::Terminated);
        let mut state = WorkerState::new(&pod("Failed"), false);
        assert_eq!(state.stage, Stage::Syncing);
        state.step(&pod("Failed"), Input::Created);
        assert_eq!(state.stage, Stage::Terminating);
    }
}
