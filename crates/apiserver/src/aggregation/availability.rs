//! Whether other servers can be asked: the condition Available of their APIServices, checked whenever something about them
//! changes, and now and then.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::{Kind as _, Object};
use api_types::apiregistration_v1::APIService;
use api_types::apiregistration_v1::constants::{AVAILABLE, condition_status};
use api_types::core_v1::Service;
use api_types::discovery_v1::EndpointSlice;
use api_types::discovery_v1::constants::LABEL_SERVICE_NAME;
use async_trait::async_trait;
use client::ClientError;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, timeout_at};

use super::destination;
use super::fetch::{self, Question};
use super::identity;
use super::service_checks::{self, Finding};
use super::state::Aggregation;
use super::table::Remote;
use crate::cx::ApiCx;
use crate::follow::{Follower, follow};
use crate::hooks::{HookError, PostStartHook};

/// How often servers are checked of which nothing is heard.
const RESYNC: Duration = Duration::from_secs(30);
/// How many servers are checked at once, as upstream: a slow one must not hold up the others.
const WORKERS: usize = 5;
/// How many times a server is asked at once; one answer is enough, as one of its replicas may be ill.
const ATTEMPTS: usize = 5;
/// How long one attempt may take, and how long all.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(5);
const CHECK_LIMIT: Duration = Duration::from_secs(6);
/// Of the answer only the status counts; what is longer is cut off.
const ANSWER_BYTES: usize = 4 * 1024 * 1024;
const FAILED: &str = "FailedDiscoveryCheck";

/// Why a server is looked at again soon.
#[derive(Debug, thiserror::Error)]
enum NotAvailable {
    /// It does not answer as it should.
    #[error("{0}")]
    Failing(String),
    /// What was found could not be written.
    #[error(transparent)]
    Written(#[from] ClientError),
}

/// The hook `apiservice-status-remote-available-controller`.
pub(super) struct Controller(pub(super) Arc<Aggregation>);

#[async_trait]
impl PostStartHook for Controller {
    fn name(&self) -> &'static str {
        "apiservice-status-remote-available-controller"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let neighbours: [(_, Arc<dyn Follower>); 2] = [
            (Service::TYPE, Arc::new(Services(Arc::clone(&self.0)))),
            (EndpointSlice::TYPE, Arc::new(Slices(Arc::clone(&self.0)))),
        ];
        for (of, follower) in neighbours {
            follow(cx.registry(), (of.group, of.version, of.resource), follower, cx.tasks());
        }
        for _ in 0..WORKERS {
            let (own, context) = (Arc::clone(&self.0), Arc::clone(cx));
            cx.tasks().spawn_cancellable("apiservice-availability", async move { own.check_all(&context).await });
        }
        Ok(())
    }
}

/// Services that have changed.
struct Services(Arc<Aggregation>);

impl Follower for Services {
    fn set(&self, _: &Arc<str>, object: &dyn Object) {
        self.0.look_behind(&object.meta().namespace, Some(&object.meta().name));
    }

    fn gone(&self, namespace: &str, name: &str) {
        self.0.look_behind(namespace, Some(name));
    }
}

/// Endpoints that have changed. Of those that are gone only the name is known, which says nothing of their Service.
struct Slices(Arc<Aggregation>);

impl Follower for Slices {
    fn set(&self, _: &Arc<str>, object: &dyn Object) {
        if let Some(service) = object.meta().labels.get(LABEL_SERVICE_NAME) {
            self.0.look_behind(&object.meta().namespace, Some(service));
        }
    }

    fn gone(&self, namespace: &str, _: &str) {
        self.0.look_behind(namespace, None);
    }
}

impl Aggregation {
    /// Has the servers checked that stand behind a Service, or behind any of a namespace.
    fn look_behind(&self, namespace: &str, service: Option<&str>) {
        let current = self.table.current();
        let concerned = |remote: &&Arc<Remote>| {
            remote.service.0 == namespace && service.is_none_or(|service| remote.service.1 == service)
        };
        current.remotes().filter(concerned).for_each(|remote| self.queues.availability.add(remote.name.clone()));
    }

    async fn check_all(&self, cx: &ApiCx) {
        let queue = &self.queues.availability;
        while let Some(name) = queue.next().await {
            match self.check(cx, &name).await {
                Ok(true) => {
                    queue.forget(&name);
                    queue.add_after(name.clone(), RESYNC);
                }
                Ok(false) => queue.forget(&name),
                Err(error) => {
                    tracing::debug!(%error, name, "The server of an APIService is not available");
                    queue.add_rate_limited(name.clone());
                }
            }
            queue.done(&name);
        }
    }

