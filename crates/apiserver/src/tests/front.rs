//! A server with another one behind it: both know each other by certificates of one throw-away authority.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base::{Rng, SystemClock, TaskGroup, TokioClock};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use component_base::serving::{Handler, SecureServing, ServerHandle};
use component_base::tls::CertFiles;
use pki::{AltNames, CertificateAuthority, CertificateSpec, KeyAlgorithm, PrivateKey};
use serde_json::Value;

use super::harness::Api;
use super::https::serving;
use super::sockets::Sockets;

/// The clock of the servers stands at the beginning of 2026, that of TLS does not.
const LONG: Duration = Duration::from_secs(30 * 365 * 86_400);
/// What the certificates of servers behind are for.
const SERVER: &str = "behind.default.svc";
/// What those of other servers of the cluster are for.
const PEER: &str = "kubernetes.default.svc";
pub(super) const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

/// An authority, and the files of what it vouches for.
pub(super) struct Trust {
    directory: tempfile::TempDir,
    authority: CertificateAuthority,
}

impl Trust {
    pub(super) fn new() -> Self {
        let now = TokioClock::shared().wall();
        let authority = CertificateAuthority::create("front-proxy-ca", key(), LONG, now, &Rng::seeded(1)).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.crt"), authority.certificate().to_pem()).unwrap();
        let own = Self { directory, authority };
        own.issue("client", &CertificateSpec::client("front-proxy-client", &[], LONG), now);
        let mut names = AltNames::default();
        names.push_host(SERVER);
        own.issue("server", &CertificateSpec::server(SERVER, names, LONG), now);
        let mut names = AltNames::default();
        names.push_host(PEER);
        own.issue("peer", &CertificateSpec::server(PEER, names, LONG), now);
        own.issue("nameless", &CertificateSpec::server(SERVER, AltNames::default(), LONG), now);
        own
    }

    fn issue(&self, name: &str, spec: &CertificateSpec, now: SystemTime) {
        let key = key();
        let leaf = self.authority.issue(spec, key.public_key(), now, &Rng::seeded(2)).unwrap();
        std::fs::write(self.file(&format!("{name}.crt")), leaf.to_pem()).unwrap();
        std::fs::write(self.file(&format!("{name}.key")), key.to_pem().unwrap()).unwrap();
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A listener with the certificate of a server behind.
    pub(super) fn serving(&self) -> SecureServing {
        self.serving_as("server")
    }

    pub(super) fn serving_as(&self, name: &str) -> SecureServing {
        let [cert, key] = ["crt", "key"].map(|kind| self.file(&format!("{name}.{kind}")));
        let files = CertFiles { cert, key };
        SecureServing { files: Some(files), ..serving() }
    }

    /// For `caBundle`.
    pub(super) fn bundle(&self) -> String {
        STANDARD.encode(self.authority.certificate().to_pem())
    }

    /// A server behind that is none of ours.
    pub(super) fn start(&self, tasks: &TaskGroup, handler: Arc<dyn Handler>) -> ServerHandle {
        self.start_as("server", tasks, handler)
    }

    /// The same with another certificate.
    pub(super) fn start_as(&self, name: &str, tasks: &TaskGroup, handler: Arc<dyn Handler>) -> ServerHandle {
        let serving = self.serving_as(name);
        let generate = crate::server::self_signed::generator(&SystemClock::shared(), &Rng::seeded(3));
        let certificates = serving.certificates(&[SERVER.to_owned()], &generate).unwrap();
        serving.serve(tasks, certificates, &[], handler).unwrap()
    }
}

fn key() -> PrivateKey {
    PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap()
}

/// The server in front.
pub(super) struct Front {
    pub(super) sockets: Sockets,
    pub(super) trust: Trust,
}

impl Front {
    pub(super) async fn start() -> Self {
        let trust = Trust::new();
        let pair = (trust.file("client.crt"), trust.file("client.key"));
        let sockets = Sockets::with(|config| config.aggregation.client_pair = Some(pair)).await;
        let front = Self { sockets, trust };
        let service = r#"{"metadata":{"name":"behind"},"spec":{"type":"ExternalName","externalName":"localhost"}}"#;
        let made = front.api().post("/api/v1/namespaces/default/services", service).await;
        assert_eq!(made.code, 201, "{}", made.text);
        front.api().wait_until_ready().await;
        front
    }

    pub(super) fn api(&self) -> &Api {
        &self.sockets.api
    }

    /// Says that a server answers for a version; `trusted` is how its certificate is checked.
    pub(super) async fn register(&self, name: &str, server: SocketAddr, trusted: &str) {
        let (version, group) = name.split_once('.').unwrap();
        let port = server.port();
        let body = format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"group":"{group}","version":"{version}",{trusted},
            "groupPriorityMinimum":2000,"versionPriority":10,
            "service":{{"namespace":"default","name":"behind","port":{port}}}}}}}"#
        );
        let made = self.api().post(SERVICES, &body).await;
        assert_eq!(made.code, 201, "{}", made.text);
    }

    /// The same, with the authority that is right.
    pub(super) async fn trust_and_register(&self, name: &str, server: SocketAddr) {
        self.register(name, server, &format!(r#""caBundle":"{}""#, self.trust.bundle())).await;
    }

    /// Waits until something is so.
    pub(super) async fn until(&self, path: &str, accept: &str, fits: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..400 {
            let answer = self.api().send(&format!("GET {path}"), &[("accept", accept)], "").await.json();
            if fits(&answer) {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{path} never got there: {}", self.api().get(path).await.text);
    }

    /// Waits for the condition of an APIService; gives its message.
    pub(super) async fn until_condition(&self, name: &str, reason: &str) -> String {
        let path = format!("{SERVICES}/{name}");
        let object =
            self.until(&path, "application/json", |object| object["status"]["conditions"][0]["reason"] == reason).await;
        object["status"]["conditions"][0]["message"].as_str().unwrap().to_owned()
    }
}
