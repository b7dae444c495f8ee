//! Init containers: their order, and what becomes of the others when one fails.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{IDLE, condition_of, container, is_true, phase, pod, restarts, shell, text, with};

pub(crate) fn checks() -> Vec<Check> {
    vec![succeeding(), failing()]
}

/// Two init containers and one that must find what both wrote, in order.
fn ordered(name: &str, policy: &str, main: &str) -> Value {
    let mount = json!({"volumeMounts": [{"name": "steps", "mountPath": "/v"}]});
    let container = |name: &str, script: &str| with(shell(name, script), mount.clone());
    let steps = [container("first", "echo 1 >> /v/steps"), container("second", "echo 2 >> /v/steps")];
    let main = container("main", &format!("[ \"$(echo $(cat /v/steps))\" = \"1 2\" ] || exit 1; {main}"));
    let spec =
        json!({"restartPolicy": policy, "initContainers": steps, "volumes": [{"name": "steps", "emptyDir": {}}]});
    pod(name, &[main], spec)
}

fn succeeding() -> Check {
    const ITEMS: &[&str] = &[
        "InitContainer should invoke init containers on a RestartAlways pod",
        "InitContainer should invoke init containers on a RestartNever pod",
    ];
    Check::new("init-containers", ITEMS, async |place: Place| {
        let running = place.ready(&ordered("always", "Always", IDLE)).await;
        let (ended, _) = place.result(&ordered("never", "Never", "exit 0"), "main").await;
        assert_eq!(phase(&ended), "Succeeded");
        for pod in [&running, &ended] {
            assert!(is_true(pod, "Initialized"), "{pod}");
            for name in ["first", "second"] {
                let status = container(pod, name);
                assert_eq!(status["state"]["terminated"]["exitCode"], 0, "{status}");
                assert_eq!(status["ready"], true, "{status}");
            }
        }
        place.delete(&place.path("pods/always")).await.ok();
    })
}

fn failing() -> Check {
    const ITEMS: &[&str] = &[
        "InitContainer should not start app containers if init containers fail on a RestartAlways pod",
        "InitContainer should not start app containers and fail the pod if init containers fail on a RestartNever pod",
    ];
    Check::new("failing-init-containers", ITEMS, async |place: Place| {
        let failing = |name: &str, policy: &str| {
            let steps = [shell("first", "exit 1"), shell("second", "true")];
            pod(name, &[shell("main", IDLE)], json!({"restartPolicy": policy, "initContainers": steps}))
        };
        place.create("pods", &failing("retried", "Always")).await.ok();
        place.create("pods", &failing("failed", "Never")).await.ok();
        let failed = place.ended(&place.path("pods/failed")).await;
        let retried = place.until(&place.path("pods/retried"), |pod| restarts(pod, "first") >= 2).await;
        assert_eq!([phase(&failed), phase(&retried)], ["Failed", "Pending"]);
        for pod in [&failed, &retried] {
            let condition = condition_of(pod, "Initialized");
            assert_eq!(condition["status"], "False", "{condition}");
            assert_eq!(condition["reason"], "ContainersNotInitialized");
            assert!(
                text(&condition["message"]).starts_with("containers with incomplete status: [first second]"),
                "{condition}"
            );
            for name in ["second", "main"] {
                let status = container(pod, name);
                assert_eq!(status["state"]["waiting"]["reason"], "PodInitializing", "{status}");
            }
        }
        place.delete(&place.path("pods/retried")).await.ok();
    })
}
