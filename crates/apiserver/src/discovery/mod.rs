//! Discovery: what is served, as clients ask for it before anything else; in single documents, or in one.

mod aggregated;
mod catalog;
pub(crate) mod order;
mod wanted;

use std::sync::Arc;

use api_machinery::json;
use api_machinery::meta::{APIVersions, ServerAddressByClientCIDR};
use api_machinery::object::Kind;
use api_machinery::protobuf;
use api_machinery::status::ApiError;
use api_types::apidiscovery_v2::APIGroupDiscovery;
use async_trait::async_trait;
use component_base::serving::{Response, empty};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderValue, Method, StatusCode};
use parking_lot::Mutex;

pub(crate) use catalog::Catalog;
use catalog::Hashes;

use crate::address::external_address;
use crate::aggregation::state::Aggregation;
use crate::chain::{Authorized, Request};
use crate::custom_resources::ServedKinds;
use crate::cx::ApiCx;
use crate::handlers::unknown_path;
use crate::negotiate::{MediaType, Offer, routing};
use crate::peers::Asked;
use crate::respond;
use crate::routes::{Endpoint, Routes};
use crate::server_id::server_id;
use aggregated::Document;
use wanted::{Wanted, Whose};

/// Adds the paths.
pub(crate) fn install(routes: &mut Routes, served: &Arc<ServedKinds>, aggregation: &Arc<Aggregation>) {
    let (served, aggregation) = (Arc::clone(served), Arc::clone(aggregation));
    let discovery: Arc<dyn Endpoint> =
        Arc::new(Discovery { served, aggregation, cached: Mutex::default(), united: Mutex::default() });
    for path in ["/api", "/apis"] {
        routes.exact(path, Arc::clone(&discovery));
    }
    for prefix in ["/api/", "/apis/"] {
        routes.prefix(prefix, Arc::clone(&discovery));
    }
}

/// The documents for as long as nothing changes.
struct Documents {
    /// Of the custom kinds, and of the versions that other servers answer for.
    generation: (u64, u64),
    catalog: Catalog,
    core: Document,
    own: Vec<APIGroupDiscovery>,
    groups: Document,
}

/// What all servers of the cluster serve, for as long as nothing changes.
struct United {
    /// Of the own documents, and of what the others serve.
    generation: ((u64, u64), u64),
    groups: Document,
}

struct Discovery {
    served: Arc<ServedKinds>,
    aggregation: Arc<Aggregation>,
    cached: Mutex<Option<Arc<Documents>>>,
    united: Mutex<Option<Arc<United>>>,
}

impl Discovery {
    fn documents(&self) -> Arc<Documents> {
        let generation = (self.served.generation(), self.aggregation.generation());
        let mut cached = self.cached.lock();
        if let Some(documents) = cached.as_ref().filter(|documents| documents.generation == generation) {
            return Arc::clone(documents);
        }
        self.aggregation.note_discovery();
        let catalog = Catalog::whole(&self.served, self.aggregation.listed());
        let core = aggregated::document(&aggregated::groups(&catalog, true));
        let own = aggregated::groups(&catalog, false);
        let groups = aggregated::document(&own);
        let documents = Arc::new(Documents { generation, catalog, core, own, groups });
        *cached = Some(Arc::clone(&documents));
        documents
    }
}

impl Discovery {
    /// The document of `/apis` of all servers of the cluster, where they are known; else that of this one.
    fn groups(&self, cx: &ApiCx, documents: &Documents, whose: Whose) -> Document {
        let Some(peers) = &cx.peers else { return documents.groups.clone() };
        if whose == Whose::Own {
            peers.count_discovery(Asked::Alone);
            return documents.groups.clone();
        }
        let generation = (documents.generation, peers.known().generation);
        let mut united = self.united.lock();
        if let Some(known) = united.as_ref().filter(|known| known.generation == generation) {
            peers.count_discovery(Asked::Again);
            return known.groups.clone();
        }
        peers.count_discovery(Asked::Anew);
        let id = server_id(&cx.config().host_name());
        let groups = aggregated::document(&peers.united(&id, &documents.own));
        *united = Some(Arc::new(United { generation, groups: groups.clone() }));
        groups
    }
}

#[async_trait]
impl Endpoint for Discovery {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        let documents = self.documents();
        let path = request.info().path.as_str();
        let segments: Vec<&str> = path.trim_end_matches('/').split('/').skip(1).collect();
        check_route(&request, &documents.catalog, &segments)?;
        let wanted = wanted::of(request.preferences().accept(), request.preferences().forms());
        if let ("/api" | "/apis", Some(Wanted::Aggregated(media, whose))) = (path, wanted) {
            let document = if path == "/api" { documents.core.clone() } else { self.groups(cx, &documents, whose) };
            return Ok(aggregated_answer(&request, &document, media));
        }
        legacy_answer(cx, &request, &documents.catalog, &segments)
    }
}

