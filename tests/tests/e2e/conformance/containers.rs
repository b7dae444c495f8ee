//! How containers end and start again: exit codes and restart policies, termination messages, commands of images.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{ECHO, container, echo, is_true, phase, pod, restarts, shell, text, with};
use super::rows::{self, Row, is};

pub(crate) fn checks() -> Vec<Check> {
    vec![restart_policies(), messages(), commands(), image_defaults(), failing()]
}

/// Fails, then succeeds, then runs on: the number of the run is kept in a volume.
const THIRD_TIME: &str = "echo x >> /v/runs; n=$(wc -l < /v/runs); [ $n -eq 1 ] && exit 1; [ $n -eq 2 ] && exit 0; \
    trap exit TERM; while :; do sleep 1; done";

fn restart_policies() -> Check {
    const ITEM: &str =
        "Container Runtime blackbox test when starting a container that exits should run with the expected status";
    Check::new("restart-policies", &[ITEM], async |place: Place| {
        let cases = [
            ("always", "Always", "Running", 2, "running"),
            ("on-failure", "OnFailure", "Succeeded", 1, "terminated"),
            ("never", "Never", "Failed", 0, "terminated"),
        ];
        for (name, policy, ..) in cases {
            let mounted =
                with(shell("main", THIRD_TIME), json!({"volumeMounts": [{"name": "runs", "mountPath": "/v"}]}));
            let spec = json!({"restartPolicy": policy, "volumes": [{"name": "runs", "emptyDir": {}}]});
            place.create("pods", &pod(name, &[mounted], spec)).await.ok();
        }
        for (name, _, wanted, count, state) in cases {
            let path = place.path(&format!("pods/{name}"));
            let as_wanted = |pod: &Value| {
                phase(pod) == wanted
                    && restarts(pod, "main") == count
                    && !container(pod, "main")["state"][state].is_null()
            };
            let pod = place.until(&path, as_wanted).await;
            assert_eq!(is_true(&pod, "Ready"), wanted == "Running", "{name}");
        }
        place.delete(&place.path("pods/always")).await.ok();
    })
}

fn messages() -> Check {
    const ITEMS: &[&str] = &[
        "Container Runtime blackbox test on terminated container should report termination message as empty when pod succeeds and TerminationMessagePolicy FallbackToLogsOnError is set",
        "Container Runtime blackbox test on terminated container should report termination message from file when pod succeeds and TerminationMessagePolicy FallbackToLogsOnError is set",
        "Container Runtime blackbox test on terminated container should report termination message from log output if TerminationMessagePolicy FallbackToLogsOnError is set",
        "Container Runtime blackbox test on terminated container should report termination message if TerminationMessagePath is set as non-root user and at a non-default path",
        "Kubelet when scheduling a busybox command in a pod should print the output to logs",
    ];
    Check::new("termination-messages", ITEMS, async |place: Place| {
        let fallback = json!({"terminationMessagePolicy": "FallbackToLogsOnError"});
        let custom =
            json!({"terminationMessagePath": "/dev/termination-custom-log", "securityContext": {"runAsUser": 1000}});
        let containers = [
            with(shell("success", "echo DONE"), fallback.clone()),
            with(shell("file", "echo -n OK > /dev/termination-log; echo DONE"), fallback.clone()),
            with(shell("failure", "echo -n DONE; exit 1"), fallback),
            with(shell("custom", "echo -n DONE > /dev/termination-custom-log"), custom),
        ];
        let spec = json!({"restartPolicy": "Never"});
        let (pod, log) = place.result(&pod("messages", &containers, spec), "success").await;
        assert_eq!(log, "DONE");
        let message = |name: &str| text(&container(&pod, name)["state"]["terminated"]["message"]).to_owned();
        assert_eq!(["success", "file", "failure", "custom"].map(message), ["", "OK", "DONE", "DONE"], "{pod}");
        assert_eq!(phase(&pod), "Failed");
    })
}

fn commands() -> Check {
    let rows = vec![
        Row::command(
            "Containers should be able to override the image's default command (container entrypoint)",
            &["echo", "own command"],
            json!({"image": ECHO}),
            is("own command"),
        ),
        Row::command(
            "Containers should be able to override the image's default command and arguments",
            &["echo"],
            json!({"image": ECHO, "args": ["own", "arguments"]}),
            is("own arguments"),
        ),
    ];
    rows::check("commands", json!({}), rows, async |_| {})
}

fn image_defaults() -> Check {
    const ITEMS: &[&str] = &[
        "Containers should use the image defaults if command and args are blank",
        "Containers should be able to override the image's default arguments (container cmd)",
    ];
    Check::new("image-defaults", ITEMS, async |place: Place| {
        let own = with(echo("arguments", 8081), json!({"args": ["override", "arguments"]}));
        place.ready(&pod("defaults", &[echo("blank", 8080), own], json!({}))).await;
        place.log_until("defaults", "blank", |log| log.contains("listening on")).await;
        let words = |container: &'static str| {
            let place = &place;
            async move { place.exec("defaults", container, "tr '\\0' ' ' < /proc/1/cmdline").await }
        };
        assert_eq!(words("blank").await.trim(), "/echoserver");
        assert_eq!(words("arguments").await.trim(), "/echoserver override arguments");
        place.delete(&place.path("pods/defaults")).await.ok();
    })
}

fn failing() -> Check {
    const ITEMS: &[&str] = &[
        "Kubelet when scheduling a busybox command that always fails in a pod should have an terminated reason",
        "Kubelet when scheduling a busybox command that always fails in a pod should be possible to delete",
    ];
    Check::new("always-failing", ITEMS, async |place: Place| {
        let fails = json!({"name": "main", "image": super::object::BUSYBOX, "command": ["/bin/false"]});
        place.create("pods", &pod("fails", &[fails], json!({}))).await.ok();
        let path = place.path("pods/fails");
        let terminated = |pod: &Value| {
            let status = container(pod, "main");
            ["state", "lastState"].iter().any(|state| text(&status[state]["terminated"]["reason"]) == "Error")
        };
        place.until(&path, terminated).await;
        place.delete(&path).await.ok();
        place.gone(&path).await;
    })
}
