//! The printed row of a pod: its status in a word, how many containers are ready, how often they restarted.

use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::core_v1::constants::pod_phase;
use api_types::core_v1::{ContainerStatus, Pod};
use component_helpers::{conditions, pod_state};
use serde_json::json;

use crate::table::{self, Cell};

/// What is gathered while walking the container statuses.
#[derive(Default)]
struct Summary {
    reason: String,
    ready: usize,
    restarts: i64,
    last_restart: Time,
}

/// The table.
pub(super) const COLUMNS: &[Cell<Pod>] = &[
    Cell::NAME,
    Cell::text("Ready", |pod, _| format!("{}/{}", summarize(pod).ready, lasting(pod)).into()),
    Cell::text("Status", |pod, _| summarize(pod).reason.into()),
    Cell::text("Restarts", |pod, now| restarts(&summarize(pod), now).into()),
    Cell::AGE,
    Cell::wide("IP", |pod, _| {
        let first = pod.status.pod_ips.first();
        table::or_none(first.map_or(pod.status.pod_ip.as_str(), |first| first.ip.as_str())).into()
    }),
    Cell::wide("Node", |pod, _| table::or_none(&*pod.spec.node_name).into()),
    Cell::wide("Nominated Node", |pod, _| table::or_none(&*pod.status.nominated_node_name).into()),
    Cell::wide("Readiness Gates", |pod, _| readiness_gates(pod).into()),
];

/// How many containers run as long as the pod does.
fn lasting(pod: &Pod) -> usize {
    let spec = &pod.spec;
    spec.containers.len() + spec.init_containers.iter().filter(|one| pod_state::is_sidecar(one)).count()
}

fn restarts(summary: &Summary, now: Time) -> String {
    if summary.restarts != 0 && !summary.last_restart.is_zero() {
        format!("{} ({} ago)", summary.restarts, table::since(summary.last_restart, now))
    } else {
        summary.restarts.to_string()
    }
}

/// Rows of ended pods say so, for clients that hide them.
pub(super) fn row_conditions(pod: &Pod) -> Vec<Value> {
    let (reason, message) = match pod.status.phase.as_str() {
        pod_phase::SUCCEEDED => ("Succeeded", "The pod has completed successfully."),
        pod_phase::FAILED => ("Failed", "The pod failed."),
        _ => return Vec::new(),
    };
    vec![json!({"type": "Completed", "status": "True", "reason": reason, "message": message})]
}

fn readiness_gates(pod: &Pod) -> String {
    let gates = &pod.spec.readiness_gates;
    if gates.is_empty() {
        return "<none>".into();
    }
    let passed = gates.iter().filter(|gate| conditions::is_true(&pod.status.conditions, &gate.condition_type)).count();
    format!("{passed}/{}", gates.len())
}

fn summarize(pod: &Pod) -> Summary {
    let mut summary = Summary { reason: pod.status.phase.clone(), ..Summary::default() };
    if !pod.status.reason.is_empty() {
        summary.reason.clone_from(&pod.status.reason);
    }
    let scheduled = conditions::find(&pod.status.conditions, "PodScheduled");
    if scheduled.is_some_and(|condition| condition.reason == "SchedulingGated") {
        summary.reason = "SchedulingGated".into();
    }
    let (initializing, restarts, last_restart) = summarize_init(pod, &mut summary);
    if !initializing || conditions::is_true(&pod.status.conditions, "Initialized") {
        (summary.restarts, summary.last_restart) = (restarts, last_restart);
        summarize_main(pod, &mut summary);
    }
    if pod.metadata.deletion_timestamp.is_some() {
        if pod.status.reason == "NodeLost" {
            summary.reason = "Unknown".into();
        } else if !pod_state::is_terminal(pod) {
            summary.reason = "Terminating".into();
        }
    }
    summary
}

