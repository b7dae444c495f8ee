//! The secure serving flags that every component has, from the flags to a running HTTPS server.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::TaskGroup;

use super::{Counters, Handler, Limits, ListenError, PortSharing, Security, Server, ServerHandle, bind};
use crate::flags::{Errors, Flag, Options};
use crate::reload::{Reload, spawn_reloader};
use crate::tls::{CaFile, CertFiles, ServerTls, ServingCerts, SniCert, TlsError, TlsOptions};

/// Makes a self-signed pair (PEM certificate, PEM key) for these host names and addresses.
pub type GeneratePair = dyn Fn(&[String]) -> Result<(Vec<u8>, Vec<u8>), Box<dyn std::error::Error + Send + Sync>>;

/// The flags, with the port that the component listens on by default.
#[must_use]
pub const fn secure_serving_flags(port: &'static str, cert_dir: &'static str) -> [Flag; 13] {
    [
        Flag::ip("bind-address", "0.0.0.0").help(
            "The IP address on which to listen for the --secure-port port. The interfaces behind it must be reachable \
             by the rest of the cluster and by clients. Empty or unspecified (0.0.0.0 or ::) means all interfaces and \
             both IP families.",
        ),
        Flag::string("cert-dir", cert_dir).help(
            "The directory of the TLS certificates. Ignored when --tls-cert-file and --tls-private-key-file are given.",
        ),
        Flag::bool("disable-http2-serving", "false").help("If true, HTTP2 serving will be disabled."),
        Flag::int("http2-max-streams-per-connection", "0").help(
            "How many streams a client may have at a time on one HTTP/2 connection. Zero means the server's default.",
        ),
        Flag::bool("permit-address-sharing", "false").help(
            "If true, the port is bound with SO_REUSEADDR, so that the socket need not leave TIME_WAIT first.",
        ),
        Flag::bool("permit-port-sharing", "false").help(
            "If true, the port is bound with SO_REUSEPORT, which lets several instances bind the same address and port.",
        ),
        Flag::int("secure-port", port).help("The port on which to serve HTTPS with authentication and authorization."),
        Flag::string("tls-cert-file", "").help(
            "File with the x509 certificate for HTTPS, intermediates after the leaf. Without it and \
             --tls-private-key-file a self-signed pair is made and kept in --cert-dir.",
        ),
        Flag::string_slice("tls-cipher-suites", "").help(
            "Comma separated cipher suites of the server, by Go's names. Without it the default suites are used. They \
             apply to TLS 1.2 only.",
        ),
        Flag::int_slice("tls-curve-preferences", "").help(
            "Comma separated key exchange groups of the server by their TLS number, most wanted first.",
        ),
        Flag::string("tls-min-version", "")
            .help("Lowest TLS version offered. Possible values: VersionTLS12, VersionTLS13"),
        Flag::string("tls-private-key-file", "").help("File with the private key that matches --tls-cert-file."),
        Flag::string_array("tls-sni-cert-key", "").value_name("namedCertKey").help(
            "A pair of x509 certificate and private key file paths, optionally followed by the domain patterns it \
             serves (wildcards allowed, explicit patterns win over the names in the certificate): \
             \"example.crt,example.key\" or \"foo.crt,foo.key:*.foo.com,foo.com\". May be given several times.",
        ),
    ]
}

