//! What is noted of a request for the audit log, for as long as it lasts.

use std::sync::Arc;

use api_types::authentication_v1::UserInfo;
use audit::{Context, Origin, Target};
use component_base::flags::format_duration;
use component_base::serving::{RemoteAddr, Response};
use http::header::{AUTHORIZATION, USER_AGENT};
use http::request::Parts;
use tokio::time::Instant;

use super::{Authenticated, Received, Refusal, Request, audit_id, held};
use crate::cx::ApiCx;
use crate::request::RequestInfo;
use crate::respond;
use crate::respond::path_and_query;

/// What took longer is noted with how long it took.
const SLOW_NS: u128 = 500_000_000;
const LATENCY: &str = "apiserver.latency.k8s.io/total";
static UNHEARD: Context = Context::UNHEARD;

/// What is noted of a request. It ends, if nobody has ended it before, when the last clone goes: who takes a connection
/// over keeps one for as long as that lasts.
#[derive(Clone, Default)]
pub(crate) struct Audited(Option<Arc<Ending>>);

struct Ending {
    context: Context,
    began: Instant,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.context.ended();
    }
}

impl Audited {
    /// Of a request that has just come.
    pub(super) fn begin(cx: &ApiCx, parts: &Parts, info: &RequestInfo) -> Self {
        let Some(auditor) = &cx.audit else { return Self::default() };
        let context = auditor.request(&origin(parts), target(info));
        Self(Some(Arc::new(Ending { context, began: cx.clock().monotonic() })))
    }

    /// Where to note something.
    pub(crate) fn context(&self) -> &Context {
        self.0.as_ref().map_or(&UNHEARD, |ending| &ending.context)
    }

    /// The answer is made. One that comes in one piece is told of before anybody sees it.
    pub(super) async fn answered(self, cx: &ApiCx, is_long_running: bool, response: Response) -> Response {
        let Some(ending) = &self.0 else { return response };
        let code = response.status().as_u16();
        if is_long_running {
            ending.context.started(code).await;
            return held::hold(response, self);
        }
        let took = (cx.clock().monotonic() - ending.began).as_nanos();
        if took > SLOW_NS {
            let text = format_duration(i64::try_from(took).unwrap_or(i64::MAX));
            ending.context.annotate(LATENCY, &text);
        }
        if http_body::Body::size_hint(response.body()).exact().is_some() {
            ending.context.complete(code).await;
            return response;
        }
        ending.context.sending(code);
        held::hold(response, self)
    }
}

/// It is known who sent the request; refuses it where that must be told, and cannot be.
pub(super) async fn identified(
    request: &Request<Authenticated>,
    annotations: Vec<(String, String)>,
) -> Result<(), Refusal> {
    let told = request.audited().context().identified(request.sender(), annotations).await;
    told.map_err(|error| respond::plain_error(request.uri(), &error.to_string()).into())
}

/// Nobody knows who sent the request.
pub(super) async fn unidentified(request: &Request<Received>) {
    let credentials = credentials(request);
    let message = if credentials.is_empty() {
        "Authentication failed, no credentials provided".to_owned()
    } else {
        format!("Authentication failed, attempted: {}", credentials.join(", "))
    };
    request.audited().context().refused(401, message).await;
}

/// The kinds of credentials that a request has.
fn credentials(request: &Request<Received>) -> Vec<&'static str> {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let scheme = |scheme: &str| header.split(' ').next().is_some_and(|own| own.eq_ignore_ascii_case(scheme));
    [
        ("basic", scheme("basic")),
        ("bearer", scheme("bearer")),
        ("access_token", request.query().first("access_token").is_some()),
        ("x509", !request.peer_certificates().is_empty()),
    ]
    .into_iter()
    .filter_map(|(name, is_there)| is_there.then_some(name))
    .collect()
}

/// On whose behalf the request runs.
pub(super) fn impersonated(request: &Request<Authenticated>, user: &UserInfo) {
    request.audited().context().impersonated(user, "");
}

fn origin(parts: &Parts) -> Origin {
    let text = |name: &str| {
        let values = parts.headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.collect::<Vec<_>>().join(",")
    };
    let remote = parts.extensions.get::<RemoteAddr>().map(|remote| remote.0.ip().to_string());
    Origin {
        audit_id: text(audit_id::HEADER.as_str()),
        uri: path_and_query(&parts.uri).to_owned(),
        forwarded_for: text("x-forwarded-for"),
        real_ip: text("x-real-ip"),
        remote: remote.unwrap_or_default(),
        user_agent: text(USER_AGENT.as_str()),
    }
}

fn target(info: &RequestInfo) -> Target {
    Target {
        verb: info.verb.clone(),
        is_resource: info.is_resource,
        path: info.path.clone(),
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        namespace: info.namespace.clone(),
        name: info.name.clone(),
    }
}
