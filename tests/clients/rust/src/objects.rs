//! Objects, patches, and the leases that elections are made of.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::json;

use crate::{Site, config_map, refused};

pub(crate) async fn objects(site: &Site) -> Result<()> {
    let (maps, post) = (site.maps(), PostParams::default());
    let mut made = maps.create(&post, &config_map("crud", "one", json!({"colour": "blue"}))?).await?;
    let again = refused(409, maps.create(&post, &config_map("crud", "one", json!({}))?).await)?;
    ensure!(again.contains("already exists"), "{again}");
    made.data = Some([("colour".to_owned(), "green".to_owned())].into());
    let changed = maps.replace("crud-one", &post, &made).await?;
    ensure!(changed.data == made.data && changed.metadata.resource_version != made.metadata.resource_version);
    let stale = refused(409, maps.replace("crud-one", &post, &made).await)?;
    ensure!(stale.contains("the object has been modified"), "{stale}");
    for number in 2..6 {
        maps.create(&post, &config_map("crud", &number.to_string(), json!({}))?).await?;
    }
    let (mut names, mut page) = (Vec::new(), ListParams::default().labels("of=crud").limit(2));
    loop {
        let list = maps.list(&page).await?;
        names.extend(list.items.iter().filter_map(|map| map.metadata.name.clone()));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => break,
        }
    }
    ensure!(names == ["crud-2", "crud-3", "crud-4", "crud-5", "crud-one"], "{names:?}");
    let metadata = maps.list_metadata(&ListParams::default().fields("metadata.name=crud-3")).await?;
    ensure!(metadata.items.len() == 1 && metadata.items[0].metadata.uid.is_some(), "{metadata:?}");
    let preconditions = Preconditions { uid: Some("another".to_owned()), ..Preconditions::default() };
    let other = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    refused(409, maps.delete("crud-one", &other).await)?;
    maps.delete("crud-one", &DeleteParams::default()).await?;
    ensure!(maps.get_opt("crud-one").await?.is_none());
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    maps.create(&dry, &config_map("crud", "dry", json!({}))?).await?;
    maps.delete_collection(&DeleteParams::default(), &ListParams::default().labels("of=crud")).await?;
    ensure!(maps.list(&ListParams::default().labels("of=crud")).await?.items.is_empty());
    Ok(())
}

pub(crate) async fn patches(site: &Site) -> Result<()> {
    let (maps, post, plain) = (site.maps(), PostParams::default(), PatchParams::default());
    maps.create(&post, &config_map("patch", "map", json!({"a": "1", "b": "2"}))?).await?;
    let steps = json!([{"op": "test", "path": "/data/a", "value": "1"}, {"op": "replace", "path": "/data/a", "value": "3"}]);
    let steps: Patch<()> = Patch::Json(serde_json::from_value(steps)?);
    maps.patch("patch-map", &plain, &steps).await?;
    refused(422, maps.patch("patch-map", &plain, &steps).await)?;
    let merged = maps.patch("patch-map", &plain, &Patch::Merge(json!({"data": {"b": null}}))).await?;
    ensure!(merged.data.as_ref().is_some_and(|data| data.len() == 1 && data["a"] == "3"), "{merged:?}");
    strategic(site).await?;
    let applied = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": value}});
    maps.patch("applied", &PatchParams::apply("one"), &Patch::Apply(applied("1"))).await?;
    let conflict = refused(409, maps.patch("applied", &PatchParams::apply("two"), &Patch::Apply(applied("2"))).await)?;
    ensure!(conflict.contains(".data.a"), "{conflict}");
    let forced = maps.patch("applied", &PatchParams::apply("two").force(), &Patch::Apply(applied("2"))).await?;
    let owners = forced.metadata.managed_fields.unwrap_or_default();
    let owners: Vec<_> = owners.iter().filter_map(|entry| entry.manager.as_deref()).collect();
    ensure!(owners == ["two"], "{owners:?}");
    Ok(())
}

async fn strategic(site: &Site) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(site.client.clone(), &site.namespace);
    let containers = json!([{"name": "main", "image": "busybox:1.36"}, {"name": "side", "image": "busybox:1.36"}]);
    let template = json!({"metadata": {"labels": {"app": "patch"}}, "spec": {"containers": containers}});
    let spec = json!({"replicas": 0, "selector": {"matchLabels": {"app": "patch"}}, "template": template});
    let deployment = serde_json::from_value(json!({"metadata": {"name": "patch"}, "spec": spec}))?;
    deployments.create(&PostParams::default(), &deployment).await?;
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "busybox:1.35"}]}}}});
    let merged = deployments.patch("patch", &PatchParams::default(), &Patch::Strategic(patch)).await?;
    let containers = merged.spec.and_then(|spec| spec.template.spec).map(|spec| spec.containers).unwrap_or_default();
    let mut images: Vec<_> = containers.iter().map(|it| (it.name.as_str(), it.image.as_deref().unwrap_or_default())).collect();
    images.sort_unstable();
    ensure!(images == [("main", "busybox:1.36"), ("side", "busybox:1.35")], "{images:?}");
    let scale = deployments.patch_scale("patch", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 0}}))).await?;
    ensure!(scale.spec.is_some_and(|spec| spec.replicas.unwrap_or(0) == 0));
    deployments.delete("patch", &DeleteParams::default()).await?;
    Ok(())
}

/// Of two holders of a lease that read it at the same time one gets it.
pub(crate) async fn elections(site: &Site) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(site.client.clone(), &site.namespace);
    let post = PostParams::default();
    let lease = |holder: &str| json!({"metadata": {"name": "election"}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 1}});
    leases.create(&post, &serde_json::from_value(lease("nobody"))?).await?;
    let read = leases.get("election").await?;
    let claim = |holder: &str| {
        let mut own = read.clone();
        own.spec.get_or_insert_default().holder_identity = Some(holder.to_owned());
        own
    };
    let (one, two) = (claim("one"), claim("two"));
    let (first, second) = tokio::join!(leases.replace("election", &post, &one), leases.replace("election", &post, &two));
    let (winner, loser) = if first.is_ok() { ("one", second) } else { ("two", first) };
    refused(409, loser)?;
    let holder = leases.get("election").await?.spec.and_then(|spec| spec.holder_identity);
    ensure!(holder.as_deref() == Some(winner), "{holder:?} instead of {winner}");
    Ok(())
}
