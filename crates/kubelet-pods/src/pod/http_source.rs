//! Static pods from a URL, asked at intervals.
//!
//! Whoever answers may run what it likes on the node, so an `https` URL is believed only where the machine's authorities
//! vouch for the server, as upstream's client has it. An answer that was cut short is none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use component_base::tls::{ClientTls, ServerTrust, SharedCaBundle, TlsError};
use http::uri::InvalidUri;
use tokio::sync::mpsc;

use super::manifest::{ManifestError, Reading, read_list};
use super::{Delivery, Source, SourceSet};
use crate::probe::http::{Get, HttpError, get_up_to};
use crate::probe::tls::Trust;

const TIMEOUT: Duration = Duration::from_secs(10);
/// Failures that are logged loudly before the log goes quiet.
const LOUD_FAILURES: u32 = 3;
const MAX_BODY_BYTES: usize = 10 * 1024 * 1024;

/// Why a URL told no pods. It is asked again when its time comes, whatever it was: what it says may have changed.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Url(#[from] InvalidUri),
    #[error("the URL has no host")]
    NoHost,
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("{url}: {status}")]
    Status { url: String, status: u16 },
    /// Half a set would end the pods of the other half.
    #[error("{url}: the answer is cut short, or larger than {MAX_BODY_BYTES} bytes")]
    Incomplete { url: String },
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// Where static pods are asked for.
pub(crate) struct HttpSource {
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub node_name: String,
    pub period: Duration,
    pub refuse_references: bool,
    /// Who vouches for the server of an `https` URL.
    pub roots: SharedCaBundle,
}

impl HttpSource {
    /// Delivers sets until the receiver is gone or the caller drops the future.
    pub(crate) async fn run(self, deliveries: mpsc::Sender<Delivery>) {
        let mut last = None;
        let mut failures = 0_u32;
        let mut ticks = tokio::time::interval(self.period);
        loop {
            ticks.tick().await;
            match self.look(&mut last).await {
                Ok(None) => failures = 0,
                Ok(Some(set)) => {
                    failures = 0;
                    if deliveries.send(Delivery::All(set)).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    match failures {
                        0..=LOUD_FAILURES => tracing::warn!(url = %self.url, %error, "Failed to read pods from URL"),
                        _ => tracing::debug!(url = %self.url, %error, "Failed to read pods from URL"),
                    }
                }
            }
        }
    }

    /// `None` where nothing changed since the last time.
    async fn look(&self, last: &mut Option<String>) -> Result<Option<SourceSet>, LookError> {
        let uri: http::Uri = self.url.parse()?;
        let scheme = uri.scheme_str().unwrap_or("http");
        let port = uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let host = uri.host().ok_or(LookError::NoHost)?.trim_matches(['[', ']']);
        let request = Get::new(scheme, host, port, path, self.headers.clone(), "kubelet/v1.36.0");
        let tls = ClientTls { alpn: Vec::new(), ..ClientTls::new(ServerTrust::Bundle(self.roots.clone())) };
        let trust = Trust::Judged(tls.config()?);
        let answer = get_up_to(&request, TIMEOUT, MAX_BODY_BYTES, &trust).await?;
        if answer.status != 200 {
            return Err(LookError::Status { url: self.url.clone(), status: answer.status });
        }
        if !answer.complete {
            return Err(LookError::Incomplete { url: self.url.clone() });
        }
        if last.as_ref() == Some(&answer.body) {
            return Ok(None);
        }
        let reading = Reading {
            source: Source::Http,
            origin: &self.url,
            node_name: &self.node_name,
            refuse_references: self.refuse_references,
        };
        if answer.body.is_empty() {
            tracing::warn!(url = %self.url, "Zero-length data received from URL");
        }
        let pods = if answer.body.is_empty() { Vec::new() } else { read_list(&answer.body, &reading)? };
        let pods = pods.into_iter().map(Arc::new).collect();
        *last = Some(answer.body);
        Ok(Some(SourceSet { source: Source::Http, pods, whole: true, written: BTreeMap::new() }))
    }
}

