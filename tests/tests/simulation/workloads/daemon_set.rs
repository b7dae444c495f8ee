//! A DaemonSet: one pod on each node.

use api_types::apps_v1::DaemonSet;
use async_trait::async_trait;
use base::Rng;
use client::{Client, ClientError};
use serde_json::json;

use super::{NAMESPACE, Workload, all_run, change, create, pods_of, template};

const NAME: &str = "agent";
const NODES: i32 = 3;
const CPU: &str = "100m";

pub(super) struct Agent {
    image: String,
}

impl Default for Agent {
    fn default() -> Self {
        Self { image: "agent:0".to_owned() }
    }
}

#[async_trait]
impl Workload for Agent {
    async fn declare(&mut self, admin: &Client) {
        let set = json!({"metadata": {"name": NAME}, "spec": {
            "selector": {"matchLabels": {"app": NAME}}, "template": template(NAME, "Always", &self.image, CPU),
        }});
        create::<DaemonSet>(admin, NAMESPACE, &set).await;
    }

    async fn change(&mut self, admin: &Client, _rng: &Rng, step: u64) -> String {
        self.image = format!("agent:{step}");
        let template = template(NAME, "Always", &self.image, CPU);
        change::<DaemonSet>(admin, NAMESPACE, NAME, json!({"spec": {"template": template}})).await;
        format!("rolled {NAME} to {}", self.image)
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let mut found = all_run(admin, NAMESPACE, NAME, NODES).await?;
        let set = admin.namespaced::<DaemonSet>(NAMESPACE).get(NAME).await?;
        let status = &set.status;
        let counts = [
            status.desired_number_scheduled,
            status.current_number_scheduled,
            status.updated_number_scheduled,
            status.number_ready,
            status.number_available,
        ];
        let is_observed = status.observed_generation == set.metadata.generation;
        if !is_observed || status.number_misscheduled != 0 || counts.iter().any(|&count| count != NODES) {
            found.push(format!("the daemon set's status: {counts:?}"));
        }
        let pods = pods_of(admin, NAMESPACE, NAME).await?;
        let is_old = |pod: &&api_types::core_v1::Pod| pod.spec.containers.iter().any(|own| own.image != self.image);
        found.extend(pods.iter().filter(is_old).map(|pod| format!("{} is of an old template", pod.metadata.name)));
        Ok(found)
    }
}
