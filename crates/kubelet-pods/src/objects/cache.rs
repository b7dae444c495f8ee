//! Objects of the API server, read by name and followed while pods use them.
//!
//! The node authorizer lets a kubelet read only objects that its pods refer to, one by one, so each is watched by name.
//! A watch that nobody reads from ends by itself and starts again with the next read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ListOptions;
use api_machinery::object::{Kind, Object};
use api_types::core_v1::{ConfigMap, Secret};
use async_trait::async_trait;
use base::{Backoff, CancellationToken};
use client::{Api, ApiObject, Client, ClientError, ObjectKey, WatchEvent};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{ObjectError, Objects};

/// How long a first read waits for the watch to have something.
const FIRST_READ: Duration = Duration::from_secs(1);
/// Objects followed at a time; a node's pods refer to far fewer. Beyond it objects are read directly.
const MAX_ENTRIES: usize = 20_000;
/// Pauses between attempts to watch.
const RETRY_FIRST: Duration = Duration::from_millis(800);
const RETRY_LAST: Duration = Duration::from_secs(30);
/// How long a directly read object is good under [`Strategy::Cache`].
const CACHE_TTL: Duration = Duration::from_secs(60);

/// How changes are noticed (`configMapAndSecretChangeDetectionStrategy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Every read asks the server.
    Get,
    /// Reads are good for a minute.
    Cache,
    /// Objects are watched.
    Watch,
}

impl Strategy {
    /// By its name in the configuration.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "Get" => Some(Self::Get),
            "Cache" => Some(Self::Cache),
            "Watch" | "" => Some(Self::Watch),
            _ => None,
        }
    }
}

/// What is known of an object: nothing yet, that it is not there, or the object.
type Known<T> = Option<Option<Arc<T>>>;

struct Entry<T> {
    known: watch::Receiver<Known<T>>,
    last_read: Instant,
    stop: CancellationToken,
}

/// When an object was read, and what it was.
type LastRead<T> = (Instant, Option<Arc<T>>);

/// Objects of one kind.
struct Followed<T> {
    kind: &'static str,
    client: Client,
    entries: Arc<Mutex<BTreeMap<ObjectKey, Entry<T>>>>,
    read: Arc<Mutex<BTreeMap<ObjectKey, LastRead<T>>>>,
}

/// Whether an object can no longer change.
trait Immutable {
    fn is_immutable(&self) -> bool;
}

impl Immutable for ConfigMap {
    fn is_immutable(&self) -> bool {
        self.immutable == Some(true)
    }
}

impl Immutable for Secret {
    fn is_immutable(&self) -> bool {
        self.immutable == Some(true)
    }
}

impl<T: Kind + Object + ApiObject + Immutable> Followed<T> {
    fn new(kind: &'static str, client: &Client) -> Self {
        Self { kind, client: client.clone(), entries: Arc::default(), read: Arc::default() }
    }

    async fn direct(&self, key: &ObjectKey) -> Result<Option<Arc<T>>, ObjectError> {
        let found = self.client.namespaced::<T>(&key.namespace).get_opt(&key.name).await;
        Ok(found?.map(Arc::new))
    }

    async fn cached(&self, key: &ObjectKey) -> Result<Option<Arc<T>>, ObjectError> {
        let now = Instant::now();
        if let Some((at, object)) = self.read.lock().get(key)
            && now.duration_since(*at) < CACHE_TTL
        {
            return Ok(object.clone());
        }
        let object = self.direct(key).await?;
        let mut read = self.read.lock();
        if read.len() >= MAX_ENTRIES {
            read.retain(|_, (at, _)| now.duration_since(*at) < CACHE_TTL);
        }
        read.insert(key.clone(), (now, object.clone()));
        Ok(object)
    }

