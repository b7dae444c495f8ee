//! What the server answers: the API, discovery of it, health and metrics.

use std::borrow::Cow;
use std::sync::Arc;

use api_machinery::gvk::GroupResource;
use api_machinery::meta::{ObjectMeta, PartialObjectMetadata};
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_machinery::time::Time;
use api_types::core_v1::Node;
use api_types::metrics_v1beta1::GROUP;
use base::SharedClock;
use client::Informer;
use component_base::health::Health;
use component_base::metrics::Metrics;
use component_base::serving::{Handler, Query, Request, Response, text};
use controller::process::{Access, Refusal, because};
use http::request::Parts;
use http::{Method, StatusCode, header};

use crate::answers::{self, Answer};
use crate::query::{Asked, Resource, Select, parameters};
use crate::usage::Usages;

const API: &str = "/apis/metrics.k8s.io/v1beta1/";

/// Answers requests.
pub(crate) struct Endpoint {
    pub(crate) access: Arc<Access>,
    pub(crate) api: Api,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) slis: Arc<Metrics>,
}

#[async_trait::async_trait]
impl Handler for Endpoint {
    async fn handle(&self, request: Request) -> Response {
        let (parts, _) = request.into_parts();
        self.answer(&parts).await.unwrap_or_else(|error| answers::refused(&error))
    }
}

impl Endpoint {
    async fn answer(&self, request: &Parts) -> Result<Response, ApiError> {
        let (path, query) = (request.uri.path(), parameters(request)?);
        let asked = path.strip_prefix(API).and_then(Asked::read);
        let attributes = asked.as_ref().map(|asked| asked.attributes(&request.method, &query));
        let verb = attributes.as_ref().map(|attributes| attributes.verb.clone());
        match self.access.decide(request, attributes).await {
            Ok(()) => {}
            Err(Refusal::Unauthorized) => return Err(ApiError::unauthorized("Unauthorized")),
            Err(Refusal::Undecided(error)) => return Err(ApiError::internal(error)),
            Err(Refusal::Forbidden(user, reason)) => {
                return Err(forbidden(request, asked.as_ref(), verb.as_deref(), (&user, &reason)));
            }
        }
        if let (Some(asked), Some(verb)) = (asked, verb) {
            if !matches!(verb.as_str(), "get" | "list") {
                return Err(ApiError::method_not_supported(&resource(&asked), &verb));
            }
            let accept = request.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
            return Ok(self.api.tell(&asked, &query)?.write(accept.unwrap_or_default()));
        }
        if Health::serves(path) {
            let answer = self.health.answer(path, request.uri.query()).await;
            return Ok(answer.unwrap_or_else(not_found));
        }
        Ok(match (path, &request.method) {
            ("/metrics", _) => self.metrics.answer(),
            ("/metrics/slis", &Method::GET) => self.slis.answer(),
            (path, &Method::GET) => answers::discovery(path).unwrap_or_else(not_found),
            _ => not_found(),
        })
    }
}

fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

fn resource(asked: &Asked) -> GroupResource {
    GroupResource::new(GROUP, asked.resource.name())
}

fn forbidden(request: &Parts, asked: Option<&Asked>, verb: Option<&str>, (user, reason): (&str, &str)) -> ApiError {
    let (Some(asked), Some(verb)) = (asked, verb) else {
        let (verb, path) = (request.method.as_str().to_ascii_lowercase(), request.uri.path());
        let why = format!("User {user:?} cannot {verb} path {path:?}");
        return ApiError::forbidden(&GroupResource::default(), "", because(why, reason));
    };
    let place = match asked.namespace.as_str() {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    let name = asked.resource.name();
    let why = format!("User {user:?} cannot {verb} resource {name:?} in API group {GROUP:?} {place}");
    ApiError::forbidden(&resource(asked), &asked.name, because(why, reason))
}

/// What there is to tell of.
pub(crate) struct Api {
    pub(crate) nodes: Informer<Node>,
    pub(crate) pods: Informer<PartialObjectMetadata>,
    pub(crate) usages: Arc<Usages>,
    pub(crate) clock: SharedClock,
}

impl Api {
    /// What was used by what is asked for.
    ///
    /// # Errors
    /// When a selector cannot be read, or nothing is known of the one thing that is asked for.
    pub(crate) fn tell(&self, asked: &Asked, query: &Query) -> Result<Answer, ApiError> {
        let (namespace, name) = (asked.namespace.as_str(), asked.name.as_str());
        if !name.is_empty() {
            let found = match asked.resource {
                Resource::Nodes => self.nodes.find("", name).and_then(|node| self.of_node(&node.metadata)),
                Resource::Pods => self.pods.find(namespace, name).and_then(|pod| self.of_pod(&pod.metadata)),
            };
            let none = || answers::not_found(asked.resource, namespace, name);
            return found.map(Answer::One).ok_or_else(none);
        }
        let select = Select::read(query)?;
        let objects = match (asked.resource, namespace) {
            (Resource::Nodes, _) => {
                let nodes = self.nodes.list();
                let wanted = nodes.iter().map(|node| &node.metadata).filter(|meta| wants(&select, meta));
                wanted.filter_map(|meta| self.of_node(meta)).collect()
            }
            (Resource::Pods, namespace) => {
                let pods = if namespace.is_empty() { self.pods.list() } else { self.pods.in_namespace(namespace) };
                let wanted = pods.iter().map(|pod| &pod.metadata).filter(|meta| wants(&select, meta));
                wanted.filter_map(|meta| self.of_pod(meta)).collect()
            }
        };
        Ok(Answer::List(asked.resource, objects))
    }

    fn now(&self) -> Time {
        self.clock.wall().into()
    }

    fn of_node(&self, meta: &ObjectMeta) -> Option<Box<dyn Object>> {
        let usage = self.usages.of_node(&meta.name)?;
        Some(Box::new(answers::node(meta, &usage, self.now())))
    }

    fn of_pod(&self, meta: &ObjectMeta) -> Option<Box<dyn Object>> {
        let containers = self.usages.of_pod(&meta.namespace, &meta.name)?;
        Some(Box::new(answers::pod(meta, containers, self.now())?))
    }
}

fn wants(select: &Select, meta: &ObjectMeta) -> bool {
    let field = |name: &str| match name {
        "metadata.name" => Cow::Borrowed(meta.name.as_str()),
        "metadata.namespace" => Cow::Borrowed(meta.namespace.as_str()),
        _ => Cow::Borrowed(""),
    };
    select.labels.matches(&meta.labels) && select.fields.matches(field)
}