/// Why serving could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A certificate or a TLS option is bad.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// The port is not to be had.
    #[error("{0}")]
    Listen(#[from] ListenError),
    /// The self-signed pair could not be made.
    #[error("unable to generate self signed cert: {0}")]
    Generate(Box<dyn std::error::Error + Send + Sync>),
    /// The self-signed pair could not be kept.
    #[error("unable to write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The server could not start.
    #[error("unable to serve: {0}")]
    Io(#[from] std::io::Error),
}

/// The values of the secure serving flags.
#[derive(Debug, Clone)]
pub struct SecureServing {
    /// Where to listen; port 0 means not at all for components that allow it.
    pub address: SocketAddr,
    /// Whether other processes may share the port.
    pub sharing: PortSharing,
    /// The pair to serve with; none means a self-signed one in `cert_dir`.
    pub files: Option<CertFiles>,
    /// Where self-signed pairs are kept; empty keeps them in memory.
    pub cert_dir: PathBuf,
    /// File name, without ending, of the self-signed pair (`apiserver`, `kube-controller-manager`, ...).
    pub pair_name: String,
    /// Further pairs by name.
    pub sni: Vec<SniCert>,
    /// What to offer in handshakes.
    pub tls: TlsOptions,
    /// The bounds of the server.
    pub limits: Limits,
    /// What it counts.
    pub counters: Counters,
    /// Whether clients are asked for certificates though it is only known later whose are believed.
    pub asks_for_certificates: bool,
}

impl SecureServing {
    /// Reads the flags, adding what is wrong with them to `errors`. `pair_name` names self-signed pairs.
    pub fn from_options(options: &Options, pair_name: &str, errors: &mut Errors) -> Self {
        let ip = options.ip("bind-address").unwrap_or(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED));
        let port = options.int("secure-port");
        let port = u16::try_from(port).unwrap_or_else(|_| {
            errors.push(format!(
                "--secure-port {port} must be between 0 and 65535, inclusive. 0 for turning off secure port"
            ));
            0
        });
        let mut limits = Limits::default();
        match u32::try_from(options.int("http2-max-streams-per-connection")) {
            Ok(0) => {}
            Ok(streams) => limits.streams = streams,
            Err(_) => errors.push("--http2-max-streams-per-connection can not be a negative value"),
        }
        let tls = TlsOptions {
            min_version: options.string("tls-min-version").to_owned(),
            cipher_suites: options.strings("tls-cipher-suites").to_vec(),
            curve_preferences: options.ints("tls-curve-preferences").to_vec(),
            disable_http2: options.bool("disable-http2-serving"),
        };
        for problem in tls.problems() {
            errors.push(problem);
        }
        Self {
            address: SocketAddr::new(ip, port),
            sharing: if options.bool("permit-port-sharing") { PortSharing::Shared } else { PortSharing::Exclusive },
            files: pair(options, errors),
            cert_dir: options.string("cert-dir").into(),
            pair_name: pair_name.to_owned(),
            sni: sni(options, errors),
            tls,
            limits,
            counters: Counters::default(),
            asks_for_certificates: false,
        }
    }

    /// Whether to serve at all: port 0 turns it off.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.address.port() != 0
    }

    /// The certificates to serve with. Without files, a pair is taken from `cert_dir`, or made for `names` and kept
    /// there (certificate 0644, key 0600).
    ///
    /// # Errors
    /// When files are bad, or a pair cannot be made or written.
    pub fn certificates(&self, names: &[String], generate: &GeneratePair) -> Result<Arc<ServingCerts>, ServeError> {
        if let Some(files) = &self.files {
            return Ok(ServingCerts::load(Some(files), &self.sni)?);
        }
        if self.cert_dir.as_os_str().is_empty() {
            let (cert, key) = generate(names).map_err(ServeError::Generate)?;
            let certs = ServingCerts::load(None, &self.sni)?;
            certs.set_default(&cert, &key)?;
            return Ok(certs);
        }
        let files = CertFiles {
            cert: self.cert_dir.join(format!("{}.crt", self.pair_name)),
            key: self.cert_dir.join(format!("{}.key", self.pair_name)),
        };
        if let Ok(certs) = ServingCerts::load(Some(&files), &self.sni) {
            return Ok(certs);
        }
        let (cert, key) = generate(names).map_err(ServeError::Generate)?;
        write_pair(&files, &cert, &key)?;
        tracing::info!(cert = %files.cert.display(), key = %files.key.display(), "Generated self-signed cert");
        Ok(ServingCerts::load(Some(&files), &self.sni)?)
    }

    /// Listens and serves `handler`, asking clients for certificates of `client_cas`; certificates and bundles are
    /// read again every minute.
    ///
    /// # Errors
    /// When the port is taken, or the TLS configuration is refused.
    pub fn serve(
        &self,
        tasks: &TaskGroup,
        certs: Arc<ServingCerts>,
        client_cas: &[Arc<CaFile>],
        handler: Arc<dyn Handler>,
    ) -> Result<ServerHandle, ServeError> {
        let listener = bind(self.address, self.sharing)?;
        let tls = ServerTls::new(Arc::clone(&certs), self.tls.clone())?;
        if self.asks_for_certificates {
            // Without a hint clients show what they have.
            tls.request_client_certs(&[])?;
        } else {
            follow_client_cas(&tls, client_cas)?;
        }
        let mut targets: Vec<Arc<dyn Reload>> = vec![certs];
        targets.extend(client_cas.iter().map(|file| -> Arc<dyn Reload> { Arc::<CaFile>::clone(file) }));
        spawn_reloader(tasks, targets);
        let server = Server::new(handler, Security::Tls(tls))
            .with_limits(self.limits.clone())
            .with_counters(self.counters.clone());
        let handle = server.spawn(tasks, listener)?;
        tracing::info!(address = %handle.address(), "Serving securely");
        Ok(handle)
    }
}

