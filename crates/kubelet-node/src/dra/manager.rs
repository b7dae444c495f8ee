//! Claims of pods, made ready before a pod's sandbox is made, and let go of once the last pod that uses them has ended.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{Container, Pod, PodExtendedResourceClaimStatus, ResourceHealth, ResourceStatus};
use api_types::resource_v1::ResourceClaim;
use base::SharedClock;
use client::{Client, ClientError};
use component_helpers::group_claims::Whose;
use component_helpers::resource_claims::{ClaimNameError, NotOwner, check_owner, of_entry};
use node_api::RpcError;
use node_api::dra::v1::Claim;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use super::checkpoint::{Checkpoint, StateError};
use super::claim_infos::{ClaimInfo, ClaimInfos, ClaimKey, Namesake, PreparedDevice, drivers_of, key_of};
use super::drivers::{DraDrivers, NotRegistered};
use super::health::Healths;
use crate::turns::Turns;

const PREPARE: &str = "NodePrepareResources";
const UNPREPARE: &str = "NodeUnprepareResources";
/// The count of claims of all drivers together.
const ANY_DRIVER: &str = "<any>";

/// Who counts what is done with claims.
pub trait DynamicResourcesObserver: Send + Sync + 'static {
    /// Claims of a pod were prepared or unprepared, or were not, after this time.
    fn operated(&self, operation: &'static str, failed: bool, took: Duration);

    /// So many claims of a driver are in use; `None` for a driver that has none any more.
    fn in_use(&self, driver: &str, claims: Option<usize>);
}

