//! Where a member is, and how it and this client know each other.

use std::sync::Arc;

use base::SharedConnector;
use http::Uri;
use http::uri::{Authority, Parts, Scheme};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::super::connection::EtcdTls;
use crate::StorageError;

/// The protocol to agree on within TLS.
const HTTP2: &[u8] = b"h2";

const CLIENT_CERTIFICATE: &str = "the client's certificate";

/// Why a URL, or what goes with it, cannot be used.
#[derive(Debug, thiserror::Error)]
enum TargetError {
    #[error(transparent)]
    Url(#[from] http::uri::InvalidUri),
    #[error("it is not a URL of http or https")]
    Scheme,
    #[error(transparent)]
    Name(#[from] rustls::pki_types::InvalidDnsNameError),
    #[error("https needs a CA file")]
    NoAuthority,
    #[error("TLS files are given, but the URL is not https")]
    NotSecure,
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    #[error("{CLIENT_CERTIFICATE}: {0}")]
    Pair(rustls::Error),
    #[error("{0}: {1}")]
    Pem(&'static str, rustls::pki_types::pem::Error),
    #[error("{0}: there is no certificate in it")]
    Empty(&'static str),
}

/// A member's client URL, understood.
pub(in super::super) struct Target {
    scheme: Scheme,
    authority: Authority,
    pub(super) host: String,
    pub(super) port: u16,
    /// Who connects to it.
    pub(super) connector: SharedConnector,
    /// How to speak TLS, and the name that the member must prove.
    pub(super) tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl Target {
    /// Reads a URL, `http://` or `https://`, and the keys and certificates that go with the latter.
    pub(in super::super) fn new(
        url: &str,
        tls: Option<&EtcdTls>,
        connector: SharedConnector,
    ) -> Result<Self, StorageError> {
        Self::read(url, tls, connector)
            .map_err(|reason| StorageError::Refused { message: format!("etcd endpoint {url}: {reason}") })
    }

    fn read(url: &str, tls: Option<&EtcdTls>, connector: SharedConnector) -> Result<Self, TargetError> {
        let Parts { scheme, authority, .. } = url.parse::<Uri>()?.into_parts();
        let scheme = scheme.filter(|scheme| [Scheme::HTTP, Scheme::HTTPS].contains(scheme));
        let (Some(scheme), Some(authority)) = (scheme, authority) else {
            return Err(TargetError::Scheme);
        };
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let secure = scheme == Scheme::HTTPS;
        let tls = match (secure, tls) {
            (true, Some(tls)) => {
                let name = ServerName::try_from(host.clone())?;
                Some((Arc::new(client_config(tls)?), name))
            }
            (true, None) => return Err(TargetError::NoAuthority),
            (false, Some(_)) => return Err(TargetError::NotSecure),
            (false, None) => None,
        };
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        Ok(Self { scheme, authority, host, port, connector, tls })
    }

    /// The URL of a method, of which only the path is given.
    pub(super) fn uri(&self, method: &Uri) -> Result<Uri, http::Error> {
        let builder = Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone());
        builder.path_and_query(method.path()).build()
    }
}

fn client_config(tls: &EtcdTls) -> Result<ClientConfig, TargetError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder?.with_root_certificates(roots(&tls.ca_pem)?);
    let mut config = match &tls.client {
        Some((chain, key)) => {
            let key =
                PrivateKeyDer::from_pem_slice(key).map_err(|error| TargetError::Pem("the client's key", error))?;
            let chain = certificates(CLIENT_CERTIFICATE, chain)?;
            builder.with_client_auth_cert(chain, key).map_err(TargetError::Pair)?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![HTTP2.to_vec()];
    Ok(config)
}

fn roots(pem: &[u8]) -> Result<RootCertStore, TargetError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates("the CA file", pem)?);
    Ok(roots)
}

fn certificates(what: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TargetError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err(TargetError::Empty(what)),
        Ok(found) => Ok(found),
        Err(error) => Err(TargetError::Pem(what, error)),
    }
}
