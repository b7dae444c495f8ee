//! A namespace that is deleted with all that is in it, and made anew under its name.

use api_machinery::meta::ListOptions;
use api_types::apps_v1::ReplicaSet;
use api_types::core_v1::{ConfigMap, Namespace, Pod};
use async_trait::async_trait;
use base::Rng;
use client::{Client, ClientError};
use serde_json::json;

use super::{Workload, all_run, create, delete, template};

const NAME: &str = "tenant";
const SET: &str = "guest";

#[derive(Default)]
pub(super) struct Tenant {
    is_deleted: bool,
}

#[async_trait]
impl Workload for Tenant {
    async fn declare(&mut self, admin: &Client) {
        create::<Namespace>(admin, "", &json!({"metadata": {"name": NAME}})).await;
        create::<ConfigMap>(admin, NAME, &json!({"metadata": {"name": "own"}})).await;
        let template = template(SET, "Always", "main:1", "100m");
        let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": SET}}, "template": template});
        create::<ReplicaSet>(admin, NAME, &json!({"metadata": {"name": SET}, "spec": spec})).await;
        self.is_deleted = false;
    }

    async fn change(&mut self, admin: &Client, _rng: &Rng, _step: u64) -> String {
        if !self.is_deleted {
            delete::<Namespace>(admin, "", NAME, "Background").await;
            self.is_deleted = true;
            return format!("deleted namespace {NAME}");
        }
        if admin.all::<Namespace>().get_opt(NAME).await.expect("it can be read").is_some() {
            return format!("namespace {NAME} is still ending");
        }
        self.declare(admin).await;
        format!("made namespace {NAME} anew")
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        if !self.is_deleted {
            return all_run(admin, NAME, SET, 1).await;
        }
        let mut found = Vec::new();
        if admin.all::<Namespace>().get_opt(NAME).await?.is_some() {
            found.push(format!("namespace {NAME} is still ending"));
        }
        let all = ListOptions::default();
        let pods = admin.namespaced::<Pod>(NAME).list_all(&all).await?.items.len();
        let maps = admin.namespaced::<ConfigMap>(NAME).list_all(&all).await?.items.len();
        let sets = admin.namespaced::<ReplicaSet>(NAME).list_all(&all).await?.items.len();
        if pods + maps + sets > 0 {
            found.push(format!("{pods} pods, {maps} config maps, {sets} replica sets are left of namespace {NAME}"));
        }
        Ok(found)
    }
}
