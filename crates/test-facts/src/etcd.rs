//! A real etcd for tests: each member in a directory of its own, on ports that the system picks.
//!
//! The binary is the one that `$ETCD` names, else the first `etcd` in `PATH`, else the one that `make deps` installs.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Where `make deps` puts programs, unless `COXSWAIN_PREFIX` says otherwise; then they are looked for in `PATH`.
const INSTALLED: &str = "/opt/coxswain/bin";

/// Runs etcd for as long as somebody holds the other end of its input, so that none outlives the tests, however those end.
const KEEPER: &str = r#""$0" "$@" </dev/null & read -r _; kill -9 $!; wait"#;

/// How clients and the server know each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// Not at all.
    Plain,
    /// Both show certificates.
    MutualTls,
}

/// What a client of a server with TLS needs, PEM-encoded.
#[derive(Debug, Clone)]
pub struct ClientTls {
    /// The authority that signed the server's certificate.
    pub ca_pem: Vec<u8>,
    /// The certificate that the client shows.
    pub certificate_pem: Vec<u8>,
    /// Its key.
    pub key_pem: Vec<u8>,
}

/// A running etcd; it ends with the value.
pub struct EtcdServer {
    process: Child,
    arguments: Vec<String>,
    binary: PathBuf,
    /// Where clients reach it.
    pub url: String,
    /// How, where it asks for certificates.
    pub tls: Option<ClientTls>,
    directory: TempDir,
}

impl EtcdServer {
    /// Starts etcd; nothing, with a word about it, where there is none. Panics where it does not start, as do the others.
    #[must_use]
    pub fn start(security: Security) -> Option<Self> {
        Some(Self::alone(&binary()?, security))
    }

    /// Starts one whose marks of progress cannot be trusted (3.4.23 of Debian 12); nothing where there is none.
    #[must_use]
    pub fn start_old() -> Option<Self> {
        Some(Self::alone(&old_binary()?, Security::Plain))
    }

    /// Starts the members of one cluster; nothing where there is no etcd.
    #[must_use]
    pub fn start_cluster(members: usize) -> Option<Vec<Self>> {
        let binary = binary()?;
        let names: Vec<(String, String)> = (0..members).map(|index| (format!("m{index}"), peer_url())).collect();
        let all: Vec<String> = names.iter().map(|(name, peer)| format!("{name}={peer}")).collect();
        let start = |(name, peer): &(String, String)| {
            Self::member(&binary, Security::Plain, (name, peer), &all.join(",")).expect("etcd starts")
        };
        Some(names.iter().map(start).collect())
    }

    fn alone(binary: &Path, security: Security) -> Self {
        let peer = peer_url();
        Self::member(binary, security, ("test", &peer), &format!("test={peer}")).expect("etcd starts")
    }

    fn member(binary: &Path, security: Security, (name, peer): (&str, &str), all: &str) -> Result<Self, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let client_port = free_port()?;
        let (scheme, tls, tls_arguments) = match security {
            Security::Plain => ("http", None, Vec::new()),
            Security::MutualTls => {
                let (tls, arguments) = certificates(directory.path())?;
                ("https", Some(tls), arguments)
            }
        };
        let url = format!("{scheme}://127.0.0.1:{client_port}");
        let data = directory.path().join("data").display().to_string();
        let mut arguments: Vec<String> = [
            ("--name", name),
            ("--data-dir", &data),
            ("--listen-client-urls", &url),
            ("--advertise-client-urls", &url),
            ("--listen-peer-urls", peer),
            ("--initial-advertise-peer-urls", peer),
            ("--initial-cluster", all),
        ]
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_owned(), value.to_owned()])
        .collect();
        arguments.push("--unsafe-no-fsync".to_owned());
        arguments.extend(tls_arguments);
        if version_lacks_no_fsync(binary) {
            arguments.retain(|argument| argument != "--unsafe-no-fsync");
        }
        let process = spawn(binary, &arguments, directory.path())?;
        Ok(Self { process, arguments, binary: binary.to_owned(), url, tls, directory })
    }

    /// Kills etcd without warning and starts it again on the same data and ports.
    pub fn restart(&mut self) {
        self.stop();
        self.process = spawn(&self.binary, &self.arguments, self.directory.path()).expect("etcd starts again");
    }

    /// Kills etcd without warning.
    pub fn stop(&mut self) {
        drop(self.process.stdin.take());
        // Fails only where it has been waited for before.
        let _reaped = self.process.wait();
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        self.stop();
    }
}