    async fn watched(&self, key: &ObjectKey) -> Result<Option<Arc<T>>, ObjectError> {
        let Some(mut known) = self.follow(key) else { return self.direct(key).await };
        let synced = known.wait_for(Option::is_some);
        match tokio::time::timeout(FIRST_READ, synced).await {
            Ok(Ok(state)) => Ok(state.clone().flatten()),
            // The group is shutting down.
            Ok(Err(_)) => Err(ObjectError::Ending),
            Err(_) => Err(ObjectError::NotSynced { kind: self.kind }),
        }
    }

    /// Joins the watch of an object or starts it; nothing when there are too many.
    fn follow(&self, key: &ObjectKey) -> Option<watch::Receiver<Known<T>>> {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get_mut(key) {
            entry.last_read = Instant::now();
            return Some(entry.known.clone());
        }
        if entries.len() >= MAX_ENTRIES {
            return None;
        }
        let (sender, known) = watch::channel(None);
        let stop = self.client.tasks().token().child_token();
        let entry = Entry { known: known.clone(), last_read: Instant::now(), stop: stop.clone() };
        entries.insert(key.clone(), entry);
        drop(entries);
        let (api, name) = (self.client.namespaced::<T>(&key.namespace), key.name.clone());
        let rng = Arc::clone(self.client.rng());
        self.client.tasks().spawn("object-watch", async move {
            let mut pause = Backoff::new(RETRY_FIRST, 2.0, RETRY_LAST, 1.0);
            let work = async {
                loop {
                    let began = Instant::now();
                    if matches!(follow_once(&api, &name, &sender).await, Ok(Ended::Immutable)) {
                        break;
                    }
                    // Every watch ends once; one that went well for long is no reason to wait longer.
                    if began.elapsed() > RETRY_LAST {
                        pause.reset();
                    }
                    tokio::time::sleep(pause.step(&rng)).await;
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = work => stop.cancelled().await,
            }
        });
        Some(known)
    }

    fn stop_idle(&self, idle: Duration) {
        let now = Instant::now();
        self.entries.lock().retain(|_, entry| {
            let used = now.duration_since(entry.last_read) < idle;
            if !used {
                entry.stop.cancel();
            }
            used
        });
    }
}

enum Ended {
    /// The object will never change.
    Immutable,
    /// The server closed the watch.
    Closed,
}

/// Lists and watches one object until something ends it.
async fn follow_once<T: Kind + Object + ApiObject + Immutable>(
    api: &Api<T>,
    name: &str,
    sender: &watch::Sender<Known<T>>,
) -> Result<Ended, ClientError> {
    let mut options = ListOptions { field_selector: format!("metadata.name={name}"), ..ListOptions::default() };
    let list = api.list(&options).await?;
    let found = list.items.into_iter().next().map(Arc::new);
    let immutable = found.as_ref().is_some_and(|object| object.is_immutable());
    sender.send_replace(Some(found));
    if immutable {
        return Ok(Ended::Immutable);
    }
    options.resource_version = list.metadata.resource_version;
    options.allow_watch_bookmarks = true;
    let mut stream = api.watch(&options).await?;
    while let Some(event) = stream.next().await {
        match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let immutable = object.is_immutable();
                sender.send_replace(Some(Some(Arc::new(object))));
                if immutable {
                    return Ok(Ended::Immutable);
                }
            }
            WatchEvent::Deleted(_) => drop(sender.send_replace(Some(None))),
            WatchEvent::Bookmark { .. } => {}
            WatchEvent::Error(error) => return Err(ClientError::Api(error)),
        }
    }
    Ok(Ended::Closed)
}

/// Config maps and secrets of the API server.
pub struct ApiObjects {
    strategy: Strategy,
    config_maps: Arc<Followed<ConfigMap>>,
    secrets: Arc<Followed<Secret>>,
}

impl ApiObjects {
    /// Objects read through `client`; watches that nobody reads from for `idle` end.
    pub fn new(client: &Client, strategy: Strategy, idle: Duration) -> Arc<Self> {
        let objects = Self {
            strategy,
            config_maps: Arc::new(Followed::new("configmap", client)),
            secrets: Arc::new(Followed::new("secret", client)),
        };
        let (config_maps, secrets) = (Arc::clone(&objects.config_maps), Arc::clone(&objects.secrets));
        client.tasks().spawn_cancellable("idle-objects", async move {
            loop {
                tokio::time::sleep(idle).await;
                config_maps.stop_idle(idle);
                secrets.stop_idle(idle);
            }
        });
        Arc::new(objects)
    }
}

