//! Services that come and go, each with an address and a port of the nodes, and the objects of their addresses.

use std::collections::BTreeSet;

use api_machinery::meta::ListOptions;
use api_types::core_v1::Service;
use api_types::networking_v1::IPAddress;
use async_trait::async_trait;
use base::Rng;
use client::{Client, ClientError};
use serde_json::json;

use super::{NAMESPACE, Workload, create, delete, pick};

/// The numbers of those that are there, and of the next.
#[derive(Default)]
pub(super) struct Services {
    there: Vec<usize>,
    next: usize,
}

fn name(number: usize) -> String {
    format!("service-{number}")
}

impl Services {
    async fn add(&mut self, admin: &Client) {
        let spec = json!({"type": "NodePort", "selector": {"app": "none"}, "ports": [{"port": 80}]});
        let object = json!({"metadata": {"name": name(self.next)}, "spec": spec});
        create::<Service>(admin, NAMESPACE, &object).await;
        self.there.push(self.next);
        self.next += 1;
    }
}

#[async_trait]
impl Workload for Services {
    async fn declare(&mut self, admin: &Client) {
        self.add(admin).await;
        self.add(admin).await;
    }

    async fn change(&mut self, admin: &Client, rng: &Rng, _step: u64) -> String {
        let Some(gone) = pick(&self.there, rng).copied() else {
            self.add(admin).await;
            return "added a service".to_owned();
        };
        delete::<Service>(admin, NAMESPACE, &name(gone), "Background").await;
        self.there.retain(|number| *number != gone);
        self.add(admin).await;
        self.add(admin).await;
        format!("deleted {} and added two", name(gone))
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let all = ListOptions::default();
        let services = admin.all::<Service>().list_all(&all).await?.items;
        let used: BTreeSet<String> = services
            .iter()
            .flat_map(|service| &service.spec.cluster_ips)
            .filter(|address| *address != "None")
            .cloned()
            .collect();
        let objects = admin.all::<IPAddress>().list_all(&all).await?.items;
        let objects: BTreeSet<String> = objects.into_iter().map(|object| object.metadata.name).collect();
        let differ = used != objects;
        Ok(differ.then(|| format!("services have {used:?}, the objects are {objects:?}")).into_iter().collect())
    }
}
