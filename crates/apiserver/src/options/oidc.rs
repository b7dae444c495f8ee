//! The flags of tokens that issuers elsewhere make: a file, or one issuer in flags of its own. Both come to the same.

use std::path::{Path, PathBuf};

use api_types::apiserver_config_v1::{
    AnonymousAuthConfig, AuthenticationConfiguration, ClaimMappings, ClaimValidationRule, Issuer, JWTAuthenticator,
    PrefixedClaimOrExpression,
};
use authn::jwt::{self, ALGORITHMS, Algorithm, Surroundings};
use component_base::config_file;
use component_base::flags::{Errors, Flag, FlagSet, Options};

use crate::config::JwtConfig;

const CONFIG: &str = "authentication-config";
const ISSUER_URL: &str = "oidc-issuer-url";
const CLIENT_ID: &str = "oidc-client-id";
const CA_FILE: &str = "oidc-ca-file";
const USERNAME_CLAIM: &str = "oidc-username-claim";
const USERNAME_PREFIX: &str = "oidc-username-prefix";
const GROUPS_CLAIM: &str = "oidc-groups-claim";
const GROUPS_PREFIX: &str = "oidc-groups-prefix";
const SIGNING_ALGS: &str = "oidc-signing-algs";
const REQUIRED_CLAIM: &str = "oidc-required-claim";
const OF_ONE_ISSUER: [&str; 9] = [
    ISSUER_URL,
    CLIENT_ID,
    CA_FILE,
    USERNAME_CLAIM,
    USERNAME_PREFIX,
    GROUPS_CLAIM,
    GROUPS_PREFIX,
    SIGNING_ALGS,
    REQUIRED_CLAIM,
];

pub(super) const FLAGS: FlagSet = FlagSet {
    title: "authentication",
    flags: &[
        Flag::string(CONFIG, "").help(
            "File that says whose tokens are accepted and what requests without credentials may ask for: an \
             AuthenticationConfiguration. It is followed while the server runs. Not together with --oidc-*.",
        ),
        Flag::string(CA_FILE, "")
            .help("Certificates that the OpenID server's is verified with; without, the machine's authorities."),
        Flag::string(CLIENT_ID, "").help("The client ID that tokens of the OpenID Connect client must be for."),
        Flag::string(GROUPS_CLAIM, "").help("The claim that names the user's groups: a text or a list of texts."),
        Flag::string(GROUPS_PREFIX, "").help("What is put before every group, so that it is nobody else's."),
        Flag::string(ISSUER_URL, "").help("The URL of the OpenID issuer, as its tokens name it. Only https."),
        Flag::map(REQUIRED_CLAIM, "").help("key=value: a claim that tokens must have. May be given several times."),
        Flag::string_slice(SIGNING_ALGS, "RS256").help(
            "How tokens may be signed, comma separated: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512.",
        ),
        Flag::string(USERNAME_CLAIM, "sub").help("The claim that is the user's name. Others than sub may change."),
        Flag::string(USERNAME_PREFIX, "").help(
            "What is put before the user's name. Without, it is the issuer's URL and # unless the claim is email; - is \
             for nothing.",
        ),
    ],
};

/// Reads the flags: whose tokens are accepted, and who comes without credentials where the file says so.
pub(super) fn read(
    options: &Options,
    own_issuers: &[String],
    errors: &mut Errors,
) -> (JwtConfig, Option<AnonymousAuthConfig>) {
    let file = options.string(CONFIG);
    let has_issuer = OF_ONE_ISSUER.iter().any(|flag| options.is_set(flag));
    let (configuration, algorithms) = if !file.is_empty() {
        errors.check(!has_issuer, "authentication-config file and oidc-* flags are mutually exclusive");
        (of_file(Path::new(file), errors), ALGORITHMS.to_vec())
    } else if has_issuer {
        of_flags(options, errors)
    } else {
        (AuthenticationConfiguration::default(), Vec::new())
    };
    // Whether the gate is on is known later, and checked again.
    let surroundings = Surroundings { disallowed_issuers: own_issuers.to_vec(), egress: true };
    if let Err(problems) = jwt::compile(&configuration, &surroundings) {
        problems.iter().for_each(|problem| errors.push(problem.to_string()));
    }
    let anonymous = configuration.anonymous;
    if anonymous.is_some() && options.is_set("anonymous-auth") {
        // The word is upstream's.
        errors.push(
            "anonymous: Forbidden: --anonynous-auth flag cannot be set when anonymous field is configured in \
             authentication configuration file",
        );
    }
    let file = (!file.is_empty()).then(|| PathBuf::from(file));
    (JwtConfig { issuers: configuration.jwt, algorithms, file }, anonymous)
}

