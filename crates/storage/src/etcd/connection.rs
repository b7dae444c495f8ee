//! The members of an etcd cluster and which of them is asked.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use base::{Direct, SharedConnector, TaskGroup};
use etcd_client::{
    Channel, Client, ConnectOptions, GetOptions, GetResponse, KvClient, LeaseClient, MaintenanceClient, StatusResponse,
    WatchClient,
};
use parking_lot::Mutex;
use tower::util::BoxCloneSyncService;

use super::transport::{Target, Transport};
use super::{convert, version};
use crate::{KeyRange, StorageError};

/// How long a request may take; etcd gives up on its own after about 7 s, large ranges take longer to send.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a member may take to tell its status.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);

/// How many watches share a connection; servers that serve gRPC through Go's own HTTP/2 stack allow 250 streams.
const WATCHES_PER_CONNECTION: usize = 100;

/// Where etcd is.
#[derive(Debug, Clone)]
pub struct EtcdOptions {
    /// The members' client URLs, `http://` or `https://`.
    pub endpoints: Vec<String>,
    /// Keys and certificates for `https://`.
    pub tls: Option<EtcdTls>,
    /// How long to wait for the first answer.
    pub dial_timeout: Duration,
    /// Who connects to the members.
    pub connector: SharedConnector,
}

impl EtcdOptions {
    /// Members without TLS that are connected to directly, and the dial timeout of 20 s.
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let endpoints = endpoints.into_iter().map(Into::into).collect();
        Self { endpoints, tls: None, dial_timeout: Duration::from_secs(20), connector: Direct::shared() }
    }
}

/// Keys and certificates, PEM-encoded.
#[derive(Clone)]
pub struct EtcdTls {
    /// The authorities that sign the members' certificates.
    pub ca_pem: Vec<u8>,
    /// The certificate chain and private key shown to the members.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

impl std::fmt::Debug for EtcdTls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("EtcdTls").field("client", &self.client.is_some()).finish_non_exhaustive()
    }
}

/// The clients of one member; a call takes a clone of the one that it needs.
pub(super) struct MemberClient {
    pub(super) kv: KvClient,
    pub(super) lease: LeaseClient,
    maintenance: MaintenanceClient,
}

struct Member {
    target: Arc<Target>,
    client: MemberClient,
    /// Connections for watches, each with a token that its watches share.
    lanes: Mutex<Vec<(WatchClient, Arc<()>)>>,
    progress: Progress,
}

/// What is known of a member's marks of progress on demand: [`UNKNOWN`], [`DEPENDABLE`] or [`UNDEPENDABLE`].
#[derive(Default)]
struct Progress(AtomicU8);

/// It has not told its version yet.
const UNKNOWN: u8 = 0;
/// They may be trusted.
const DEPENDABLE: u8 = 1;
/// They may overtake events.
const UNDEPENDABLE: u8 = 2;

impl Progress {
    fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    fn note(&self, status: &StatusResponse) {
        let dependable = version::progress_is_dependable(status.version());
        self.0.store(if dependable { DEPENDABLE } else { UNDEPENDABLE }, Ordering::Relaxed);
    }
}

/// A client for a watch; its connection counts it for as long as the second part lives.
pub(super) type WatchLane = (WatchClient, Arc<()>);

/// All members, one of which is asked until it fails.
pub(super) struct Members {
    members: Vec<Member>,
    active: AtomicUsize,
    tasks: TaskGroup,
}

impl Members {
    pub(super) async fn new(options: EtcdOptions, tasks: TaskGroup) -> Result<Self, StorageError> {
        let mut members = Vec::with_capacity(options.endpoints.len());
        for url in &options.endpoints {
            let target = Arc::new(Target::new(url, options.tls.as_ref(), Arc::clone(&options.connector))?);
            let client = client(&target, &tasks).await?;
            let client = MemberClient {
                kv: client.kv_client().max_decoding_message_size(usize::MAX).max_encoding_message_size(usize::MAX),
                lease: client.lease_client(),
                maintenance: client.maintenance_client(),
            };
            members.push(Member { target, client, lanes: Mutex::default(), progress: Progress::default() });
        }
        if members.is_empty() {
            return Err(StorageError::Invalid("no etcd endpoint is given"));
        }
        Ok(Self { members, active: AtomicUsize::new(0), tasks })
    }

    fn active(&self) -> Result<(usize, &Member), StorageError> {
        let index = self.active.load(Ordering::Relaxed) % self.members.len().max(1);
        self.members.get(index).map(|member| (index, member)).ok_or(StorageError::Closed)
    }

