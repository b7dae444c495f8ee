//! What comes about with gates that are off when nobody says otherwise, all components together.

use std::time::Duration;

use api_machinery::value::Value;
use component_base::shared_gates::{
    DEVICE_TAINT_RULES, GENERIC_WORKLOAD, GROUP_CLAIMS, STATEFUL_SET_MAX_UNAVAILABLE, TOPOLOGY_AWARE_GROUPS,
    WORKLOAD_WITH_JOB,
};
use component_base::{Feature, Gates};
use serde_json::json;

use crate::custom_resources::condition;
use crate::harness::{Cx, conform_gated, name_of, text};

const GANG_SCHEDULING: Feature = Feature::named("GangScheduling");
const GROUPS: &str = "/apis/scheduling.k8s.io/v1alpha2";
/// What a pod may not do for as long is taken to be what it never does.
const A_WHILE: Duration = Duration::from_secs(60);

fn on(features: &[Feature]) -> Gates {
    features.iter().fold(Gates::default(), |gates, feature| gates.with(*feature, true))
}

async fn node_of(cx: &Cx, pod: &str) -> String {
    text(&cx.get(pod).await.ok()["spec"]["nodeName"]).to_owned()
}

fn running(pod: &Value) -> bool {
    pod["status"]["phase"] == "Running"
}

#[test]
fn a_gang_is_bound_when_all_of_it_is_there() {
    conform_gated(&on(&[GENERIC_WORKLOAD, GANG_SCHEDULING]), async |cx| {
        let namespace = cx.namespace("gangs").await;
        let pods = format!("/api/v1/namespaces/{namespace}/pods");
        let policy = json!({"gang": {"minCount": 3}});
        let workload = json!({"metadata": {"name": "training"}, "spec": {
            "podGroupTemplates": [{"name": "workers", "schedulingPolicy": policy}]}});
        cx.create(&format!("{GROUPS}/namespaces/{namespace}/workloads"), &workload).await.ok();
        let of = json!({"workload": {"workloadName": "training", "podGroupTemplateName": "workers"}});
        let gang =
            json!({"metadata": {"name": "gang"}, "spec": {"podGroupTemplateRef": of, "schedulingPolicy": policy}});
        let groups = format!("{GROUPS}/namespaces/{namespace}/podgroups");
        cx.create(&groups, &gang).await.ok();
        let member = |name: &str| {
            json!({"metadata": {"name": name}, "spec": {
                "schedulingGroup": {"podGroupName": "gang"}, "containers": [{"name": "c", "image": "i"}]}})
        };
        for name in ["a", "b"] {
            let made = cx.create(&pods, &member(name)).await.ok();
            assert_eq!(made["spec"]["schedulingGroup"]["podGroupName"], "gang");
        }
        let waiting = async || {
            node_of(cx, &format!("{pods}/a")).await.is_empty() && node_of(cx, &format!("{pods}/b")).await.is_empty()
        };
        cx.stays("that two of three wait", A_WHILE, waiting).await;
        cx.create(&pods, &member("c")).await.ok();
        for name in ["a", "b", "c"] {
            cx.until(&format!("{pods}/{name}"), running).await;
        }
        cx.until(&format!("{groups}/gang"), |group| condition(group, "PodGroupScheduled") == "True").await;
    });
}

