//! `componentstatuses`: whether parts of the control plane are well, as they say when somebody asks. They are looked for
//! where kubeadm starts them, on this machine. Deprecated, and not told of a control plane that is anywhere else.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::fields::FieldSelector;
use api_machinery::gvk::GroupResource;
use api_machinery::labels::Selector;
use api_machinery::object::Kind as _;
use api_machinery::status::ApiError;
use api_types::core_v1::{ComponentCondition, ComponentStatus};
use async_trait::async_trait;
use client::{Client, ClientConfig, ClientCx, Trust};
use component_base::serving::Response;
use futures_util::future::join_all;
use http::{Method, StatusCode};
use registry::{List, Stored};
use storage::{Backend, Revision};

use crate::chain::{Authorized, Request};
use crate::config::BackendConfig;
use crate::cx::ApiCx;
use crate::handlers::note_deprecation;
use crate::negotiate::Offer;
use crate::request::IncludeObject;
use crate::request::list_options;
use crate::respond::{self, Rendering};
use crate::routes::{Endpoint, Routes};

/// How long a component may take to answer.
const LIMIT: Duration = Duration::from_secs(20);
const SERVERS: [(&str, &str); 2] =
    [("controller-manager", "https://127.0.0.1:10257"), ("scheduler", "https://127.0.0.1:10259")];

/// Adds the resource.
pub(crate) fn install(routes: &mut Routes) {
    let [group, version, resource] = ComponentStatus::TYPE.place();
    routes.resource(group, version, resource, Arc::new(ComponentStatuses));
}

struct ComponentStatuses;

#[async_trait]
impl Endpoint for ComponentStatuses {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        if request.method() != Method::GET || request.info().verb == "watch" {
            return Err(ApiError::method_not_allowed());
        }
        let [group, version, resource] = ComponentStatus::TYPE.place();
        let rules = kinds::find(group, version, resource).ok_or_else(ApiError::unknown_resource)?;
        note_deprecation(cx, &request, rules, "");
        let rendering = Rendering {
            preferences: request.preferences(),
            include: IncludeObject::read(request.query())?,
            choice: request.preferences().choose(Offer::resource(false))?,
            rules,
            now: cx.clock().wall().into(),
            list_kind: format!("{}List", rules.info().kind),
        };
        if let Some(name) = request.info().path_name() {
            let part = parts(cx).into_iter().find(|part| part.name == name);
            let part =
                part.ok_or_else(|| ApiError::not_found(&GroupResource::named(group, "componentstatus"), name))?;
            return respond::view(&rendering, StatusCode::OK, &part.status(cx).await);
        }
        let wanted = Wanted::read(&request)?;
        let chosen: Vec<Part> = parts(cx).into_iter().filter(|part| wanted.has(&part.name)).collect();
        let statuses = join_all(chosen.iter().map(|part| part.status(cx))).await;
        let item = |status: ComponentStatus| {
            let key = status.metadata.name.as_str().into();
            Arc::new(Stored::unwritten(key, Revision(0), Box::new(status)))
        };
        let items = statuses.into_iter().map(item).collect();
        let list = List { revision: Revision(0), items, ..List::default() };
        respond::list(&rendering, &list).await
    }
}

/// The selectors of a list.
struct Wanted {
    labels: Selector,
    fields: FieldSelector,
}

impl Wanted {
    fn read(request: &Request<Authorized>) -> Result<Self, ApiError> {
        let options = list_options(request.query())?;
        let refused = |error: String| ApiError::bad_request(error);
        let labels = Selector::parse(&options.label_selector).map_err(|error| refused(error.to_string()))?;
        let fields = FieldSelector::parse(&options.field_selector).map_err(|error| refused(error.to_string()))?;
        Ok(Self { labels, fields })
    }

    fn has(&self, name: &str) -> bool {
        let value = |field: &str| Cow::Borrowed(if field == "metadata.name" { name } else { "" });
        self.labels.matches(&BTreeMap::new()) && self.fields.matches(value)
    }
}

/// A part of the control plane, and how it is asked.
struct Part {
    name: String,
    asked: Asked,
}

enum Asked {
    /// By its page of health.
    Server(&'static str),
    /// As the store: whichever member answers speaks for all.
    Store(Arc<dyn Backend>),
}

/// The parts in the order of lists.
fn parts(cx: &ApiCx) -> Vec<Part> {
    let main = match &cx.config().storage.backend {
        BackendConfig::Etcd(options) => options.endpoints.len(),
        BackendConfig::Embedded(_) | BackendConfig::Memory => 0,
    };
    let others = cx.overrides.iter().map(|own| (own.members, &own.backend));
    let of = |(count, store): (usize, &Arc<dyn Backend>)| std::iter::repeat_n(Arc::clone(store), count);
    let members = std::iter::once((main, cx.backend())).chain(others).flat_map(of);
    let servers = SERVERS.map(|(name, address)| Part { name: name.to_owned(), asked: Asked::Server(address) });
    let store = |(index, store)| Part { name: format!("etcd-{index}"), asked: Asked::Store(store) };
    servers.into_iter().chain(members.enumerate().map(store)).collect()
}

impl Part {
    async fn status(&self, cx: &ApiCx) -> ComponentStatus {
        let condition = match &self.asked {
            Asked::Server(address) => ask_server(cx, address).await,
            Asked::Store(store) => ask_store(&**store).await,
        };
        let mut status = ComponentStatus { conditions: vec![condition], ..ComponentStatus::default() };
        status.metadata.name.clone_from(&self.name);
        status
    }
}

fn condition(status: &str, message: String, error: String) -> ComponentCondition {
    ComponentCondition { type_: "Healthy".to_owned(), status: status.to_owned(), message, error }
}

async fn ask_server(cx: &ApiCx, address: &str) -> ComponentCondition {
    let config = ClientConfig { trust: Trust::Insecure, timeout: Some(LIMIT), ..ClientConfig::for_server(address) };
    let process = ClientCx::new(Arc::clone(cx.clock()), Arc::clone(cx.rng()), cx.tasks().clone());
    let process = process.obeying(cx.lifecycle.gates());
    let client = match Client::new(config, process) {
        Ok(client) => client,
        Err(error) => return condition("Unknown", String::new(), error.to_string()),
    };
    match client.send(client::Request::get("/healthz")).await {
        Ok(answer) => {
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            let status = if answer.status.is_success() { "True" } else { "False" };
            condition(status, text, String::new())
        }
        Err(error) => condition("Unknown", String::new(), error.to_string()),
    }
}

async fn ask_store(store: &dyn Backend) -> ComponentCondition {
    match tokio::time::timeout(LIMIT, store.health()).await {
        Ok(Ok(())) => condition("True", "ok".to_owned(), String::new()),
        Ok(Err(error)) => condition("Unknown", String::new(), error.to_string()),
        Err(_) => condition("Unknown", String::new(), "context deadline exceeded".to_owned()),
    }
}
