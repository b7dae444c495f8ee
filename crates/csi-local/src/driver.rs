//! What all services of the driver share.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::{SharedClock, TaskGroup};
use node_api::csi::v1::controller_server::ControllerServer;
use node_api::csi::v1::identity_server::IdentityServer;
use node_api::csi::v1::node_server::NodeServer;
use parking_lot::Mutex;
use sys::exec::{Command, Exec};
use sys::mounts::Mounts;
use tokio::net::UnixListener;
use tokio::sync::oneshot;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Response, Status};

use crate::busy::{Busy, Turn};
use crate::record::{Kind, Record, Snapshot, Volume};
use crate::store::{Store, StoreError};
use crate::usage;

/// How long a copy of a volume may take.
const COPY_LIMIT: Duration = Duration::from_secs(3600);
/// Calls at work at the same time, for each connection.
const MOST_CALLS: usize = 64;
/// As an emptyDir: who runs as another user may write.
const OPEN_TO_ALL: u32 = 0o777;

/// What the driver is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The driver's name.
    pub name: String,
    /// What it calls this node.
    pub node: String,
    /// The directory of all that it keeps.
    pub root: PathBuf,
    /// What all volumes may hold together; as much as the filesystem where nobody says.
    pub capacity_bytes: Option<i64>,
    /// The most volumes that a node should have; no limit where 0.
    pub max_volumes: i64,
}

/// What the driver works with.
#[derive(Clone)]
pub struct Machine {
    pub exec: Arc<dyn Exec>,
    pub mounts: Arc<dyn Mounts>,
    pub clock: SharedClock,
    /// Calls whose caller has gone end here.
    pub tasks: TaskGroup,
}

/// The driver. Clones are the same.
#[derive(Clone)]
pub struct Driver(Arc<Inner>);

struct Inner {
    settings: Settings,
    machine: Machine,
    store: Store,
    contents: Mutex<Contents>,
    busy: Busy,
}

/// What there is, as it is on disk.
#[derive(Default)]
pub(crate) struct Contents {
    pub(crate) volumes: BTreeMap<String, Volume>,
    pub(crate) snapshots: BTreeMap<String, Snapshot>,
    /// Bytes of what is being made, or grown.
    promised: BTreeMap<String, i64>,
}

/// Room that is set aside, until it is dropped.
pub(crate) struct Promise {
    id: String,
    driver: Driver,
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.driver.0.contents.lock().promised.remove(&self.id);
    }
}

