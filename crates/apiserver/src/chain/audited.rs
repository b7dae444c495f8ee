//! What is noted of a request for the audit log, for as long as it lasts.

use std::sync::Arc;

use audit::{Auditor, Context, Origin, Target};
use component_base::flags::format_duration;
use component_base::serving::{RemoteAddr, Response, hold};
use http::HeaderName;
use http::header::USER_AGENT;
use http::request::Parts;
use tokio::time::Instant;

use super::audit_id;
use crate::request::RequestInfo;
use crate::respond::path_and_query;

/// What took longer is noted with how long it took.
const SLOW_NS: u128 = 500_000_000;
const LATENCY: &str = "apiserver.latency.k8s.io/total";
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
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
    pub(super) fn begin(auditor: Option<&Arc<Auditor>>, now: Instant, parts: &Parts, info: &RequestInfo) -> Self {
        let Some(auditor) = auditor else { return Self::default() };
        let context = auditor.request(origin(parts), target(info));
        Self(Some(Arc::new(Ending { context, began: now })))
    }

    /// Where to note something.
    pub(crate) fn context(&self) -> &Context {
        self.0.as_ref().map_or(&UNHEARD, |ending| &ending.context)
    }

    /// The answer is made. One that comes in one piece is told of before anybody sees it.
    pub(super) async fn answered(self, now: Instant, is_long_running: bool, response: Response) -> Response {
        let Some(ending) = &self.0 else { return response };
        let code = response.status().as_u16();
        if is_long_running {
            ending.context.started(code).await;
            return hold(response, self);
        }
        let took = (now - ending.began).as_nanos();
        if took > SLOW_NS {
            let text = format_duration(i64::try_from(took).unwrap_or(i64::MAX));
            ending.context.annotate(LATENCY, &text);
        }
        if http_body::Body::size_hint(response.body()).exact().is_some() {
            ending.context.complete(code).await;
            return response;
        }
        ending.context.sending(code);
        hold(response, self)
    }
}

fn origin(parts: &Parts) -> Origin {
    let text = |name: HeaderName| {
        let mut values = parts.headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        let first = values.next().unwrap_or_default().to_owned();
        values.fold(first, |all, more| format!("{all},{more}"))
    };
    Origin {
        audit_id: text(audit_id::HEADER),
        uri: path_and_query(&parts.uri).to_owned(),
        forwarded_for: text(FORWARDED_FOR),
        real_ip: text(REAL_IP),
        remote: parts.extensions.get::<RemoteAddr>().map(|remote| remote.0.ip()),
        user_agent: text(USER_AGENT),
    }
}

fn target(info: &RequestInfo) -> Target {
    Target {
        verb: info.verb.clone(),
        is_resource: info.is_resource,
        path: if info.is_resource { String::new() } else { info.path.clone() },
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        namespace: info.namespace.clone(),
        name: info.name.clone(),
    }
}