#[test]
fn a_job_whose_pods_run_at_once_is_a_gang() {
    conform_gated(&on(&[GENERIC_WORKLOAD, GANG_SCHEDULING, WORKLOAD_WITH_JOB]), async |cx| {
        let namespace = cx.namespace("training").await;
        let jobs = format!("/apis/batch/v1/namespaces/{namespace}/jobs");
        let path = format!("{jobs}/train");
        let spec = json!({"parallelism": 3, "completions": 3, "completionMode": "Indexed", "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}});
        let job = cx.create(&jobs, &json!({"metadata": {"name": "train"}, "spec": spec})).await.ok();
        let one_of = async |resource: &str| {
            let all = format!("{GROUPS}/namespaces/{namespace}/{resource}");
            let one = async || cx.items(&all).await.into_iter().next();
            (cx.eventually(resource, one).await, all)
        };
        let ((workload, workloads), (group, groups)) = (one_of("workloads").await, one_of("podgroups").await);
        let (job, owned) = (&job["metadata"]["uid"], &workload["metadata"]["ownerReferences"]);
        assert_eq!((&owned[0]["uid"], &owned[0]["controller"]), (job, &json!(true)));
        assert_eq!(workload["spec"]["controllerRef"], json!({"apiGroup": "batch", "kind": "Job", "name": "train"}));
        let owners = &group["metadata"]["ownerReferences"];
        assert_eq!((&owners[0]["uid"], &owners[1]["uid"]), (job, &workload["metadata"]["uid"]));
        assert_eq!(group["spec"]["schedulingPolicy"], json!({"gang": {"minCount": 3}}));
        cx.until(&path, |job| condition(job, "Complete") == "True").await;
        let pods = cx.items(&format!("/api/v1/namespaces/{namespace}/pods")).await;
        let of_gang = |pod: &&Value| pod["spec"]["schedulingGroup"]["podGroupName"] == group["metadata"]["name"];
        assert_eq!((pods.len(), pods.iter().filter(of_gang).count()), (3, 3));
        let read = cx.get(&format!("{groups}/{}", name_of(&group))).await.ok();
        assert_eq!(condition(&read, "PodGroupScheduled"), "True");
        let refusal = cx.merge(&path, &json!({"spec": {"parallelism": 2}})).await.refused(403);
        assert!(refusal.contains("cannot change parallelism for a Job"), "{refusal}");
        cx.delete_with(&path, &json!({"propagationPolicy": "Background"})).await.ok();
        cx.gone(&format!("{groups}/{}", name_of(&group))).await;
        cx.gone(&format!("{workloads}/{}", name_of(&workload))).await;
    });
}

#[test]
fn a_group_goes_to_one_zone() {
    conform_gated(&on(&[GENERIC_WORKLOAD, GANG_SCHEDULING, TOPOLOGY_AWARE_GROUPS]), async |cx| {
        let namespace = cx.namespace("zones").await;
        for (node, zone) in [("node-0", "x"), ("node-1", "y"), ("node-2", "y")] {
            cx.merge(&format!("/api/v1/nodes/{node}"), &json!({"metadata": {"labels": {"zone": zone}}})).await.ok();
        }
        let groups = format!("{GROUPS}/namespaces/{namespace}/podgroups");
        let group = json!({"metadata": {"name": "group"}, "spec": {
            "schedulingPolicy": {"gang": {"minCount": 4}}, "schedulingConstraints": {"topology": [{"key": "zone"}]}}});
        cx.create(&groups, &group).await.ok();
        let pods = format!("/api/v1/namespaces/{namespace}/pods");
        let names = ["a", "b", "c", "d"];
        for name in names {
            let spec =
                json!({"schedulingGroup": {"podGroupName": "group"}, "containers": [{"name": "c", "image": "i"}]});
            cx.create(&pods, &json!({"metadata": {"name": name}, "spec": spec})).await.ok();
        }
        let mut nodes = Vec::new();
        for name in names {
            let pod = cx.until(&format!("{pods}/{name}"), running).await;
            nodes.push(text(&pod["spec"]["nodeName"]) == "node-0");
        }
        // Without the constraint they would be spread over all nodes.
        assert!(nodes.iter().all(|in_x| *in_x == nodes[0]), "{nodes:?}");
    });
}

const DEVICES: &str = "/apis/resource.k8s.io/v1";

/// A device, and what asks for it.
async fn device(cx: &Cx) -> Value {
    let driver = "gpu.example.com";
    let device_class = json!({"metadata": {"name": "gpu"}, "spec": {"selectors": [
        {"cel": {"expression": format!("device.driver == {driver:?}")}}]}});
    cx.create(&format!("{DEVICES}/deviceclasses"), &device_class).await.ok();
    let pool = json!({"name": "pool", "generation": 1, "resourceSliceCount": 1});
    let slice = json!({"metadata": {"name": "slice"}, "spec": {
        "driver": driver, "allNodes": true, "pool": pool, "devices": [{"name": "gpu-0"}]}});
    cx.create(&format!("{DEVICES}/resourceslices"), &slice).await.ok();
    json!({"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}})
}

/// A node's device, a claim for it, and a pod that has the claim.
async fn pod_with_device(cx: &Cx, namespace: &str) -> String {
    let claim = json!({"metadata": {"name": "claim"}, "spec": device(cx).await});
    cx.create(&format!("{DEVICES}/namespaces/{namespace}/resourceclaims"), &claim).await.ok();
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let pod = json!({"metadata": {"name": "user"}, "spec": {
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}],
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}]}});
    cx.create(&pods, &pod).await.ok();
    format!("{pods}/user")
}

#[test]
fn a_rule_taints_devices_and_evicts_who_has_them() {
    conform_gated(&on(&[DEVICE_TAINT_RULES]), async |cx| {
        let namespace = cx.namespace("devices").await;
        let pod = pod_with_device(cx, &namespace).await;
        cx.until(&pod, running).await;
        let taint = json!({"key": "example.com/broken", "effect": "NoExecute"});
        let rule = json!({"metadata": {"name": "broken"}, "spec": {
            "deviceSelector": {"driver": "gpu.example.com", "pool": "pool", "device": "gpu-0"}, "taint": taint}});
        let rules = "/apis/resource.k8s.io/v1beta2/devicetaintrules";
        cx.create(rules, &rule).await.ok();
        cx.gone(&pod).await;
        let evicted = |rule: &Value| condition(rule, "EvictionInProgress") == "False";
        cx.until(&format!("{rules}/broken"), evicted).await;
        pod_again(cx, &namespace).await;
        cx.delete(&format!("{rules}/broken")).await.ok();
        cx.until(&format!("/api/v1/namespaces/{namespace}/pods/again"), running).await;
    });
}

