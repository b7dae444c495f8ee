//! An API server and a controller manager as processes, and desks before them.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::{Rng, SystemClock};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pki::{AltNames, CertificateAuthority, CertificateRequest, CertificateSpec, KeyAlgorithm, Name, PrivateKey};
use sys::exec::{Command, Daemon, Exec as _, LinuxExec};
use sys::process::Process;
use tests::desk::Desk;
use tests::kubectl::{Kubectl, binaries, program};

const DAY: Duration = Duration::from_secs(86_400);
const GRACE: Duration = Duration::from_secs(20);
const SERVERS: [&str; 2] = ["kube-apiserver", "kube-controller-manager"];
/// With a label: whose fields nobody owns at first, nobody owns later.
const NODE: &str = "---\n{apiVersion: v1, kind: Node, metadata: {name: 127.0.0.1, labels: {made: by-hand}}, status: {capacity: {memory: 1Gi}}}";
/// Bytes that are no text.
const BLOB: [u8; 4] = [0x00, 0xff, 0x80, 0xfe];

/// What runs, and the files that it is given.
pub(crate) struct Stage {
    directory: tempfile::TempDir,
    exec: Arc<LinuxExec>,
    kubectl: PathBuf,
    version: String,
    server: String,
    /// A request for a certificate, signed with `user.key`.
    request: String,
    running: Vec<Process>,
}

impl Stage {
    /// Starts the servers for a version of `kubectl`; nothing where one or the other is not there.
    pub(crate) async fn up(version: &str) -> Option<Self> {
        let name = format!("kubectl-{version}");
        let Some(kubectl) = program(&name) else {
            test_facts::not_installed(&format!("{name} is not there"));
            return None;
        };
        if let Some(absent) = SERVERS.iter().find(|name| !binaries().join(name).is_file()) {
            test_facts::not_installed(&format!("{absent} is not built (make test builds it)"));
            return None;
        }
        let server = format!("https://127.0.0.1:{}", free_port());
        let directory = tempfile::tempdir().expect("a directory");
        let (exec, version) = (Arc::new(LinuxExec), version.to_owned());
        let mut stage = Self { directory, exec, kubectl, version, server, request: String::new(), running: Vec::new() };
        stage.write_files();
        stage.start_servers().await;
        Some(stage)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.file(name);
        std::fs::create_dir_all(path.parent().expect("it is in a directory")).expect("a directory can be made");
        std::fs::write(path, content).expect("a file can be written");
    }

    /// Keys and certificates, the administrator's token, kubeconfigs.
    fn write_files(&mut self) {
        let (now, rng) = (SystemClock::shared().wall(), Rng::seeded(1));
        let (key, signer, accounts) = (key(), key(), key());
        self.write("ca.key", pem(&signer));
        let authority = CertificateAuthority::create("judge-ca", signer, DAY, now, &rng).expect("a CA");
        self.write("ca.crt", authority.certificate().to_pem());
        self.write("sa.key", pem(&accounts));
        self.write("sa.pub", accounts.public_key().to_pem());
        self.write("tokens.csv", "root,root,1,\"system:masters\"\n");
        let spec = CertificateSpec::server("judge.example", AltNames::default(), DAY);
        let leaf = authority.issue(&spec, key.public_key(), now, &rng).expect("a certificate");
        self.write("shared/user.crt", leaf.to_pem());
        self.write("shared/user.key", pem(&key));
        self.write("shared/blob", BLOB);
        let request = CertificateRequest::create(&key, &Name::new("testuser", &[]), &AltNames::default());
        self.request = STANDARD.encode(request.expect("a request").to_pem());
        self.write("admin.conf", self.kubeconfig("default"));
        self.write("shared/plugin.conf", self.plugins());
    }

