//! Acting as someone else: reading the `Impersonate-*` headers, and saying which permissions the requester needs. Asking for those
//! permissions is the request chain's work.

mod modes;

use std::collections::BTreeMap;

use http::HeaderMap;

use crate::headers;
use crate::identity::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, UserInfo, list_valued};
use crate::service_account::{group_names, split_username};

pub use modes::{Mode, Step};

/// The API group of what only impersonation knows.
const AUTHENTICATION: &str = "authentication.k8s.io";
/// What all of its headers start with.
const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA_PREFIX: &str = "impersonate-extra-";
/// Permissions one request may ask for; each is an authorization call.
pub const MAX_CHECKS: usize = 1024;

/// Headers that make no sense; the answer is 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImpersonationError {
    /// Groups, uid or extra without a user.
    #[error("requested [{0}] without impersonating a user name")]
    NoUser(String),
    /// More groups and extra values than [`MAX_CHECKS`].
    #[error("too many impersonation headers")]
    TooMany,
}

/// Whom the requester wants to be, as the headers say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Impersonation {
    /// `Impersonate-User`.
    pub user: String,
    /// `Impersonate-Group`, all of them.
    pub groups: Vec<String>,
    /// `Impersonate-Uid`.
    pub uid: String,
    /// `Impersonate-Extra-{key}`, keys lower-cased and percent-decoded.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// One permission to check; the verb is that of a [`Mode`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImpersonationCheck {
    /// API group, empty for core.
    pub group: &'static str,
    /// Resource.
    pub resource: &'static str,
    /// Subresource: the key, for extra data.
    pub subresource: String,
    /// Namespace: a service account's.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Impersonation {
    /// Reads the headers; `None` when there are none.
    ///
    /// # Errors
    /// [`ImpersonationError`].
    pub fn from_headers(map: &HeaderMap) -> Result<Option<Self>, ImpersonationError> {
        // Few requests have any.
        if !map.keys().any(|name| name.as_str().starts_with(PREFIX)) {
            return Ok(None);
        }
        let first = |name: &str| headers::values(map, name).next().unwrap_or_default().to_owned();
        let wish = Self {
            user: first(USER),
            groups: headers::values(map, GROUP).map(str::to_owned).collect(),
            uid: first(UID),
            extra: headers::prefixed(map, EXTRA_PREFIX),
        };
        if wish == Self::default() {
            return Ok(None);
        }
        if wish.user.is_empty() {
            return Err(ImpersonationError::NoUser(wish.without_user()));
        }
        if wish.legacy_checks().len() > MAX_CHECKS {
            return Err(ImpersonationError::TooMany);
        }
        Ok(Some(wish))
    }

    fn without_user(&self) -> String {
        let groups = self.groups.iter().map(|group| format!("groups {group}"));
        let uid = (!self.uid.is_empty()).then(|| format!("uids {}", self.uid));
        let extra =
            self.extra.iter().flat_map(|(key, values)| values.iter().map(move |v| format!("userextras/{key} {v}")));
        groups.chain(uid).chain(extra).collect::<Vec<_>>().join(", ")
    }

    /// Whether nothing but a name is asked for.
    fn is_name_only(&self) -> bool {
        self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty()
    }

    /// Removes all impersonation headers, so that nothing behind acts on them again.
    pub fn strip(map: &mut HeaderMap) {
        for name in [USER, GROUP, UID] {
            map.remove(name);
        }
        headers::remove_prefixed(map, EXTRA_PREFIX);
    }

    /// The user the request continues as, once allowed: default groups are added, the requester's own are not inherited.
    #[must_use]
    pub fn target(&self) -> UserInfo {
        let mut groups = self.groups.clone();
        if let (true, Some((namespace, _))) = (groups.is_empty(), split_username(&self.user)) {
            groups.extend(group_names(namespace));
        }
        let has = |groups: &[String], name: &str| groups.iter().any(|group| group == name);
        if self.user == ANONYMOUS {
            if !has(&groups, UNAUTHENTICATED) {
                groups.push(UNAUTHENTICATED.to_owned());
            }
        } else if !has(&groups, AUTHENTICATED) && !has(&groups, UNAUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        UserInfo { username: self.user.clone(), uid: self.uid.clone(), groups, extra: list_valued(self.extra.clone()) }
    }

    /// The permissions of legacy impersonation, in the order they are asked: user, groups, extra values, uid.
    #[must_use]
    pub fn legacy_checks(&self) -> Vec<ImpersonationCheck> {
        let check = |group, resource, name: &str| ImpersonationCheck {
            group,
            resource,
            subresource: String::new(),
            namespace: String::new(),
            name: name.to_owned(),
        };
        let mut checks = vec![match split_username(&self.user) {
            Some((namespace, name)) => {
                ImpersonationCheck { namespace: namespace.to_owned(), ..check("", "serviceaccounts", name) }
            }
            None => check("", "users", &self.user),
        }];
        checks.extend(self.groups.iter().map(|group| check("", "groups", group)));
        for (key, values) in &self.extra {
            let extra = |value: &String| ImpersonationCheck {
                subresource: key.clone(),
                ..check(AUTHENTICATION, "userextras", value)
            };
            checks.extend(values.iter().map(extra));
        }
        checks.extend((!self.uid.is_empty()).then(|| check(AUTHENTICATION, "uids", &self.uid)));
        checks
    }
}

#[cfg(test)]
#[path = "impersonation_tests.rs"]
mod tests;