async fn read<T: Kind + Object + ApiObject + Immutable>(
    strategy: Strategy,
    from: &Followed<T>,
    namespace: &str,
    name: &str,
) -> Result<Option<Arc<T>>, ObjectError> {
    let key = ObjectKey::new(namespace, name);
    match strategy {
        Strategy::Get => from.direct(&key).await,
        Strategy::Cache => from.cached(&key).await,
        Strategy::Watch => from.watched(&key).await,
    }
}

#[async_trait]
impl Objects for ApiObjects {
    async fn config_map(&self, namespace: &str, name: &str) -> Result<Option<Arc<ConfigMap>>, ObjectError> {
        read(self.strategy, &self.config_maps, namespace, name).await
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Arc<Secret>>, ObjectError> {
        read(self.strategy, &self.secrets, namespace, name).await
    }
}

#[cfg(test)]
mod tests {
    use client::fake::FakeServer;
    use serde_json::json;

    use super::*;

    fn put(server: &FakeServer, value: &str, immutable: bool) {
        server.put(
            "v1/configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns", "name": "cfg"},
                   "data": {"key": value}, "immutable": immutable}),
        );
    }

    async fn value(objects: &ApiObjects) -> Option<String> {
        let map = objects.config_map("ns", "cfg").await.unwrap();
        map.and_then(|map| map.data.get("key").cloned())
    }

    #[tokio::test(start_paused = true)]
    async fn watched_objects_follow_changes() {
        let server = FakeServer::new();
        let objects = ApiObjects::new(&server.client(), Strategy::Watch, Duration::from_secs(300));
        assert_eq!(value(&objects).await, None);
        put(&server, "one", false);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(value(&objects).await.as_deref(), Some("one"));
        put(&server, "two", false);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(value(&objects).await.as_deref(), Some("two"));
        server.remove("v1/configmaps", "ns", "cfg");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(value(&objects).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn watches_that_end_after_long_start_again_soon() {
        let server = FakeServer::new();
        let objects = ApiObjects::new(&server.client(), Strategy::Watch, Duration::from_secs(3600));
        for round in 0..7 {
            assert!(objects.config_map("ns", "cfg").await.is_ok());
            tokio::time::sleep(Duration::from_secs(60)).await;
            server.cut_watches();
            let fresh = format!("value {round}");
            put(&server, &fresh, false);
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert_eq!(value(&objects).await, Some(fresh));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn idle_watches_end() {
        let server = FakeServer::new();
        let objects = ApiObjects::new(&server.client(), Strategy::Watch, Duration::from_secs(60));
        put(&server, "one", false);
        assert_eq!(value(&objects).await.as_deref(), Some("one"));
        assert_eq!(objects.config_maps.entries.lock().len(), 1);
        tokio::time::sleep(Duration::from_secs(130)).await;
        assert_eq!(objects.config_maps.entries.lock().len(), 0);
        assert_eq!(value(&objects).await.as_deref(), Some("one"), "the next read starts it again");
    }

    #[tokio::test(start_paused = true)]
    async fn strategies_differ_in_how_fresh_they_are() {
        let server = FakeServer::new();
        let client = server.client();
        let idle = Duration::from_secs(300);
        let (get, cache) =
            (ApiObjects::new(&client, Strategy::Get, idle), ApiObjects::new(&client, Strategy::Cache, idle));
        put(&server, "one", false);
        assert_eq!((value(&get).await.as_deref(), value(&cache).await.as_deref()), (Some("one"), Some("one")));
        put(&server, "two", false);
        assert_eq!((value(&get).await.as_deref(), value(&cache).await.as_deref()), (Some("two"), Some("one")));
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert_eq!(value(&cache).await.as_deref(), Some("two"));
    }
}