/// An error of the machine, for the caller and for the log.
pub(crate) fn internal(what: &str, error: &(dyn std::error::Error + 'static)) -> Status {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    tracing::error!(what, error = %text, "a call failed");
    Status::internal(format!("{what}: {text}"))
}

impl Driver {
    /// Reads what is on disk, and clears what was left half done.
    ///
    /// # Errors
    /// The directory cannot be used, or a record is broken.
    pub fn open(settings: Settings, machine: Machine) -> Result<Self, StoreError> {
        let store = Store::open(&settings.root)?;
        let (volumes, snapshots) = (store.load()?, store.load()?);
        let contents = Mutex::new(Contents { volumes, snapshots, promised: BTreeMap::new() });
        Ok(Self(Arc::new(Inner { settings, machine, store, contents, busy: Busy::default() })))
    }

    /// Serves at a socket, which replaces what an earlier process left, until the group is cancelled.
    ///
    /// # Errors
    /// The socket cannot be made, or the server fails.
    pub async fn serve(self, socket: &Path) -> io::Result<()> {
        let incoming = listen(socket)?;
        let end = self.0.machine.tasks.token().cancelled_owned();
        tonic::transport::Server::builder()
            .concurrency_limit_per_connection(MOST_CALLS)
            .add_service(IdentityServer::new(self.clone()))
            .add_service(ControllerServer::new(self.clone()))
            .add_service(NodeServer::new(self))
            .serve_with_incoming_shutdown(incoming, end)
            .await
            .map_err(io::Error::other)
    }

    /// Does something to its end, whether or not the caller waits for it: who gives up in the middle and asks again
    /// would otherwise begin a long copy anew for ever.
    pub(crate) async fn whole<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = Result<T, Status>> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let (done, result) = oneshot::channel();
        self.0.machine.tasks.spawn(name, async move {
            // Nobody may wait any more.
            let _ = done.send(work.await);
        });
        result.await.unwrap_or_else(|_| Err(Status::internal(format!("{name} did not end")))).map(Response::new)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.0.machine
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    /// Looks at what there is.
    pub(crate) fn contents(&self) -> parking_lot::MutexGuard<'_, Contents> {
        self.0.contents.lock()
    }

    pub(crate) fn turn(&self, id: &str) -> Result<Turn, Status> {
        self.0.busy.take(id)
    }

    /// Where volumes of this driver here are reachable from.
    pub(crate) fn topology(&self) -> HashMap<String, String> {
        let Settings { name, node, .. } = &self.0.settings;
        HashMap::from([(format!("topology.{name}/node"), node.clone())])
    }

    /// A volume that must be there.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` without an id, `NOT_FOUND` without a volume.
    pub(crate) fn volume(&self, id: &str) -> Result<Volume, Status> {
        if id.is_empty() {
            return Err(Status::invalid_argument("volume_id is required"));
        }
        let found = self.contents().volumes.get(id).cloned();
        found.ok_or_else(|| Status::not_found(format!("volume {id} does not exist")))
    }

    /// Writes a volume down as it is now.
    pub(crate) fn save(&self, volume: Volume) -> Result<(), Status> {
        self.store().update(&volume).map_err(|error| internal("writing the record", &error))?;
        self.contents().volumes.insert(volume.id.clone(), volume);
        Ok(())
    }

    /// Bytes that new volumes may hold.
    pub(crate) fn available_bytes(&self) -> Result<i64, Status> {
        self.room(&self.contents())
    }

    fn room(&self, contents: &Contents) -> Result<i64, Status> {
        let room = usage::of_filesystem(self.store().root()).map_err(|error| internal("looking for room", &error))?;
        let total = self.0.settings.capacity_bytes.unwrap_or(room.total_bytes);
        let volumes = contents.volumes.values().map(|volume| volume.capacity_bytes);
        let snapshots = contents.snapshots.values().map(|snapshot| snapshot.size_bytes);
        let taken = volumes.chain(snapshots).chain(contents.promised.values().copied());
        let left = taken.fold(total, i64::saturating_sub);
        Ok(left.min(room.available_bytes).max(0))
    }

    /// Sets room aside for what is made or grown under this id; `None` where there is not enough.
    pub(crate) fn promise(&self, id: &str, bytes: i64) -> Result<Option<Promise>, Status> {
        let mut contents = self.contents();
        if bytes > self.room(&contents)? {
            return Ok(None);
        }
        contents.promised.insert(id.to_owned(), bytes);
        Ok(Some(Promise { id: id.to_owned(), driver: self.clone() }))
    }

    /// Makes what something holds: nothing, or what is at `origin`.
    pub(crate) async fn fill(&self, at: &Path, kind: Kind, size: i64, origin: Option<&Path>) -> Result<(), Status> {
        if let Some(origin) = origin {
            let arguments = ["--archive", "--reflink=auto", "--sparse=always", "--no-target-directory", "--"];
            let copy = Command::with("cp", &arguments).arg(origin).arg(at).deadline(COPY_LIMIT);
            self.machine().exec.run_ok(&copy).await.map_err(|error| internal("copying", &error))?;
        }
        let made = match kind {
            Kind::Block => set_image_size(at, size),
            Kind::Directory if origin.is_none() => {
                fs::create_dir(at).and_then(|()| fs::set_permissions(at, Permissions::from_mode(OPEN_TO_ALL)))
            }
            Kind::Directory => Ok(()),
        };
        made.map_err(|error| internal("making the volume", &error))
    }

    /// Clears what was taken out of the way. What does not go now goes at the next start.
    pub(crate) async fn clear(&self, removed: PathBuf) {
        let cleared = tokio::task::spawn_blocking(move || sys::fs::remove_tree(&removed)).await;
        if let Ok(Err(error)) = cleared {
            tracing::warn!(%error, "something of a removed volume is left");
        }
    }

    /// Takes something off the disk, which nobody may be at work on.
    pub(crate) fn take_away<R: Record>(&self, record: &R) -> Result<PathBuf, Status> {
        self.store().remove(record).map_err(|error| internal("removing", &error))
    }
}

/// Listens at a socket, which replaces what an earlier process left. Its directory is made where there is none.
pub(crate) fn listen(socket: &Path) -> io::Result<UnixListenerStream> {
    if let Some(directory) = socket.parent() {
        fs::create_dir_all(directory)?;
    }
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(socket).map(UnixListenerStream::new)
}

/// Makes an image of a size, or grows one to it. It takes room as it is written to.
pub(crate) fn set_image_size(at: &Path, size: i64) -> io::Result<()> {
    let image = File::options().create(true).truncate(false).write(true).open(at)?;
    image.set_permissions(Permissions::from_mode(0o600))?;
    let size = u64::try_from(size).map_err(io::Error::other)?;
    if image.metadata()?.len() < size {
        image.set_len(size)?;
    }
    image.sync_all()
}
