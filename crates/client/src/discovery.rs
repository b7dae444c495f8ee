//! What the server offers: its resources, their kinds and verbs. Asked for in one piece where the server can do that,
//! group by group otherwise.

use std::collections::HashMap;
use std::sync::Arc;

use api_machinery::gvk::{GroupKind, GroupVersion, GroupVersionKind};
use api_machinery::meta::{APIGroupList, APIResourceList, APIVersions};
use api_machinery::object::from_value;
use api_machinery::value::Value;
use api_types::apidiscovery_v2::{APIGroupDiscovery, APIResourceDiscovery, APIVersionDiscovery};
use arc_swap::ArcSwap;

use crate::client::Client;
use crate::codec;
use crate::error::ClientError;
use crate::request::{JSON, RawResponse, Request};
use crate::resource::ResourceInfo;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
const AGGREGATED_KIND: &str = "APIGroupDiscoveryList";
/// Versions asked for one by one; a server with more is not a Kubernetes.
const MAX_VERSIONS: usize = 1000;

/// A resource that the server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedResource {
    /// Its names and scope.
    pub info: ResourceInfo,
    /// What can be done with its objects: `get`, `list`, `delete` ...
    pub verbs: Vec<String>,
    /// Names of its subresources, such as `status`.
    pub subresources: Vec<String>,
    /// Whether its group prefers this version.
    pub preferred: bool,
}

impl ServedResource {
    /// Whether all of these verbs are offered.
    #[must_use]
    pub fn supports(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.iter().any(|known| known == verb))
    }
}

/// What a round of discovery found.
#[derive(Debug, Clone, Default)]
pub struct Discovered {
    /// The resources, in the server's order of groups and versions.
    pub resources: Vec<ServedResource>,
    /// The group versions that could not be asked, with why; usually empty.
    pub failed: Vec<(GroupVersion, String)>,
}

impl Discovered {
    /// Each resource in the one version that its group prefers, or the first that has it.
    pub fn preferred(&self) -> impl Iterator<Item = &ServedResource> {
        let mut best: HashMap<[&str; 2], &ServedResource> = HashMap::new();
        for served in &self.resources {
            let found = best.entry(served.place()).or_insert(served);
            if served.preferred && !found.preferred {
                *found = served;
            }
        }
        self.resources.iter().filter(move |served| best.get(&served.place()).is_some_and(|best| best.is(served)))
    }

    /// Whether a resource stands in the version that [`preferred`](Self::preferred) has of it: who looks for one resource
    /// does so again and again.
    fn prefers(&self, served: &ServedResource) -> bool {
        let mut same = self.resources.iter().filter(|other| other.place() == served.place());
        let Some(first) = same.next() else { return false };
        let best = if first.preferred { first } else { same.find(|other| other.preferred).unwrap_or(first) };
        best.is(served)
    }
}

impl ServedResource {
    /// Group and name.
    fn place(&self) -> [&str; 2] {
        [&self.info.resource.group, &self.info.resource.resource]
    }

    fn is(&self, other: &Self) -> bool {
        self.info.resource == other.info.resource
    }

    fn is_of(&self, kind: &GroupKind) -> bool {
        self.info.kind == *kind.kind && self.info.resource.group == kind.group
    }
}

/// Finds resources by kind and kinds by resource, from the last round of discovery. Clones share it.
#[derive(Clone)]
pub struct RestMapper {
    client: Client,
    known: Arc<ArcSwap<Discovered>>,
}

impl RestMapper {
    /// A mapper that knows nothing yet; call [`Self::refresh`].
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self { client: client.clone(), known: Arc::default() }
    }

    /// Asks the server anew. What the failed group versions had before is kept.
    ///
    /// # Errors
    /// When the server does not answer at all.
    pub async fn refresh(&self) -> Result<Arc<Discovered>, ClientError> {
        let mut found = discover(&self.client).await?;
        let before = self.known.load_full();
        for (version, _) in &found.failed {
            let kept = before.resources.iter().filter(|served| served.info.resource.group_version() == *version);
            found.resources.extend(kept.cloned());
        }
        self.known.store(Arc::new(found));
        Ok(self.known.load_full())
    }

    /// What the last round found.
    #[must_use]
    pub fn discovered(&self) -> Arc<Discovered> {
        self.known.load_full()
    }

    /// The resource of a kind in a version.
    #[must_use]
    pub fn resource_of(&self, kind: &GroupVersionKind) -> Option<ResourceInfo> {
        let known = self.known.load();
        let is_it = |served: &&ServedResource| {
            served.info.kind == *kind.kind
                && served.place()[0] == &*kind.group
                && served.info.resource.version == kind.version
        };
        known.resources.iter().find(is_it).map(|served| served.info.clone())
    }

    /// All resources of a kind, each in its preferred version.
    #[must_use]
    pub fn preferred_resources_of(&self, kind: &GroupKind) -> Vec<ResourceInfo> {
        let known = self.known.load();
        let of_kind = known.resources.iter().filter(|served| served.is_of(kind) && known.prefers(served));
        of_kind.map(|served| served.info.clone()).collect()
    }
}

