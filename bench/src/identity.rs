//! The certificates of one run: kubeadm's layout in a directory of the run, and a client who may do everything.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use base::{Clock, Rng, SystemClock};
use pki::layout::{PkiConfig, USERS};
use pki::{KeyAlgorithm, PRIVATE_MODE};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// The user that passes every authorizer.
const ADMIN: &str = "super-admin.conf";

/// Everything below the loopback address.
#[derive(Debug)]
pub struct Identity {
    directory: PathBuf,
}

impl Identity {
    /// Makes the files below `directory`.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn create(directory: &Path) -> Result<Self> {
        let service_address = IpAddr::V4(Ipv4Addr::new(10, 96, 0, 1));
        let mut config = PkiConfig::new("bench", IpAddr::V4(Ipv4Addr::LOCALHOST), service_address);
        config.key_algorithm = KeyAlgorithm::EcdsaP256;
        let (now, rng) = (SystemClock.wall(), Rng::from_os());
        pki::ensure(directory, &config, now, &rng).context("making certificates")?;
        let admin = USERS.iter().find(|user| user.name == ADMIN).context("the layout has no administrator")?;
        let admin = pki::issue_user(directory, admin, &config, now, &rng).context("making the client's certificate")?;
        let identity = Self { directory: directory.to_owned() };
        for (name, text) in [("admin.crt", admin.certificate_pem), ("admin.key", admin.key_pem)] {
            pki::write_atomically(&identity.file(name), text.as_bytes(), PRIVATE_MODE)?;
        }
        Ok(identity)
    }

    /// Those that another process of the run has made.
    #[must_use]
    pub fn at(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Where the files are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The path of a file by its name in kubeadm's layout; `admin.crt` and `admin.key` are the client's.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Writes a kubeconfig of the administrator for a server, and says where.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn kubeconfig(&self, server: &str) -> Result<PathBuf> {
        let path = self.file("admin.conf");
        let [ca, certificate, key] =
            ["ca.crt", "admin.crt", "admin.key"].map(|name| self.file(name).display().to_string());
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: bench\n\
             clusters: [{{name: bench, cluster: {{server: \"{server}\", certificate-authority: \"{ca}\"}}}}]\n\
             contexts: [{{name: bench, context: {{cluster: bench, user: admin}}}}]\n\
             users: [{{name: admin, user: {{client-certificate: \"{certificate}\", client-key: \"{key}\"}}}}]\n"
        );
        pki::write_atomically(&path, text.as_bytes(), PRIVATE_MODE)?;
        Ok(path)
    }

    /// A client's side of TLS with HTTP/2: the administrator's certificate, the run's authority trusted.
    ///
    /// # Errors
    /// A file is missing or broken.
    pub fn client_tls(&self) -> Result<Arc<ClientConfig>> {
        let mut roots = RootCertStore::empty();
        for certificate in self.chain("ca.crt")? {
            roots.add(certificate)?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions()?.with_root_certificates(roots);
        let mut config = builder.with_client_auth_cert(self.chain("admin.crt")?, self.key("admin.key")?)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }

    /// The bare peer's side of TLS with HTTP/2.
    ///
    /// # Errors
    /// A file is missing or broken.
    pub fn server_tls(&self) -> Result<Arc<ServerConfig>> {
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions()?.with_no_client_auth();
        let mut config = builder.with_single_cert(self.chain("apiserver.crt")?, self.key("apiserver.key")?)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }

    fn chain(&self, name: &str) -> Result<Vec<CertificateDer<'static>>> {
        let chain = CertificateDer::pem_file_iter(self.file(name)).with_context(|| format!("reading {name}"))?;
        chain.collect::<Result<_, _>>().with_context(|| format!("reading {name}"))
    }

    fn key(&self, name: &str) -> Result<PrivateKeyDer<'static>> {
        PrivateKeyDer::from_pem_file(self.file(name)).with_context(|| format!("reading {name}"))
    }
}
