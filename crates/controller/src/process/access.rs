//! Who may use a manager's own endpoint: the API server is asked, and its answers are remembered for a while.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::gvk::GroupResource;
use api_machinery::json;
use api_machinery::meta::{Status, StatusDetails};
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::authentication_v1::UserInfo;
use api_types::authorization_v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use arc_swap::ArcSwap;
use base::{Rng, SharedClock};
use client::{Client, ClientConfig, ClientCx, ClientError, ConfigError};
use component_base::flags::{Errors, Options, check_uid_headers};
use component_base::serving::{Response, full, text};
use component_base::shared_gates::{REMOTE_UID, SUBJECT_UID};
use component_base::tls::CaFile;
use component_base::{Feature, Gates};
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use pki::{CaBundle, CaPool, KeyedDigest};
use tokio::time::Instant;

use super::identify::{FrontProxy, Identify, Refused, Trusted, Uids, bearer};
use super::published::{self, Lookup};

/// The group that may do anything.
pub(super) const MASTERS: &str = "system:masters";
/// Answers that are remembered at once; the endpoint has few clients. Beyond it all are forgotten.
const REMEMBERED: usize = 1024;

/// The gates of the uids of users.
pub const UID_GATES: &[Feature] = &[REMOTE_UID, SUBJECT_UID];

/// The values of the flags in [`super::DELEGATION`].
#[derive(Debug, Clone)]
pub struct AccessOptions {
    authentication_kubeconfig: String,
    authorization_kubeconfig: String,
    client_ca: String,
    proxy_ca: String,
    proxy_names: Vec<String>,
    proxy_headers: [Vec<String>; 4],
    always_allow: Vec<String>,
    token_ttl: Duration,
    allowed_ttl: Duration,
    denied_ttl: Duration,
    lookup: Lookup,
    uids: Uids,
}

impl AccessOptions {
    /// Reads the flags, adding what is wrong with them to `errors`.
    pub fn from_options(options: &Options, gates: &Gates, errors: &mut Errors) -> Self {
        check_uid_headers(options, gates, errors);
        let list = |name: &str| options.strings(name).to_vec();
        let always_allow = list("authorization-always-allow-paths");
        for path in &always_allow {
            let inner = path.strip_suffix('*').unwrap_or(path);
            errors.check(!inner.contains('*'), format!("only trailing * allowed in {path:?}"));
        }
        Self {
            authentication_kubeconfig: options.string("authentication-kubeconfig").to_owned(),
            authorization_kubeconfig: options.string("authorization-kubeconfig").to_owned(),
            client_ca: options.string("client-ca-file").to_owned(),
            proxy_ca: options.string("requestheader-client-ca-file").to_owned(),
            proxy_names: list("requestheader-allowed-names"),
            proxy_headers: [
                list("requestheader-username-headers"),
                list("requestheader-uid-headers"),
                list("requestheader-group-headers"),
                list("requestheader-extra-headers-prefix"),
            ],
            always_allow,
            token_ttl: options.duration("authentication-token-webhook-cache-ttl"),
            allowed_ttl: options.duration("authorization-webhook-cache-authorized-ttl"),
            denied_ttl: options.duration("authorization-webhook-cache-unauthorized-ttl"),
            lookup: Lookup::of(
                options.bool("authentication-skip-lookup"),
                options.bool("authentication-tolerate-lookup-failure"),
            ),
            uids: Uids { of_subjects: gates.enabled(SUBJECT_UID), of_headers: gates.enabled(REMOTE_UID) },
        }
    }
}

