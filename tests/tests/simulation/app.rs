//! The application that the simulation runs: a Deployment with a Service, a StatefulSet and a Job, and whether the
//! cluster has come to what they declare. Its pods ask for so much that not all that a rollout wants fits at once.

use std::collections::BTreeSet;

use api_machinery::meta::ListOptions;
use api_machinery::object::from_value;
use api_machinery::value::Value;
use api_types::apps_v1::{Deployment, ReplicaSet, StatefulSet};
use api_types::batch_v1::Job;
use api_types::core_v1::{Pod, Service};
use api_types::discovery_v1::EndpointSlice;
use client::{Client, ClientError, Patch};
use serde_json::json;

const NAMESPACE: &str = "default";
const NAME: &str = "web";
const SET: &str = "db";
const SET_REPLICAS: i32 = 3;
const JOB: &str = "once";
const COMPLETIONS: i32 = 4;

/// Declares the application: `replicas` pods of `image` in the Deployment.
pub(crate) async fn create(admin: &Client, replicas: i32, image: &str) {
    create_deployment(admin, replicas, image).await;
    let pods = |restart: &str, labels: &Value| {
        let resources = json!({"requests": {"cpu": "1"}});
        let containers = json!([{"name": "main", "image": "main:1", "resources": resources}]);
        json!({"metadata": {"labels": labels}, "spec": {"restartPolicy": restart, "containers": containers}})
    };
    let labels = json!({"app": SET});
    let set = from_value::<StatefulSet>(&json!({
        "metadata": {"name": SET},
        "spec": {
            "replicas": SET_REPLICAS, "serviceName": SET, "selector": {"matchLabels": labels},
            "template": pods("Always", &labels),
        },
    }));
    let sets = admin.namespaced::<StatefulSet>(NAMESPACE);
    sets.create(&set.expect("a stateful set")).await.expect("the stateful set is taken");
    let job = from_value::<Job>(&json!({
        "metadata": {"name": JOB},
        // Pods that the story deletes count as failed ones. With indexes, a pod that was created twice counts once.
        "spec": {"completionMode": "Indexed", "completions": COMPLETIONS, "parallelism": 2, "backoffLimit": 20, "template": pods("Never", &json!({}))},
    }));
    admin.namespaced::<Job>(NAMESPACE).create(&job.expect("a job")).await.expect("the job is taken");
}

async fn create_deployment(admin: &Client, replicas: i32, image: &str) {
    let labels = json!({"app": NAME});
    let deployment = from_value::<Deployment>(&json!({
        "metadata": {"name": NAME},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": image, "ports": [{"containerPort": 80}], "resources": {"requests": {"cpu": "3"}}}]},
            },
        },
    }));
    let service = from_value::<Service>(&json!({
        "metadata": {"name": NAME},
        "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 80}]},
    }));
    let deployments = admin.namespaced::<Deployment>(NAMESPACE);
    deployments.create(&deployment.expect("a deployment")).await.expect("the deployment is taken");
    let services = admin.namespaced::<Service>(NAMESPACE);
    services.create(&service.expect("a service")).await.expect("the service is taken");
}

async fn patch(admin: &Client, patch: Value) {
    let deployments = admin.namespaced::<Deployment>(NAMESPACE);
    deployments.patch(NAME, &Patch::Strategic(patch)).await.expect("the deployment can be changed");
}

/// Asks for another number of pods.
pub(crate) async fn scale(admin: &Client, replicas: u64) {
    patch(admin, json!({"spec": {"replicas": replicas}})).await;
}

/// Asks for other pods.
pub(crate) async fn roll(admin: &Client, image: &str) {
    patch(admin, json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}})).await;
}

/// The names of the pods, in order.
pub(crate) async fn pods(admin: &Client) -> Result<Vec<String>, ClientError> {
    let pods = admin.namespaced::<Pod>(NAMESPACE).list_all(&ListOptions::default()).await?;
    Ok(pods.items.into_iter().map(|pod| pod.metadata.name).collect())
}

