//! Deployments: rolling over, recreating, scaling while they roll, and what is left of old revisions.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{BUSYBOX, BUSYBOX_OTHER, idle, is_true, name_of, pause, text, with};
use super::workloads::{self, image, image_of, pods_of, pods_until, workload};

const ABSENT: &str = "localhost:9/absent/image:v1";

pub(crate) fn checks() -> Vec<Check> {
    vec![subresources(), recreate(), rolling(), history(), proportional(), rollover(), life()]
}

fn complete(deployment: &Value) -> bool {
    let (status, wanted) = (&deployment["status"], &deployment["spec"]["replicas"]);
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && ["replicas", "updatedReplicas", "availableReplicas"].iter().all(|field| &status[field] == wanted)
}

async fn replica_sets(place: &Place, name: &str) -> Vec<Value> {
    place.items(&place.path(&format!("replicasets?labelSelector=app%3D{name}"))).await
}

fn subresources() -> Check {
    const ITEMS: &[&str] = &[
        "Deployment Deployment should have a working scale subresource",
        "Deployment should validate Deployment Status endpoints",
    ];
    Check::new("deployment-subresources", ITEMS, async |place: Place| {
        place.create("deployments", &workload("sub", &[pause("main")], json!({"replicas": 1}))).await.ok();
        let path = place.path("deployments/sub");
        place.until(&path, complete).await;
        workloads::status(&place, "deployments", "sub").await;
        workloads::scale(&place, &path).await;
    })
}

fn recreate() -> Check {
    const ITEM: &str = "Deployment RecreateDeployment should delete old pods and create new ones";
    Check::new("deployment-recreate", &[ITEM], async |place: Place| {
        let spec = json!({"replicas": 2, "strategy": {"type": "Recreate"}});
        place.create("deployments", &workload("recreate", &[idle("main")], spec)).await.ok();
        let path = place.path("deployments/recreate");
        place.until(&path, complete).await;
        let list = place.get(&place.path("pods?labelSelector=app%3Drecreate")).await.ok();
        let version = text(&list["metadata"]["resourceVersion"]);
        let watched = place.path(&format!("pods?labelSelector=app%3Drecreate&resourceVersion={version}"));
        let mut watch = place.watch(&watched).await;
        place.strategic(&path, &image("main", BUSYBOX_OTHER)).await.ok();
        // The last of the old pods is at its end before the first of the new ones is made.
        let mut ended = std::collections::BTreeSet::new();
        loop {
            let (kind, pod) = watch.next().await;
            let is_over = kind == "DELETED" || ["Succeeded", "Failed"].contains(&text(&pod["status"]["phase"]));
            if kind == "ADDED" {
                assert_eq!(image_of(&pod), BUSYBOX_OTHER);
                break;
            }
            if is_over && image_of(&pod) == BUSYBOX {
                ended.insert(name_of(&pod).to_owned());
            }
        }
        assert_eq!(ended.len(), 2, "only {ended:?} had ended");
        place.until(&path, complete).await;
    })
}

fn rolling() -> Check {
    const ITEM: &str = "Deployment RollingUpdateDeployment should delete old pods and create new ones";
    Check::new("deployment-adopts", &[ITEM], async |place: Place| {
        place.create("replicasets", &workload("adopted", &[idle("main")], json!({"replicas": 1}))).await.ok();
        place.until(&place.path("replicasets/adopted"), |set| set["status"]["readyReplicas"] == 1).await;
        let container = with(idle("main"), json!({"image": BUSYBOX_OTHER}));
        place.create("deployments", &workload("adopted", &[container], json!({"replicas": 1}))).await.ok();
        place.until(&place.path("deployments/adopted"), complete).await;
        let old = place.until(&place.path("replicasets/adopted"), |set| set["spec"]["replicas"] == 0).await;
        assert_eq!(old["metadata"]["ownerReferences"][0]["name"], "adopted", "{old}");
        pods_until(&place, "adopted", |pods| pods.len() == 1 && image_of(&pods[0]) == BUSYBOX_OTHER).await;
        assert_eq!(replica_sets(&place, "adopted").await.len(), 2);
    })
}

fn history() -> Check {
    const ITEM: &str = "Deployment deployment should delete old replica sets";
    Check::new("deployment-history", &[ITEM], async |place: Place| {
        let spec = json!({"replicas": 1, "revisionHistoryLimit": 0});
        place.create("deployments", &workload("history", &[idle("main")], spec)).await.ok();
        let path = place.path("deployments/history");
        place.until(&path, complete).await;
        place.strategic(&path, &image("main", BUSYBOX_OTHER)).await.ok();
        place.until(&path, complete).await;
        let one = async || match replica_sets(&place, "history").await.len() {
            1 => Ok(()),
            left => Err(format!("{left} ReplicaSets are left")),
        };
        place.eventually(one).await;
    })
}

