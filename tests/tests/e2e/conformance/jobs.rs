//! Jobs: how many pods run to which end, what counts as failure and as success, and whose pods they are.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{IDLE, idle, is_true, name_of, pause, shell, text, with};
use super::workloads::{pods_of, pods_until};

pub(crate) fn checks() -> Vec<Check> {
    vec![indexed(), failing_indexes(), success_policies(), failure_policies(), disrupted(), adoption(), local(), life()]
}

/// A Job whose pods run a script.
fn job(name: &str, script: &str, spec: Value) -> Value {
    with_container(name, &shell("main", script), spec)
}

fn with_container(name: &str, container: &Value, spec: Value) -> Value {
    let mut template = super::object::template(&json!({"app": name}), std::slice::from_ref(container));
    template["spec"]["restartPolicy"] = json!("Never");
    json!({"metadata": {"name": name}, "spec": with(json!({"template": template, "backoffLimit": 6}), spec)})
}

/// Waits until a Job has a condition; gives it.
async fn becomes(place: &Place, name: &str, condition: &str) -> Value {
    place.until(&place.path(&format!("jobs/{name}")), |job| is_true(job, condition)).await
}

/// Why a Job has a condition.
fn reason<'a>(job: &'a Value, condition: &str) -> &'a str {
    text(&super::object::condition_of(job, condition)["reason"])
}

fn indexed() -> Check {
    const ITEM: &str = "Job should create pods for an Indexed job with completion indexes and specified hostname";
    Check::new("indexed-job", &[ITEM], async |place: Place| {
        let spec = json!({"completions": 4, "parallelism": 2, "completionMode": "Indexed"});
        let script = "echo $JOB_COMPLETION_INDEX $(hostname)";
        place.create("jobs", &job("indexed", script, spec)).await.ok();
        let over = becomes(&place, "indexed", "Complete").await;
        assert_eq!(over["status"]["completedIndexes"], "0-3");
        for pod in pods_of(&place, "indexed").await {
            let index = text(&pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]).to_owned();
            assert_eq!(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"], *index);
            let name = name_of(&pod);
            assert!(name.starts_with(&format!("indexed-{index}-")), "{name}");
            assert_eq!(place.log(name, "main").await.trim(), format!("{index} indexed-{index}"));
        }
    })
}

/// Pods with an odd number fail.
const ODD_FAILS: &str = "exit $((JOB_COMPLETION_INDEX % 2))";

fn failing_indexes() -> Check {
    const ITEMS: &[&str] = &[
        "Job should execute all indexes despite some failing when using backoffLimitPerIndex",
        "Job should terminate job execution when the number of failed indexes exceeds maxFailedIndexes",
        "Job should mark indexes as failed when the FailIndex action is matched in podFailurePolicy",
    ];
    Check::new("failing-indexes", ITEMS, async |place: Place| {
        let base = json!({"completions": 4, "parallelism": 4, "completionMode": "Indexed", "backoffLimit": null});
        let once = with(base.clone(), json!({"backoffLimitPerIndex": 1, "parallelism": 2}));
        place.create("jobs", &job("per-index", ODD_FAILS, once)).await.ok();
        let few = with(
            base.clone(),
            json!({"backoffLimitPerIndex": 0, "maxFailedIndexes": 0, "parallelism": 1, "completions": 6}),
        );
        place.create("jobs", &job("max-failed", "exit 1", few)).await.ok();
        let rules = json!([{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}]);
        let fail_index = with(base, json!({"backoffLimitPerIndex": 1, "podFailurePolicy": {"rules": rules}}));
        place.create("jobs", &job("fail-index", ODD_FAILS, fail_index)).await.ok();

        let over = becomes(&place, "per-index", "Failed").await;
        assert_eq!(
            (&over["status"]["failedIndexes"], &over["status"]["completedIndexes"]),
            (&json!("1,3"), &json!("0,2"))
        );
        assert_eq!((&over["status"]["failed"], &over["status"]["succeeded"]), (&json!(4), &json!(2)));
        assert_eq!(reason(&over, "Failed"), "FailedIndexes");
        let over = becomes(&place, "max-failed", "Failed").await;
        assert_eq!(
            (reason(&over, "Failed"), &over["status"]["failedIndexes"]),
            ("MaxFailedIndexesExceeded", &json!("0"))
        );
        let over = becomes(&place, "fail-index", "Failed").await;
        assert_eq!((&over["status"]["failedIndexes"], &over["status"]["failed"]), (&json!("1,3"), &json!(2)));
    })
}

