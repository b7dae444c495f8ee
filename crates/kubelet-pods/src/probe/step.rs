//! What a probe worker does at a tick, and what an attempt makes of its counters. Pure.

use api_machinery::time::Time;
use api_types::core_v1::{ContainerStatus, Probe};

use super::run::ProbeAttempt;
use super::{ProbeKind, ProbeResult};

/// What a worker remembers between ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The container it probes now.
    pub(super) id: String,
    /// Set after a result that restarts the container (or a startup result): nothing until a new container is there.
    on_hold: bool,
    /// How often the last kind of outcome came in a row, and which it was.
    run: i32,
    last: Option<bool>,
}

/// What the worker sees at a tick.
pub(super) struct Tick<'a> {
    /// `None` while the pod has no status yet.
    pub(super) status: Option<&'a ContainerStatus>,
    pub(super) pod_ended: bool,
    pub(super) pod_deleted: bool,
    /// Whether the container would be started again if it ended.
    pub(super) restartable: bool,
    /// Whether the container ran already when the kubelet was started.
    pub(super) precedes_kubelet: bool,
    pub(super) now: Time,
}

/// What to do at a tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing this time.
    Skip,
    /// Publish this, then nothing.
    Publish(ProbeResult),
    /// Publish this if set and end the worker.
    End(Option<ProbeResult>),
    /// Run the probe.
    Probe,
}

impl State {
    /// Looks at the container. A new one gets the initial result, given through `initial`, unless it is only new to
    /// this kubelet.
    pub(super) fn tick(
        &mut self,
        kind: ProbeKind,
        probe: &Probe,
        tick: &Tick<'_>,
        initial: &mut Option<ProbeResult>,
    ) -> Action {
        let Some(status) = tick.status else { return Action::Skip };
        if tick.pod_ended {
            return Action::End(None);
        }
        let id = bare_id(&status.container_id);
        if id.is_empty() {
            return Action::Skip;
        }
        if id != self.id {
            *self = Self { id: id.to_owned(), ..Self::default() };
            let started = status.started == Some(true);
            *initial = match (tick.precedes_kubelet, kind) {
                (false, _) => Some(kind.initial()),
                (true, ProbeKind::Startup) if started => Some(ProbeResult::Success),
                // What an earlier kubelet found holds until this one has probed: a restart must not make pods unready.
                (true, _) => None,
            };
        }
        if self.on_hold {
            return Action::Skip;
        }
        let Some(running) = &status.state.running else {
            let ended = status.state.terminated.is_some() && !tick.restartable;
            return if ended { Action::End(Some(ProbeResult::Failure)) } else { Action::Publish(ProbeResult::Failure) };
        };
        if tick.pod_deleted && kind != ProbeKind::Readiness {
            return Action::End(Some(ProbeResult::Success));
        }
        if tick.now.seconds_since(running.started_at) < i64::from(probe.initial_delay_seconds) {
            return Action::Skip;
        }
        let started = status.started == Some(true);
        if started == (kind == ProbeKind::Startup) {
            return Action::Skip;
        }
        Action::Probe
    }

    /// Counts an attempt; returns a result once a threshold is reached.
    pub(super) fn count(&mut self, kind: ProbeKind, probe: &Probe, attempt: &ProbeAttempt) -> Option<ProbeResult> {
        let good = match attempt {
            ProbeAttempt::Success | ProbeAttempt::Warning(_) => true,
            ProbeAttempt::Failure(_) => false,
            ProbeAttempt::Error(_) => return None,
        };
        self.run = if self.last == Some(good) { self.run.saturating_add(1) } else { 1 };
        self.last = Some(good);
        let threshold = if good { probe.success_threshold } else { probe.failure_threshold };
        if self.run < threshold.max(1) {
            return None;
        }
        if kind == ProbeKind::Startup || (kind == ProbeKind::Liveness && !good) {
            self.on_hold = true;
            self.run = 0;
            self.last = None;
        }
        Some(if good { ProbeResult::Success } else { ProbeResult::Failure })
    }
}