#[cfg(test)]
mod tests {
    use component_base::tls::CaBundle;
    use pki::{AltNames, CertificateAuthority, CertificateSpec, KeyAlgorithm, PrivateKey};
    use rustls::pki_types::pem::PemObject as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: i}]}\n";

    fn source(url: String, roots: CaBundle) -> HttpSource {
        HttpSource {
            url,
            headers: Vec::new(),
            node_name: "n".into(),
            period: Duration::from_secs(600),
            refuse_references: true,
            roots: roots.into_shared(),
        }
    }

    fn answer(body: &str, length: usize) -> String {
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}")
    }

    /// An authority, and a server on 127.0.0.1 that it vouches for.
    fn vouched() -> (CaBundle, Arc<rustls::ServerConfig>) {
        let (rng, hour) = (base::Rng::seeded(1), Duration::from_secs(3600));
        let now = base::SystemClock::shared().wall();
        let key = || PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let authority = CertificateAuthority::create("private", key(), hour, now, &rng).unwrap();
        let own = key();
        let names = AltNames { ips: vec!["127.0.0.1".parse().unwrap()], ..AltNames::default() };
        let leaf = authority.issue(&CertificateSpec::server("pods", names, hour), own.public_key(), now, &rng).unwrap();
        let secret = rustls::pki_types::PrivateKeyDer::from_pem_slice(own.to_pem().unwrap().as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_no_client_auth();
        let config = config.with_single_cert(vec![leaf.der().to_vec().into()], secret).unwrap();
        let bundle = CaBundle::new(vec![authority.certificate().der().to_vec().into()]);
        (bundle, Arc::new(config))
    }

    /// Serves one text to every connection; gives the port.
    async fn serve(tasks: &base::TaskGroup, tls: Option<Arc<rustls::ServerConfig>>, text: String) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tasks.spawn_cancellable("server", async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut buffer = vec![0; 4096];
                match &tls {
                    None => {
                        let _ = stream.read(&mut buffer).await;
                        let _ = stream.write_all(text.as_bytes()).await;
                    }
                    Some(tls) => {
                        let accepted = tokio_rustls::TlsAcceptor::from(Arc::clone(tls)).accept(stream).await;
                        let Ok(mut stream) = accepted else { continue };
                        let _ = stream.read(&mut buffer).await;
                        let _ = stream.write_all(text.as_bytes()).await;
                        let _ = stream.shutdown().await;
                    }
                }
            }
        });
        port
    }

    #[tokio::test]
    async fn only_a_server_that_is_vouched_for_names_pods() {
        let tasks = base::TaskGroup::new("servers");
        let (authority, config) = vouched();
        let port = serve(&tasks, Some(config), answer(POD, POD.len())).await;
        let url = format!("https://127.0.0.1:{port}/pods");
        let set = source(url.clone(), authority).look(&mut None).await.unwrap().unwrap();
        assert_eq!(set.pods[0].metadata.name, "web-n");
        let (stranger, _) = vouched();
        for roots in [CaBundle::empty(), stranger] {
            let refused = source(url.clone(), roots).look(&mut None).await.unwrap_err().to_string();
            assert!(refused.contains("certificate"), "{refused}");
        }
    }

    #[tokio::test]
    async fn trust_is_not_led_out_of_tls() {
        let tasks = base::TaskGroup::new("servers");
        let plain = serve(&tasks, None, answer(POD, POD.len())).await;
        let (authority, config) = vouched();
        let away = format!("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{plain}/\r\ncontent-length: 0\r\n\r\n");
        let port = serve(&tasks, Some(config), away).await;
        let refused = source(format!("https://127.0.0.1:{port}/pods"), authority).look(&mut None).await.unwrap_err();
        assert!(matches!(refused, LookError::Status { status: 302, .. }), "{refused}");
    }

    #[tokio::test]
    async fn half_an_answer_is_none() {
        let tasks = base::TaskGroup::new("servers");
        let port = serve(&tasks, None, answer(POD, POD.len() + 100)).await;
        let cut = source(format!("http://127.0.0.1:{port}/"), CaBundle::empty()).look(&mut None).await.unwrap_err();
        assert!(matches!(cut, LookError::Incomplete { .. }), "{cut}");
    }
}
