//! Service accounts as users: names, groups, and tokens bound to objects.
//!
//! Bound tokens (TokenRequest) are made and accepted here; the older ones that live in Secrets are accepted only.

mod authenticator;
mod claims;
mod issuer;
mod keys;
mod legacy;
mod uses;

pub use authenticator::{BoundObjects, ObjectState, ServiceAccountTokens};
pub use claims::{BoundObject, Claims, ObjectRef};
pub use issuer::{
    ExpirationExtension, IssuedToken, TokenIssuer, TokenWish, expiration_problem, may_bind_to_pod, uid_conflict,
};
pub use keys::{SignError, StaticKeys, TokenKeys, TokenSigner};
pub use legacy::{LegacyTokens, TokenSecrets};
pub use uses::TokenUses;

/// Prefix of user names.
const USERNAME_PREFIX: &str = "system:serviceaccount:";
/// Group of all service accounts.
pub const ALL_SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// The user name of a service account.
#[must_use]
pub fn username(namespace: &str, name: &str) -> String {
    format!("{USERNAME_PREFIX}{namespace}:{name}")
}

/// The groups of every service account of a namespace.
#[must_use]
pub fn group_names(namespace: &str) -> [String; 2] {
    [ALL_SERVICE_ACCOUNTS.to_owned(), format!("{ALL_SERVICE_ACCOUNTS}:{namespace}")]
}

/// Namespace and name, if the user is a service account.
#[must_use]
pub fn split_username(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(USERNAME_PREFIX)?.split_once(':')?;
    let label = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        text.bytes().next().is_some_and(plain)
            && text.bytes().last().is_some_and(plain)
            && text.bytes().all(|byte| plain(byte) || byte == b'-')
    };
    let valid = namespace.len() <= 63 && label(namespace) && name.len() <= 253 && name.split('.').all(label);
    valid.then_some((namespace, name))
}

#[cfg(test)]
#[path = "service_account/tests.rs"]
mod tests;

#[cfg(test)]
#[path = "service_account/hostile_tests.rs"]
mod hostile_tests;
