//! Deletes requests of pods for certificates that nobody can want any more, whatever became of them (KEP-4317).

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::DeleteOptions;
use api_machinery::time::Time;
use api_types::certificates_v1beta1::PodCertificateRequest;
use client::{Informer, ObjectKey};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use kinds::gates::POD_CERTIFICATE_REQUEST;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "podcertificaterequest-cleaner-controller",
    aliases: &[],
    gates: &[POD_CERTIFICATE_REQUEST],
    identity: "podcertificaterequestcleaner",
    event_component: "",
    disabled_by_default: false,
    build,
};

const PERIOD: Duration = Duration::from_secs(300);
/// How long a request stays: kubelets ask again long before.
const AGE: Duration = Duration::from_secs(15 * 60);

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let requests = build.watch::<PodCertificateRequest>().informer();
    build.every("podcertificaterequestcleaner", PERIOD, Arc::new(Cleaner { requests }));
    Ok(())
}

struct Cleaner {
    requests: Informer<PodCertificateRequest>,
}

fn is_old(request: &PodCertificateRequest, now: Time) -> bool {
    now.since(request.metadata.creation_timestamp) > AGE
}

#[async_trait::async_trait]
impl Controller for Cleaner {
    async fn reconcile(&self, cx: &Cx, _: &ObjectKey) -> Result<Next, ReconcileError> {
        let now = Time::from(cx.clock.wall());
        let mut errors = Vec::new();
        for request in self.requests.list().iter().filter(|request| is_old(request, now)) {
            let api = cx.client.namespaced::<PodCertificateRequest>(&request.metadata.namespace);
            let deleted = api.delete_this(&request.metadata, DeleteOptions::default()).await;
            errors.extend(deleted.err().map(ReconcileError::from));
        }
        ReconcileError::join(errors)?;
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::fixtures::{Running, at, meta, run_until_idle};

    const KNOWN: &[Descriptor] = &[DESCRIPTOR];
    const REQUESTS: &str = "certificates.k8s.io/v1beta1/podcertificaterequests";

    #[tokio::test(start_paused = true)]
    async fn only_what_is_old_is_deleted() {
        let running = Running::start_gated(KNOWN, &[POD_CERTIFICATE_REQUEST]);
        let mut request = PodCertificateRequest { metadata: meta("old"), ..PodCertificateRequest::default() };
        request.metadata.creation_timestamp = at(1_000);
        running.put(REQUESTS, &request);
        request.metadata = meta("young");
        request.metadata.creation_timestamp = Time::from(running.client.clock().wall());
        running.put(REQUESTS, &request);
        run_until_idle().await;
        tokio::time::sleep(PERIOD).await;
        run_until_idle().await;
        let left = running.server.objects(REQUESTS);
        assert_eq!((left.len(), &left[0]["metadata"]["name"]), (1, &"young".into()));
        tokio::time::sleep(AGE + PERIOD).await;
        run_until_idle().await;
        assert_eq!(running.count(REQUESTS), 0);
    }

    #[test]
    fn requests_go_a_quarter_of_an_hour_after_they_were_made() {
        let mut request = PodCertificateRequest::default();
        request.metadata.creation_timestamp = at(1_000);
        for (now, expected) in [(1_000, false), (1_900, false), (1_901, true)] {
            assert_eq!(is_old(&request, at(now)), expected, "{now}");
        }
    }
}