/// What upstream's router asks of requests for the documents of the core API and of built-in versions. The other
/// documents, and those of kinds that came at run time, are sent whatever the method.
fn check_route(request: &Request<Authorized>, catalog: &Catalog, segments: &[&str]) -> Result<(), ApiError> {
    let is_routed = match segments {
        ["api"] => true,
        ["api", version] => catalog.has_built_in("", version),
        ["apis", group, version] => catalog.has_built_in(group, version),
        _ => false,
    };
    if !is_routed {
        return Ok(());
    }
    if request.method() != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    routing::require_accepted(request.headers(), request.preferences().forms(), routing::Produced::Documents)
}

fn aggregated_answer(request: &Request<Authorized>, document: &Document, media: MediaType) -> Response {
    let known = request.headers().get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if known != Some(document.etag.as_str()) {
        request.preferences().audit().answer(|| document.json.clone());
    }
    let mut response = match (known == Some(document.etag.as_str()), media) {
        (true, _) => {
            let mut response = Response::new(empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        (false, MediaType::Protobuf) => {
            respond::protobuf_document(request.preferences(), StatusCode::OK, document.protobuf.clone())
        }
        (false, MediaType::Cbor) => respond::cbor_of_json(request.preferences(), StatusCode::OK, &document.json),
        (false, _) => respond::json(request.preferences(), StatusCode::OK, document.json.clone()),
    };
    let headers = response.headers_mut();
    let content_type = format!("{};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", media.name());
    for (name, value) in [(CONTENT_TYPE, content_type.as_str()), (ETAG, document.etag.as_str())] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    headers.append(VARY, HeaderValue::from_static("Accept"));
    response
}

/// A document of the older form, by the segments of the path.
fn legacy_answer(
    cx: &ApiCx,
    request: &Request<Authorized>,
    catalog: &Catalog,
    segments: &[&str],
) -> Result<Response, ApiError> {
    match segments {
        ["api"] => typed(request, "", &core_versions(cx)),
        ["apis"] => typed(request, "v1", &catalog.group_list()),
        ["api", version] => resources(cx, request, catalog, "", version),
        ["apis", group] => match catalog.group(group).filter(|group| !group.name.is_empty()) {
            Some(group) => typed(request, "v1", &group.document()),
            None => unknown_path(cx, &request.info().path),
        },
        ["apis", group, version] if !group.is_empty() => resources(cx, request, catalog, group, version),
        _ => unknown_path(cx, &request.info().path),
    }
}

fn resources(
    cx: &ApiCx,
    request: &Request<Authorized>,
    catalog: &Catalog,
    group: &str,
    version: &str,
) -> Result<Response, ApiError> {
    let found = catalog.group(group).and_then(|group| Some((group, group.version(version)?)));
    let Some((group, version)) = found else { return unknown_path(cx, &request.info().path) };
    let api_version = if group.name.is_empty() { "" } else { "v1" };
    let hashes = Hashes::by(cx.lifecycle.gates());
    typed(request, api_version, &group.resource_list(version, hashes))
}

fn core_versions(cx: &ApiCx) -> APIVersions {
    APIVersions {
        versions: vec!["v1".to_owned()],
        server_address_by_client_cidrs: vec![ServerAddressByClientCIDR {
            client_cidr: "0.0.0.0/0".to_owned(),
            server_address: external_address(cx.config()),
        }],
    }
}

/// A document with its kind, and with its API version where it has one.
fn typed<T: Kind>(request: &Request<Authorized>, api_version: &str, value: &T) -> Result<Response, ApiError> {
    let choice = request.preferences().choose(Offer::PLAIN)?;
    let json = || {
        let members = json::encode(value);
        let members = members.strip_prefix('{').unwrap_or_default();
        let version = if api_version.is_empty() { String::new() } else { format!("\"apiVersion\":{api_version:?},") };
        format!("{{\"kind\":{:?},{version}{members}", T::TYPE.kind).into()
    };
    if choice.media == MediaType::Protobuf {
        request.preferences().audit().answer(json);
        let sealed = protobuf::seal(api_version, T::TYPE.kind, |out| out.members(value));
        return Ok(respond::protobuf_document(request.preferences(), StatusCode::OK, sealed.into()));
    }
    Ok(respond::json_document(request.preferences(), &choice, StatusCode::OK, json()))
}