fn proportional() -> Check {
    const ITEM: &str = "Deployment deployment should support proportional scaling";
    Check::new("deployment-proportional", &[ITEM], async |place: Place| {
        let strategy = json!({"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}});
        let spec = json!({"replicas": 10, "strategy": strategy});
        place.create("deployments", &workload("proportional", &[pause("main")], spec)).await.ok();
        let path = place.path("deployments/proportional");
        place.until(&path, complete).await;
        place.strategic(&path, &image("main", ABSENT)).await.ok();
        let sizes = async || {
            let sets = replica_sets(&place, "proportional").await;
            let mut sizes: Vec<u64> = sets.iter().filter_map(|set| set["spec"]["replicas"].as_u64()).collect();
            sizes.sort_unstable();
            sizes
        };
        let grow_to = async |wanted: [u64; 2]| {
            let probe = async || match sizes().await {
                have if have == wanted => Ok(()),
                have => Err(format!("the ReplicaSets have {have:?} instead of {wanted:?}")),
            };
            place.eventually(probe).await;
        };
        grow_to([5, 8]).await;
        place.merge(&path, &json!({"spec": {"replicas": 30}})).await.ok();
        // 33 in all; the 20 more go to 5 and 8 in proportion.
        grow_to([13, 20]).await;
        place.delete_with(&path, &json!({"propagationPolicy": "Background"})).await.ok();
    })
}

fn rollover() -> Check {
    const ITEM: &str = "Deployment deployment should support rollover";
    Check::new("deployment-rollover", &[ITEM], async |place: Place| {
        let strategy = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
        let container = with(idle("main"), json!({"image": ABSENT}));
        let spec = json!({"replicas": 1, "strategy": strategy, "minReadySeconds": 2});
        place.create("deployments", &workload("rollover", &[container], spec)).await.ok();
        let path = place.path("deployments/rollover");
        let unfinished = |found: &Value| found["status"]["updatedReplicas"] == 1 && !is_true(found, "Available");
        place.until(&path, unfinished).await;
        place.strategic(&path, &image("main", BUSYBOX_OTHER)).await.ok();
        place.until(&path, complete).await;
        pods_until(&place, "rollover", |pods| pods.len() == 1 && image_of(&pods[0]) == BUSYBOX_OTHER).await;
        for set in replica_sets(&place, "rollover").await {
            let is_new = set["spec"]["template"]["spec"]["containers"][0]["image"] == BUSYBOX_OTHER;
            assert_eq!(set["spec"]["replicas"], u64::from(is_new), "{set}");
        }
    })
}

fn life() -> Check {
    const ITEM: &str = "Deployment should run the lifecycle of a Deployment";
    Check::new("deployment-life", &[ITEM], async |place: Place| {
        let list = place.get(&place.path("deployments")).await.ok();
        let version = text(&list["metadata"]["resourceVersion"]);
        let watched = place.path(&format!("deployments?labelSelector=app%3Dlife&resourceVersion={version}"));
        let mut watch = place.watch(&watched).await;
        place.create("deployments", &workload("life", &[idle("main")], json!({"replicas": 2}))).await.ok();
        watch.until("ADDED", |_| true).await;
        watch.until("MODIFIED", |found| found["status"]["availableReplicas"] == 2).await;
        let path = place.path("deployments/life");
        place
            .strategic(&path, &json!({"metadata": {"labels": {"patched": "yes"}}, "spec": {"replicas": 1}}))
            .await
            .ok();
        watch.until("MODIFIED", |found| found["status"]["readyReplicas"] == 1 && complete(found)).await;
        let all = place.items("/apis/apps/v1/deployments?labelSelector=patched%3Dyes").await;
        assert_eq!(all.iter().map(name_of).collect::<Vec<_>>(), ["life"]);
        place.strategic(&path, &image("main", BUSYBOX_OTHER)).await.ok();
        place.until(&path, complete).await;
        place.delete_with(&place.path("deployments?labelSelector=patched%3Dyes"), &json!({})).await.ok();
        watch.until("DELETED", |_| true).await;
        place
            .eventually(
                async || if pods_of(&place, "life").await.is_empty() { Ok(()) } else { Err("pods are left".into()) },
            )
            .await;
    })
}