/// One round of discovery, and a second where the first did not hear of everything.
///
/// # Errors
/// When the server does not answer at all; group versions that fail one by one are listed in the result.
pub async fn discover(client: &Client) -> Result<Discovered, ClientError> {
    let found = round(client).await?;
    if found.failed.is_empty() { Ok(found) } else { round(client).await }
}

async fn round(client: &Client) -> Result<Discovered, ClientError> {
    let mut found = Discovered::default();
    for path in ["/api", "/apis"] {
        let response = match client.send(Request::get(path).accept(AGGREGATED)).await {
            Ok(response) => response,
            // A server without the core group, as extension servers are.
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(error),
        };
        if codec::kind_of(&response.body) == AGGREGATED_KIND {
            read_aggregated(&response, &mut found)?;
        } else if path == "/api" {
            let versions: APIVersions = codec::decode_kind(&response.body)?;
            for version in versions.versions {
                ask_version(client, GroupVersion { group: "".into(), version: version.into() }, true, &mut found).await;
            }
        } else {
            ask_groups(client, &response, &mut found).await?;
        }
    }
    Ok(found)
}

fn read_aggregated(response: &RawResponse, found: &mut Discovered) -> Result<(), ClientError> {
    let bad = |reason: String| ClientError::Decode { what: AGGREGATED_KIND.to_owned(), reason };
    let text = String::from_utf8_lossy(&response.body);
    let list = api_machinery::json::parse_value(&text).map_err(|error| bad(error.to_string()))?;
    for item in list.get("items").and_then(Value::as_array).into_iter().flatten() {
        let group: APIGroupDiscovery = from_value(item).map_err(|error| bad(error.to_string()))?;
        for (index, version) in group.versions.iter().enumerate() {
            read_version(&group.metadata.name, version, index == 0, found);
        }
    }
    Ok(())
}

fn read_version(group: &str, version: &APIVersionDiscovery, preferred: bool, found: &mut Discovered) {
    let name = GroupVersion { group: group.to_owned().into(), version: version.version.clone().into() };
    if version.freshness == "Stale" {
        let reason = format!("stale GroupVersion discovery: {name}");
        found.failed.push((name, reason));
        return;
    }
    let resources = version.resources.iter().filter_map(|resource| served(&name, resource, preferred));
    found.resources.extend(resources);
}

/// A resource without a kind of its own (only its subresources are served) is not one.
fn served(version: &GroupVersion, resource: &APIResourceDiscovery, preferred: bool) -> Option<ServedResource> {
    let kind = resource.response_kind.as_ref().filter(|kind| !kind.kind.is_empty())?;
    Some(ServedResource {
        info: ResourceInfo {
            resource: version.with_resource(resource.resource.clone()),
            kind: kind.kind.clone(),
            namespaced: resource.scope == "Namespaced",
        },
        verbs: resource.verbs.clone(),
        subresources: resource.subresources.iter().map(|sub| sub.subresource.clone()).collect(),
        preferred,
    })
}

async fn ask_groups(client: &Client, response: &RawResponse, found: &mut Discovered) -> Result<(), ClientError> {
    let groups: APIGroupList = codec::decode_kind(&response.body)?;
    let mut asked = 0;
    for group in &groups.groups {
        for version in &group.versions {
            asked += 1;
            if asked > MAX_VERSIONS {
                return Ok(());
            }
            let name = GroupVersion { group: group.name.clone().into(), version: version.version.clone().into() };
            let preferred = version.version == group.preferred_version.version;
            ask_version(client, name, preferred, found).await;
        }
    }
    Ok(())
}

