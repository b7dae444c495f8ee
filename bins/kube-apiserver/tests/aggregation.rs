//! Two processes of this server: one stands behind the other, as a sample of an extension API server with a kind of its own,
//! and `kubectl` speaks to the one in front. The one in front reaches the other at the endpoint of its Service.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::{Rng, SystemClock};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pki::{AltNames, CertificateAuthority, CertificateSpec, KeyAlgorithm, PrivateKey};
use sys::exec::{Command, Daemon, Exec as _, LinuxExec, Output};
use sys::process::Process;
use tokio::time::Instant;

const DAY: Duration = Duration::from_secs(86_400);
/// How long something that must come true by itself may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const RETRY: Duration = Duration::from_millis(200);
const DEADLINE: Duration = Duration::from_secs(60);
const SAMPLE: &str = "sample.default.svc";

const DEFINITION: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
    "metadata":{"name":"flunders.sample.example.io"},
    "spec":{"group":"sample.example.io","scope":"Namespaced",
        "names":{"plural":"flunders","kind":"Flunder","shortNames":["fl"]},
        "versions":[{"name":"v1","served":true,"storage":true,
            "additionalPrinterColumns":[{"name":"Colour","type":"string","jsonPath":".spec.colour"}],
            "schema":{"openAPIV3Schema":{"type":"object","properties":{
                "spec":{"type":"object","description":"What a flunder is like.",
                    "properties":{"colour":{"type":"string"}}}}}}}]}}"#;

/// Certificates and keys, the files of both servers, and what runs.
struct Stage {
    directory: tempfile::TempDir,
    authority: CertificateAuthority,
    exec: LinuxExec,
    kubectl: PathBuf,
    running: Vec<Process>,
}

/// The address by which the machine is known to others: a server does not pass requests on to its own host by another.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_loopback() && !address.is_unspecified())
}

fn key() -> PrivateKey {
    PrivateKey::generate(KeyAlgorithm::EcdsaP256).expect("a key")
}

impl Stage {
    fn new(kubectl: PathBuf) -> Self {
        let now = SystemClock::shared().wall();
        let authority = CertificateAuthority::create("front-proxy-ca", key(), DAY, now, &Rng::seeded(1)).expect("a CA");
        let directory = tempfile::tempdir().expect("a directory");
        let stage = Self { directory, authority, exec: LinuxExec, kubectl, running: Vec::new() };
        stage.write("ca.crt", &stage.authority.certificate().to_pem());
        stage.write("tokens.csv", "root,root,1,\"system:masters\"\n");
        let mut names = AltNames::default();
        names.push_host(SAMPLE);
        for (name, spec) in [
            ("client", CertificateSpec::client("front-proxy-client", &[], DAY)),
            ("server", CertificateSpec::server(SAMPLE, names, DAY)),
        ] {
            let key = key();
            let leaf = stage.authority.issue(&spec, key.public_key(), now, &Rng::seeded(2)).expect("a certificate");
            stage.write(&format!("{name}.crt"), &leaf.to_pem());
            stage.write(&format!("{name}.key"), &key.to_pem().expect("a key"));
        }
        let accounts = PrivateKey::generate(KeyAlgorithm::EcdsaP256).expect("a key");
        stage.write("sa.key", &accounts.to_pem().expect("a key"));
        stage.write("sa.pub", &accounts.public_key().to_pem());
        stage
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).expect("a file can be written");
    }

    fn flag(&self, name: &str, file: &str) -> String {
        format!("--{name}={}", self.file(file).display())
    }

    /// Starts a server on a port that was free a moment ago.
    async fn start(&mut self, name: &str, more: &[String]) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let command = Command::new(env!("CARGO_BIN_EXE_kube-apiserver")).args([
            format!("--secure-port={port}"),
            format!("--embedded-storage-dir={}", self.file(&format!("{name}-store")).display()),
            format!("--cert-dir={}", self.file(&format!("{name}-certs")).display()),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            self.flag("service-account-key-file", "sa.pub"),
            self.flag("service-account-signing-key-file", "sa.key"),
            self.flag("token-auth-file", "tokens.csv"),
        ]);
        let command = command.args(more.iter().cloned());
        let daemon = Daemon::new(command, self.file(&format!("{name}.log")));
        self.running.push(self.exec.spawn(&daemon).await.expect("the server starts"));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        self.until(address, "get --raw /readyz", "", |text| text == "ok").await;
        address
    }

    async fn kubectl(&self, server: SocketAddr, line: &str, input: &str) -> Output {
        let own = [
            format!("--server=https://{server}"),
            "--token=root".to_owned(),
            "--insecure-skip-tls-verify".to_owned(),
            format!("--cache-dir={}", self.file(&format!("cache-{}", server.port())).display()),
        ];
        let command = Command::new(&self.kubectl).args(own).args(line.split(' ').map(str::to_owned));
        let command = command.env("KUBECONFIG", self.file("none")).deadline(DEADLINE).stdin(input);
        self.exec.run(&command).await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn ok(&self, server: SocketAddr, line: &str, input: &str) -> String {
        let output = self.kubectl(server, line, input).await;
        assert!(output.success(), "kubectl {line}: {} {}", output.error_text(), output.text());
        output.text().trim().to_owned()
    }

    async fn until(&self, server: SocketAddr, line: &str, input: &str, wanted: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let output = self.kubectl(server, line, input).await;
            let text = output.text().trim().to_owned();
            if output.success() && wanted(&text) {
                return text;
            }
            let late = start.elapsed() >= PATIENCE;
            assert!(!late, "kubectl {line} still says: {text} {}\n{}", output.error_text(), self.logs());
            tokio::time::sleep(RETRY).await;
        }
    }

    fn logs(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.file(&format!("{name}.log"))).unwrap_or_default();
        let tail = |text: String| text.lines().rev().take(20).map(str::to_owned).collect::<Vec<_>>().join("\n");
        ["behind", "front"].map(|name| format!("{name}:\n{}", tail(read(name)))).join("\n")
    }

    async fn stop(self) {
        for process in &self.running {
            drop(process.stop(Duration::from_secs(20)).await);
        }
    }
}