/// Asks for client certificates now, and anew with every change of a bundle.
fn follow_client_cas(tls: &Arc<ServerTls>, files: &[Arc<CaFile>]) -> Result<(), TlsError> {
    if files.is_empty() {
        return Ok(());
    }
    request_from(tls, files)?;
    for file in files {
        let (tls, files) = (Arc::downgrade(tls), files.iter().map(Arc::downgrade).collect::<Vec<_>>());
        file.on_change(move |_| {
            let live: Vec<_> = files.iter().filter_map(std::sync::Weak::upgrade).collect();
            if let Some(tls) = tls.upgrade()
                && let Err(error) = request_from(&tls, &live)
            {
                tracing::error!(%error, "Applying a new client CA bundle failed");
            }
        });
    }
    Ok(())
}

fn request_from(tls: &ServerTls, files: &[Arc<CaFile>]) -> Result<(), TlsError> {
    let bundles: Vec<_> = files.iter().map(|file| file.bundle().load_full()).collect();
    tls.request_client_certs(&bundles.iter().map(AsRef::as_ref).collect::<Vec<_>>())
}

fn pair(options: &Options, errors: &mut Errors) -> Option<CertFiles> {
    let (cert, key) = (options.string("tls-cert-file"), options.string("tls-private-key-file"));
    if cert.is_empty() != key.is_empty() {
        errors.push("--tls-cert-file and --tls-private-key-file must be specified together");
    }
    (!cert.is_empty() && !key.is_empty()).then(|| CertFiles { cert: cert.into(), key: key.into() })
}

fn sni(options: &Options, errors: &mut Errors) -> Vec<SniCert> {
    let mut certs = Vec::new();
    for text in options.strings("tls-sni-cert-key") {
        match text.parse() {
            Ok(cert) => certs.push(cert),
            Err(error) => errors.push(format!("invalid argument {text:?} for \"--tls-sni-cert-key\" flag: {error}")),
        }
    }
    certs
}

fn write_pair(files: &CertFiles, cert: &[u8], key: &[u8]) -> Result<(), ServeError> {
    if let Some(dir) = files.cert.parent() {
        std::fs::create_dir_all(dir).map_err(|source| ServeError::Write { path: dir.to_owned(), source })?;
    }
    write_file(&files.cert, cert, 0o644)?;
    write_file(&files.key, key, 0o600)
}

/// Writes beside the file and renames, so that a reader never sees half of it.
fn write_file(path: &Path, content: &[u8], mode: u32) -> Result<(), ServeError> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let failed = |source| ServeError::Write { path: path.to_owned(), source };
    let temporary = path.with_extension("tmp");
    // A leftover would keep its own mode.
    let _ = std::fs::remove_file(&temporary);
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(&temporary).map_err(failed)?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(failed)?;
    std::fs::rename(&temporary, path).map_err(failed)
}