    /// Checks a server and says so; tells whether to look again later.
    ///
    /// # Errors
    /// Why to look again soon.
    async fn check(&self, cx: &ApiCx, name: &str) -> Result<bool, NotAvailable> {
        let (object, remote) = {
            let current = self.table.current();
            match current.named(name) {
                Some((object, remote)) => (Arc::clone(object), remote.cloned()),
                None => {
                    self.metrics.forget(name);
                    return Ok(false);
                }
            }
        };
        let finding = match &remote {
            None => local_finding(),
            Some(remote) => find(self, cx, remote).await,
        };
        let is_early = finding.reason == FAILED && !cx.lifecycle.events().has_been_ready.has_happened();
        if is_early {
            return Err(NotAvailable::Failing(finding.message));
        }
        let former = object.status.conditions.iter().find(|own| own.type_ == AVAILABLE);
        let was_available = former.is_some_and(|own| own.status == condition_status::TRUE);
        self.metrics.note(name, was_available, finding.outcome());
        let condition = finding.condition(former, cx.clock().wall().into());
        if former != Some(&condition) {
            let mut next = APIService::clone(&object);
            next.status.conditions.retain(|own| own.type_ != AVAILABLE);
            next.status.conditions.push(condition);
            cx.loopback().all::<APIService>().update_status(&next).await?;
        }
        let is_failing = finding.reason == FAILED;
        if is_failing { Err(NotAvailable::Failing(finding.message)) } else { Ok(remote.is_some()) }
    }
}

/// What is true of versions that this server answers for.
fn local_finding() -> Finding {
    Finding {
        status: condition_status::TRUE,
        reason: kinds::apiregistration_v1::LOCAL_REASON,
        message: kinds::apiregistration_v1::LOCAL_MESSAGE.to_owned(),
    }
}

/// Looks at the Service, at its endpoints, and asks the server.
async fn find(aggregation: &Aggregation, cx: &ApiCx, remote: &Remote) -> Finding {
    let (namespace, name) = (remote.service.0.as_str(), remote.service.1.as_str());
    let unknown = |reason, error: &dyn std::fmt::Display| Finding {
        status: condition_status::UNKNOWN,
        reason,
        message: format!("service/{name} in {namespace:?} cannot be checked due to: {error}"),
    };
    let service = match destination::service(cx, namespace, name).await {
        Ok(service) => Some(service),
        Err(error) if error.is_not_found() => None,
        Err(error) => return unknown("ServiceAccessError", &error),
    };
    let slices = match destination::slices(cx, namespace, name).await {
        Ok(slices) => slices,
        Err(error) => return unknown("EndpointsAccessError", &error),
    };
    if let Err(finding) = service_checks::check(service.as_ref(), &slices, (namespace, name), remote.port) {
        return finding;
    }
    match first_answer(aggregation, cx, remote).await {
        Ok(()) => Finding::passed(),
        Err(message) => Finding::failed(FAILED, message),
    }
}

/// Asks several times at once; the first good answer will do.
///
/// # Errors
/// The last error.
async fn first_answer(aggregation: &Aggregation, cx: &ApiCx, remote: &Remote) -> Result<(), String> {
    let mut attempts = FuturesUnordered::new();
    for _ in 0..ATTEMPTS {
        attempts.push(attempt(aggregation, cx, remote));
    }
    let mut last = String::new();
    while let Some(outcome) = attempts.next().await {
        match outcome {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn attempt(aggregation: &Aggregation, cx: &ApiCx, remote: &Remote) -> Result<(), String> {
    let (path, end) = (remote.path(), Instant::now() + CHECK_LIMIT);
    let timed_out = |url: &dyn std::fmt::Display| format!("timed out waiting for {url}");
    let found = timeout_at(end, destination::of(cx, remote)).await.map_err(|_| timed_out(&path))?;
    let backend = found.map_err(|error| error.to_string())?;
    let url = fetch::url(&backend, &path);
    let question = Question {
        path: &path,
        accept: "application/json",
        known: None,
        user: identity::aggregator(&[authn::MASTERS]),
        limit: ATTEMPT_LIMIT,
        limit_bytes: ANSWER_BYTES,
    };
    let bad = |error: &dyn std::fmt::Display| format!("failing or missing response from {url}: {error}");
    let answer =
        timeout_at(end, fetch::get_from(aggregation, cx, &backend, &question)).await.map_err(|_| timed_out(&url))?;
    match answer {
        Ok(answer) if answer.status.is_success() => Ok(()),
        Ok(answer) => Err(bad(&format_args!("bad status from {url}: {}", answer.status.as_u16()))),
        Err(error) => Err(bad(&error)),
    }
}