/// Another pod that wants the device waits for it.
async fn pod_again(cx: &Cx, namespace: &str) {
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let pod = json!({"metadata": {"name": "again"}, "spec": {
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}],
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}]}});
    cx.create(&pods, &pod).await.ok();
    let waits = async || node_of(cx, &format!("{pods}/again")).await.is_empty();
    cx.stays("that nobody gets the device", A_WHILE, waits).await;
}

/// A gang of two whose pods share a claim made from a template. Returns the paths of the group and its pods.
async fn gang_with_device(cx: &Cx, namespace: &str) -> (String, [String; 2]) {
    let template = json!({"metadata": {"name": "shared"}, "spec": {"spec": device(cx).await}});
    cx.create(&format!("{DEVICES}/namespaces/{namespace}/resourceclaimtemplates"), &template).await.ok();
    let claims = json!([{"name": "gpu", "resourceClaimTemplateName": "shared"}]);
    let gang = json!({"metadata": {"name": "gang"}, "spec": {
        "schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": claims}});
    let groups = format!("/apis/scheduling.k8s.io/v1alpha2/namespaces/{namespace}/podgroups");
    cx.create(&groups, &gang).await.ok();
    let pods = ["a", "b"].map(|name| format!("/api/v1/namespaces/{namespace}/pods/{name}"));
    for name in ["a", "b"] {
        let pod = json!({"metadata": {"name": name}, "spec": {
            "schedulingGroup": {"podGroupName": "gang"}, "resourceClaims": claims,
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}]}});
        cx.create(&format!("/api/v1/namespaces/{namespace}/pods"), &pod).await.ok();
    }
    (format!("{groups}/gang"), pods)
}

#[test]
fn pods_of_a_gang_share_the_claim_that_is_made_for_it() {
    conform_gated(&on(&[GENERIC_WORKLOAD, GANG_SCHEDULING, GROUP_CLAIMS]), async |cx| {
        let namespace = cx.namespace("shared").await;
        let (gang, pods) = gang_with_device(cx, &namespace).await;
        let told = |object: &Value| text(&object["status"]["resourceClaimStatuses"][0]["resourceClaimName"]).to_owned();
        let mut names = vec![told(&cx.until(&gang, |gang| !told(gang).is_empty()).await)];
        for pod in &pods {
            names.push(told(&cx.until(pod, running).await));
        }
        assert!(names.iter().all(|name| *name == names[0] && name.starts_with("gang-gpu-")), "{names:?}");
        let claims = format!("{DEVICES}/namespaces/{namespace}/resourceclaims");
        let claim = cx.get(&format!("{claims}/{}", names[0])).await.ok();
        assert_eq!(claim["metadata"]["ownerReferences"][0]["kind"], "PodGroup");
        let consumers = &claim["status"]["reservedFor"];
        assert_eq!((&consumers[0]["resource"], &consumers[1]), (&json!("podgroups"), &Value::Null));
        assert_eq!(cx.get(&claims).await.ok()["items"].as_array().map(Vec::len), Some(1));
        cx.delete(&gang).await.ok();
        for pod in &pods {
            cx.delete(pod).await.ok();
            cx.gone(pod).await;
        }
        cx.gone(&gang).await;
        cx.gone(&format!("{claims}/{}", names[0])).await;
    });
}

#[test]
fn several_pods_of_a_stateful_set_are_updated_at_a_time() {
    conform_gated(&on(&[STATEFUL_SET_MAX_UNAVAILABLE]), async |cx| {
        let namespace = cx.namespace("sets").await;
        let sets = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets");
        let template = |image: &str| json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": image}]}});
        let set = json!({"metadata": {"name": "set"}, "spec": {
            "replicas": 4, "serviceName": "s", "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"a": "b"}}, "template": template("i:1"),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}}});
        let made = cx.create(&sets, &set).await.ok();
        assert_eq!(made["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], 2);
        let path = format!("{sets}/set");
        cx.until(&path, |set| set["status"]["readyReplicas"] == 4).await;
        let mut watch = cx.watch(&format!("/api/v1/namespaces/{namespace}/pods")).await;
        cx.merge(&path, &json!({"spec": {"template": template("i:2")}})).await.ok();
        let first = [watch.until("DELETED", |_| true).await, watch.until("DELETED", |_| true).await];
        let names = first.map(|pod| text(&pod["metadata"]["name"]).to_owned());
        assert!(names.contains(&"set-3".to_owned()) && names.contains(&"set-2".to_owned()), "{names:?}");
        cx.until(&path, |set| set["status"]["updatedReplicas"] == 4 && set["status"]["readyReplicas"] == 4).await;
    });
}