async fn ask_version(client: &Client, version: GroupVersion, preferred: bool, found: &mut Discovered) {
    let root = if version.group.is_empty() { "api" } else { "apis" };
    let request = Request::get(format!("/{root}/{version}")).accept(JSON);
    let listed = match client.send(request).await {
        Ok(response) => codec::decode_kind::<APIResourceList>(&response.body),
        Err(error) => Err(error),
    };
    match listed {
        Ok(list) => found.resources.extend(read_resources(&version, &list, preferred)),
        Err(error) => found.failed.push((version, error.to_string())),
    }
}

fn read_resources(version: &GroupVersion, list: &APIResourceList, preferred: bool) -> Vec<ServedResource> {
    let (parts, whole): (Vec<_>, Vec<_>) = list.resources.iter().partition(|resource| resource.name.contains('/'));
    let resources = whole.into_iter().map(|resource| {
        let prefix = format!("{}/", resource.name);
        ServedResource {
            info: ResourceInfo {
                resource: version.with_resource(resource.name.clone()),
                kind: resource.kind.clone(),
                namespaced: resource.namespaced,
            },
            verbs: resource.verbs.0.clone(),
            subresources: parts.iter().filter_map(|part| part.name.strip_prefix(&prefix)).map(Into::into).collect(),
            preferred,
        }
    });
    resources.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use api_machinery::json::parse_value;
    use bytes::Bytes;
    use component_base::serving;
    use http::StatusCode;

    use super::*;
    use crate::fake::FakeServer;
    use crate::transport::{ApiHandler, Body, InProcess, Peer};

    /// Answers with one group, which is stale for the first rounds.
    struct Stale(usize, AtomicUsize);

    #[async_trait::async_trait]
    impl ApiHandler for Stale {
        async fn call(&self, request: http::Request<Bytes>, _: &Peer) -> http::Response<Body> {
            if request.uri().path() == "/api" {
                return serving::text(StatusCode::NOT_FOUND, "");
            }
            let stale = self.1.fetch_add(1, Ordering::SeqCst) < self.0;
            let freshness = if stale { "Stale" } else { "Current" };
            let text = format!(
                r#"{{"kind":"APIGroupDiscoveryList","items":[{{"metadata":{{"name":"g"}},"versions":[
                {{"version":"v1","freshness":"{freshness}","resources":[]}}]}}]}}"#
            );
            serving::text(StatusCode::OK, text)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_heard_of_is_asked_for_twice() {
        for (stale_rounds, rounds, failed) in [(0, 1, 0), (1, 2, 0), (5, 2, 1)] {
            let server = Arc::new(Stale(stale_rounds, AtomicUsize::new(0)));
            let handler: Arc<dyn ApiHandler> = Arc::<Stale>::clone(&server);
            let client = FakeServer::new().client_over(Arc::new(InProcess::new(handler, Peer::default())));
            let found = discover(&client).await.unwrap();
            assert_eq!((server.1.load(Ordering::SeqCst), found.failed.len()), (rounds, failed), "{stale_rounds}");
        }
    }

    #[test]
    fn the_preferred_version_wins_or_the_first_that_has_the_resource() {
        let text = r#"{"metadata":{"name":"g"},"versions":[
            {"version":"v1","freshness":"Current","resources":[
                {"resource":"as","scope":"Namespaced","responseKind":{"kind":"A"},"verbs":["get","list"]}]},
            {"version":"v1beta1","freshness":"Current","resources":[
                {"resource":"as","scope":"Namespaced","responseKind":{"kind":"A"},"verbs":["get"]},
                {"resource":"bs","scope":"Cluster","responseKind":{"kind":"B"},"verbs":["get"]}]},
            {"version":"v1alpha1","freshness":"Stale"}]}"#;
        let group: APIGroupDiscovery = from_value(&parse_value(text).unwrap()).unwrap();
        let mut found = Discovered::default();
        for (index, version) in group.versions.iter().enumerate() {
            read_version(&group.metadata.name, version, index == 0, &mut found);
        }
        let preferred: Vec<_> = found.preferred().map(|served| served.info.resource.to_string()).collect();
        assert_eq!(preferred, ["g/v1, Resource=as", "g/v1beta1, Resource=bs"]);
        // The same, asked of each alone.
        let alone = found.resources.iter().filter(|served| found.prefers(served));
        assert_eq!(alone.map(|served| served.info.resource.to_string()).collect::<Vec<_>>(), preferred);
        assert_eq!(found.failed.len(), 1);
        assert!(found.resources[0].supports(&["get", "list"]) && !found.resources[1].supports(&["list"]));
    }
}