    async fn start_servers(&mut self) {
        let port = self.server.rsplit(':').next().unwrap_or_default();
        let api_server = [
            format!("--secure-port={port}"),
            format!("--embedded-storage-dir={}", self.file("store").display()),
            format!("--cert-dir={}", self.file("certs").display()),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            // As upstream's suite has it: pods are as they were sent.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            self.flag("service-account-key-file", "sa.pub"),
            self.flag("service-account-signing-key-file", "sa.key"),
            self.flag("token-auth-file", "tokens.csv"),
            self.flag("client-ca-file", "ca.crt"),
        ];
        let manager = [
            format!("--secure-port={}", free_port()),
            format!("--cert-dir={}", self.file("manager-certs").display()),
            "--leader-elect=false".to_owned(),
            "--use-service-account-credentials".to_owned(),
            self.flag("kubeconfig", "admin.conf"),
            self.flag("service-account-private-key-file", "sa.key"),
            self.flag("root-ca-file", "ca.crt"),
            self.flag("cluster-signing-cert-file", "ca.crt"),
            self.flag("cluster-signing-key-file", "ca.key"),
        ];
        let admin = self.kubectl(self.file("admin.conf"), "default");
        self.start(SERVERS[0], &api_server).await;
        admin.until("get --raw /readyz", |text| text == "ok").await;
        self.start(SERVERS[1], &manager).await;
        admin.apply(NODE).await;
    }

    async fn start(&mut self, name: &str, flags: &[String]) {
        let command = Command::new(binaries().join(name)).args(flags.iter().cloned());
        let daemon = Daemon::new(command, self.file(&format!("{name}.log")));
        self.running.push(self.exec.spawn(&daemon).await.expect("the server starts"));
    }

    fn flag(&self, name: &str, file: &str) -> String {
        format!("--{name}={}", self.file(file).display())
    }

    fn kubectl(&self, kubeconfig: PathBuf, namespace: &str) -> Kubectl {
        Kubectl {
            program: self.kubectl.clone(),
            kubeconfig,
            cache: self.file("cache"),
            namespace: namespace.to_owned(),
            flags: Vec::new(),
            exec: Arc::clone(&self.exec),
        }
    }

    /// A desk in a new namespace.
    pub(crate) async fn desk(&self, namespace: &str) -> Desk {
        let files = self.file(namespace);
        let kubeconfig = self.file(&format!("{namespace}.conf"));
        self.write(&format!("{namespace}.conf"), self.kubeconfig(namespace));
        let kubectl = self.kubectl(kubeconfig, namespace);
        kubectl.ok(&format!("create namespace {namespace}")).await;
        Desk::new(kubectl, &self.version, files)
            .knowing("SHARED", &self.file("shared").display().to_string())
            .knowing("REQUEST", &self.request)
    }

    fn cluster(&self) -> String {
        format!("{{name: c, cluster: {{server: '{}', insecure-skip-tls-verify: true}}}}", self.server)
    }

    fn kubeconfig(&self, namespace: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{}]\nusers: [{{name: u, user: {{token: root}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u, namespace: {namespace}}}}}]\n",
            self.cluster()
        )
    }

    /// Contexts in which a plugin has the administrator's token in one version or another, or has none.
    fn plugins(&self) -> String {
        let token = |version: &str| {
            format!(
                r#"{{"apiVersion":"client.authentication.k8s.io/{version}","kind":"ExecCredential","status":{{"token":"root"}}}}"#
            )
        };
        let user = |name: &str, version: &str, says: &str| {
            format!(
                "- name: {name}\n  user: {{exec: {{apiVersion: client.authentication.k8s.io/{version}, command: echo, args: \
                 ['{says}'], interactiveMode: IfAvailable}}}}\n"
            )
        };
        let users = [
            user("none", "v1", "nothing"),
            user("v1", "v1", &token("v1")),
            user("v1beta1", "v1beta1", &token("v1beta1")),
        ];
        let contexts = ["none", "v1", "v1beta1"]
            .map(|name| format!("- {{name: {name}, context: {{cluster: c, user: {name}}}}}\n"));
        let (users, contexts) = (users.concat(), contexts.concat());
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: none\nclusters: [{}]\nusers:\n{users}contexts:\n{contexts}",
            self.cluster()
        )
    }

    /// The ends of the servers' logs.
    pub(crate) fn last_words(&self) -> String {
        let end = |name: &str| {
            let text = std::fs::read_to_string(self.file(&format!("{name}.log"))).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("{name}:\n{}\n", lines[lines.len().saturating_sub(20)..].join("\n"))
        };
        SERVERS.map(end).concat()
    }
}

impl Drop for Stage {
    /// Ends the servers, after a failure as well.
    fn drop(&mut self) {
        for process in self.running.iter().rev() {
            let stopped =
                tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(process.stop(GRACE)));
            drop(stopped);
        }
    }
}

fn key() -> PrivateKey {
    PrivateKey::generate(KeyAlgorithm::EcdsaP256).expect("a key")
}

fn pem(key: &PrivateKey) -> String {
    key.to_pem().expect("a key")
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}