    /// Turns to the next member, unless somebody already did.
    fn leave(&self, index: usize) {
        let next = (index + 1) % self.members.len().max(1);
        // Losing the race means that another request left it first.
        let _raced = self.active.compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Asks the active member once.
    pub(super) async fn write<T, F>(&self, call: impl FnOnce(&MemberClient) -> F) -> Result<T, StorageError>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let (index, member) = self.active()?;
        let outcome = bounded(REQUEST_TIMEOUT, call(&member.client)).await;
        if outcome.as_ref().is_err_and(is_unreachable) {
            self.leave(index);
        }
        outcome
    }

    /// Asks the active member, and each other once while they cannot be reached.
    pub(super) async fn read<T, F>(&self, call: impl Fn(&MemberClient) -> F) -> Result<T, StorageError>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let mut outcome = self.write(&call).await;
        for _ in 1..self.members.len() {
            if !outcome.as_ref().is_err_and(is_unreachable) {
                break;
            }
            outcome = self.write(&call).await;
        }
        outcome
    }

    pub(super) async fn read_range(&self, range: &KeyRange, options: GetOptions) -> Result<GetResponse, StorageError> {
        let start = convert::range_start(range);
        self.read(move |client| {
            let (mut kv, start, options) = (client.kv.clone(), start.clone(), options.clone());
            async move { kv.get(start, Some(options)).await }
        })
        .await
    }

    /// What every member says of itself. What a member said of its version stands while it cannot be reached.
    pub(super) async fn statuses(&self) -> Vec<Result<StatusResponse, StorageError>> {
        futures_util::future::join_all(self.members.iter().map(Member::status)).await
    }

    /// Whether marks of progress on demand may be waited for: members that told their version do them right, and there
    /// is one. A member that is away is not waited for; its own marks count once it told its version, too.
    pub(super) fn has_dependable_progress(&self) -> bool {
        let mut told =
            self.members.iter().map(|member| member.progress.get()).filter(|told| *told != UNKNOWN).peekable();
        told.peek().is_some() && told.all(|told| told == DEPENDABLE)
    }

    /// Whether a member's own marks may be trusted. It is asked for its version if it has not told it.
    pub(super) async fn has_dependable_marks(&self, index: usize) -> bool {
        let Some(member) = self.members.get(index) else { return false };
        if member.progress.get() == UNKNOWN
            && let Err(error) = member.status().await
        {
            tracing::debug!(%error, "an etcd member does not tell its version");
        }
        member.progress.get() == DEPENDABLE
    }

    /// A client for one more watch, and the member it belongs to.
    pub(super) async fn watch_lane(&self) -> Result<(usize, WatchLane), StorageError> {
        let (index, member) = self.active()?;
        if let Some(lane) = member.free_lane() {
            return Ok((index, lane));
        }
        let client = client(&member.target, &self.tasks).await?.watch_client().max_decoding_message_size(usize::MAX);
        let lane = (client, Arc::new(()));
        member.lanes.lock().push(lane.clone());
        Ok((index, lane))
    }

    /// A watch on a member broke off.
    pub(super) fn watch_failed(&self, index: usize) {
        self.leave(index);
    }
}

impl Member {
    async fn status(&self) -> Result<StatusResponse, StorageError> {
        let mut maintenance = self.client.maintenance.clone();
        let status = bounded(STATUS_TIMEOUT, maintenance.status()).await?;
        self.progress.note(&status);
        Ok(status)
    }

    fn free_lane(&self) -> Option<WatchLane> {
        let mut lanes = self.lanes.lock();
        // Connections that no watch uses any more are closed, all but one.
        let mut kept = 0;
        lanes.retain(|(_, users)| {
            kept += 1;
            Arc::strong_count(users) > 1 || kept == 1
        });
        lanes.iter().find(|(_, users)| Arc::strong_count(users) <= WATCHES_PER_CONNECTION).cloned()
    }
}

fn is_unreachable(error: &StorageError) -> bool {
    matches!(error, StorageError::Unavailable { .. })
}

async fn bounded<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, etcd_client::Error>>,
) -> Result<T, StorageError> {
    match tokio::time::timeout(limit, call).await {
        Ok(outcome) => outcome.map_err(|error| convert::error(&error)),
        Err(_) => Err(StorageError::unavailable("etcdserver: request timed out")),
    }
}

/// The clients of a member, over a connection of their own.
async fn client(target: &Arc<Target>, tasks: &TaskGroup) -> Result<Client, StorageError> {
    let transport = Transport::new(Arc::clone(target), tasks.clone());
    let channel = Channel::Custom(BoxCloneSyncService::new(transport));
    let options = ConnectOptions::new().with_require_leader(true);
    Client::from_channel(channel, Some(options)).await.map_err(|error| convert::error(&error))
}