/// The id without the runtime's name before it.
pub(super) fn bare_id(container_id: &str) -> &str {
    container_id.split_once("://").map_or(container_id, |(_, id)| id)
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{ContainerStateRunning, ContainerStateTerminated};

    use super::*;

    fn running(id: &str, started: bool) -> ContainerStatus {
        let mut status = ContainerStatus {
            container_id: format!("containerd://{id}"),
            started: Some(started),
            ..ContainerStatus::default()
        };
        status.state.running = Some(ContainerStateRunning { started_at: Time::from_unix_seconds(100) });
        status
    }

    fn tick(status: &ContainerStatus, now: i64) -> Tick<'_> {
        Tick {
            status: Some(status),
            pod_ended: false,
            pod_deleted: false,
            restartable: true,
            precedes_kubelet: false,
            now: Time::from_unix_seconds(now),
        }
    }

    fn probe(delay: i32) -> Probe {
        Probe { initial_delay_seconds: delay, success_threshold: 1, failure_threshold: 3, ..Probe::default() }
    }

    #[test]
    fn ticks() {
        let liveness = ProbeKind::Liveness;
        let mut state = State::default();
        let mut initial = None;
        let status = running("a", true);
        assert_eq!(state.tick(liveness, &probe(10), &tick(&status, 105), &mut initial), Action::Skip, "delay");
        assert_eq!(initial.take(), Some(ProbeResult::Success));
        assert_eq!(state.tick(liveness, &probe(10), &tick(&status, 110), &mut initial), Action::Probe);
        assert_eq!(initial, None, "only once");
        let deleted = Tick { pod_deleted: true, ..tick(&status, 110) };
        assert_eq!(state.tick(liveness, &probe(0), &deleted, &mut initial), Action::End(Some(ProbeResult::Success)));
        let starting = running("a", false);
        assert_eq!(state.tick(liveness, &probe(0), &tick(&starting, 110), &mut initial), Action::Skip, "not started");
        assert_eq!(
            State::default().tick(ProbeKind::Startup, &probe(0), &tick(&starting, 110), &mut initial),
            Action::Probe
        );
        let mut ended = running("a", false);
        ended.state.running = None;
        ended.state.terminated = Some(ContainerStateTerminated::default());
        assert_eq!(
            state.tick(liveness, &probe(0), &tick(&ended, 110), &mut initial),
            Action::Publish(ProbeResult::Failure)
        );
        let last = Tick { restartable: false, ..tick(&ended, 110) };
        assert_eq!(state.tick(liveness, &probe(0), &last, &mut initial), Action::End(Some(ProbeResult::Failure)));
    }

    #[test]
    fn what_ran_before_the_kubelet_did_gets_no_first_result() {
        for (kind, started, expected) in [
            (ProbeKind::Liveness, true, None),
            (ProbeKind::Readiness, true, None),
            (ProbeKind::Startup, true, Some(ProbeResult::Success)),
            (ProbeKind::Startup, false, None),
        ] {
            let (status, mut initial) = (running("a", started), None);
            let seen = Tick { precedes_kubelet: true, ..tick(&status, 110) };
            State::default().tick(kind, &probe(0), &seen, &mut initial);
            assert_eq!(initial, expected, "{kind:?} {started}");
        }
    }

    #[test]
    fn thresholds_and_hold() {
        let (liveness, bad) = (ProbeKind::Liveness, ProbeAttempt::Failure(String::new()));
        let status = running("a", true);
        let mut state = State::default();
        let mut initial = None;
        state.tick(liveness, &probe(0), &tick(&status, 100), &mut initial);
        assert_eq!(state.count(liveness, &probe(0), &bad), None);
        assert_eq!(state.count(liveness, &probe(0), &ProbeAttempt::Error(String::new())), None, "errors do not count");
        assert_eq!(state.count(liveness, &probe(0), &bad), None);
        assert_eq!(state.count(liveness, &probe(0), &bad), Some(ProbeResult::Failure));
        assert_eq!(state.tick(liveness, &probe(0), &tick(&status, 110), &mut initial), Action::Skip, "on hold");
        let next = running("b", true);
        assert_eq!(state.tick(liveness, &probe(0), &tick(&next, 110), &mut initial), Action::Probe);
        assert_eq!(state.count(ProbeKind::Readiness, &probe(0), &ProbeAttempt::Success), Some(ProbeResult::Success));
    }

    #[test]
    fn only_what_comes_in_a_row_counts() {
        let probe = Probe { success_threshold: 2, failure_threshold: 3, ..Probe::default() };
        let (yes, no) = (Some(ProbeResult::Success), Some(ProbeResult::Failure));
        let mut state = State::default();
        for (at, (good, expected)) in [
            (false, None),
            (false, None),
            (true, None),
            (false, None),
            (false, None),
            (false, no),
            (true, None),
            (false, None),
            (true, None),
            (true, yes),
        ]
        .into_iter()
        .enumerate()
        {
            let outcome = if good { ProbeAttempt::Success } else { ProbeAttempt::Failure(String::new()) };
            assert_eq!(state.count(ProbeKind::Readiness, &probe, &outcome), expected, "attempt {at}");
        }
    }
}