/// Why access could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A kubeconfig cannot be used.
    #[error(transparent)]
    Client(#[from] ConfigError),
    /// A CA file cannot be read.
    #[error(transparent)]
    Tls(#[from] component_base::tls::TlsError),
    /// A CA file cannot be used.
    #[error(transparent)]
    Bundle(#[from] pki::BundleError),
    /// What the cluster's API servers say of certificates could not be read.
    #[error("unable to load configmap based request-header-client-ca-file: {0}")]
    Lookup(#[source] ClientError),
}

type Key = [u8; 32];

/// Decides about requests.
pub struct Access {
    identify: Identify,
    lookup: Lookup,
    reviews: Option<Client>,
    always_allow: Vec<String>,
    ttl: Ttl,
    digest: KeyedDigest,
    clock: SharedClock,
    users: Mutex<HashMap<Key, (UserInfo, Instant)>>,
    decisions: Mutex<HashMap<Key, (Judgement, Instant)>>,
}

struct Ttl {
    token: Duration,
    allowed: Duration,
    denied: Duration,
}

impl Access {
    /// Access as the flags say, and the bundles that the server asks client certificates for. `usual` is asked for reviews
    /// where the flags name no kubeconfig for them; without it the API server of the process's own pod, if it is in one.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub fn new(
        options: &AccessOptions,
        component: &str,
        cx: &ClientCx,
        rng: &Rng,
        usual: Option<&Client>,
    ) -> Result<(Self, Vec<Arc<CaFile>>), AccessError> {
        let mut files = Vec::new();
        let client_ca = follow(&options.client_ca, &mut files)?;
        let [username, uid, groups, extra_prefixes] = options.proxy_headers.clone();
        let front_proxy = follow(&options.proxy_ca, &mut files)?.map(|pool| FrontProxy {
            pool,
            allowed_names: options.proxy_names.clone(),
            username,
            uid,
            groups,
            extra_prefixes,
        });
        let reviewer = |kubeconfig: &str| reviewer(kubeconfig, component, cx, usual);
        let identify = Identify {
            clock: Arc::clone(&cx.clock),
            trusted: ArcSwap::from_pointee(Trusted { client_ca, front_proxy }),
            reviews: reviewer(&options.authentication_kubeconfig)?,
            uids: options.uids,
        };
        let access = Self {
            identify,
            lookup: options.lookup,
            reviews: reviewer(&options.authorization_kubeconfig)?,
            always_allow: options.always_allow.clone(),
            ttl: Ttl { token: options.token_ttl, allowed: options.allowed_ttl, denied: options.denied_ttl },
            digest: KeyedDigest::new(rng),
            clock: Arc::clone(&cx.clock),
            users: Mutex::default(),
            decisions: Mutex::default(),
        };
        Ok((access, files))
    }

    /// Nothing where the request may go on, else the answer to give.
    pub(super) async fn refuse(&self, request: &Parts) -> Option<Response> {
        let (verb, path) = (verb(request), request.uri.path());
        match self.decide(request, None).await {
            Ok(()) => None,
            Err(Refusal::Unauthorized) => Some(status(&ApiError::unauthorized("Unauthorized"))),
            Err(Refusal::Forbidden(user, reason)) => {
                let why = because(format!("User {user:?} cannot {verb} path {path:?}"), &reason);
                Some(status(&ApiError::forbidden(&GroupResource::default(), "", why)))
            }
            Err(Refusal::Undecided(error)) => {
                let why = format!("Internal Server Error: {path:?}: {error}\n");
                Some(text(StatusCode::INTERNAL_SERVER_ERROR, why))
            }
        }
    }

    /// Whether a request may go on, which is about a resource or, without one, its path.
    ///
    /// # Errors
    /// Why it may not.
    pub async fn decide(&self, request: &Parts, resource: Option<ResourceAttributes>) -> Result<(), Refusal> {
        let path = request.uri.path();
        let user = self.user(request).await.map_err(|Refused| Refusal::Unauthorized)?;
        let is_open = resource.is_none() && self.always_allow.iter().any(|allowed| covers(allowed, path));
        if is_open || user.groups.iter().any(|group| group == MASTERS) {
            return Ok(());
        }
        let mut spec = SubjectAccessReviewSpec { resource_attributes: resource, ..SubjectAccessReviewSpec::default() };
        if spec.resource_attributes.is_none() {
            let (path, verb) = (path.to_owned(), verb(request));
            spec.non_resource_attributes = Some(NonResourceAttributes { path, verb });
        }
        match self.judged(&user, spec).await {
            Ok(Judgement { allowed: true, .. }) => Ok(()),
            Ok(judgement) => Err(Refusal::Forbidden(user.username, judgement.reason)),
            Err(error) => Err(Refusal::Undecided(error.to_string())),
        }
    }

    /// Believes the certificates that the cluster's API servers say are to be believed, from now on and with every change,
    /// as far as no flag says so. Gives whether it does, so that clients have to be asked for whatever they have.
    ///
    /// # Errors
    /// When what they say of front proxies cannot be read, and that is not tolerated.
    pub async fn follow_cluster(self: &Arc<Self>) -> Result<bool, AccessError> {
        let flags = self.identify.trusted.load_full();
        if self.lookup == Lookup::Skipped || (flags.client_ca.is_some() && flags.front_proxy.is_some()) {
            return Ok(false);
        }
        let Some(client) = &self.identify.reviews else {
            published::warn_of_nobody(&flags);
            return Ok(false);
        };
        match published::read(client).await {
            Ok(data) => self.believe(&flags, &data),
            Err(error) if self.lookup == Lookup::Strict && flags.front_proxy.is_none() => {
                return Err(AccessError::Lookup(error));
            }
            Err(error) => tracing::warn!(%error, "Error looking up in-cluster authentication configuration"),
        }
        let access = Arc::downgrade(self);
        published::follow(client, move |data| {
            if let Some(access) = access.upgrade() {
                access.believe(&flags, data);
            }
        });
        Ok(true)
    }

    /// Flags come first; what cannot be read changes nothing.
    fn believe(&self, flags: &Trusted, data: &BTreeMap<String, String>) {
        match published::trusted(data) {
            Ok(said) => self.identify.trusted.store(Arc::new(Trusted {
                client_ca: flags.client_ca.clone().or(said.client_ca),
                front_proxy: flags.front_proxy.clone().or(said.front_proxy),
            })),
            Err(error) => tracing::error!(%error, "What API servers say of certificates cannot be used"),
        }
    }

    async fn user(&self, request: &Parts) -> Result<UserInfo, Refused> {
        let Some(token) = bearer(request) else { return self.identify.user(request).await };
        let (key, now) = (self.digest.of([token.as_bytes()]), self.clock.monotonic());
        if let Some(user) = recall(&self.users, &key, now) {
            return Ok(user);
        }
        let user = self.identify.user(request).await?;
        remember(&self.users, key, user.clone(), now + self.ttl.token);
        Ok(user)
    }

    async fn judged(&self, user: &UserInfo, mut spec: SubjectAccessReviewSpec) -> Result<Judgement, ClientError> {
        let Some(client) = &self.reviews else { return Ok(Judgement::default()) };
        spec.user.clone_from(&user.username);
        spec.uid.clone_from(&user.uid);
        spec.groups.clone_from(&user.groups);
        spec.extra.clone_from(&user.extra);
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let asked = (&review as &dyn Object).to_json();
        let (key, now) = (self.digest.of([asked.as_bytes()]), self.clock.monotonic());
        if let Some(judgement) = recall(&self.decisions, &key, now) {
            return Ok(judgement);
        }
        let answer = client.all::<SubjectAccessReview>().create(&review).await.inspect_err(|error| {
            tracing::error!(%error, "Reviewing access failed");
        })?;
        let judgement = Judgement { allowed: answer.status.allowed, reason: answer.status.reason };
        let ttl = if judgement.allowed { self.ttl.allowed } else { self.ttl.denied };
        remember(&self.decisions, key, judgement.clone(), now + ttl);
        Ok(judgement)
    }
}

/// What the API server said of a request.
#[derive(Debug, Clone, Default)]
struct Judgement {
    allowed: bool,
    reason: String,
}

/// What somebody may not, and why, where that was told.
#[must_use]
pub fn because(what: String, reason: &str) -> String {
    if reason.is_empty() { what } else { format!("{what}: {reason}") }
}

/// A refusal in the form in which API servers send it.
fn status(error: &ApiError) -> Response {
    let status = Status {
        status: "Failure".to_owned(),
        message: error.message.clone(),
        reason: error.reason.to_string(),
        details: error.details.as_ref().map(|_| StatusDetails::default()),
        code: error.code.into(),
        ..Status::default()
    };
    let mut response = Response::new(full(json::encode_typed("Status", "v1", &status) + "\n"));
    *response.status_mut() = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Why a request may not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It has a token that nobody vouches for.
    Unauthorized,
    /// This user may not do that, and why, where that is known.
    Forbidden(String, String),
    /// Nobody could say, and why.
    Undecided(String),
}

fn verb(request: &Parts) -> String {
    request.method.as_str().to_ascii_lowercase()
}

fn covers(allowed: &str, path: &str) -> bool {
    let (allowed, path) = (allowed.trim_start_matches('/'), path.trim_start_matches('/'));
    allowed.strip_suffix('*').map_or(allowed == path, |prefix| path.starts_with(prefix))
}

fn recall<V: Clone>(memory: &Mutex<HashMap<Key, (V, Instant)>>, key: &Key, now: Instant) -> Option<V> {
    memory.lock().get(key).filter(|(_, until)| now < *until).map(|(value, _)| value.clone())
}

fn remember<V>(memory: &Mutex<HashMap<Key, (V, Instant)>>, key: Key, value: V, until: Instant) {
    let mut memory = memory.lock();
    if memory.len() >= REMEMBERED {
        memory.clear();
    }
    memory.insert(key, (value, until));
}

/// The client that asks for reviews; without a kubeconfig the usual one, or one as the process's pod has it, if there is any.
fn reviewer(
    kubeconfig: &str,
    component: &str,
    cx: &ClientCx,
    usual: Option<&Client>,
) -> Result<Option<Client>, ConfigError> {
    let config = match usual {
        _ if !kubeconfig.is_empty() => ClientConfig::load(kubeconfig, "")?,
        Some(usual) => return Ok(Some(usual.clone())),
        None => match ClientConfig::in_cluster() {
            Ok(config) => config,
            Err(error) => {
                if !matches!(error, ConfigError::NotInCluster) {
                    tracing::warn!(%error, "Failed to read the in-cluster configuration for reviews");
                }
                return Ok(None);
            }
        },
    };
    // Reviews are bounded by the endpoint's own clients; upstream gives them a limit above any real load.
    let config = config.with_component(component).with_rate(200.0, 400);
    Client::new(config.with_timeout(Duration::from_secs(10)), cx.clone()).map(Some)
}

/// A bundle that follows its file, in both of the forms in which it is needed.
fn follow(path: &str, files: &mut Vec<Arc<CaFile>>) -> Result<Option<Arc<CaPool>>, AccessError> {
    if path.is_empty() {
        return Ok(None);
    }
    let pool = Arc::new(CaPool::new(CaBundle::load(Path::new(path))?));
    let file = CaFile::load(path)?;
    let (followed, path) = (Arc::downgrade(&pool), path.to_owned());
    file.on_change(move |_| {
        if let Some(pool) = followed.upgrade()
            && let Err(error) = pool.reload(Path::new(&path))
        {
            tracing::error!(%error, "Applying a new CA bundle failed");
        }
    });
    files.push(file);
    Ok(Some(pool))
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
