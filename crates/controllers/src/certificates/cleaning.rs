//! Deletes signing requests that are done with, and those that nobody cares for.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::DeleteOptions;
use api_machinery::time::Time;
use api_types::certificates_v1::CertificateSigningRequest;
use api_types::certificates_v1::constants::request_condition_type::{APPROVED, DENIED, FAILED};
use client::{Informer, ObjectKey};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use pki::Certificate;

use super::has;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "certificatesigningrequest-cleaner-controller",
    aliases: &["csrcleaner"],
    gates: &[],
    identity: "certificate-controller",
    event_component: "",
    disabled_by_default: false,
    build,
};

const PERIOD: Duration = Duration::from_secs(3600);
/// How long requests stay that are issued, denied or failed.
const DONE: Duration = Duration::from_secs(3600);
/// How long requests stay that wait for an approval, or for their signer.
const WAITING: Duration = Duration::from_secs(24 * 3600);

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let requests = build.watch::<CertificateSigningRequest>().informer();
    build.every("csrcleaner", PERIOD, Arc::new(Cleaning { requests }));
    Ok(())
}

struct Cleaning {
    requests: Informer<CertificateSigningRequest>,
}

/// Whether a request can go.
fn is_done_with(request: &CertificateSigningRequest, now: Time) -> bool {
    let older = |type_: &str, age: Duration| {
        request.status.conditions.iter().any(|condition| {
            let updated = condition.last_update_time;
            condition.type_ == type_ && !updated.is_zero() && now.since(updated) > age
        })
    };
    let issued = !request.status.certificate.0.is_empty();
    let pending = request.status.conditions.is_empty();
    (issued && older(APPROVED, DONE))
        || older(DENIED, DONE)
        || older(FAILED, DONE)
        || (pending && now.since(request.metadata.creation_timestamp) > WAITING)
        || (issued && has(request, APPROVED) && has_expired(request, now))
        || (!issued && older(APPROVED, WAITING))
}

fn has_expired(request: &CertificateSigningRequest, now: Time) -> bool {
    let certificates = Certificate::all_from_pem(&request.status.certificate.0).unwrap_or_default();
    certificates.first().is_some_and(|certificate| Time::from(certificate.not_after()) < now)
}

#[async_trait::async_trait]
impl Controller for Cleaning {
    async fn reconcile(&self, cx: &Cx, _: &ObjectKey) -> Result<Next, ReconcileError> {
        let now = Time::from(cx.clock.wall());
        let requests = cx.client.all::<CertificateSigningRequest>();
        for request in self.requests.list().iter().filter(|request| is_done_with(request, now)) {
            if let Err(error) = requests.delete_this(&request.metadata, DeleteOptions::default()).await {
                tracing::error!(%error, name = request.metadata.name, "Deleting a signing request failed");
            }
        }
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::reflect::ByteString;

    use super::super::condition;
    use super::*;
    use crate::workloads::fixtures::at;

    #[test]
    fn requests_go_when_they_are_done_with() {
        const HOUR: i64 = 3600;
        for (name, type_, issued, hours, expected) in [
            ("pending", "", false, 24, false),
            ("pending for long", "", false, 25, true),
            ("issued", APPROVED, true, 1, false),
            ("issued a while ago", APPROVED, true, 2, true),
            ("approved, not issued", APPROVED, false, 24, false),
            ("approved, never issued", APPROVED, false, 25, true),
            ("denied", DENIED, false, 2, true),
            ("failed", FAILED, false, 2, true),
        ] {
            let mut request = CertificateSigningRequest::default();
            request.metadata.creation_timestamp = at(HOUR);
            if !type_.is_empty() {
                request.status.conditions.push(condition(type_, "", String::new(), at(HOUR)));
            }
            if issued {
                request.status.certificate = ByteString(b"x".to_vec());
            }
            assert_eq!(is_done_with(&request, at(HOUR + hours * HOUR)), expected, "{name}");
        }
    }
}
