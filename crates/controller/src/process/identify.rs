//! Who a request to a manager's own endpoint is: a client certificate, a front proxy, a token, or nobody.

use std::sync::Arc;

use api_types::authentication_v1::{TokenReview, UserInfo};
use arc_swap::ArcSwap;
use base::SharedClock;
use client::Client;
use component_base::serving::PeerCertificates;
use http::header::AUTHORIZATION;
use http::request::Parts;
use pki::{CaPool, Certificate, UserUidError};

const ANONYMOUS: &str = "system:anonymous";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const AUTHENTICATED: &str = "system:authenticated";

/// A proxy that speaks for others, and the headers it does so in.
#[derive(Clone)]
pub(super) struct FrontProxy {
    pub(super) pool: Arc<CaPool>,
    pub(super) allowed_names: Vec<String>,
    pub(super) username: Vec<String>,
    pub(super) uid: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) extra_prefixes: Vec<String>,
}

/// Whose certificates are believed.
#[derive(Clone, Default)]
pub(super) struct Trusted {
    pub(super) client_ca: Option<Arc<CaPool>>,
    pub(super) front_proxy: Option<FrontProxy>,
}

/// From where users have uids, by the gates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Uids {
    /// From the subjects of their certificates (`AllowParsingUserUIDFromCertAuth`).
    pub(super) of_subjects: bool,
    /// From front proxies, whether flags or API servers name the headers (`RemoteRequestHeaderUID`).
    pub(super) of_headers: bool,
}

/// What identifies clients.
pub(super) struct Identify {
    pub(super) clock: SharedClock,
    pub(super) trusted: ArcSwap<Trusted>,
    pub(super) reviews: Option<Client>,
    pub(super) uids: Uids,
}

/// A bearer token is there but nobody vouches for it, or a certificate says nothing clear of its user.
pub(super) struct Refused;

impl Identify {
    /// The user behind a request, looked for in upstream's order; a token that is not accepted is refused, and so is a
    /// certificate that says nothing clear, unless there is a token that is.
    pub(super) async fn user(&self, request: &Parts) -> Result<UserInfo, Refused> {
        let known = self.by_proxy(request).map_or_else(|| self.by_certificate(request), |user| Ok(Some(user)));
        match (known, bearer(request)) {
            (Ok(Some(user)), _) => Ok(authenticated(user)),
            (_, Some(token)) => self.by_token(token).await.map(authenticated).ok_or(Refused),
            (Ok(None), None) => Ok(anonymous()),
            (Err(error), None) => {
                tracing::error!(%error, "Unable to authenticate the request");
                Err(Refused)
            }
        }
    }

    fn verified(&self, pool: &CaPool, request: &Parts) -> Option<Certificate> {
        let peer = request.extensions.get::<PeerCertificates>()?;
        pool.verify_client(peer, self.clock.wall()).ok()
    }

    fn by_certificate(&self, request: &Parts) -> Result<Option<UserInfo>, UserUidError> {
        let trusted = self.trusted.load();
        let leaf = trusted.client_ca.as_deref().and_then(|pool| self.verified(pool, request));
        let Some(leaf) = leaf.filter(|leaf| !leaf.subject().common_name().is_empty()) else { return Ok(None) };
        let subject = leaf.subject();
        let uid = if self.uids.of_subjects { subject.user_uid()? } else { "" };
        let (username, groups) = (subject.common_name().to_owned(), subject.organizations());
        Ok(Some(UserInfo { username, uid: uid.to_owned(), groups, ..UserInfo::default() }))
    }

    fn by_proxy(&self, request: &Parts) -> Option<UserInfo> {
        let trusted = self.trusted.load();
        let proxy = trusted.front_proxy.as_ref()?;
        let leaf = self.verified(&proxy.pool, request)?;
        let name = leaf.subject().common_name();
        if !proxy.allowed_names.is_empty() && !proxy.allowed_names.iter().any(|allowed| allowed == name) {
            return None;
        }
        let mut user = proxy.user(request)?;
        if !self.uids.of_headers {
            user.uid.clear();
        }
        Some(user)
    }

    async fn by_token(&self, token: &str) -> Option<UserInfo> {
        let mut review = TokenReview::default();
        token.clone_into(&mut review.spec.token);
        match self.reviews.as_ref()?.all::<TokenReview>().create(&review).await {
            Ok(answer) => answer.status.authenticated.then_some(answer.status.user),
            Err(error) => {
                tracing::error!(%error, "Reviewing a token failed");
                None
            }
        }
    }
}

impl FrontProxy {
    fn user(&self, request: &Parts) -> Option<UserInfo> {
        let values = |name: &String| {
            let values = request.headers.get_all(name.as_str()).iter();
            values.filter_map(|value| value.to_str().ok().map(str::to_owned)).collect::<Vec<_>>()
        };
        let first = |names: &[String]| names.iter().flat_map(values).find(|value| !value.is_empty());
        let mut user = UserInfo { username: first(&self.username)?, ..UserInfo::default() };
        user.uid = first(&self.uid).unwrap_or_default();
        user.groups = self.groups.iter().flat_map(values).collect();
        for (name, value) in &request.headers {
            let prefix =
                self.extra_prefixes.iter().find_map(|prefix| name.as_str().strip_prefix(&prefix.to_lowercase()));
            if let (Some(key), Ok(value)) = (prefix, value.to_str()) {
                user.extra.entry(key.to_owned()).or_default().0.push(value.to_owned());
            }
        }
        Some(user)
    }
}

/// The token of a request.
pub(super) fn bearer(request: &Parts) -> Option<&str> {
    let value = request.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty()).then(|| token.trim())
}

fn anonymous() -> UserInfo {
    UserInfo { username: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..UserInfo::default() }
}

fn authenticated(mut user: UserInfo) -> UserInfo {
    if user.username != ANONYMOUS && !user.groups.iter().any(|group| group == AUTHENTICATED) {
        user.groups.push(AUTHENTICATED.into());
    }
    user
}