/// A Service without a selector, its endpoint, and the APIService in front of it.
fn manifest(address: std::net::IpAddr, port: u16, bundle: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"List","items":[
        {{"apiVersion":"v1","kind":"Service","metadata":{{"name":"sample","namespace":"default"}},
          "spec":{{"ports":[{{"name":"api","port":443,"targetPort":{port}}}]}}}},
        {{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","addressType":"IPv4",
          "metadata":{{"name":"sample-1","namespace":"default","labels":{{"kubernetes.io/service-name":"sample"}}}},
          "endpoints":[{{"addresses":["{address}"]}}],"ports":[{{"name":"api","port":{port}}}]}},
        {{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{{"name":"v1.sample.example.io"}},
          "spec":{{"group":"sample.example.io","version":"v1","groupPriorityMinimum":2000,"versionPriority":10,
            "caBundle":"{bundle}","service":{{"namespace":"default","name":"sample"}}}}}}]}}"#
    )
}

#[tokio::test]
async fn kubectl_works_with_a_server_behind_another() {
    let prefix = std::env::var("COXSWAIN_PREFIX").unwrap_or_else(|_| "/opt/coxswain".to_owned());
    let kubectl = Path::new(&prefix).join("bin/kubectl");
    if !kubectl.exists() {
        return test_facts::skipped("needs kubectl");
    }
    let Some(address) = own_address().filter(std::net::IpAddr::is_ipv4) else {
        return test_facts::skipped("needs an address that others could reach");
    };
    let mut stage = Stage::new(kubectl);
    let behind = [
        stage.flag("tls-cert-file", "server.crt"),
        stage.flag("tls-private-key-file", "server.key"),
        stage.flag("requestheader-client-ca-file", "ca.crt"),
        "--requestheader-allowed-names=front-proxy-client".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
    ];
    let behind = stage.start("behind", &behind).await;
    let front = [
        "--enable-aggregator-routing".to_owned(),
        stage.flag("proxy-client-cert-file", "client.crt"),
        stage.flag("proxy-client-key-file", "client.key"),
    ];
    let front = stage.start("front", &front).await;
    stage.ok(behind, "create -f -", DEFINITION).await;
    stage.until(behind, "get flunders", "", |_| true).await;

    let bundle = STANDARD.encode(stage.authority.certificate().to_pem());
    stage.ok(front, "create -f -", &manifest(address, behind.port(), &bundle)).await;
    stage.ok(front, "wait --for=condition=Available apiservice/v1.sample.example.io --timeout=60s", "").await;
    let listed = stage.ok(front, "get apiservices v1.sample.example.io v1.apps --no-headers", "").await;
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    assert_eq!(rows, [["v1.sample.example.io", "default/sample", "True"], ["v1.apps", "Local", "True"]]);

    stage
        .until(front, "api-resources --api-group=sample.example.io --no-headers", "", |text| text.contains("Flunder"))
        .await;
    let made =
        r#"{"apiVersion":"sample.example.io/v1","kind":"Flunder","metadata":{"name":"f"},"spec":{"colour":"red"}}"#;
    stage.until(front, "apply -f -", made, |text| text.contains("flunder.sample.example.io/f")).await;
    assert_eq!(stage.ok(behind, "get fl f -o jsonpath={.spec.colour}", "").await, "red");
    let table = stage.ok(front, "get fl --no-headers", "").await;
    assert_eq!(table.split_whitespace().take(2).collect::<Vec<_>>(), ["f", "red"]);
    stage.ok(front, "patch fl f --type=merge -p {\"spec\":{\"colour\":\"blue\"}}", "").await;
    let explained = stage.until(front, "explain flunder.spec", "", |text| text.contains("colour")).await;
    assert!(explained.contains("What a flunder is like."), "{explained}");
    stage.ok(front, "delete fl f", "").await;
    assert!(stage.ok(behind, "get fl -o name", "").await.is_empty());

    stage.ok(front, "delete endpointslice sample-1", "").await;
    let reason = "-o jsonpath={.status.conditions[0].reason}";
    let line = format!("get apiservice v1.sample.example.io {reason}");
    stage.until(front, &line, "", |text| text == "EndpointsNotFound").await;
    let refused = stage.kubectl(front, "get --raw /apis/sample.example.io/v1/flunders", "").await;
    assert!(!refused.success() && refused.error_text().contains("(ServiceUnavailable)"), "{}", refused.error_text());
    stage.stop().await;
}