/// Why a pod cannot have its claims, or they cannot be let go of; upstream's words.
#[derive(Debug, thiserror::Error)]
#[error("{step} dynamic resources: {cause}")]
pub struct ClaimsError {
    step: &'static str,
    cause: Box<Cause>,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("prepare resource claim: {0}")]
    Unnamed(#[from] ClaimNameError),
    #[error("fetch ResourceClaim {claim}: {source}")]
    Unread { claim: String, source: ClientError },
    #[error(transparent)]
    NotOwner(#[from] NotOwner),
    #[error("pod {pod} ({pod_uid}) is not allowed to use ResourceClaim {claim} ({uid})")]
    NotReserved { pod: String, pod_uid: String, claim: String, uid: String },
    #[error("claim {namespace}/{claim}: not allocated")]
    NotAllocated { namespace: String, claim: String },
    #[error(transparent)]
    NoDriver(#[from] NotRegistered),
    #[error(transparent)]
    Namesake(#[from] Namesake),
    #[error("checkpoint claim info cache: {0}")]
    State(#[from] StateError),
    #[error("{method}: {source}")]
    Call { method: &'static str, source: RpcError },
    #[error("{method} failed for ResourceClaim {claim}: {why}")]
    Refused { method: &'static str, claim: String, why: String },
    #[error("{method} returned result for unknown claim UID {uid}")]
    Unasked { method: &'static str, uid: String },
    #[error("{method} skipped {count} ResourceClaims")]
    Skipped { method: &'static str, count: usize },
}

/// Why it is not known what a container has of claims.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownClaim {
    /// It is not known which claim is meant.
    #[error(transparent)]
    Unnamed(#[from] ClaimNameError),
    /// The claim was not made ready.
    #[error("unable to get claim info for claim {claim} in namespace {namespace}")]
    NotPrepared {
        /// Of the claim.
        namespace: String,
        /// The claim's name.
        claim: String,
    },
}

/// A device that a container has of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimDevice {
    /// Whose it is.
    pub driver: String,
    /// The driver's pool that it is in.
    pub pool: String,
    /// Its name in the pool.
    pub device: String,
    /// The part that the claim has, where others share the device.
    pub share_id: Option<String>,
    /// Its names in the Container Device Interface.
    pub cdi_ids: Vec<String>,
}

impl ClaimDevice {
    fn of(driver: &str, device: &PreparedDevice) -> Self {
        let PreparedDevice { pool, device, share_id, cdi_ids, .. } = device.clone();
        Self { driver: driver.to_owned(), pool, device, share_id, cdi_ids }
    }
}

/// What a container has of one claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerClaim {
    /// Of the claim.
    pub namespace: String,
    /// The claim's name.
    pub claim: String,
    /// Those devices that are for this container.
    pub devices: Vec<ClaimDevice>,
}

/// A claim that a container refers to.
struct Use<'p> {
    claim: &'p str,
    /// One request of it; empty for all.
    request: &'p str,
    /// The name under which the pod's status lists it; none where it lists it under another.
    label: Option<String>,
}

/// What claims are looked after with.
pub struct DynamicResourcesDeps {
    /// The API.
    pub client: Client,
    /// The drivers.
    pub drivers: Arc<DraDrivers>,
    /// The health of devices; none where nobody asks for it.
    pub healths: Option<Arc<Healths>>,
    /// Who counts.
    pub observer: Arc<dyn DynamicResourcesObserver>,
    /// Time.
    pub clock: SharedClock,
    /// Gate `DRAExtendedResource`: extended resources may come from a claim.
    pub extended: bool,
    /// Gate `DRAWorkloadResourceClaims`: whose claims a pod may use.
    pub whose: Whose,
    /// Gate `ResourceHealthStatusMessage`: what drivers say about the health of devices is shown.
    pub health_messages: bool,
}

/// The claims of a node's pods.
pub struct DynamicResources {
    deps: DynamicResourcesDeps,
    infos: Mutex<ClaimInfos>,
    checkpoint: Checkpoint,
    /// One step at a time about each claim: who lets go of one does not meet who begins to use it.
    turns: Turns,
    /// The drivers whose claims are counted.
    counted: Mutex<BTreeSet<String>>,
}

impl DynamicResources {
    /// The claims that an earlier kubelet had in use, from below the root directory.
    ///
    /// # Errors
    /// It cannot be told which they are.
    pub fn new(root: &Path, deps: DynamicResourcesDeps) -> Result<Arc<Self>, StateError> {
        let checkpoint = Checkpoint::new(root);
        let infos = Mutex::new(checkpoint.load()?);
        let turns = Turns::default();
        let me = Self { deps, infos, checkpoint, turns, counted: Mutex::default() };
        me.count();
        Ok(Arc::new(me))
    }

    /// Whether a pod uses claims.
    pub fn wants(&self, pod: &Pod) -> bool {
        !pod.spec.resource_claims.is_empty() || self.extended(pod).is_some()
    }

    /// The claim that a pod's extended resources come from.
    fn extended<'p>(&self, pod: &'p Pod) -> Option<&'p PodExtendedResourceClaimStatus> {
        pod.status.extended_resource_claim_status.as_ref().filter(|_| self.deps.extended)
    }

    /// Has the drivers make the claims of a pod ready. What is ready already is not asked for again.
    ///
    /// # Errors
    /// A claim is not the pod's to use, or a driver does not make it ready. What the others have made ready stays so.
    pub async fn prepare(&self, pod: &Pod) -> Result<(), ClaimsError> {
        if !self.wants(pod) {
            return Ok(());
        }
        let prepared = self.observed("PrepareResources", self.prepare_all(pod)).await;
        prepared.map_err(|cause| ClaimsError { step: "prepare", cause: Box::new(cause) })
    }

    /// Has the drivers let go of what only this pod uses.
    ///
    /// # Errors
    /// A driver does not; it is to be asked again.
    pub async fn unprepare(&self, pod_uid: &str) -> Result<(), ClaimsError> {
        if self.infos.lock().of_pod(pod_uid).is_empty() {
            return Ok(());
        }
        let unprepared = self.observed("UnprepareResources", self.unprepare_all(pod_uid)).await;
        unprepared.map_err(|cause| ClaimsError { step: "unprepare", cause: Box::new(cause) })
    }

    /// Has the drivers let go of what pods use that are not active. Who is, is asked after who uses anything: a pod that
    /// begins in between is both.
    pub async fn keep(&self, active: impl FnOnce() -> BTreeSet<String>) {
        let pods = self.infos.lock().pods();
        for uid in pods.difference(&active()) {
            if let Err(error) = self.unprepare(uid).await {
                tracing::info!(uid, %error, "Unpreparing the claims of a pod that is gone failed");
            }
        }
    }

    async fn observed<T>(
        &self,
        operation: &'static str,
        operating: impl Future<Output = Result<T, Cause>>,
    ) -> Result<T, Cause> {
        let began = self.deps.clock.monotonic();
        let done = operating.await;
        let took = self.deps.clock.monotonic().duration_since(began);
        self.deps.observer.operated(operation, done.is_err(), took);
        done
    }

    /// The claims of a pod, read anew: nothing is noted of a pod that may not use one of them.
    async fn claims_of(&self, pod: &Pod) -> Result<Vec<ResourceClaim>, Cause> {
        let api = self.deps.client.namespaced::<ResourceClaim>(&pod.metadata.namespace);
        let mut named = Vec::new();
        for entry in &pod.spec.resource_claims {
            named.extend(of_entry(pod, entry)?.map(|claim| (claim.name, claim.is_made)));
        }
        named.extend(self.extended(pod).map(|extended| (extended.resource_claim_name.as_str(), false)));
        let mut claims = Vec::with_capacity(named.len());
        for (name, is_made) in named {
            let claim = api.get(name).await;
            let claim = claim.map_err(|source| Cause::Unread { claim: name.to_owned(), source })?;
            if is_made {
                check_owner(&claim, pod, self.deps.whose)?;
            }
            self.check(pod, &claim)?;
            claims.push(claim);
        }
        Ok(claims)
    }

    fn check(&self, pod: &Pod, claim: &ResourceClaim) -> Result<(), Cause> {
        let meta = &claim.metadata;
        if !self.deps.whose.is_reserved_for(claim, pod) {
            let (pod, pod_uid) = (pod.metadata.name.clone(), pod.metadata.uid.clone());
            return Err(Cause::NotReserved { pod, pod_uid, claim: meta.name.clone(), uid: meta.uid.clone() });
        }
        if claim.status.allocation.is_none() {
            return Err(Cause::NotAllocated { namespace: meta.namespace.clone(), claim: meta.name.clone() });
        }
        // A driver that is not there could not let go of the claim either.
        drivers_of(claim).into_iter().try_for_each(|driver| self.deps.drivers.client(driver).map(drop))?;
        Ok(())
    }

    async fn prepare_all(&self, pod: &Pod) -> Result<(), Cause> {
        let claims = self.claims_of(pod).await?;
        let keys: BTreeSet<ClaimKey> = claims.iter().map(key_of).collect();
        let _turns = self.turns_of(&keys).await;
        let asked = self.refer(pod, &claims)?;
        let batches = self.infos.lock().batches(&asked);
        for (driver, claims) in batches {
            self.prepare_of(&driver, claims).await?;
        }
        let mut infos = self.infos.lock();
        infos.set_prepared(&asked, true);
        self.checkpoint.save(&infos)?;
        Ok(())
    }

    /// Notes, here and on disk, that a pod uses claims, before anybody does something for it. Returns those that are to be
    /// made ready.
    fn refer(&self, pod: &Pod, claims: &[ResourceClaim]) -> Result<Vec<ClaimKey>, Cause> {
        let mut infos = self.infos.lock();
        let mut asked = Vec::new();
        for claim in claims {
            if infos.refer(claim, &pod.metadata.uid)? {
                asked.push(key_of(claim));
            }
        }
        self.checkpoint.save(&infos)?;
        drop(infos);
        self.count();
        Ok(asked)
    }

    async fn prepare_of(&self, driver: &str, claims: Vec<Claim>) -> Result<(), Cause> {
        let client = self.deps.drivers.client(driver)?;
        let answer = client.prepare(claims.clone()).await.map_err(|source| Cause::Call { method: PREPARE, source })?;
        let answers = answer.claims.into_iter().map(|(uid, own)| (uid, result(own.devices, own.error))).collect();
        let (ready, failure) = sort(PREPARE, &claims, answers);
        let mut infos = self.infos.lock();
        for (key, devices) in ready {
            infos.set_devices(&key, driver, devices.into_iter().map(PreparedDevice::from).collect());
        }
        if failure.is_some() {
            // What went well is not forgotten over it.
            self.checkpoint.save(&infos)?;
        }
        failure.map_or(Ok(()), Err)
    }

    async fn unprepare_all(&self, pod_uid: &str) -> Result<(), Cause> {
        let keys: BTreeSet<ClaimKey> = self.infos.lock().of_pod(pod_uid).into_iter().collect();
        let _turns = self.turns_of(&keys).await;
        let (last, batches) = {
            let mut infos = self.infos.lock();
            let own = infos.of_pod(pod_uid);
            let last = infos.release(pod_uid, &own);
            // If a driver fails, others have let go already.
            infos.set_prepared(&last, false);
            let batches = infos.batches(&last);
            (last, batches)
        };
        for (driver, claims) in batches {
            let client = self.deps.drivers.client(&driver)?;
            let answer = client.unprepare(claims.clone()).await;
            let answer = answer.map_err(|source| Cause::Call { method: UNPREPARE, source })?;
            let answers = answer.claims.into_iter().map(|(uid, own)| (uid, result((), own.error))).collect();
            sort(UNPREPARE, &claims, answers).1.map_or(Ok(()), Err)?;
        }
        let mut infos = self.infos.lock();
        infos.0.retain(|key, _| !last.contains(key));
        self.checkpoint.save(&infos)?;
        drop(infos);
        self.count();
        Ok(())
    }

    /// In one order, so that two who need the same claims do not wait for each other.
    async fn turns_of(&self, keys: &BTreeSet<ClaimKey>) -> Vec<OwnedMutexGuard<()>> {
        let mut turns = Vec::with_capacity(keys.len());
        for (namespace, name) in keys {
            turns.push(self.turns.of(&format!("{namespace}/{name}")).lock_owned().await);
        }
        turns
    }

    fn count(&self) {
        let infos = self.infos.lock();
        let mut counts = infos.count_by_driver();
        counts.insert(ANY_DRIVER, infos.0.len());
        let mut counted = self.counted.lock();
        for gone in counted.iter().filter(|driver| !counts.contains_key(driver.as_str())) {
            self.deps.observer.in_use(gone, None);
        }
        counts.iter().for_each(|(driver, claims)| self.deps.observer.in_use(driver, Some(*claims)));
        *counted = counts.into_keys().map(str::to_owned).collect();
    }

    /// The claims that a container refers to.
    fn uses<'p>(&self, pod: &'p Pod, container: &'p Container) -> Result<Vec<Use<'p>>, ClaimNameError> {
        let mut uses = Vec::new();
        for entry in &pod.spec.resource_claims {
            let mut referring = container.resources.claims.iter().filter(|own| own.name == entry.name).peekable();
            if referring.peek().is_none() {
                continue;
            }
            let Some(named) = of_entry(pod, entry)? else { continue };
            uses.extend(referring.map(|own| {
                let request = if own.request.is_empty() { String::new() } else { format!("/{}", own.request) };
                let label = Some(format!("claim:{}{request}", own.name));
                Use { claim: named.name, request: &own.request, label }
            }));
        }
        if let Some(extended) = self.extended(pod) {
            let own = extended.request_mappings.iter().filter(|own| own.container_name == container.name);
            let claim = extended.resource_claim_name.as_str();
            uses.extend(own.map(|own| Use { claim, request: &own.request_name, label: None }));
        }
        Ok(uses)
    }

    /// What a container has of each claim that it refers to, with the name under which the pod's status lists it.
    fn devices_of(
        &self,
        pod: &Pod,
        container: &Container,
    ) -> Result<Vec<(Option<String>, ContainerClaim)>, UnknownClaim> {
        let uses = self.uses(pod, container)?;
        let infos = self.infos.lock();
        let of = |own: Use<'_>| {
            let key = (pod.metadata.namespace.clone(), own.claim.to_owned());
            let Some(info) = infos.0.get(&key) else {
                let (namespace, claim) = key;
                return Err(UnknownClaim::NotPrepared { namespace, claim });
            };
            let (namespace, claim) = key;
            Ok((own.label, ContainerClaim { namespace, claim, devices: serving(info, own.request) }))
        };
        uses.into_iter().map(of).collect()
    }

    /// The devices that the runtime is to give to a container, by their names in the Container Device Interface.
    ///
    /// # Errors
    /// It is not known what the container has.
    pub fn cdi_devices(&self, pod: &Pod, container: &Container) -> Result<Vec<String>, UnknownClaim> {
        let claims = self.devices_of(pod, container)?;
        let devices = claims.into_iter().flat_map(|(_, claim)| claim.devices);
        let mut ids: Vec<String> = devices.flat_map(|device| device.cdi_ids).collect();
        let mut seen = BTreeSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        Ok(ids)
    }

    /// What a container has of claims; nothing of those that are not ready.
    pub fn of_container(&self, pod: &Pod, container: &Container) -> Vec<ContainerClaim> {
        let claims = self.devices_of(pod, container).unwrap_or_default();
        claims.into_iter().map(|(_, claim)| claim).collect()
    }

    /// How the devices are that a container has of claims; nothing where nobody asks for that.
    pub fn health(&self, pod: &Pod, container: &Container) -> Vec<ResourceStatus> {
        let Some(healths) = &self.deps.healths else { return Vec::new() };
        let claims = self.devices_of(pod, container).unwrap_or_default();
        let listed = claims.into_iter().filter_map(|(label, claim)| Some((label?, claim.devices)));
        let status = |(name, devices): (String, Vec<ClaimDevice>)| {
            let resources = devices.into_iter().map(|device| self.health_of(healths, device)).collect();
            ResourceStatus { name, resources }
        };
        listed.map(status).filter(|status| !status.resources.is_empty()).collect()
    }

    fn health_of(&self, healths: &Healths, device: ClaimDevice) -> ResourceHealth {
        let ClaimDevice { driver, pool, device, cdi_ids, .. } = device;
        let own_name = format!("{driver}/{pool}/{device}");
        let health = healths.of(&(driver, pool, device));
        let message = Some(health.message).filter(|text| self.deps.health_messages && !text.is_empty());
        let resource_id = cdi_ids.into_iter().next().unwrap_or(own_name);
        ResourceHealth { resource_id, health: health.state.to_owned(), message }
    }

    /// Waits until devices are better or worse than before; returns the uids of the pods that use them.
    pub async fn health_changed(&self) -> BTreeSet<String> {
        let Some(healths) = &self.deps.healths else { return std::future::pending().await };
        let changed = healths.changes().await;
        let infos = self.infos.lock();
        changed.iter().flat_map(|(driver, pool, device)| infos.users(driver, pool, device)).collect()
    }
}

/// The devices of a claim that are for one request.
fn serving(info: &ClaimInfo, request: &str) -> Vec<ClaimDevice> {
    let devices = info.drivers.iter().flat_map(|(driver, devices)| devices.iter().map(move |device| (driver, device)));
    let serving = devices.filter(|(_, device)| device.serves(request));
    serving.map(|(driver, device)| ClaimDevice::of(driver, device)).collect()
}

fn result<T>(done: T, error: String) -> Result<T, String> {
    if error.is_empty() { Ok(done) } else { Err(error) }
}

/// What a driver answers about each claim that it was asked about: what went well, and the first thing that did not.
fn sort<T>(
    method: &'static str,
    asked: &[Claim],
    answers: HashMap<String, Result<T, String>>,
) -> (Vec<(ClaimKey, T)>, Option<Cause>) {
    let skipped = asked.len().saturating_sub(answers.len());
    // In order, so that the same error is told each time.
    let answers: BTreeMap<String, Result<T, String>> = answers.into_iter().collect();
    let (mut done, mut failure) = (Vec::new(), None);
    for (uid, answer) in answers {
        let Some(claim) = asked.iter().find(|claim| claim.uid == uid) else {
            failure.get_or_insert(Cause::Unasked { method, uid });
            continue;
        };
        match answer {
            Ok(answer) => done.push(((claim.namespace.clone(), claim.name.clone()), answer)),
            Err(why) => {
                failure.get_or_insert(Cause::Refused { method, claim: claim.name.clone(), why });
            }
        }
    }
    if skipped > 0 {
        failure.get_or_insert(Cause::Skipped { method, count: skipped });
    }
    (done, failure)
}

#[cfg(test)]
#[path = "manager_tests.rs"]
mod tests;