/// In what the cluster differs from what is declared; nothing when it has converged.
pub(crate) async fn differences(admin: &Client, replicas: i32, image: &str) -> Result<Vec<String>, ClientError> {
    let mut found = differences_of_deployment(admin, replicas, image).await?;
    let set = admin.namespaced::<StatefulSet>(NAMESPACE).get(SET).await?.status;
    let counts = [set.replicas, set.updated_replicas, set.ready_replicas, set.available_replicas];
    if counts.iter().any(|&count| count != SET_REPLICAS) {
        found.push(format!("the stateful set's status: {counts:?}"));
    }
    let of_set = ListOptions { label_selector: format!("app={SET}"), ..ListOptions::default() };
    let pods = admin.namespaced::<Pod>(NAMESPACE).list_all(&of_set).await?.items;
    found.extend(pods.iter().filter(|pod| !is_ready(pod)).map(does_not_run));
    let job = admin.namespaced::<Job>(NAMESPACE).get(JOB).await?.status;
    let complete = job.conditions.iter().any(|condition| condition.type_ == "Complete" && condition.status == "True");
    if !complete || job.succeeded != COMPLETIONS || job.active != 0 {
        found.push(format!(
            "the job's status: {} succeeded, {} active, {:?}",
            job.succeeded, job.active, job.conditions
        ));
    }
    Ok(found)
}

async fn differences_of_deployment(admin: &Client, replicas: i32, image: &str) -> Result<Vec<String>, ClientError> {
    let mut found = Vec::new();
    let all = ListOptions::default();
    let of_app = ListOptions { label_selector: format!("app={NAME}"), ..ListOptions::default() };
    let deployment = admin.namespaced::<Deployment>(NAMESPACE).get(NAME).await?;
    let sets = admin.namespaced::<ReplicaSet>(NAMESPACE).list_all(&all).await?.items;
    let pods = admin.namespaced::<Pod>(NAMESPACE).list_all(&of_app).await?.items;
    let slices = admin.namespaced::<EndpointSlice>(NAMESPACE).list_all(&all).await?.items;

    let status = &deployment.status;
    let counts = [status.replicas, status.updated_replicas, status.ready_replicas, status.available_replicas];
    if status.observed_generation != deployment.metadata.generation || counts.iter().any(|&count| count != replicas) {
        found.push(format!("the deployment's status: generation {}, {counts:?}", status.observed_generation));
    }
    let used: Vec<&ReplicaSet> = sets.iter().filter(|set| set.spec.replicas.unwrap_or(1) > 0).collect();
    if used.len() != 1 {
        found.push(format!("{} replica sets are in use", used.len()));
    }
    if i32::try_from(pods.len()) != Ok(replicas) {
        found.push(format!("there are {} pods", pods.len()));
    }
    for pod in &pods {
        let name = &pod.metadata.name;
        if pod.metadata.deletion_timestamp.is_some() || !is_ready(pod) {
            found.push(does_not_run(pod));
        }
        if pod.spec.containers.iter().any(|container| container.image != image) {
            found.push(format!("pod {name} is of an old template"));
        }
        let owner = pod.metadata.owner_references.first().map(|owner| &owner.uid);
        if owner != used.first().map(|set| &set.metadata.uid) {
            found.push(format!("pod {name} is not of the replica set in use"));
        }
    }
    let mine = slices
        .iter()
        .filter(|slice| slice.metadata.labels.get("kubernetes.io/service-name").is_some_and(|name| name == NAME));
    let listed: Vec<&String> =
        mine.flat_map(|slice| &slice.endpoints).flat_map(|endpoint| &endpoint.addresses).collect();
    let wanted: BTreeSet<&String> = pods.iter().filter(|pod| is_ready(pod)).map(|pod| &pod.status.pod_ip).collect();
    if listed.len() != wanted.len() || listed.iter().copied().collect::<BTreeSet<_>>() != wanted {
        found.push(format!("the endpoint slices list {listed:?}, not {wanted:?}"));
    }
    Ok(found)
}

fn does_not_run(pod: &Pod) -> String {
    format!("pod {} does not run: {} on {:?}", pod.metadata.name, pod.status.phase, pod.spec.node_name)
}

fn is_ready(pod: &Pod) -> bool {
    pod.status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
