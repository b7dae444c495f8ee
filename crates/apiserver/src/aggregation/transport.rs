//! How the server behind a Service is spoken to: which certificate it must show, and which one is shown to it.

use std::sync::Arc;

use api_types::apiregistration_v1::APIServiceSpec;
use component_base::tls::{CaBundle, ClientIdentity, ClientTls, ServerTrust};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

/// TLS and the name to verify.
pub(super) type Tls = (Arc<ClientConfig>, ServerName<'static>);

/// What an APIService says of its server's certificate.
///
/// # Errors
/// When the bundle holds no certificates, or the Service's name makes no name of a host.
pub(super) fn tls(spec: &APIServiceSpec, identity: &Arc<ClientIdentity>) -> Result<Tls, String> {
    let Some(service) = &spec.service else { return Err("a local APIService has no server".to_owned()) };
    let trust = if spec.insecure_skip_tls_verify {
        ServerTrust::Anyone
    } else if spec.ca_bundle.is_empty() {
        ServerTrust::Bundle(CaBundle::system().into_shared())
    } else {
        let bundle = CaBundle::from_pem("caBundle", &spec.ca_bundle).map_err(|error| error.to_string())?;
        ServerTrust::Bundle(bundle.into_shared())
    };
    let name = format!("{}.{}.svc", service.name, service.namespace);
    let tls = ClientTls {
        identity: Arc::clone(identity),
        // Upgrades need HTTP/1.1.
        alpn: vec![b"http/1.1".to_vec()],
        ..ClientTls::new(trust)
    };
    let name = tls.name_for(&name).map_err(|error| error.to_string())?;
    Ok((tls.config().map_err(|error| error.to_string())?, name))
}