#[expect(clippy::disallowed_methods, reason = "the test starts a real server")]
fn spawn(binary: &Path, arguments: &[String], directory: &Path) -> Result<Child, String> {
    let log = fs::OpenOptions::new().create(true).append(true).open(directory.join("log"));
    let log = log.map_err(|error| error.to_string())?;
    let mut command = Command::new("sh");
    command.args(["-c", KEEPER]).arg(binary).args(arguments);
    let started = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn();
    started.map_err(|error| format!("cannot start {}: {error}", binary.display()))
}

fn peer_url() -> String {
    format!("http://127.0.0.1:{}", free_port().expect("a free port"))
}

fn binary() -> Option<PathBuf> {
    named_or_in_path("ETCD", "etcd")
}

/// `hack/install-deps.sh` puts it beside the newer ones.
fn old_binary() -> Option<PathBuf> {
    named_or_in_path("ETCD_OLD", "etcd-3.4")
}

fn named_or_in_path(variable: &str, name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain([INSTALLED.into()]);
    let in_path = || directories.map(|directory| directory.join(name)).find(|file| file.is_file());
    let found = std::env::var_os(variable).map(PathBuf::from).or_else(in_path);
    if found.is_none() {
        crate::not_installed(&format!("there is no {name} in PATH and ${variable} is not set"));
    }
    found
}

#[expect(clippy::disallowed_methods, reason = "the test runs real programs")]
fn version_lacks_no_fsync(binary: &Path) -> bool {
    let output = Command::new(binary).arg("--help").output();
    output.is_ok_and(|output| {
        let help = [output.stdout, output.stderr].concat();
        !String::from_utf8_lossy(&help).contains("--unsafe-no-fsync")
    })
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

/// An authority and certificates for both sides, by openssl.
fn certificates(directory: &Path) -> Result<(ClientTls, Vec<String>), String> {
    fs::write(directory.join("ext"), "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
        .map_err(|error| error.to_string())?;
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let authority = ["req", "-x509", "-days", "2", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.crt"];
    openssl(directory, &[&authority[..], &key[..]].concat())?;
    for name in ["server", "client"] {
        let (key_file, request, certificate) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.crt"));
        let subject = format!("/CN={name}");
        let ask = ["req", "-subj", &subject, "-keyout", &key_file, "-out", &request];
        openssl(directory, &[&ask[..], &key[..]].concat())?;
        openssl(
            directory,
            &[
                "x509",
                "-req",
                "-in",
                &request,
                "-CA",
                "ca.crt",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-days",
                "2",
                "-extfile",
                "ext",
                "-out",
                &certificate,
            ],
        )?;
    }
    let file = |name: &str| directory.join(name).display().to_string();
    let read = |name: &str| fs::read(directory.join(name)).map_err(|error| error.to_string());
    let tls = ClientTls { ca_pem: read("ca.crt")?, certificate_pem: read("client.crt")?, key_pem: read("client.key")? };
    let arguments = [("--cert-file", "server.crt"), ("--key-file", "server.key"), ("--trusted-ca-file", "ca.crt")];
    let mut arguments: Vec<String> =
        arguments.into_iter().flat_map(|(flag, name)| [flag.to_owned(), file(name)]).collect();
    arguments.push("--client-cert-auth".to_owned());
    Ok((tls, arguments))
}

#[expect(clippy::disallowed_methods, reason = "the test makes real certificates")]
fn openssl(directory: &Path, arguments: &[&str]) -> Result<(), String> {
    let ran = Command::new("openssl").args(arguments).current_dir(directory).stderr(Stdio::null()).status();
    match ran {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("openssl {arguments:?} failed: {status}")),
        Err(error) => Err(format!("openssl cannot be run: {error}")),
    }
}