fn success_policies() -> Check {
    const ITEMS: &[&str] = &[
        "Job with successPolicy should succeeded when all indexes succeeded",
        "Job with successPolicy succeededIndexes rule should succeeded even when some indexes remain pending",
        "Job with successPolicy succeededCount rule should succeeded even when some indexes remain pending",
    ];
    Check::new("success-policies", ITEMS, async |place: Place| {
        let first_only = format!("[ $JOB_COMPLETION_INDEX = 0 ] && exit 0; {IDLE}");
        let cases = [
            ("all", "true", json!({"succeededIndexes": "0-1"}), "0,1"),
            ("by-index", first_only.as_str(), json!({"succeededIndexes": "0"}), "0"),
            ("by-count", first_only.as_str(), json!({"succeededCount": 1}), "0"),
        ];
        for (name, script, rule, _) in &cases {
            let spec = json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "successPolicy": {"rules": [rule]}});
            place.create("jobs", &job(name, script, spec)).await.ok();
        }
        for (name, _, _, completed) in cases {
            let over = becomes(&place, name, "Complete").await;
            assert!(is_true(&over, "SuccessCriteriaMet"), "{over}");
            let reasons = [reason(&over, "SuccessCriteriaMet"), reason(&over, "Complete")];
            if name == "all" {
                assert_eq!(over["status"]["succeeded"], 2, "{over}");
            } else {
                assert_eq!(reasons, ["SuccessPolicy", "SuccessPolicy"], "{name}");
                assert_eq!(over["status"]["completedIndexes"], completed);
            }
            assert!(pods_of(&place, name).await.iter().all(is_over), "{name} ended before its pods");
            for count in ["terminating", "ready"] {
                assert_eq!(over["status"][count], 0, "{over}");
            }
        }
    })
}

/// Whether no container of a pod runs any more.
fn is_over(pod: &Value) -> bool {
    matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed")
}

fn failure_policies() -> Check {
    const ITEM: &str = "Job should allow to use the pod failure policy on exit code to fail the job early";
    Check::new("fail-job", &[ITEM], async |place: Place| {
        let rule =
            json!({"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [1]}});
        let spec = json!({"completions": 4, "parallelism": 2, "podFailurePolicy": {"rules": [rule]}});
        place.create("jobs", &job("fail-job", "exit 1", spec)).await.ok();
        let over = becomes(&place, "fail-job", "Failed").await;
        assert_eq!(reason(&over, "Failed"), "PodFailurePolicy");
    })
}

fn disrupted() -> Check {
    const ITEM: &str =
        "Job should allow to use a pod failure policy to ignore failure matching on DisruptionTarget condition";
    Check::new("ignored-disruption", &[ITEM], async |place: Place| {
        // The first pod of an index waits to be evicted; the one that replaces it finds the mark.
        let mark = "conformance-job-evicted";
        place.create("configmaps", &json!({"metadata": {"name": mark}})).await.ok();
        let volume = json!({"name": "mark", "configMap": {"name": mark}});
        let container = with(
            shell("main", "[ -e /mark/evicted ] && exit 0; trap \"exit 1\" TERM; while :; do sleep 1; done"),
            json!({"volumeMounts": [{"name": "mark", "mountPath": "/mark"}]}),
        );
        let rule = json!({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]});
        let spec = json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimit": 0,
            "podFailurePolicy": {"rules": [rule]}});
        let mut job = with_container("disrupted", &container, spec);
        job["spec"]["template"]["spec"]["volumes"] = json!([volume]);
        place.create("jobs", &job).await.ok();
        let running = |pods: &[Value]| pods.len() == 2 && pods.iter().all(|pod| is_true(pod, "Ready"));
        let pods = pods_until(&place, "disrupted", running).await;
        place.merge(&place.path(&format!("configmaps/{mark}")), &json!({"data": {"evicted": "yes"}})).await.ok();
        for pod in &pods {
            let name = name_of(pod);
            let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
            place.create(&format!("pods/{name}/eviction"), &eviction).await.ok();
        }
        let over = becomes(&place, "disrupted", "Complete").await;
        assert_eq!((&over["status"]["succeeded"], &over["status"]["failed"]), (&json!(2), &Value::Null), "{over}");
    })
}