fn of_file(path: &Path, errors: &mut Errors) -> AuthenticationConfiguration {
    let text = config_file::read(path).map_err(|error| error.to_string());
    let parsed = text.and_then(|text| jwt::parse(&text).map_err(|error| error.to_string()));
    parsed.unwrap_or_else(|why| {
        errors.push(format!("failed to load AuthenticationConfiguration from file {}: {why}", path.display()));
        AuthenticationConfiguration::default()
    })
}

fn of_flags(options: &Options, errors: &mut Errors) -> (AuthenticationConfiguration, Vec<Algorithm>) {
    let text = |flag: &str| options.string(flag).to_owned();
    let (url, client) = (text(ISSUER_URL), text(CLIENT_ID));
    if url.is_empty() || client.is_empty() {
        errors.push("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set");
        return Default::default();
    }
    let algorithms = algorithms(options, errors);
    let rule = |(claim, value): &(String, String)| ClaimValidationRule {
        claim: claim.clone(),
        required_value: value.clone(),
        ..ClaimValidationRule::default()
    };
    let issuer = Issuer {
        certificate_authority: certificates(options, errors),
        audiences: vec![client],
        url: url.clone(),
        ..Issuer::default()
    };
    let authenticator = JWTAuthenticator {
        issuer,
        claim_validation_rules: options.pairs(REQUIRED_CLAIM).iter().map(rule).collect(),
        claim_mappings: mappings(options, &url),
        ..JWTAuthenticator::default()
    };
    (AuthenticationConfiguration { jwt: vec![authenticator], ..Default::default() }, algorithms)
}

/// Names are told apart from those of other issuers, unless they are addresses or the flag says otherwise.
fn mappings(options: &Options, issuer: &str) -> ClaimMappings {
    let claim = options.string(USERNAME_CLAIM).to_owned();
    let prefix = match options.string(USERNAME_PREFIX) {
        "" if claim == "email" => String::new(),
        "" => format!("{issuer}#"),
        "-" => String::new(),
        prefix => prefix.to_owned(),
    };
    let mapping = |claim: String, prefix: String| PrefixedClaimOrExpression {
        claim,
        prefix: Some(prefix),
        ..PrefixedClaimOrExpression::default()
    };
    let groups = Some(options.string(GROUPS_CLAIM).to_owned()).filter(|claim| !claim.is_empty());
    ClaimMappings {
        username: mapping(claim, prefix),
        groups: groups.map(|claim| mapping(claim, options.string(GROUPS_PREFIX).to_owned())).unwrap_or_default(),
        ..ClaimMappings::default()
    }
}

fn certificates(options: &Options, errors: &mut Errors) -> String {
    let path = options.string(CA_FILE);
    if path.is_empty() {
        return String::new();
    }
    config_file::read(Path::new(path)).unwrap_or_else(|error| {
        errors.push(format!("Failed to read the CA file: {error}"));
        String::new()
    })
}

fn algorithms(options: &Options, errors: &mut Errors) -> Vec<Algorithm> {
    let mut found = Vec::new();
    for name in options.strings(SIGNING_ALGS) {
        match Algorithm::from_name(name).filter(|own| ALGORITHMS.contains(own)) {
            Some(algorithm) => found.push(algorithm),
            None => errors.push(format!("oidc: unsupported signing alg: {name:?}")),
        }
    }
    if found.is_empty() { vec![Algorithm::Rs256] } else { found }
}

#[cfg(test)]
mod tests {
    use component_base::flags::parse;

    use super::*;

    const ANONYMOUS: FlagSet =
        FlagSet { title: "authentication", flags: &[Flag::bool("anonymous-auth", "true").help("Anonymous.")] };

