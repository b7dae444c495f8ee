//! A server, or several, as processes, and `kubectl`s that speak to them.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::{Rng, SystemClock};
use pki::{AltNames, CertificateAuthority, CertificateSpec, KeyAlgorithm, PrivateKey};
use sys::exec::{Command, Daemon, Exec as _, LinuxExec, Output};
use sys::process::Process;
use tokio::time::Instant;

const DAY: Duration = Duration::from_secs(86_400);
/// How long something that must come true by itself may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const RETRY: Duration = Duration::from_millis(200);
const DEADLINE: Duration = Duration::from_secs(60);
/// The name that serving certificates are for.
const SAMPLE: &str = "sample.default.svc";

/// Certificates and keys, the files of both servers, and what runs.
pub(crate) struct Stage {
    directory: tempfile::TempDir,
    pub(crate) authority: CertificateAuthority,
    exec: LinuxExec,
    kubectl: PathBuf,
    running: Vec<Process>,
}

fn key() -> PrivateKey {
    PrivateKey::generate(KeyAlgorithm::EcdsaP256).expect("a key")
}

impl Stage {
    /// Everything that servers are given; nothing where there is no `kubectl`.
    pub(crate) fn new() -> Option<Self> {
        let prefix = std::env::var("COXSWAIN_PREFIX").unwrap_or_else(|_| "/opt/coxswain".to_owned());
        let kubectl = Path::new(&prefix).join("bin/kubectl");
        if !kubectl.exists() {
            test_facts::skipped("needs kubectl");
            return None;
        }
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
        Some(stage)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).expect("a file can be written");
    }

    pub(crate) fn flag(&self, name: &str, file: &str) -> String {
        format!("--{name}={}", self.file(file).display())
    }

    /// Starts a server on a port that was free a moment ago.
    pub(crate) async fn start(&mut self, name: &str, more: &[String]) -> SocketAddr {
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

    pub(crate) async fn kubectl(&self, server: SocketAddr, line: &str, input: &str) -> Output {
        self.kubectl_as("root", server, line, input).await
    }

    /// With a token of somebody's.
    pub(crate) async fn kubectl_as(&self, token: &str, server: SocketAddr, line: &str, input: &str) -> Output {
        let own = [
            format!("--server=https://{server}"),
            format!("--token={token}"),
            "--insecure-skip-tls-verify".to_owned(),
            format!("--cache-dir={}", self.file(&format!("cache-{}", server.port())).display()),
        ];
        let command = Command::new(&self.kubectl).args(own).args(line.split(' ').map(str::to_owned));
        let command = command.env("KUBECONFIG", self.file("none")).deadline(DEADLINE).stdin(input);
        self.exec.run(&command).await.unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) async fn ok(&self, server: SocketAddr, line: &str, input: &str) -> String {
        let output = self.kubectl(server, line, input).await;
        assert!(output.success(), "kubectl {line}: {} {}", output.error_text(), output.text());
        output.text().trim().to_owned()
    }

    pub(crate) async fn until(
        &self,
        server: SocketAddr,
        line: &str,
        input: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> String {
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

    pub(crate) async fn stop(self) {
        for process in &self.running {
            drop(process.stop(Duration::from_secs(20)).await);
        }
    }
}
