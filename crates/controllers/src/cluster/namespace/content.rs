//! The content of a namespace: found by discovery, deleted resource by resource, pods first.

use std::collections::BTreeMap;

use api_machinery::gvk::{GroupVersion, GroupVersionResource};
use api_machinery::meta::{DeleteOptions, ListOptions, ObjectMeta};
use api_machinery::time::Time;
use api_types::core_v1::{Namespace, Pod};
use client::{Client, ClientError, ResourceInfo, ServedResource, discover};
use component_helpers::pod_state;
use controller::{Cx, ReconcileError};

/// How long content with finalizers is expected to stay, in seconds.
const FINALIZER_ESTIMATE: u64 = 15;

/// What came of a round of deletion.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Why discovery is not complete.
    pub(super) discovery: Option<String>,
    /// What failed, sorted.
    pub(super) errors: Vec<String>,
    /// How many objects are left, by `{resource}.{group}`.
    pub(super) remaining: BTreeMap<String, usize>,
    /// How many objects have a finalizer, by finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// After how many seconds the rest should be gone; 0 when there is none.
    pub(super) estimate: u64,
}

impl Report {
    /// The failures as one error.
    pub(super) fn into_result(self) -> Result<(), ReconcileError> {
        let problems: Vec<String> = self.discovery.into_iter().chain(self.errors).collect();
        let problems = problems.into_iter().map(ReconcileError::failed).collect();
        ReconcileError::join(problems)
    }

    fn fail(&mut self, error: String) {
        self.errors.push(error);
        self.errors.sort();
    }
}

/// Deletes what is in the namespace. Nothing else is touched while there are pods, which may need the rest to end well.
pub(super) async fn delete(cx: &Cx, namespace: &Namespace) -> Report {
    let mut report = Report::default();
    let discovered = match discover(&cx.client).await {
        Ok(discovered) => discovered,
        Err(error) => {
            report.discovery = Some(error.to_string());
            return report;
        }
    };
    report.discovery = undiscovered(&discovered.failed);
    let deletable = |served: &&ServedResource| served.info.namespaced && served.supports(&["delete"]);
    let (pods, others): (Vec<_>, Vec<_>) = discovered.preferred().filter(deletable).partition(|served| is_pods(served));
    let round = Round { client: &cx.client, namespace, now: Time::from(cx.clock.wall()) };
    for served in pods {
        if !round.pods_are_gone(served, &mut report).await {
            return report;
        }
    }
    for served in others {
        round.delete(served, &mut report).await;
    }
    report
}

/// What is told of the versions of groups that could not be discovered, in upstream's words.
pub(super) fn undiscovered(failed: &[(GroupVersion, String)]) -> Option<String> {
    let mut failing: Vec<String> = failed.iter().map(|(version, why)| format!("{version}: {why}")).collect();
    failing.sort();
    let (count, all) = (failing.len(), failing.join(", "));
    (count > 0).then(|| {
        format!(
            "Discovery failed for some groups, {count} failing: unable to retrieve the complete list of server APIs: {all}"
        )
    })
}

fn is_pods(served: &ServedResource) -> bool {
    served.info.resource.group.is_empty() && served.info.resource.resource == "pods"
}

/// What is left of a resource.
struct Left {
    count: usize,
    /// After how many seconds it should be gone; 0 where nothing says why it is there.
    estimate: u64,
}

/// One round of deletion in one namespace.
struct Round<'a> {
    client: &'a Client,
    namespace: &'a Namespace,
    now: Time,
}

