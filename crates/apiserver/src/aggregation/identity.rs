//! Who a request is from, as the server behind reads it: upstream's headers of a front proxy, whatever this server's own
//! front proxies use.

use std::collections::BTreeMap;

use api_machinery::leaf::StringList;
use api_types::authentication_v1::UserInfo;
use http::header::InvalidHeaderValue;
use http::{HeaderMap, HeaderName, HeaderValue};

const PREFIX: &str = "x-remote-";
const USER: HeaderName = HeaderName::from_static("x-remote-user");
const UID: HeaderName = HeaderName::from_static("x-remote-uid");
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const EXTRA: &str = "x-remote-extra-";

/// The user by whom this server asks others for itself.
const AGGREGATOR: &str = "system:kube-aggregator";

/// This server itself, as it asks other servers of its cluster: with the rights that everybody has.
pub(crate) fn api_server() -> UserInfo {
    UserInfo {
        username: authn::API_SERVER_USER.to_owned(),
        uid: authn::API_SERVER_USER.to_owned(),
        groups: vec![authn::AUTHENTICATED.to_owned()],
        ..UserInfo::default()
    }
}

/// Whether a user's uid is told, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uids {
    Told,
    Kept,
}

/// A user cannot be told of in headers.
#[derive(Debug, thiserror::Error)]
#[error("the user cannot be told of in a header: {0}")]
pub(super) struct NoHeader(#[from] InvalidHeaderValue);

/// Puts a user in the place of whatever the client says of one.
///
/// # Errors
/// When a name has bytes that no header can have.
pub(super) fn tell(headers: &mut HeaderMap, user: &UserInfo, uids: Uids) -> Result<(), NoHeader> {
    let claimed: Vec<HeaderName> = headers.keys().filter(|name| name.as_str().starts_with(PREFIX)).cloned().collect();
    claimed.iter().for_each(|name| drop(headers.remove(name)));
    let value = |text: &str| HeaderValue::from_bytes(text.as_bytes());
    headers.insert(USER, value(&user.username)?);
    if !user.uid.is_empty() && uids == Uids::Told {
        headers.insert(UID, value(&user.uid)?);
    }
    for group in &user.groups {
        headers.append(GROUP, value(group)?);
    }
    for (key, values) in &user.extra {
        let Ok(name) = HeaderName::try_from(format!("{EXTRA}{}", escaped(key))) else { continue };
        for text in &values.0 {
            headers.append(&name, value(text)?);
        }
    }
    Ok(())
}

/// This server itself, as it looks at another: with every right, or as a name alone.
pub(super) fn aggregator(groups: &[&str]) -> UserInfo {
    UserInfo {
        username: AGGREGATOR.to_owned(),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
        extra: BTreeMap::<String, StringList>::new(),
        ..UserInfo::default()
    }
}

/// A key as part of a header's name: what cannot be there, and the sign of that, is written as `%XX`. Names know no case,
/// so capitals would come back small.
fn escaped(key: &str) -> String {
    let is_plain = |byte: u8| byte != b'%' && (byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte));
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_claim_is_replaced() {
        let mut headers = HeaderMap::new();
        for name in ["x-remote-user", "x-remote-group", "x-remote-extra-scope", "x-remote-uid", "x-remote-other"] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static("admin"));
        }
        headers.insert("accept", HeaderValue::from_static("a/b"));
        let mut user = UserInfo { username: "jané".to_owned(), uid: "7".to_owned(), ..UserInfo::default() };
        user.groups = vec!["one".to_owned(), "two".to_owned()];
        user.extra.insert("a/b%".to_owned(), StringList(vec!["x".to_owned(), "y".to_owned()]));
        tell(&mut headers, &user, Uids::Told).unwrap();
        let mut told: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value.as_bytes())))
            .collect();
        told.sort();
        assert_eq!(
            told,
            [
                "accept=a/b",
                "x-remote-extra-a%2fb%25=x",
                "x-remote-extra-a%2fb%25=y",
                "x-remote-group=one",
                "x-remote-group=two",
                "x-remote-uid=7",
                "x-remote-user=jané",
            ]
        );
        tell(&mut headers, &user, Uids::Kept).unwrap();
        assert!(!headers.contains_key(UID));
    }

    #[test]
    fn a_name_that_would_end_the_header_is_refused() {
        let user = UserInfo { username: "a\r\nx-remote-group: system:masters".to_owned(), ..UserInfo::default() };
        assert!(tell(&mut HeaderMap::new(), &user, Uids::Told).is_err());
    }
}
