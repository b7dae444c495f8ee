//! Kubeconfig tables: choosing, merging, what is refused, and the pod's configuration.

use std::path::Path;

use super::in_cluster::from_pod;
use super::{Kubeconfig, Overrides};
use crate::config::{CertSource, ClientConfig, ConfigError, Credentials, Trust};

const FILE: &str = "
apiVersion: v1
kind: Config
current-context: one
clusters:
- name: local
  cluster: {server: 'https://127.0.0.1:6443', certificate-authority-data: Q0E=, tls-server-name: api}
- name: plain
  cluster: {server: 'http://localhost:8080'}
users:
- name: admin
  user: {token: secret, as: jane, as-groups: [dev]}
- name: file
  user: {client-certificate: pki/a.crt, client-key: /abs/a.key}
- name: both
  user: {token: t, username: u, password: p}
contexts:
- name: one
  context: {cluster: local, user: admin, namespace: team}
- name: insecure
  context: {cluster: plain, user: admin}
- name: files
  context: {cluster: local, user: file}
- name: broken
  context: {cluster: local, user: both}
- name: lost
  context: {cluster: nowhere, user: admin}
";

/// What is said of a file that names no server.
const NOTHING: &str = "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER \
                       environment variable";

/// The problems of a file with these parts: its current context, then a cluster `c` and a user `u`.
fn problems_of(current: &str, cluster: &str, user: &str) -> String {
    let text = format!(
        "current-context: {current}\nclusters: [{{name: c, cluster: {cluster}}}]\nusers: [{{name: u, user: {user}}}]\n\
         contexts: [{{name: both, context: {{cluster: c, user: u}}}}, {{name: anonymous, context: {{cluster: c, user: x}}}}]"
    );
    let outcome = ClientConfig::from_kubeconfig(&Kubeconfig::parse(&text).unwrap(), &Overrides::default());
    outcome.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn problems_are_told_as_upstream_tells_them() {
    let server = "{server: 'https://a'}";
    let of = |text: &str| format!("invalid configuration: {text}");
    let gone = "[context was not found for specified context: gone, cluster has no server defined]";
    let proxy = |url: &str| format!("{{server: 'https://a', proxy-url: '{url}'}}");
    let scheme = "invalid 'proxy-url' \"ftp://p\" for cluster \"c\": unsupported scheme \"ftp\", must be http, https, or \
                  socks5";
    for (current, cluster, user, expected) in [
        ("both", server, "{token: t}", String::new()),
        ("anonymous", server, "{token: t}", String::new()),
        ("''", server, "{token: t}", NOTHING.to_owned()),
        ("gone", server, "{token: t}", of(gone)),
        ("both", "{}", "{token: t}", of("no server found for cluster \"c\"")),
        ("both", server, "{client-key: /gone}", String::new()),
        ("both", &proxy("http://p:3128"), "{}", String::new()),
        ("both", &proxy("ftp://p"), "{}", of(scheme)),
        (
            "both",
            server,
            "{token: t, password: p}",
            of("more than one authentication method found for u; found [token basicAuth], only one is allowed"),
        ),
        (
            "both",
            "{}",
            "{as-uid: x}",
            of(
                "[requesting uid, groups or user-extra for u without impersonating a user, no server found for cluster \"c\"]",
            ),
        ),
        (
            "both",
            "{server: 'https://a', certificate-authority: /gone}",
            "{}",
            of("unable to read certificate-authority /gone for c due to open /gone: no such file or directory"),
        ),
        ("both", server, "{tokenFile: /gone}", "open /gone: no such file or directory".to_owned()),
        ("both", server, "{tokenFile: /gone, token: t}", String::new()),
    ] {
        assert_eq!(problems_of(current, cluster, user), expected, "{current} {cluster} {user}");
    }
}

#[test]
fn plugins_are_checked_as_upstream_checks_them() {
    let server = "{server: 'https://a'}";
    let of = |text: &str| format!("invalid configuration: {text}");
    let missing = |what: &str| format!("{what} must be specified for u to use exec authentication plugin");
    let v1 = "apiVersion: client.authentication.k8s.io/v1";
    let v1beta1 = "apiVersion: client.authentication.k8s.io/v1beta1";
    for (user, expected) in [
        (format!("{{exec: {{command: c, {v1}, interactiveMode: Never}}}}"), String::new()),
        (format!("{{exec: {{command: c, {v1}, interactiveMode: Always}}}}"), String::new()),
        (format!("{{exec: {{command: c, {v1beta1}}}}}"), String::new()),
        (format!("{{exec: {{command: c, {v1}}}}}"), of(&missing("interactiveMode"))),
        (
            format!("{{exec: {{command: c, {v1beta1}, interactiveMode: Maybe}}}}"),
            of("invalid interactiveMode for u: \"Maybe\""),
        ),
        (
            format!("{{exec: {{command: c, {v1beta1}, env: [{{value: v}}, {{name: known}}]}}}}"),
            of(&missing("env variable name")),
        ),
        (
            "{exec: {}}".to_owned(),
            of(&format!("[{}, {}, {}]", missing("command"), missing("apiVersion"), missing("interactiveMode"))),
        ),
        (
            format!("{{exec: {{command: c, {v1beta1}}}, auth-provider: {{name: p}}, token: t, username: me}}"),
            of(
                "[authProvider cannot be provided in combination with an exec plugin for u, more than one authentication \
                method found for u; found [token basicAuth], only one is allowed]",
            ),
        ),
        (
            "{exec: {command: c, apiVersion: client.authentication.k8s.io/v1alpha1}}".to_owned(),
            "exec plugin: invalid apiVersion \"client.authentication.k8s.io/v1alpha1\"".to_owned(),
        ),
        ("{auth-provider: {name: gcp}}".to_owned(), "no Auth Provider found for name \"gcp\"".to_owned()),
        ("{auth-provider: {name: gcp}, token: t}".to_owned(), "no Auth Provider found for name \"gcp\"".to_owned()),
    ] {
        assert_eq!(problems_of("both", server, &user), expected, "{user}");
    }
    assert_eq!(problems_of("both", "{server: 'http://a'}", "{auth-provider: {name: gcp}}"), "", "nobody is asked");
}

#[test]
fn plugins_are_asked_where_nothing_else_is_said_and_lie_beside_their_file() {
    let exec = "exec: {command: c, apiVersion: client.authentication.k8s.io/v1beta1}";
    let of = |server: &str, user: &str| {
        let text = format!(
            "current-context: x\nclusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n\
             users: [{{name: u, user: {{{user}}}}}]\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]"
        );
        ClientConfig::from_kubeconfig(&Kubeconfig::parse(&text).unwrap(), &Overrides::default()).unwrap()
    };
    assert!(matches!(of("https://a", exec).credentials, Credentials::Plugin(_)));
    assert_eq!(of("https://a", &format!("{exec}, token: t")).credentials, Credentials::Token("t".into()));
    assert_eq!(of("http://a", exec).credentials, Credentials::None);
    for (command, expected) in [("aws", "aws"), ("./bin/aws", "/etc/k/./bin/aws"), ("/bin/aws", "/bin/aws")] {
        let mut file =
            Kubeconfig::parse(&format!("users: [{{name: u, user: {{exec: {{command: {command}}}}}}}]")).unwrap();
        file.resolve_paths(Path::new("/etc/k"));
        assert_eq!(file.users[0].user.exec.as_ref().unwrap().command, expected);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_told_as_upstream_tells_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display().to_string();
    let told = |path: &str| Kubeconfig::read(path).err().unwrap().to_string();
    assert_eq!(told("/gone.conf"), "stat /gone.conf: no such file or directory");
    assert_eq!(told(&path), format!("error loading config file \"{path}\": read {path}: is a directory"));
}

fn resolve(context: &str) -> Result<ClientConfig, ConfigError> {
    let mut file = Kubeconfig::parse(FILE).unwrap();
    file.resolve_paths(Path::new("/etc/kubernetes"));
    ClientConfig::from_kubeconfig(&file, &Overrides { context: context.into(), ..Overrides::default() })
}

#[test]
fn the_current_context_is_used() {
    let config = resolve("").unwrap();
    assert_eq!((config.server.as_str(), config.namespace.as_str()), ("https://127.0.0.1:6443", "team"));
    assert_eq!((config.trust, config.server_name.as_str()), (Trust::Pem(b"CA".to_vec()), "api"));
    assert_eq!(config.credentials, Credentials::Token("secret".into()));
    assert_eq!((config.impersonate.user.as_str(), config.impersonate.groups), ("jane", vec!["dev".to_owned()]));
}

#[test]
fn credentials_are_dropped_without_tls_and_paths_follow_the_file() {
    assert_eq!(resolve("insecure").unwrap().credentials, Credentials::None);
    let directory = tempfile::tempdir().unwrap();
    let (pki, key) = (directory.path().join("pki"), directory.path().join("a.key"));
    std::fs::create_dir(&pki).unwrap();
    [pki.join("a.crt"), key.clone()].iter().for_each(|file| std::fs::write(file, "").unwrap());
    let mut file = Kubeconfig::parse(&FILE.replace("/abs/a.key", &key.display().to_string())).unwrap();
    file.resolve_paths(directory.path());
    let files = Overrides { context: "files".into(), ..Overrides::default() };
    let config = ClientConfig::from_kubeconfig(&file, &files).unwrap();
    let CertSource::Files { cert, key: own } = config.identity else { panic!("files expected") };
    assert_eq!((cert, own), (pki.join("a.crt"), key));
}

#[test]
fn impossible_configurations_are_refused() {
    let cases = [
        ("missing", "context \"missing\" does not exist"),
        ("lost", NOTHING),
        (
            "files",
            "invalid configuration: [unable to read client-cert /etc/kubernetes/pki/a.crt for file due to open \
             /etc/kubernetes/pki/a.crt: no such file or directory, unable to read client-key /abs/a.key for file due \
             to open /abs/a.key: no such file or directory]",
        ),
        (
            "broken",
            "invalid configuration: more than one authentication method found for both; found [token basicAuth], only one is allowed",
        ),
    ];
    for (context, text) in cases {
        assert_eq!(resolve(context).unwrap_err().to_string(), text);
    }
    let empty = ClientConfig::from_kubeconfig(&Kubeconfig::default(), &Overrides::default()).unwrap_err();
    assert_eq!(empty.to_string(), NOTHING);
    let twice = Kubeconfig::parse("users: [{name: a, user: {}}, {name: a, user: {}}]").err().unwrap();
    assert!(twice.to_string().contains("duplicate name \"a\" in list"), "{twice}");
}

#[test]
fn the_first_file_wins_and_errors_name_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (directory.path().join("one"), directory.path().join("two"));
    std::fs::write(&one, "clusters: [{name: a, cluster: {server: 'https://first'}}]").unwrap();
    std::fs::write(&two, FILE.replace("name: local", "name: a").replace("cluster: local", "cluster: a")).unwrap();
    let merged = Kubeconfig::read_all(&[directory.path().join("absent"), one, two]).unwrap();
    let config = ClientConfig::from_kubeconfig(&merged, &Overrides::default()).unwrap();
    assert_eq!(config.server, "https://first");
    let bad = directory.path().join("bad");
    std::fs::write(&bad, "clusters: 7").unwrap();
    let text = Kubeconfig::read(&bad).err().unwrap().to_string();
    assert!(text.contains("bad") && text.contains("clusters"), "{text}");
}

#[test]
fn pods_use_their_service_account() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(from_pod("", "443", "", directory.path()), Err(ConfigError::NotInCluster)));
    assert!(matches!(from_pod("::1", "443", "", directory.path()), Err(ConfigError::Token { .. })));
    std::fs::write(directory.path().join("token"), "t").unwrap();
    std::fs::write(directory.path().join("namespace"), "team\n").unwrap();
    let config = from_pod("fd00::1", "443", "", directory.path()).unwrap();
    assert_eq!((config.server.as_str(), config.namespace.as_str()), ("https://[fd00::1]:443", "team"));
    let path = directory.path().join("token");
    assert_eq!(config.credentials, Credentials::TokenFile { path, first: String::new() });
}