/// Walks the init containers. Gives whether one still holds the pod up, and the restarts of the sidecars alone.
fn summarize_init(pod: &Pod, summary: &mut Summary) -> (bool, i64, Time) {
    let (mut restarts, mut last) = (0, Time::default());
    for (index, status) in pod.status.init_container_statuses.iter().enumerate() {
        let spec = pod.spec.init_containers.iter().find(|one| one.name == status.name);
        let sidecar = spec.is_some_and(pod_state::is_sidecar);
        summary.restarts += i64::from(status.restart_count);
        summary.last_restart = summary.last_restart.max(last_finish(status));
        if sidecar {
            restarts += i64::from(status.restart_count);
            last = last.max(last_finish(status));
        }
        let state = &status.state;
        let terminated = state.terminated.as_ref();
        if terminated.is_some_and(|terminated| terminated.exit_code == 0) {
            continue;
        }
        if sidecar && status.started == Some(true) {
            summary.ready += usize::from(status.ready);
            continue;
        }
        let waiting = state.waiting.as_ref();
        summary.reason = match (terminated, waiting) {
            (Some(end), _) if !end.reason.is_empty() => format!("Init:{}", end.reason),
            (Some(end), _) if end.signal != 0 => format!("Init:Signal:{}", end.signal),
            (Some(end), _) => format!("Init:ExitCode:{}", end.exit_code),
            (None, Some(waiting)) if !waiting.reason.is_empty() && waiting.reason != "PodInitializing" => {
                format!("Init:{}", waiting.reason)
            }
            _ => format!("Init:{index}/{}", pod.spec.init_containers.len()),
        };
        return (true, restarts, last);
    }
    (false, restarts, last)
}

/// Walks the main containers from the last to the first, so that the first one's state wins.
fn summarize_main(pod: &Pod, summary: &mut Summary) {
    let (mut running, mut error_reason) = (false, String::new());
    for status in pod.status.container_statuses.iter().rev() {
        summary.restarts += i64::from(status.restart_count);
        summary.last_restart = summary.last_restart.max(last_finish(status));
        let state = &status.state;
        if let Some(waiting) = state.waiting.as_ref().filter(|waiting| !waiting.reason.is_empty()) {
            summary.reason.clone_from(&waiting.reason);
        } else if let Some(end) = &state.terminated {
            summary.reason = match (end.reason.as_str(), end.signal) {
                ("", 0) => format!("ExitCode:{}", end.exit_code),
                ("", signal) => format!("Signal:{signal}"),
                (reason, _) => reason.to_owned(),
            };
            if end.exit_code != 0 {
                error_reason.clone_from(&summary.reason);
            }
        } else if status.ready && state.running.is_some() {
            running = true;
            summary.ready += 1;
        }
    }
    if summary.reason == "Completed" {
        if !(error_reason.is_empty() || running && pod_state::is_ready(pod)) {
            summary.reason = error_reason;
        } else if running {
            summary.reason = if pod_state::is_ready(pod) { "Running".into() } else { "NotReady".into() };
        }
    }
}

