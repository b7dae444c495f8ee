//! Signs approved requests with the CA of their signer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::reflect::ByteString;
use api_machinery::time::Time;
use api_types::certificates_v1::CertificateSigningRequest;
use api_types::certificates_v1::constants::request_condition_type::FAILED;
use api_types::certificates_v1::constants::{
    KUBE_API_SERVER_CLIENT_KUBELET_SIGNER_NAME, KUBE_API_SERVER_CLIENT_SIGNER_NAME, KUBELET_SERVING_SIGNER_NAME,
};
use client::{Informer, ObjectKey};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use parking_lot::Mutex;
use pki::{CertificateAuthority, CertificateRequest, granted_lifetime};

use super::rules::{self, LEGACY_UNKNOWN};
use super::{WORKERS, condition, has_failed, is_approved, rate_limit};
use crate::Settings;
use crate::settings::{SignerFiles, SigningSettings};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "certificatesigningrequest-signing-controller",
    aliases: &["csrsigning"],
    gates: &[],
    identity: "certificate-controller",
    event_component: "",
    disabled_by_default: false,
    build,
};

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?.signing.clone();
    let files = signers(&settings)?;
    if files.is_empty() {
        return Err(BuildError::Skipped("no --cluster-signing files are given".to_owned()));
    }
    let mut signers = BTreeMap::new();
    for (name, files) in files {
        signers.insert(name, Signer::load(files).map_err(|error| BuildError::Failed(error.to_string()))?);
    }
    let queue = build.queue_with("certificate", rate_limit());
    let requests = build.watch::<CertificateSigningRequest>().enqueue_self(&queue).informer();
    build.run(&queue, WORKERS, Arc::new(Signing { requests, signers, longest: settings.duration }));
    Ok(())
}

/// The files of each signer that is to work.
fn signers(settings: &SigningSettings) -> Result<Vec<(&'static str, SignerFiles)>, BuildError> {
    let given = |files: &SignerFiles| (!files.cert.as_os_str().is_empty(), !files.key.as_os_str().is_empty());
    let own = [
        (KUBELET_SERVING_SIGNER_NAME, &settings.kubelet_serving),
        (KUBE_API_SERVER_CLIENT_KUBELET_SIGNER_NAME, &settings.kubelet_client),
        (KUBE_API_SERVER_CLIENT_SIGNER_NAME, &settings.api_client),
        (LEGACY_UNKNOWN, &settings.legacy_unknown),
    ];
    let specific: Vec<_> = own.iter().filter(|(_, files)| given(files) != (false, false)).collect();
    match (given(&settings.all), specific.is_empty()) {
        ((true, true), false) => {
            Err(BuildError::Failed("cannot specify default and per controller certs at the same time".to_owned()))
        }
        ((true, true), true) => Ok(own.iter().map(|(name, _)| (*name, settings.all.clone())).collect()),
        _ => Ok(specific.into_iter().map(|(name, files)| (*name, (*files).clone())).collect()),
    }
}

/// A CA that follows its files.
struct Signer {
    files: SignerFiles,
    authority: Mutex<Arc<CertificateAuthority>>,
}

/// The files of a signer are of no use.
#[derive(Debug, thiserror::Error)]
enum SignerError {
    #[error("error reading {what} {path:?}: {source}")]
    Read { what: &'static str, path: String, source: std::io::Error },
    #[error("error reading CA cert file {0:?}: {1}")]
    Authority(String, pki::IssueError),
}

impl Signer {
    fn load(files: SignerFiles) -> Result<Self, SignerError> {
        let authority = Mutex::new(Arc::new(read(&files)?));
        Ok(Self { files, authority })
    }

    /// The CA as the files say now, or as they said when they were last good. The files are small and requests are
    /// rare, so they are read for each.
    fn authority(&self) -> Arc<CertificateAuthority> {
        match read(&self.files) {
            Ok(authority) => *self.authority.lock() = Arc::new(authority),
            Err(error) => tracing::error!(%error, "Reading the signing CA failed, going on with the former one"),
        }
        Arc::clone(&self.authority.lock())
    }
}

fn read(files: &SignerFiles) -> Result<CertificateAuthority, SignerError> {
    let open = |what, path: &std::path::Path| {
        std::fs::read(path).map_err(|source| SignerError::Read { what, path: path.display().to_string(), source })
    };
    let cert = open("CA cert file", &files.cert)?;
    let key = open("CA key file", &files.key)?;
    let name = files.cert.display().to_string();
    let authority =
        CertificateAuthority::from_pem(&cert, &key).map_err(|error| SignerError::Authority(name.clone(), error))?;
    if !authority.certificate().has_basic_constraints() {
        tracing::warn!(
            file = name,
            "The signing certificate has no basic constraints; many will not trust what it signs"
        );
    }
    Ok(authority)
}

struct Signing {
    requests: Informer<CertificateSigningRequest>,
    signers: BTreeMap<&'static str, Signer>,
    longest: Duration,
}

#[async_trait::async_trait]
impl Controller for Signing {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(request) = self.requests.get(key) else { return Ok(Next::Done) };
        let done = !request.status.certificate.0.is_empty() || !is_approved(&request) || has_failed(&request);
        let Some(signer) = self.signers.get(request.spec.signer_name.as_str()).filter(|_| !done) else {
            return Ok(Next::Done);
        };
        let parsed = CertificateRequest::from_pem(&request.spec.request.0).map_err(|error| {
            ReconcileError::failed(format!("unable to parse csr {:?}: {error}", request.metadata.name))
        })?;
        let mut changed = CertificateSigningRequest::clone(&request);
        let what = match rules::check(&request.spec.signer_name, &parsed, &request.spec.usages) {
            Err(broken) => {
                let now = Time::from(cx.clock.wall());
                changed.status.conditions.push(condition(FAILED, "SignerValidationFailure", broken.to_string(), now));
                "error adding failure condition for csr"
            }
            Ok(()) => {
                let lifetime = granted_lifetime(request.spec.expiration_seconds, self.longest);
                let authority = signer.authority();
                let signed = authority.sign_request(&parsed, &request.spec.usages, lifetime, cx.clock.wall(), &cx.rng);
                let signed =
                    signed.map_err(|error| ReconcileError::failed(format!("error auto signing csr: {error}")))?;
                changed.status.certificate = ByteString(signed.to_pem().into_bytes());
                "error updating signature for csr"
            }
        };
        match cx.client.all::<CertificateSigningRequest>().update_status(&changed).await {
            Err(error) if error.is_conflict() => Err(error.into()),
            Err(error) => Err(ReconcileError::failed(format!("{what}: {error}"))),
            Ok(_) => Ok(Next::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_for_all_signers_or_for_some() {
        let files = |name: &str| SignerFiles { cert: name.into(), key: name.into() };
        let with = |all: SignerFiles, serving: SignerFiles| SigningSettings {
            all,
            kubelet_serving: serving,
            ..SigningSettings::default()
        };
        let none = SignerFiles::default;
        let half = SignerFiles { cert: "a".into(), ..none() };
        for (name, settings, expected) in [
            ("none", with(none(), none()), Some(0)),
            ("for all", with(files("a"), none()), Some(4)),
            ("for one", with(none(), files("a")), Some(1)),
            ("half for all", with(half.clone(), none()), Some(0)),
            ("half for all and one", with(half, files("a")), Some(1)),
            ("both", with(files("a"), files("b")), None),
        ] {
            assert_eq!(signers(&settings).map(|signers| signers.len()).ok(), expected, "{name}");
        }
    }
}