fn adoption() -> Check {
    const ITEM: &str = "Job should adopt matching orphans and release non-matching pods";
    Check::new("job-adoption", &[ITEM], async |place: Place| {
        place.create("jobs", &with_container("adopting", &pause("main"), json!({"parallelism": 2}))).await.ok();
        let active = |pods: &[Value]| pods.len() == 2 && pods.iter().all(|pod| is_true(pod, "Ready"));
        let pods = pods_until(&place, "adopting", active).await;
        let path = place.path(&format!("pods/{}", name_of(&pods[0])));
        place.merge(&path, &json!({"metadata": {"ownerReferences": null}})).await.ok();
        place.until(&path, |pod| pod["metadata"]["ownerReferences"][0]["name"] == "adopting").await;
        let labels = json!({"batch.kubernetes.io/job-name": null, "job-name": null, "batch.kubernetes.io/controller-uid": null, "controller-uid": null});
        place.merge(&path, &json!({"metadata": {"labels": labels}})).await.ok();
        place.until(&path, |pod| pod["metadata"]["ownerReferences"].is_null()).await;
        place.delete_with(&place.path("jobs/adopting"), &json!({"propagationPolicy": "Background"})).await.ok();
        let released = place.get(&path).await;
        assert_eq!(released.code, 200, "{}", released.text);
        place.delete(&path).await.ok();
    })
}

fn local() -> Check {
    const ITEM: &str = "Job should run a job to completion when tasks sometimes fail and are locally restarted";
    Check::new("local-restarts", &[ITEM], async |place: Place| {
        let script = "[ -e /v/once ] && exit 0; touch /v/once; exit 1";
        let container = with(shell("main", script), json!({"volumeMounts": [{"name": "once", "mountPath": "/v"}]}));
        let mut job = with_container("local", &container, json!({"completions": 3, "parallelism": 3}));
        job["spec"]["template"]["spec"]["restartPolicy"] = json!("OnFailure");
        job["spec"]["template"]["spec"]["volumes"] = json!([{"name": "once", "emptyDir": {}}]);
        place.create("jobs", &job).await.ok();
        let over = becomes(&place, "local", "Complete").await;
        assert_eq!((&over["status"]["succeeded"], &over["status"]["failed"]), (&json!(3), &Value::Null), "{over}");
        assert!(pods_of(&place, "local").await.iter().all(|pod| super::object::restarts(pod, "main") == 1));
    })
}

fn life() -> Check {
    const ITEMS: &[&str] = &[
        "Job should manage the lifecycle of a job",
        "Job should delete a job",
        "Job should apply changes to a job status",
    ];
    Check::new("job-life", ITEMS, async |place: Place| {
        let label = json!({"metadata": {"labels": {"life": "yes"}}});
        place.create("jobs", &with(with_container("life", &idle("main"), json!({"suspend": true})), label)).await.ok();
        let path = place.path("jobs/life");
        place.until(&path, |job| is_true(job, "Suspended")).await;
        assert!(pods_of(&place, "life").await.is_empty());
        place.strategic(&path, &json!({"metadata": {"labels": {"patched": "yes"}}})).await.ok();
        let mut job = place.get(&path).await.ok();
        job["metadata"]["annotations"] = json!({"updated": "true"});
        job["metadata"]["resourceVersion"] = json!("");
        job["spec"]["suspend"] = json!(false);
        place.replace(&path, &job).await.ok();
        pods_until(&place, "life", |pods| pods.len() == 1 && is_true(&pods[0], "Ready")).await;
        let condition = json!({"status": {"conditions": [{"type": "Own", "status": "True"}]}});
        place.merge(&format!("{path}/status"), &condition).await.ok();
        let found = place.get(&format!("{path}/status")).await.ok();
        assert!(is_true(&found, "Own"), "{found}");
        let all = place.items("/apis/batch/v1/jobs?labelSelector=patched%3Dyes").await;
        assert_eq!(all.iter().map(name_of).collect::<Vec<_>>(), ["life"]);
        let collection = place.path("jobs?labelSelector=life%3Dyes");
        place.delete_with(&collection, &json!({"propagationPolicy": "Foreground"})).await.ok();
        place.gone(&path).await;
        assert!(pods_of(&place, "life").await.is_empty());
    })
}
