//! Owners that are deleted in each way, and what they own: collected, or left to itself.

use api_types::core_v1::ConfigMap;
use async_trait::async_trait;
use base::Rng;
use client::{Client, ClientError};
use serde_json::{Value, json};

use super::{NAMESPACE, Workload, create, delete, pick};

const POLICIES: [&str; 3] = ["Background", "Foreground", "Orphan"];

/// Pairs of an owner and what it owns, by number, with the policy that the owner was deleted with.
#[derive(Default)]
pub(super) struct Owners {
    pairs: Vec<Option<&'static str>>,
}

fn owner(number: usize) -> String {
    format!("owner-{number}")
}

fn owned(number: usize) -> String {
    format!("owned-{number}")
}

fn reference(name: &str, uid: &str) -> Value {
    json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": true}])
}

impl Owners {
    async fn add(&mut self, admin: &Client) {
        let number = self.pairs.len();
        let named = json!({"metadata": {"name": owner(number)}});
        let uid = create::<ConfigMap>(admin, NAMESPACE, &named).await.metadata.uid;
        let metadata = json!({"name": owned(number), "ownerReferences": reference(&owner(number), &uid)});
        create::<ConfigMap>(admin, NAMESPACE, &json!({"metadata": metadata})).await;
        self.pairs.push(None);
    }
}

#[async_trait]
impl Workload for Owners {
    async fn declare(&mut self, admin: &Client) {
        self.add(admin).await;
        self.add(admin).await;
        // Its owner has the name of one that is there, and is another.
        let metadata =
            json!({"name": "stray", "ownerReferences": reference(&owner(0), "8c0a4e6e-0000-4000-8000-000000000000")});
        create::<ConfigMap>(admin, NAMESPACE, &json!({"metadata": metadata})).await;
    }

    async fn change(&mut self, admin: &Client, rng: &Rng, _step: u64) -> String {
        let policy = pick(&POLICIES, rng).copied().unwrap_or("Background");
        let kept = self.pairs.iter_mut().enumerate().find(|(_, policy)| policy.is_none());
        let Some((number, fate)) = kept else {
            self.add(admin).await;
            return "added an owner".to_owned();
        };
        *fate = Some(policy);
        assert!(delete::<ConfigMap>(admin, NAMESPACE, &owner(number), policy).await, "nobody else deletes it");
        self.add(admin).await;
        format!("deleted {} with {policy}", owner(number))
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let mut found = Vec::new();
        let maps = admin.namespaced::<ConfigMap>(NAMESPACE);
        if maps.get_opt("stray").await?.is_some() {
            found.push("what is owned by nobody is still there".to_owned());
        }
        for (number, policy) in self.pairs.iter().enumerate() {
            let is_owner_there = maps.get_opt(&owner(number)).await?.is_some();
            let references = maps.get_opt(&owned(number)).await?.map(|map| map.metadata.owner_references.len());
            let expected = match policy {
                None => (true, Some(1)),
                Some("Orphan") => (false, Some(0)),
                Some(_) => (false, None),
            };
            if (is_owner_there, references) != expected {
                found.push(format!("pair {number} ({policy:?}): owner {is_owner_there}, owned {references:?}"));
            }
        }
        Ok(found)
    }
}
