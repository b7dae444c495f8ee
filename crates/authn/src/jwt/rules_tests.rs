//! From claims to users, and what has to be so.

use api_machinery::value::Value as Json;
use api_types::apiserver_config_v1::AuthenticationConfiguration;
use serde_json::json;

use super::super::configuration::{Surroundings, compile, parse};
use super::*;

/// The rules of an issuer with these settings.
fn rules(settings: &str) -> Rules {
    let text = format!(
        "{{apiVersion: apiserver.config.k8s.io/v1, kind: AuthenticationConfiguration, jwt: [{{issuer: {{url: \
         'https://issuer', audiences: [a]}}, {settings}}}]}}"
    );
    let configuration: AuthenticationConfiguration = parse(&text).unwrap_or_else(|error| panic!("{settings}: {error}"));
    let mut rules =
        compile(&configuration, &Surroundings::default()).unwrap_or_else(|error| panic!("{settings}: {error}"));
    rules.remove(0)
}

fn user(settings: &str, claims: Json) -> Result<UserInfo, String> {
    let Json::Object(claims) = claims else { panic!("claims are an object") };
    rules(settings).user(&claims).map_err(|error| error.to_string())
}

const BY_NAME: &str =
    "claimMappings: {username: {claim: name, prefix: 'u:'}, groups: {claim: roles, prefix: 'g:'}, uid: {claim: id}}";

#[test]
fn claims_become_a_user() {
    let found = user(BY_NAME, json!({"name": "ann", "roles": ["a", "b"], "id": "7", "jti": "x"})).expect("a user");
    assert_eq!((found.username.as_str(), found.uid.as_str()), ("u:ann", "7"));
    assert_eq!(found.groups, ["g:a", "g:b"]);
    assert_eq!(found.extra[CREDENTIAL_ID_KEY].0, ["JTI=x"]);
    let found = user(BY_NAME, json!({"name": "ann", "roles": "a", "id": "7"})).expect("a user");
    assert_eq!((found.groups, found.extra.len()), (vec!["g:a".to_owned()], 0));
    assert!(user(BY_NAME, json!({"name": "ann", "id": "7"})).expect("a user").groups.is_empty());
}

#[test]
fn expressions_become_a_user() {
    let settings = "claimMappings: {\
        username: {expression: '\"u:\" + claims.name'}, \
        groups: {expression: 'claims.roles.map(r, r.startsWith(\"x\") ? \"\" : r)'}, \
        uid: {expression: 'string(claims.number)'}, \
        extra: [{key: example.org/team, valueExpression: 'claims.team'}, \
                {key: example.org/none, valueExpression: 'claims.?missing.orValue(\"\")'}, \
                {key: example.org/escaped, valueExpression: 'claims.a__dash__b'}]}";
    let claims = json!({"name": "ann", "roles": ["a", "x1"], "number": 9, "team": ["t", ""], "a-b": "c"});
    let found = user(settings, claims).expect("a user");
    assert_eq!((found.username.as_str(), found.uid.as_str()), ("u:ann", "9"));
    assert_eq!(found.groups, ["a"]);
    let extra: Vec<_> = found.extra.iter().map(|(key, values)| (key.as_str(), values.0.join(","))).collect();
    assert_eq!(extra, [("example.org/escaped", "c".to_owned()), ("example.org/team", "t".to_owned())]);
}

#[test]
fn what_does_not_fit_is_told_in_upstreams_words() {
    let name = "claimMappings: {username: {claim: name, prefix: ''}}";
    let email = "claimMappings: {username: {claim: email, prefix: ''}}";
    let by = |expression: &str| format!("claimMappings: {{username: {{expression: '{expression}'}}}}");
    let with = |rest: &str| format!("{name}, {rest}");
    let groups = "claimMappings: {username: {claim: name, prefix: ''}, groups: {expression: claims.groups}}";
    let rule = with("claimValidationRules: [{expression: 'claims.age > 17', message: too young}]");
    let required = with("claimValidationRules: [{claim: hd, requiredValue: example.org}]");
    let users =
        with("userValidationRules: [{expression: \"!user.username.startsWith('system:')\", message: reserved}]");
    for (settings, claims, expected) in [
        (name.to_owned(), json!({}), "oidc: parse username claims \"name\": claim not present"),
        (
            name.to_owned(),
            json!({"name": 1}),
            "oidc: parse username claims \"name\": json: cannot unmarshal number into Go value of type string",
        ),
        (email.to_owned(), json!({"email": "a@b", "email_verified": false}), "oidc: email not verified"),
        (
            email.to_owned(),
            json!({"email": "a@b", "email_verified": "true"}),
            "oidc: parse 'email_verified' claim: json: cannot unmarshal string into Go value of type bool",
        ),
        (by("claims.name"), json!({"name": ""}), "oidc: empty username via CEL expression is not allowed"),
        (
            by("claims.name"),
            json!({"name": 1}),
            "oidc: error evaluating username claim expression: username claim expression must return a string",
        ),
        (
            by("claims.name"),
            json!({}),
            "oidc: error evaluating username claim expression: expression 'claims.name' resulted in error: no such key: name",
        ),
        (
            groups.to_owned(),
            json!({"name": "a", "groups": [1]}),
            "oidc: error evaluating group claim expression: expression must return a string or a list of strings",
        ),
        (
            BY_NAME.to_owned(),
            json!({"name": "a", "roles": 1, "id": ""}),
            "oidc: parse groups claim \"roles\": json: cannot unmarshal number into Go value of type string",
        ),
        (required.clone(), json!({"name": "a"}), "oidc: required claim hd not present in ID token"),
        (
            required,
            json!({"name": "a", "hd": "x"}),
            "oidc: required claim hd value does not match. Got = x, want = example.org",
        ),
        (
            rule,
            json!({"name": "a", "age": 3}),
            "oidc: error evaluating claim validation expression: validation expression 'claims.age > 17' failed: too young",
        ),
        (
            users.clone(),
            json!({"name": "system:admin"}),
            "oidc: error evaluating user info validation rule: validation expression \
             '!user.username.startsWith('system:')' failed: reserved",
        ),
    ] {
        assert_eq!(user(&settings, claims.clone()).expect_err(&settings), expected, "{settings} {claims}");
    }
    assert!(user(email, json!({"email": "a@b"})).is_ok(), "nothing is said about it");
    assert!(user(&users, json!({"name": "ann"})).is_ok());
    let all = with(
        "userValidationRules: [{expression: 'user.groups.all(g, g != \"\") && user.uid == \"\" && size(user.extra) == 0'}]",
    );
    assert!(user(&all, json!({"name": "ann"})).is_ok(), "what is empty is there");
}
