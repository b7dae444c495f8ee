//! The rules of the file.

use super::*;

const ISSUER: &str = "issuer: {url: 'https://issuer', audiences: [a]}";
const MAPPINGS: &str = "claimMappings: {username: {claim: sub, prefix: ''}}";

fn checked(rest: &str) -> Result<usize, String> {
    let text = format!("{{apiVersion: apiserver.config.k8s.io/v1, kind: {KIND}, {rest}}}");
    let configuration = parse(&text).map_err(|error| error.to_string())?;
    let surroundings = Surroundings { disallowed_issuers: vec!["https://own".to_owned()], egress: true };
    compile(&configuration, &surroundings).map(|rules| rules.len()).map_err(|errors| errors.to_string())
}

#[test]
fn every_version_is_read_strictly() {
    for version in API_VERSIONS {
        let text = format!("{{apiVersion: {version}, kind: {KIND}, jwt: [{{{ISSUER}, {MAPPINGS}}}]}}");
        let configuration = parse(&text).expect(version);
        assert_eq!(compile(&configuration, &Surroundings::default()).map(|rules| rules.len()), Ok(1));
    }
    for (text, expected) in [
        ("", "empty config data"),
        ("kind: AuthenticationConfiguration", "no kind \"AuthenticationConfiguration\" is registered for version \"\""),
        (
            "{apiVersion: apiserver.config.k8s.io/v1, kind: AuthenticationConfiguration, jwts: []}",
            "strict decoding error: unknown field \"jwts\"",
        ),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(checked("jwt: []"), Ok(0), "issuers may come later");
}

#[test]
fn issuers_have_upstreams_rules() {
    let with = |issuer: &str| format!("jwt: [{{issuer: {{{issuer}}}, {MAPPINGS}}}]");
    let url = |url: &str| with(&format!("url: '{url}', audiences: [a]"));
    let more = |rest: &str| with(&format!("url: 'https://i', {rest}"));
    let many = vec![format!("{{{ISSUER}, {MAPPINGS}}}"); 65].join(", ");
    for (rest, expected) in [
        (format!("jwt: [{many}]"), "jwt: Too many: 65: must have at most 64 items"),
        (with("audiences: [a]"), "jwt[0].issuer.url: Required value"),
        (url("http://i"), "jwt[0].issuer.url: Invalid value: \"http://i\": URL scheme must be https"),
        (url("https://u:p@i"), "URL must not contain a username or password"),
        (url("https://i?q=1"), "URL must not contain a query"),
        (url("https://i#f"), "URL must not contain a fragment"),
        (
            url("https://own"),
            "jwt[0].issuer.url: Invalid value: \"https://own\": URL must not overlap with disallowed issuers: [https://own]",
        ),
        (url("https://i i"), "jwt[0].issuer.url: Invalid value: \"https://i i\": parse \"https://i i\": "),
        (
            more("discoveryURL: 'https://i/', audiences: [a]"),
            "jwt[0].issuer.discoveryURL: Invalid value: \"https://i/\": discoveryURL must be different from URL",
        ),
        (
            more("discoveryURL: 'http://d', audiences: [a]"),
            "jwt[0].issuer.discoveryURL: Invalid value: \"http://d\": URL scheme must be https",
        ),
        (
            more("audiences: []"),
            "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required",
        ),
        (more("audiences: ['']"), "jwt[0].issuer.audiences[0]: Required value"),
        (
            more("audiences: [a, a], audienceMatchPolicy: MatchAny"),
            "jwt[0].issuer.audiences[1]: Duplicate value: \"a\"",
        ),
        (
            more("audiences: [a, b]"),
            "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"\": audienceMatchPolicy must be MatchAny for multiple audiences",
        ),
        (
            more("audiences: [a], audienceMatchPolicy: All"),
            "audienceMatchPolicy must be empty or MatchAny for single audience",
        ),
        (
            more("audiences: [a], certificateAuthority: x"),
            "jwt[0].issuer.certificateAuthority: Invalid value: \"<omitted>\": ",
        ),
        (
            more("audiences: [a], egressSelectorType: etcd"),
            "jwt[0].issuer.egressSelectorType: Invalid value: \"etcd\": egress selector must be either controlplane or cluster",
        ),
        (
            format!("jwt: [{{{ISSUER}, {MAPPINGS}}}, {{{ISSUER}, {MAPPINGS}}}]"),
            "jwt[1].issuer.url: Duplicate value: \"https://issuer\"",
        ),
        (
            "jwt: [], anonymous: {enabled: false, conditions: [{path: /x}]}".to_owned(),
            "anonymous.conditions: Invalid value: [{\"Path\":\"/x\"}]: enabled should be set to true when conditions are defined",
        ),
    ] {
        let error = checked(&rest).expect_err(&rest);
        assert!(error.contains(expected), "{rest}: {error}");
    }
    assert_eq!(checked(&more("audiences: [a, b], audienceMatchPolicy: MatchAny, egressSelectorType: cluster")), Ok(1));
    let off = parse(&format!(
        "{{apiVersion: {}, kind: {KIND}, {}}}",
        API_VERSIONS[0],
        more("audiences: [a], egressSelectorType: cluster")
    ));
    let error = compile(&off.expect("a file"), &Surroundings::default()).map(|_| ()).expect_err("the gate is off");
    assert!(error.to_string().contains("egress selector is not supported when"), "{error}");
}

#[test]
fn mappings_and_rules_have_upstreams_rules() {
    let mapped = |mappings: &str| format!("jwt: [{{{ISSUER}, claimMappings: {{{mappings}}}}}]");
    let name = "username: {claim: sub, prefix: ''}";
    let extra = |extra: &str| mapped(&format!("{name}, extra: [{extra}]"));
    let ruled = |rules: &str| format!("jwt: [{{{ISSUER}, {MAPPINGS}, {rules}}}]");
    let at = "jwt[0].claimMappings";
    for (rest, expected) in [
        (mapped("username: {}"), format!("{at}.username: Required value: claim or expression is required")),
        (mapped("username: {claim: a}"), format!("{at}.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing")),
        (mapped("username: {claim: a, expression: claims.a}"), format!("{at}.username: Invalid value: \"\": claim and expression can't both be set")),
        (mapped("username: {expression: claims.a, prefix: x}"), format!("{at}.username.prefix: Invalid value: \"x\": may not be specified when expression is set")),
        (mapped("username: {expression: foo.bar}"), format!("{at}.username.expression: Invalid value: \"foo.bar\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')")),
        (mapped(&format!("{name}, groups: {{claim: a}}")), format!("{at}.groups.prefix: Required value")),
        (mapped(&format!("{name}, uid: {{claim: a, expression: b}}")), format!("{at}.uid: Invalid value: \"\": claim and expression can't both be set")),
        (mapped("username: {expression: claims.email}"), format!("{at}.username.expression: Invalid value: \"claims.email\": claims.email_verified must be used in claimMappings.username.expression")),
        (extra("{key: a, valueExpression: claims.a}"), format!("{at}.extra[0].key: Invalid value: \"a\": must be a domain-prefixed path")),
        (extra("{key: a.b/C, valueExpression: claims.a}"), format!("{at}.extra[0].key: Invalid value: \"a.b/C\": must be lowercase")),
        (extra("{key: x.k8s.io/a, valueExpression: claims.a}"), "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use".to_owned()),
        (extra("{key: a.b/c}"), format!("{at}.extra[0].valueExpression: Required value")),
        (extra("{key: a.b/c, valueExpression: claims.a}, {key: a.b/c, valueExpression: claims.a}"), format!("{at}.extra[1].key: Duplicate value: \"a.b/c\"")),
        (ruled("claimValidationRules: [{}]"), "jwt[0].claimValidationRules[0]: Required value: claim or expression is required".to_owned()),
        (ruled("claimValidationRules: [{claim: a, expression: 'true'}]"), "jwt[0].claimValidationRules[0]: Invalid value: \"a\": claim and expression can't both be set".to_owned()),
        (ruled("claimValidationRules: [{claim: a, message: m}]"), "jwt[0].claimValidationRules[0].message: Invalid value: \"m\": may not be specified when claim is set".to_owned()),
        (ruled("claimValidationRules: [{claim: a}, {claim: a}]"), "jwt[0].claimValidationRules[1].claim: Duplicate value: \"a\"".to_owned()),
        (ruled("claimValidationRules: [{expression: 'true', requiredValue: v}]"), "jwt[0].claimValidationRules[0].requiredValue: Invalid value: \"v\": may not be specified when expression is set".to_owned()),
        (ruled("claimValidationRules: [{expression: claims.a}]"), "jwt[0].claimValidationRules[0].expression: Invalid value: \"claims.a\": must evaluate to bool".to_owned()),
        (ruled("claimValidationRules: [{expression: 'true'}, {expression: 'true'}]"), "jwt[0].claimValidationRules[1].expression: Duplicate value: \"true\"".to_owned()),
        (ruled("userValidationRules: [{message: m}]"), "jwt[0].userValidationRules[0].expression: Required value".to_owned()),
        (ruled("userValidationRules: [{expression: user.name == ''}]"), "undefined field 'name'".to_owned()),
        (ruled("userValidationRules: [{expression: user.username}]"), "jwt[0].userValidationRules[0].expression: Invalid value: \"user.username\": must evaluate to bool".to_owned()),
    ] {
        let error = checked(&rest).expect_err(&rest);
        assert!(error.contains(&expected), "{rest}: {error}");
    }
    for good in [
        mapped("username: {expression: 'claims.email_verified == true ? claims.email : \"x\"'}"),
        mapped(
            "username: {expression: claims.email}, extra: [{key: a.b/c, valueExpression: 'string(claims.?email_verified.orValue(true))'}]",
        ),
        format!(
            "jwt: [{{{ISSUER}, claimMappings: {{username: {{expression: claims.email}}}}, claimValidationRules: \
             [{{expression: claims.email_verified == true}}]}}]"
        ),
        "jwt: [], anonymous: {enabled: true, conditions: [{path: /livez}]}".to_owned(),
    ] {
        assert!(checked(&good).is_ok(), "{good}: {:?}", checked(&good));
    }
}
