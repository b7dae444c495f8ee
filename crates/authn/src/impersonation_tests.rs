//! Headers to wish, wish to user, wish to permissions.

use super::*;
use crate::testing::request;

type Header<'a> = (&'a str, &'a str);

fn parse(headers: &[(&str, &str)]) -> Result<Option<Impersonation>, ImpersonationError> {
    Impersonation::from_headers(&request("/", headers).headers)
}

#[test]
fn a_wish_needs_a_user() {
    assert_eq!(parse(&[("accept", "*/*")]), Ok(None));
    for (headers, text) in [
        (("Impersonate-Group", "g"), "requested [groups g] without impersonating a user name"),
        (("Impersonate-Uid", "u"), "requested [uids u] without impersonating a user name"),
        (("Impersonate-Extra-K", "v"), "requested [userextras/k v] without impersonating a user name"),
    ] {
        assert_eq!(parse(&[headers]).unwrap_err().to_string(), text);
    }
    let many: Vec<(&str, &str)> = std::iter::once(("Impersonate-User", "a"))
        .chain(std::iter::repeat_n(("Impersonate-Group", "g"), MAX_CHECKS))
        .collect();
    assert_eq!(parse(&many), Err(ImpersonationError::TooMany));
}

#[test]
fn default_groups_depend_on_the_user() {
    let cases: [(&[Header<'_>], &[&str]); 6] = [
        (&[("Impersonate-User", "alice")], &["system:authenticated"]),
        (&[("Impersonate-User", "alice"), ("Impersonate-Group", "g")], &["g", "system:authenticated"]),
        (
            &[("Impersonate-User", "alice"), ("Impersonate-Group", "system:unauthenticated")],
            &["system:unauthenticated"],
        ),
        (&[("Impersonate-User", "system:anonymous")], &["system:unauthenticated"]),
        (
            &[("Impersonate-User", "system:serviceaccount:ns:sa")],
            &["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
        ),
        (
            &[("Impersonate-User", "system:serviceaccount:ns:sa"), ("Impersonate-Group", "g")],
            &["g", "system:authenticated"],
        ),
    ];
    for (headers, groups) in cases {
        assert_eq!(parse(headers).unwrap().unwrap().target().groups, groups, "{headers:?}");
    }
}

#[test]
fn each_part_of_the_wish_is_a_permission() {
    let mut parts = request(
        "/",
        &[
            ("Impersonate-User", "system:serviceaccount:ns:sa"),
            ("Impersonate-Group", "a"),
            ("Impersonate-Extra-Scopes", "view"),
            ("Impersonate-Uid", "u1"),
            ("Accept", "*/*"),
        ],
    );
    let wish = Impersonation::from_headers(&parts.headers).unwrap().unwrap();
    let checks: Vec<String> = wish
        .legacy_checks()
        .iter()
        .map(|c| format!("{}/{}/{}/{}/{}", c.group, c.resource, c.subresource, c.namespace, c.name))
        .collect();
    assert_eq!(
        checks,
        [
            "/serviceaccounts//ns/sa",
            "/groups///a",
            "authentication.k8s.io/userextras/scopes//view",
            "authentication.k8s.io/uids///u1"
        ]
    );
    let user = wish.target();
    assert_eq!((user.uid.as_str(), user.extra["scopes"].0.as_slice()), ("u1", &["view".to_owned()][..]));
    Impersonation::strip(&mut parts.headers);
    assert_eq!(parts.headers.len(), 1);
}
