//! What an extender's connection is made of, field by field. What becomes of the answers is tested with whole cycles.

use api_machinery::reflect::Reflect;
use api_types::scheduler_config_v1::{ExtenderManagedResource, ExtenderTLSConfig};
use base::TaskGroup;
use component_base::serving::Security;
use component_base::tls::{ServerTls, ServingCerts, TlsOptions};
use serde_json::json;

use super::test_server::TestServer;
use super::*;
use crate::plugins::build_cx;
use crate::pod_class::ClassTable;
use crate::test_objects::pod;

/// A certificate for a name, and its key.
fn pair(name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

/// A server that shows a certificate for this name, which is given too.
fn secure(name: &str) -> (TestServer, String) {
    let (cert, key) = pair(name);
    let tls = ServerTls::new(ServingCerts::from_pem(cert.as_bytes(), key.as_bytes()).unwrap(), TlsOptions::default());
    let tls = tls.unwrap();
    tls.request_client_certs(&[]).unwrap();
    (TestServer::start(Security::Tls(tls)), cert)
}

/// An extender that binds, and whose certificate is verified like this.
fn config(url: &str, tls: ExtenderTLSConfig) -> ExtenderConfig {
    let (url_prefix, bind_verb) = (url.to_owned(), "bind".to_owned());
    ExtenderConfig { url_prefix, bind_verb, tls_config: Some(tls), ..ExtenderConfig::default() }
}

/// Asks the server to bind a pod; says how many certificates the server saw.
async fn bind(server: &TestServer, change: impl FnOnce(&mut ExtenderConfig)) -> Result<usize, String> {
    server.answers("/bind", &json!({}));
    let cx = BuildCx { tasks: TaskGroup::new("test"), ..build_cx() };
    let mut config = config(&server.url("https"), ExtenderTLSConfig::default());
    change(&mut config);
    let plugin = build_all(&cx, &[config]).map_err(|error| error.to_string())?.remove(0);
    let info = pod("p").info(&ClassTable::default());
    plugin.remote_bind.unwrap().bind(&info, "a").await.map_err(|status| status.message())?;
    Ok(server.asked()[0].certificates)
}

#[tokio::test]
async fn the_certificate_is_verified_as_asked_for() {
    let (server, authority) = secure("localhost");
    let (elsewhere, other) = secure("elsewhere");
    let (cert, key) = pair("client");
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let (ca_file, cert_file, key_file) = (file("ca", &authority), file("cert", &cert), file("key", &key));
    let with_ca = || ExtenderTLSConfig { ca_data: authority.as_str().into(), ..ExtenderTLSConfig::default() };
    let with_other = || ExtenderTLSConfig { ca_data: other.as_str().into(), ..ExtenderTLSConfig::default() };
    let insecure = ExtenderTLSConfig { insecure: true, ..ExtenderTLSConfig::default() };
    let by_file = ExtenderTLSConfig { ca_file, ..ExtenderTLSConfig::default() };
    let (cert_data, key_data) = (cert.as_str().into(), key.as_str().into());
    let none = ExtenderTLSConfig::default;
    for (name, server, enable_https, tls, expected) in [
        ("an authority that nobody knows", &server, false, none(), None),
        ("HTTPS without an authority", &server, true, none(), Some(0)),
        ("whoever it is", &server, false, insecure, Some(0)),
        ("its authority", &server, true, with_ca(), Some(0)),
        ("its authority in a file", &server, false, by_file, Some(0)),
        ("another authority", &server, true, with_other(), None),
        ("another name", &elsewhere, false, with_other(), None),
        (
            "an expected name",
            &elsewhere,
            false,
            ExtenderTLSConfig { server_name: "elsewhere".into(), ..with_other() },
            Some(0),
        ),
        ("a certificate of its own", &server, false, ExtenderTLSConfig { cert_data, key_data, ..with_ca() }, Some(1)),
        ("the same in files", &server, false, ExtenderTLSConfig { cert_file, key_file, ..with_ca() }, Some(1)),
    ] {
        let seen = bind(server, |config| (config.enable_https, config.tls_config) = (enable_https, Some(tls))).await;
        assert_eq!(seen.as_ref().ok().copied(), expected, "{name}: {seen:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_by_name() {
    let no_file = ExtenderTLSConfig { ca_file: "/not/there".into(), ..ExtenderTLSConfig::default() };
    let no_pair = ExtenderTLSConfig { cert_data: "no".into(), ..ExtenderTLSConfig::default() };
    for (url, tls) in [("ftp://e", ExtenderTLSConfig::default()), ("https://e", no_file), ("https://e", no_pair)] {
        let error = build_all(&build_cx(), &[config(url, tls)]).err().unwrap().to_string();
        assert!(error.starts_with(&format!("cannot create extender with URL {url:?}: ")), "{error}");
    }
}

#[test]
fn it_has_five_seconds_unless_told_otherwise() {
    for (timeout, expected) in [("0s", 5), ("1m", 60), ("-1s", 5)] {
        let mut config = config("http://e", ExtenderTLSConfig::default());
        config.http_timeout = timeout.parse().unwrap();
        let plugin = plugin(&config, client::fake::FakeServer::new().transport());
        assert_eq!(plugin.remote_bind.unwrap().deadline(), Duration::from_secs(expected), "{timeout}");
    }
}

/// Each of these is obeyed: here, in the checks of the configuration, and in the cycles' tests of extenders.
#[test]
fn there_are_no_further_fields() {
    let names = |of: &dyn Reflect| of.struct_type().fields.iter().map(|field| field.name).collect::<Vec<_>>();
    let own = [
        "urlPrefix",
        "filterVerb",
        "preemptVerb",
        "prioritizeVerb",
        "weight",
        "bindVerb",
        "enableHTTPS",
        "tlsConfig",
        "httpTimeout",
        "nodeCacheCapable",
        "managedResources",
        "ignorable",
    ];
    assert_eq!(names(&ExtenderConfig::default()), own);
    assert_eq!(names(&ExtenderManagedResource::default()), ["name", "ignoredByScheduler"]);
    let tls = ["insecure", "serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData"];
    assert_eq!(names(&ExtenderTLSConfig::default()), tls);
}