/// When the container's last run ended, if it had one.
fn last_finish(status: &ContainerStatus) -> Time {
    let last = status.last_state.terminated.as_ref();
    last.map(|end| end.finished_at).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{Container, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting};

    use super::*;

    fn status(name: &str) -> ContainerStatus {
        ContainerStatus { name: name.into(), ..ContainerStatus::default() }
    }

    fn waiting(reason: &str) -> ContainerStatus {
        let mut status = status("c");
        status.state.waiting = Some(ContainerStateWaiting { reason: reason.into(), ..Default::default() });
        status
    }

    fn running() -> ContainerStatus {
        let mut status = ContainerStatus { ready: true, ..status("c") };
        status.state.running = Some(ContainerStateRunning::default());
        status
    }

    fn ended(code: i32, reason: &str) -> ContainerStatus {
        let mut status = status("c");
        let end = ContainerStateTerminated { exit_code: code, reason: reason.into(), ..Default::default() };
        status.state.terminated = Some(end);
        status
    }

    fn shown(init: Vec<ContainerStatus>, main: Vec<ContainerStatus>, deleting: bool) -> (String, usize) {
        let mut pod = Pod::default();
        pod.status.phase = "Pending".into();
        pod.spec.init_containers =
            init.iter().map(|one| Container { name: one.name.clone(), ..Default::default() }).collect();
        pod.status.init_container_statuses = init;
        pod.status.container_statuses = main;
        pod.metadata.deletion_timestamp = deleting.then(|| Time::from_unix_seconds(1));
        let summary = summarize(&pod);
        (summary.reason, summary.ready)
    }

    #[test]
    fn the_status_in_a_word() {
        for (init, main, deleting, expected) in [
            (vec![], vec![], false, ("Pending", 0)),
            (vec![], vec![waiting("ImagePullBackOff")], false, ("ImagePullBackOff", 0)),
            (vec![], vec![running()], false, ("Pending", 1)),
            (vec![], vec![ended(1, "")], false, ("ExitCode:1", 0)),
            (vec![], vec![ended(1, "Error"), running()], false, ("Error", 1)),
            (vec![], vec![ended(0, "Completed"), running()], false, ("NotReady", 1)),
            (vec![], vec![running()], true, ("Terminating", 1)),
            (vec![ended(0, "Completed"), waiting("PodInitializing")], vec![], false, ("Init:1/2", 0)),
            (vec![ended(2, "")], vec![], false, ("Init:ExitCode:2", 0)),
            (vec![waiting("ErrImagePull")], vec![], false, ("Init:ErrImagePull", 0)),
        ] {
            let found = shown(init, main, deleting);
            assert_eq!((found.0.as_str(), found.1), expected);
        }
    }

    /// The row of a pod.
    fn row(text: &str) -> Vec<Value> {
        let mut pod = Pod::default();
        let decoded = api_machinery::json::decode(text.as_bytes(), &mut pod);
        assert!(decoded.expect(text).problems.is_empty(), "{text}");
        let now = Time::from_unix_seconds(1_767_225_600 + 200);
        COLUMNS.iter().map(|cell| (cell.show)(&pod, now)).collect()
    }

    #[test]
    fn sidecars_count_and_restarts_are_dated() {
        let ran =
            |at: &str| format!(r#""lastState":{{"terminated":{{"exitCode":1,"finishedAt":"2026-01-01T00:{at}Z"}}}}"#);
        let (early, late) = (ran("00:20"), ran("02:20"));
        let spec = r#""spec":{"initContainers":[{"name":"i"},{"name":"s","restartPolicy":"Always"}],
            "containers":[{"name":"c"}]}"#;
        let init = format!(
            r#""initContainerStatuses":[
                {{"name":"i","restartCount":5,{late},"state":{{"terminated":{{"exitCode":0,"reason":"Completed"}}}}}},
                {{"name":"s","restartCount":2,{early},"started":true,"ready":true,"state":{{"running":{{}}}}}}]"#
        );
        let running = r#""containerStatuses":[{"name":"c","restartCount":1,"ready":true,"state":{"running":{}}}]"#;
        let pod = format!(r#"{{{spec},"status":{{"phase":"Running",{init},{running}}}}}"#);
        // Plain init containers count only as long as they hold the pod up.
        assert_eq!(row(&pod)[1..4], ["2/2", "Running", "3 (3m ago)"]);
        let holding = format!(
            r#"{{{spec},"status":{{"phase":"Pending","initContainerStatuses":[{{"name":"i","restartCount":5,{late},
                "state":{{"waiting":{{"reason":"CrashLoopBackOff"}}}}}}]}}}}"#
        );
        assert_eq!(row(&holding)[1..4], ["0/2", "Init:CrashLoopBackOff", "5 (60s ago)"]);
        let undated = r#"{"status":{"phase":"Running","containerStatuses":[{"name":"c","restartCount":1}]}}"#;
        assert_eq!(row(undated)[3], "1");
        let most = r#"{"name":"c","restartCount":2147483647}"#;
        assert_eq!(row(&format!(r#"{{"status":{{"containerStatuses":[{most},{most}]}}}}"#))[3], "4294967294");
    }

    #[test]
    fn more_words() {
        let going = r#""metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}"#;
        let signal = |list: &str| {
            format!(
                r#"{{"status":{{"phase":"Pending","{list}":[{{"state":{{"terminated":{{"exitCode":137,"signal":9}}}}}}]}}}}"#
            )
        };
        let rows = [
            (r#"{"status":{"phase":"Failed","reason":"Evicted"}}"#.to_owned(), "Evicted"),
            (
                r#"{"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",
                "reason":"SchedulingGated"}]}}"#
                    .to_owned(),
                "SchedulingGated",
            ),
            (signal("containerStatuses"), "Signal:9"),
            (signal("initContainerStatuses"), "Init:Signal:9"),
            (format!(r#"{{{going},"status":{{"phase":"Running","reason":"NodeLost"}}}}"#), "Unknown"),
            (format!(r#"{{{going},"status":{{"phase":"Succeeded"}}}}"#), "Succeeded"),
            (
                r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[
                {"state":{"terminated":{"exitCode":0,"reason":"Completed"}}},{"ready":true,"state":{"running":{}}}]}}"#
                    .to_owned(),
                "Running",
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(row(&text)[2], expected, "{text}");
        }
    }

    #[test]
    fn what_is_wide() {
        assert_eq!(row("{}")[5..], ["<none>", "<none>", "<none>", "<none>"]);
        let text = r#"{"spec":{"nodeName":"node","readinessGates":[{"conditionType":"a"},{"conditionType":"b"}]},
            "status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}],"nominatedNodeName":"other",
            "conditions":[{"type":"a","status":"True"},{"type":"b","status":"False"}]}}"#;
        assert_eq!(row(text)[5..], ["10.0.0.1", "node", "other", "1/2"]);
    }
}
