//! Paths below volumes that are made from variables: those that must not be, and those that are put right later.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{IDLE, container, is_true, phase, pod, shell, with};

pub(crate) fn checks() -> Vec<Check> {
    vec![refused(), put_right(), written()]
}

/// A pod whose container mounts a path of a volume that an annotation names.
fn annotated(name: &str, expression: &str, value: &str) -> Value {
    let container = with(
        shell("main", IDLE),
        json!({
            "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "ANNOTATION", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['mysubpath']"}}}],
            "volumeMounts": [
                {"name": "work", "mountPath": "/sub", "subPathExpr": expression},
                {"name": "work", "mountPath": "/all"},
            ],
        }),
    );
    let pod = pod(name, &[container], json!({"volumes": [{"name": "work", "emptyDir": {}}]}));
    with(pod, json!({"metadata": {"annotations": {"mysubpath": value}}}))
}

fn cannot_start(pod: &Value) -> bool {
    phase(pod) == "Pending" && container(pod, "main")["state"]["waiting"]["reason"] == "CreateContainerConfigError"
}

fn refused() -> Check {
    const ITEMS: &[&str] = &[
        "Variable Expansion should fail substituting values in a volume subpath with absolute path",
        "Variable Expansion should fail substituting values in a volume subpath with backticks",
    ];
    Check::new("refused-sub-paths", ITEMS, async |place: Place| {
        place.create("pods", &annotated("absolute", "$(ANNOTATION)", "/tmp")).await.ok();
        place.create("pods", &annotated("backticks", "$(ANNOTATION)", "..")).await.ok();
        place.create("pods", &annotated("shell", "$(POD_NAME)`whoami`", "x")).await.ok();
        for name in ["absolute", "backticks"] {
            place.until(&place.path(&format!("pods/{name}")), cannot_start).await;
        }
        // Backticks themselves mean nothing: they are part of a name.
        place.until(&place.path("pods/shell"), |pod| is_true(pod, "Ready")).await;
        for name in ["absolute", "backticks", "shell"] {
            place.delete(&place.path(&format!("pods/{name}"))).await.ok();
        }
    })
}

fn put_right() -> Check {
    const ITEM: &str = "Variable Expansion should verify that a failing subpath expansion can be modified during the lifecycle of a container";
    Check::new("corrected-sub-path", &[ITEM], async |place: Place| {
        place.create("pods", &annotated("corrected", "$(ANNOTATION)", "/absolute")).await.ok();
        let path = place.path("pods/corrected");
        place.until(&path, cannot_start).await;
        place.merge(&path, &json!({"metadata": {"annotations": {"mysubpath": "mypath"}}})).await.ok();
        place.until(&path, |pod| is_true(pod, "Ready")).await;
        place.exec("corrected", "main", "touch /sub/file && ls /all/mypath/file").await;
        place.delete(&path).await.ok();
    })
}

fn written() -> Check {
    const ITEM: &str = "Variable Expansion should succeed in writing subpaths in container";
    Check::new("written-sub-path", &[ITEM], async |place: Place| {
        place.ready(&annotated("written", "$(ANNOTATION)/$(POD_NAME)", "mypath")).await;
        place.exec("written", "main", "touch /sub/test.log && test -f /all/mypath/written/test.log").await;
        // A container that runs keeps what it has mounted.
        let path = place.path("pods/written");
        place.merge(&path, &json!({"metadata": {"annotations": {"mysubpath": "mynewpath"}}})).await.ok();
        place.exec("written", "main", "test -f /sub/test.log && test -f /all/mypath/written/test.log").await;
        place.delete(&path).await.ok();
        place.gone(&path).await;
    })
}
