//! Watches that are taken up again, and a reflector over one.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use serde_json::json;

use crate::{Site, config_map};

const PATIENCE: Duration = Duration::from_secs(60);

/// A watch that is left and taken up again where it was tells everything once.
pub(crate) async fn watches(site: &Site) -> Result<()> {
    let maps = site.maps();
    let list = maps.list(&ListParams::default().labels("of=watch")).await?;
    let mut version = list.metadata.resource_version.context("a list without a version")?;
    for number in 0..6 {
        maps.create(&PostParams::default(), &config_map("watch", &number.to_string(), json!({}))?).await?;
    }
    maps.delete("watch-0", &DeleteParams::default()).await?;
    let mut told = Vec::new();
    for part in [3, 4] {
        let events = maps.watch(&WatchParams::default().labels("of=watch"), &version).await?;
        let part: Vec<WatchEvent<ConfigMap>> = tokio::time::timeout(PATIENCE, events.take(part).try_collect()).await??;
        for event in part {
            let (verb, map) = match event {
                WatchEvent::Added(map) => ("added", map),
                WatchEvent::Deleted(map) => ("deleted", map),
                other => bail!("an unexpected event: {other:?}"),
            };
            told.push(format!("{verb} {}", map.metadata.name.unwrap_or_default()));
            version = map.metadata.resource_version.context("an event without a version")?;
        }
    }
    let mut wanted: Vec<String> = (0..6).map(|number| format!("added watch-{number}")).collect();
    wanted.push("deleted watch-0".to_owned());
    ensure!(told == wanted, "{told:?}");
    Ok(())
}

/// One reflector begins with a list, the other with a watch that brings the objects there are.
pub(crate) async fn informers(site: &Site) -> Result<()> {
    let config = watcher::Config::default().labels("of=informer");
    informer(site, config.clone(), "a").await.context("by a list")?;
    informer(site, config.streaming_lists(), "b").await.context("by a watch that begins with what is there")
}

async fn informer(site: &Site, config: watcher::Config, name: &str) -> Result<()> {
    let maps = site.maps();
    let map = |data| config_map("informer", name, data);
    maps.create(&PostParams::default(), &map(json!({"colour": "blue"}))?).await?;
    let (store, writer) = reflector::store::<ConfigMap>();
    let follow = watcher(maps.clone(), config).default_backoff().reflect(writer).applied_objects();
    let follow = tokio::spawn(follow.for_each(|_| async {}));
    tokio::time::timeout(PATIENCE, store.wait_until_ready()).await.context("never ready")??;
    let name = format!("informer-{name}");
    let cached = || store.find(|map| map.metadata.name.as_deref() == Some(name.as_str()));
    let colour = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("colour").cloned());
    ensure!(cached().is_some_and(|map| colour(&map).as_deref() == Some("blue")), "what is there is not cached");
    maps.patch(&name, &PatchParams::default(), &Patch::Merge(json!({"data": {"colour": "green"}}))).await?;
    until("a change", || cached().is_some_and(|map| colour(&map).as_deref() == Some("green"))).await?;
    maps.delete(&name, &DeleteParams::default()).await?;
    until("a deletion", || cached().is_none()).await?;
    follow.abort();
    Ok(())
}

async fn until(what: &str, holds: impl Fn() -> bool) -> Result<()> {
    let poll = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, poll).await.with_context(|| format!("{what} never came"))
}
