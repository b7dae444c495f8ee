//! Who a request is: the user, what the credential is valid for, and what audit and the caller should hear about it.

pub use api_types::authentication_v1::UserInfo;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use api_machinery::leaf::StringList;

/// Name of requests without any credential.
pub const ANONYMOUS: &str = "system:anonymous";
/// Group of anonymous requests.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Group of everybody else.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group that may do anything.
pub const MASTERS: &str = "system:masters";
/// The API server's own user.
pub const API_SERVER_USER: &str = "system:apiserver";
/// Extra key that says which credential was used.
pub const CREDENTIAL_ID_KEY: &str = "authentication.kubernetes.io/credential-id";

/// The result of a successful authentication.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Identity {
    /// Name, uid, groups and extra.
    pub user: Arc<UserInfo>,
    /// The audiences the credential is valid for, of those asked for; empty when the kind of credential has none.
    pub audiences: Vec<String>,
    /// Annotations for the audit event, in order.
    pub audit_annotations: Vec<(String, String)>,
    /// Texts for `Warning` headers of the response.
    pub warnings: Vec<String>,
    /// When the client certificate ends, if it was one.
    pub certificate_ends: Option<SystemTime>,
}

impl Identity {
    /// An identity of name and groups only.
    #[must_use]
    pub fn new(name: &str, groups: Vec<String>) -> Self {
        Self::of(UserInfo { username: name.to_owned(), groups, ..UserInfo::default() })
    }

    /// An identity of which nothing but the user is known.
    #[must_use]
    pub fn of(user: UserInfo) -> Self {
        Self { user: Arc::new(user), ..Self::default() }
    }

    /// Which credential was used, if its kind has IDs: `X509SHA256=...` or `JTI=...`.
    #[must_use]
    pub fn credential_id(&self) -> Option<&str> {
        self.user.extra.get(CREDENTIAL_ID_KEY).and_then(|values| values.0.first()).map(String::as_str)
    }

    /// Appends `system:authenticated` unless the user is anonymous or already carries one of the two marker groups.
    pub(crate) fn mark_authenticated(&mut self) {
        let marked = self.user.groups.iter().any(|group| group == AUTHENTICATED || group == UNAUTHENTICATED);
        if self.user.username != ANONYMOUS && !marked {
            Arc::make_mut(&mut self.user).groups.push(AUTHENTICATED.to_owned());
        }
    }
}

/// Extra data with one value per key.
pub(crate) fn single_valued<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, StringList> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), StringList(vec![value]))).collect()
}

/// Extra data as the API type holds it.
pub(crate) fn list_valued(extra: BTreeMap<String, Vec<String>>) -> BTreeMap<String, StringList> {
    extra.into_iter().map(|(key, values)| (key, StringList(values))).collect()
}