    fn read_line(line: &str) -> Result<(JwtConfig, Option<AnonymousAuthConfig>), String> {
        let options = parse(&[FLAGS, ANONYMOUS], line.split_whitespace().map(str::to_owned)).expect("flags");
        let mut errors = Errors::new();
        let read = read(&options, &["https://own".to_owned()], &mut errors);
        errors.into_result().map(|()| read).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_make_an_issuer() {
        let (config, anonymous) = read_line("").expect("nothing");
        assert!(config.issuers.is_empty() && config.file.is_none() && anonymous.is_none());
        for (line, prefix, algorithms) in [
            ("", "https://i#", vec![Algorithm::Rs256]),
            ("--oidc-username-prefix=-", "", vec![Algorithm::Rs256]),
            ("--oidc-username-prefix=u:", "u:", vec![Algorithm::Rs256]),
            ("--oidc-username-claim=email", "", vec![Algorithm::Rs256]),
            ("--oidc-signing-algs=ES256,PS512", "https://i#", vec![Algorithm::Es256, Algorithm::Ps512]),
        ] {
            let line = format!("--oidc-issuer-url=https://i --oidc-client-id=me {line}");
            let (config, _) = read_line(&line).expect(&line);
            let username = &config.issuers[0].claim_mappings.username;
            assert_eq!((username.prefix.as_deref(), &config.algorithms), (Some(prefix), &algorithms), "{line}");
            assert_eq!(config.issuers[0].claim_mappings.groups.claim, "");
        }
        let line = "--oidc-issuer-url=https://i --oidc-client-id=me --oidc-groups-claim=g --oidc-groups-prefix=p: \
                    --oidc-required-claim=b=1 --oidc-required-claim=a=2";
        let own = &read_line(line).expect("an issuer").0.issuers[0];
        assert_eq!(
            (own.claim_mappings.groups.claim.as_str(), own.issuer.audiences.as_slice()),
            ("g", &["me".to_owned()][..])
        );
        assert_eq!(own.claim_mappings.groups.prefix.as_deref(), Some("p:"));
        let mut rules: Vec<_> =
            own.claim_validation_rules.iter().map(|own| (own.claim.as_str(), own.required_value.as_str())).collect();
        rules.sort_unstable();
        assert_eq!(rules, [("a", "2"), ("b", "1")]);
    }

    #[test]
    fn a_file_makes_issuers() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        let of_file = |text: &str, more: &str| {
            let text = format!("{{apiVersion: apiserver.config.k8s.io/v1, kind: AuthenticationConfiguration, {text}}}");
            std::fs::write(&path, text).expect("a file");
            read_line(&format!("--authentication-config={} {more}", path.display()))
        };
        let issuer =
            "jwt: [{issuer: {url: 'https://i', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]";
        let (config, anonymous) = of_file(issuer, "--anonymous-auth=false").expect("a file");
        assert_eq!((config.issuers.len(), config.algorithms.len(), anonymous), (1, 9, None));
        assert_eq!(config.file.as_deref(), Some(path.as_path()));
        let (_, anonymous) = of_file("anonymous: {enabled: true, conditions: [{path: /livez}]}", "").expect("a file");
        assert_eq!(anonymous.expect("a section").conditions[0].path, "/livez");
        for (text, more, expected) in [
            (issuer, "--oidc-client-id=x", "authentication-config file and oidc-* flags are mutually exclusive"),
            (
                "anonymous: {enabled: true}",
                "--anonymous-auth=true",
                "anonymous: Forbidden: --anonynous-auth flag cannot be set",
            ),
            ("jwt: [{}]", "", "jwt[0].issuer.url: Required value"),
            ("jwts: []", "", "strict decoding error: unknown field \"jwts\""),
        ] {
            let error = of_file(text, more).map(|_| ()).expect_err(text);
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        let both = "--oidc-issuer-url=https://i --oidc-client-id=me";
        let together = "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set";
        for (line, expected) in [
            ("--oidc-issuer-url=https://i".to_owned(), together),
            ("--oidc-username-claim=sub".to_owned(), together),
            (format!("{both} --oidc-signing-algs=HS256"), "oidc: unsupported signing alg: \"HS256\""),
            (format!("{both} --oidc-signing-algs=EdDSA"), "oidc: unsupported signing alg: \"EdDSA\""),
            (format!("{both} --oidc-ca-file=/nowhere"), "Failed to read the CA file: "),
            (
                format!("{both} --oidc-issuer-url=http://i"),
                "jwt[0].issuer.url: Invalid value: \"http://i\": URL scheme must be https",
            ),
            (
                format!("{both} --oidc-issuer-url=https://own"),
                "URL must not overlap with disallowed issuers: [https://own]",
            ),
            (
                "--authentication-config=/nowhere".to_owned(),
                "failed to load AuthenticationConfiguration from file /nowhere",
            ),
        ] {
            let error = read_line(&line).map(|_| ()).expect_err(&line);
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