impl Round<'_> {
    /// Deletes the pods; says whether there are none any more. Those that are left are not told of by their number.
    async fn pods_are_gone(&self, pods: &ServedResource, report: &mut Report) -> bool {
        match self.resource(pods, &mut BTreeMap::new()).await {
            Ok(left) if left.count == 0 => return true,
            Ok(left) => {
                report.estimate = left.estimate;
                report.errors.extend(self.unexpected(pods, &left));
            }
            Err(error) => report.fail(error.to_string()),
        }
        false
    }

    /// Deletes the objects of a resource, and reports what is left of them.
    async fn delete(&self, served: &ServedResource, report: &mut Report) {
        let mut finalizers = BTreeMap::new();
        match self.resource(served, &mut finalizers).await {
            Ok(Left { count: 0, .. }) => {}
            Ok(left) => {
                let resource = &served.info.resource;
                report.remaining.insert(format!("{}.{}", resource.resource, resource.group), left.count);
                report.estimate = report.estimate.max(left.estimate);
                self.unexpected(served, &left).into_iter().for_each(|error| report.fail(error));
            }
            Err(error) => report.fail(error.to_string()),
        }
        for (finalizer, count) in finalizers {
            *report.finalizers.entry(finalizer).or_default() += count;
        }
    }

    /// Deletes the objects of a resource and counts those that stay, and their finalizers.
    async fn resource(
        &self,
        served: &ServedResource,
        finalizers: &mut BTreeMap<String, usize>,
    ) -> Result<Left, ClientError> {
        let estimate = if is_pods(served) { self.pods_estimate().await? } else { 0 };
        self.delete_all(served).await?;
        let Some(items) = self.list(&served.info).await? else {
            return Ok(Left { count: 0, estimate: 0 });
        };
        for finalizer in items.iter().flat_map(|meta| &meta.finalizers) {
            *finalizers.entry(finalizer.clone()).or_default() += 1;
        }
        let count = items.len();
        Ok(match (count, estimate) {
            (0, _) => Left { count: 0, estimate: 0 },
            (_, 1..) => Left { count, estimate },
            _ if !finalizers.is_empty() => Left { count, estimate: FINALIZER_ESTIMATE },
            _ => Left { count, estimate: 0 },
        })
    }

    /// The failure that it is that objects are left and nothing says why.
    fn unexpected(&self, served: &ServedResource, left: &Left) -> Option<String> {
        let GroupVersionResource { group, version, resource } = &served.info.resource;
        let name = &self.namespace.metadata.name;
        (left.estimate == 0).then(|| {
            format!(
                "unexpected items still remain in namespace: {name} for gvr: {group}/{version}, Resource={resource}"
            )
        })
    }

    async fn delete_all(&self, served: &ServedResource) -> Result<(), ClientError> {
        let options = DeleteOptions { propagation_policy: Some("Background".to_owned()), ..DeleteOptions::default() };
        let objects = self.client.metadata(&served.info, &self.namespace.metadata.name);
        if served.supports(&["deletecollection"]) {
            match objects.delete_collection(&options, &ListOptions::default()).await {
                Err(error) if unsupported(&error) => {}
                outcome => return outcome,
            }
        }
        for meta in self.list(&served.info).await?.unwrap_or_default() {
            match objects.delete(&meta.name, &options).await {
                Err(error) if !unsupported(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// The metadata of a resource's objects; nothing where it cannot be listed.
    async fn list(&self, info: &ResourceInfo) -> Result<Option<Vec<ObjectMeta>>, ClientError> {
        let objects = self.client.metadata(info, &self.namespace.metadata.name);
        match objects.list_all(&ListOptions::default()).await {
            Ok(list) => Ok(Some(list.items.into_iter().map(|item| item.metadata).collect())),
            Err(error) if unsupported(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn pods_estimate(&self) -> Result<u64, ClientError> {
        let pods = self.client.namespaced::<Pod>(&self.namespace.metadata.name);
        let pods = pods.list_all(&ListOptions::default()).await?;
        Ok(grace_estimate(&pods.items, self.namespace.metadata.deletion_timestamp.unwrap_or(self.now), self.now))
    }
}

/// The longest grace period of pods that still run; none once that much time has passed since the deletion.
pub(super) fn grace_estimate(pods: &[Pod], deleted: Time, now: Time) -> u64 {
    let running = pods.iter().filter(|pod| !pod_state::is_terminal(pod));
    let longest = running.filter_map(|pod| pod.spec.termination_grace_period_seconds).max().unwrap_or(0);
    let longest = u64::try_from(longest).unwrap_or(0);
    if now.since(deleted).as_secs() >= longest { 0 } else { longest }
}

/// The resource is not there (any more), or does not offer this.
fn unsupported(error: &ClientError) -> bool {
    error.is_not_found() || error.api().is_some_and(|error| error.code == 405)
}
