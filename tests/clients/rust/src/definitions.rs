//! A kind that comes at run time, found by discovery.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, discovery};
use serde_json::{Value, json};

use crate::{Site, refused};

const GROUP: &str = "rust.clients.example.com";
const PATIENCE: Duration = Duration::from_secs(60);

fn definition() -> Value {
    let size = json!({"type": "integer", "maximum": 9});
    let spec = json!({"type": "object", "required": ["size"], "properties": {"size": size}});
    let status = json!({"type": "object", "properties": {"seen": {"type": "integer"}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}});
    let names = json!({"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"});
    json!({
        "metadata": {"name": format!("gadgets.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    })
}

pub(crate) async fn definitions(site: &Site) -> Result<()> {
    let kinds: Api<CustomResourceDefinition> = Api::all(site.client.clone());
    let name = format!("gadgets.{GROUP}");
    kinds.create(&PostParams::default(), &serde_json::from_value(definition())?).await?;
    let established = await_condition(kinds.clone(), &name, conditions::is_crd_established());
    let outcome = match tokio::time::timeout(PATIENCE, established).await.context("never established") {
        Ok(_) => gadgets(site).await,
        Err(error) => Err(error),
    };
    kinds.delete(&name, &DeleteParams::default()).await?;
    outcome
}

async fn gadgets(site: &Site) -> Result<()> {
    let gadgets: Api<DynamicObject> = Api::namespaced_with(site.client.clone(), &site.namespace, &discovered(site).await?);
    let gadget = |size: u32| -> Result<DynamicObject> {
        let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Gadget", "metadata": {"name": "small"}, "spec": {"size": size}});
        Ok(serde_json::from_value(object)?)
    };
    let post = PostParams::default();
    let big = refused(422, gadgets.create(&post, &gadget(10)?).await)?;
    ensure!(big.contains("should be less than or equal to 9"), "{big}");
    gadgets.create(&post, &gadget(1)?).await?;
    let applied = gadgets.patch("small", &PatchParams::apply("suite").force(), &Patch::Apply(gadget(2)?)).await?;
    ensure!(applied.data["spec"]["size"] == 2 && applied.metadata.generation == Some(2), "{applied:?}");
    let seen = gadgets.patch_status("small", &PatchParams::default(), &Patch::Merge(json!({"status": {"seen": 2}}))).await?;
    ensure!(seen.data["status"]["seen"] == 2 && seen.metadata.generation == Some(2), "{seen:?}");
    gadgets.delete("small", &DeleteParams::default()).await?;
    Ok(())
}

/// The kind as discovery tells of it, within a minute.
async fn discovered(site: &Site) -> Result<ApiResource> {
    let find = async {
        loop {
            if let Ok(group) = discovery::group(&site.client, GROUP).await
                && let Some((resource, _)) = group.recommended_kind("Gadget")
            {
                return resource;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, find).await.context("never discovered")
}
