//! The node service: volumes are brought to pods, and taken away.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use node_api::csi::v1::node_server::Node;
use node_api::csi::v1::node_service_capability::rpc::Type as Capability;
use node_api::csi::v1::node_service_capability::{Rpc, Type};
use node_api::csi::v1::volume_usage::Unit;
use node_api::csi::v1::*;
use sys::mounts::{Depth, Mount, Unmount};
use tonic::{Request, Response, Status};

use crate::capability::{Use, read};
use crate::driver::{Driver, internal};
use crate::loops::{self, Access};
use crate::record::{Kind, Volume, is_inline_handle};
use crate::size;
use crate::usage;

/// Set by a kubelet for an inline volume of a pod.
const EPHEMERAL: &str = "csi.storage.k8s.io/ephemeral";
/// The attribute of an inline volume that says how large it is, in bytes.
const SIZE: &str = "size";
/// Paths that a volume is at, staged or published.
const MOST_PATHS: usize = 1000;
/// Mounts on top of each other that are taken away.
const MOST_LAYERS: usize = 16;

const CAPABILITIES: [Capability; 4] = [
    Capability::StageUnstageVolume,
    Capability::GetVolumeStats,
    Capability::ExpandVolume,
    Capability::SingleNodeMultiWriter,
];

#[tonic::async_trait]
impl Node for Driver {
    async fn node_stage_volume(
        &self,
        request: Request<NodeStageVolumeRequest>,
    ) -> Result<Response<NodeStageVolumeResponse>, Status> {
        let (driver, request) = (self.clone(), request.into_inner());
        self.whole("stage volume", async move { driver.stage(&request).await.map(|()| NodeStageVolumeResponse {}) })
            .await
    }

    async fn node_unstage_volume(
        &self,
        request: Request<NodeUnstageVolumeRequest>,
    ) -> Result<Response<NodeUnstageVolumeResponse>, Status> {
        let (driver, request) = (self.clone(), request.into_inner());
        self.whole(
            "unstage volume",
            async move { driver.unstage(&request).await.map(|()| NodeUnstageVolumeResponse {}) },
        )
        .await
    }

    async fn node_publish_volume(
        &self,
        request: Request<NodePublishVolumeRequest>,
    ) -> Result<Response<NodePublishVolumeResponse>, Status> {
        let (driver, request) = (self.clone(), request.into_inner());
        self.whole(
            "publish volume",
            async move { driver.publish(&request).await.map(|()| NodePublishVolumeResponse {}) },
        )
        .await
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> Result<Response<NodeUnpublishVolumeResponse>, Status> {
        let (driver, request) = (self.clone(), request.into_inner());
        self.whole("unpublish volume", async move {
            driver.unpublish(&request).await.map(|()| NodeUnpublishVolumeResponse {})
        })
        .await
    }

    async fn node_get_volume_stats(
        &self,
        request: Request<NodeGetVolumeStatsRequest>,
    ) -> Result<Response<NodeGetVolumeStatsResponse>, Status> {
        let usage = self.stats(&request.into_inner()).await?;
        Ok(Response::new(NodeGetVolumeStatsResponse { usage, volume_condition: None }))
    }

    async fn node_expand_volume(
        &self,
        request: Request<NodeExpandVolumeRequest>,
    ) -> Result<Response<NodeExpandVolumeResponse>, Status> {
        let (driver, request) = (self.clone(), request.into_inner());
        self.whole("expand volume on the node", async move {
            let capacity_bytes = driver.expand(&request).await?;
            Ok(NodeExpandVolumeResponse { capacity_bytes })
        })
        .await
    }

    async fn node_get_capabilities(
        &self,
        _: Request<NodeGetCapabilitiesRequest>,
    ) -> Result<Response<NodeGetCapabilitiesResponse>, Status> {
        let capabilities = CAPABILITIES
            .map(|kind| NodeServiceCapability { r#type: Some(Type::Rpc(Rpc { r#type: kind.into() })) })
            .into();
        Ok(Response::new(NodeGetCapabilitiesResponse { capabilities }))
    }

    async fn node_get_info(&self, _: Request<NodeGetInfoRequest>) -> Result<Response<NodeGetInfoResponse>, Status> {
        Ok(Response::new(NodeGetInfoResponse {
            node_id: self.settings().node.clone(),
            max_volumes_per_node: self.settings().max_volumes,
            accessible_topology: Some(Topology { segments: self.topology() }),
        }))
    }
}

/// A path of the caller's.
fn absolute<'a>(field: &str, path: &'a str) -> Result<&'a str, Status> {
    if path.is_empty() {
        return Err(Status::invalid_argument(format!("{field} is required")));
    }
    if !Path::new(path).is_absolute() {
        return Err(Status::invalid_argument(format!("{field} {path:?} is not absolute")));
    }
    Ok(path)
}

/// Notes a path; there is a bound to how many a volume is at.
fn note(paths: &mut BTreeSet<String>, path: &str) -> Result<(), Status> {
    if paths.len() >= MOST_PATHS && !paths.contains(path) {
        return Err(Status::resource_exhausted(format!("the volume is at {MOST_PATHS} paths already")));
    }
    paths.insert(path.to_owned());
    Ok(())
}

fn required_id(id: &str) -> Result<(), Status> {
    if id.is_empty() { Err(Status::invalid_argument("volume_id is required")) } else { Ok(()) }
}

impl Driver {
    async fn stage(&self, request: &NodeStageVolumeRequest) -> Result<(), Status> {
        let id = &request.volume_id;
        required_id(id)?;
        let path = absolute("staging_target_path", &request.staging_target_path)?;
        let wanted = read(request.volume_capability.as_ref())?;
        let _turn = self.turn(id)?;
        let mut volume = self.volume_of_kind(id, wanted.kind)?;
        let data = self.store().data(&volume);
        let known = volume.staged.contains(path);
        note(&mut volume.staged, path)?;
        match volume.kind {
            Kind::Block => {
                self.save(volume)?;
                let access = if wanted.read_only { Access::ReadOnly } else { Access::ReadWrite };
                let attached = loops::attach(&*self.machine().exec, &data, access).await;
                attached.map(drop).map_err(|error| internal("attaching the loop device", &error))
            }
            // Flags are of each pod's mount.
            Kind::Directory if self.is_mounted(path)? => {
                if known {
                    Ok(())
                } else {
                    Err(Status::already_exists(format!("something else is mounted at {path}")))
                }
            }
            Kind::Directory => {
                self.save(volume)?;
                fs::create_dir_all(path).map_err(|error| internal("making the staging path", &error))?;
                self.mount(&Mount::bind(data, path, Depth::One))
            }
        }
    }

    async fn unstage(&self, request: &NodeUnstageVolumeRequest) -> Result<(), Status> {
        let id = &request.volume_id;
        required_id(id)?;
        let path = absolute("staging_target_path", &request.staging_target_path)?;
        let _turn = self.turn(id)?;
        let mut volume = self.volume(id)?;
        if !volume.staged.contains(path) {
            return Ok(());
        }
        match volume.kind {
            Kind::Directory => self.unmount(path)?,
            Kind::Block if volume.staged.len() == 1 => {
                let detached = loops::detach(&*self.machine().exec, &self.store().data(&volume)).await;
                detached.map_err(|error| internal("detaching the loop device", &error))?;
            }
            Kind::Block => {}
        }
        volume.staged.remove(path);
        self.save(volume)
    }

    async fn publish(&self, request: &NodePublishVolumeRequest) -> Result<(), Status> {
        let id = &request.volume_id;
        required_id(id)?;
        let target = absolute("target_path", &request.target_path)?;
        let by_mode = read(request.volume_capability.as_ref())?;
        if by_mode.kind == Kind::Block && request.readonly && !by_mode.read_only {
            // A device can be written to wherever its node is seen.
            return Err(Status::invalid_argument("a block volume is read-only by its access mode only"));
        }
        let wanted = Use { read_only: by_mode.read_only || request.readonly, ..by_mode };
        let _turn = self.turn(id)?;
        let inline = request.volume_context.get(EPHEMERAL).is_some_and(|value| value == "true");
        if inline {
            self.make_inline(id, &wanted, &request.volume_context).await?;
        }
        let mut volume = self.volume_of_kind(id, wanted.kind)?;
        let source = if inline {
            self.store().data(&volume)
        } else {
            self.staged_source(&volume, &request.staging_target_path).await?
        };
        self.is_alone_enough(&volume, target, &wanted)?;
        if self.is_mounted(target)? {
            return self.is_the_same(&volume, target, &wanted);
        }
        note(&mut volume.published, target)?;
        self.save(volume)?;
        make_target(Path::new(target), wanted.kind).map_err(|error| internal("making the target path", &error))?;
        let mut mount = Mount::bind(source, target, Depth::One).restricted(wanted.restrictions);
        if wanted.read_only && wanted.kind == Kind::Directory {
            mount = mount.read_only();
        }
        self.mount(&mount)
    }

    async fn unpublish(&self, request: &NodeUnpublishVolumeRequest) -> Result<(), Status> {
        let id = &request.volume_id;
        required_id(id)?;
        let target = absolute("target_path", &request.target_path)?;
        let _turn = self.turn(id)?;
        let mut volume = match self.volume(id) {
            // An inline volume is gone once it was unpublished, which the caller may not have heard.
            Err(_) if is_inline_handle(id) => return Ok(()),
            found => found?,
        };
        if !volume.published.contains(target) && !volume.ephemeral {
            return Ok(());
        }
        self.unmount(target)?;
        remove_target(Path::new(target)).map_err(|error| internal("removing the target path", &error))?;
        volume.published.remove(target);
        let (ephemeral, unused) = (volume.ephemeral, volume.published.is_empty());
        self.save(volume)?;
        if ephemeral && unused { self.drop_volume(id).await } else { Ok(()) }
    }

    /// The volume that a pod brings with it, made at its first publishing.
    async fn make_inline(&self, id: &str, wanted: &Use, context: &HashMap<String, String>) -> Result<(), Status> {
        if !is_inline_handle(id) {
            return Err(Status::invalid_argument(format!("{id} is no handle of an inline volume")));
        }
        if self.contents().volumes.contains_key(id) {
            return Ok(());
        }
        let required_bytes = match context.get(SIZE).map(|text| text.parse::<i64>()) {
            None => 0,
            Some(Ok(bytes)) => bytes,
            Some(Err(_)) => return Err(Status::invalid_argument("attribute size is no number of bytes")),
        };
        let capacity_bytes = size::choose(Some(&CapacityRange { required_bytes, limit_bytes: 0 }), None)?;
        let (id, name, kind) = (id.to_owned(), id.to_owned(), wanted.kind);
        let (staged, published) = (BTreeSet::new(), BTreeSet::new());
        let volume = Volume { id, name, kind, capacity_bytes, origin: None, ephemeral: true, staged, published };
        self.build_volume(&volume).await
    }

    /// What is brought to pods, once it was staged.
    async fn staged_source(&self, volume: &Volume, staging: &str) -> Result<PathBuf, Status> {
        let missing = || Status::failed_precondition(format!("volume {} is not staged at {staging:?}", volume.id));
        if !volume.staged.contains(staging) {
            return Err(missing());
        }
        match volume.kind {
            Kind::Directory if self.is_mounted(staging)? => Ok(staging.into()),
            Kind::Directory => Err(missing()),
            Kind::Block => {
                let device = loops::find(&*self.machine().exec, &self.store().data(volume)).await;
                device.map_err(|error| internal("looking for the device", &error))?.ok_or_else(missing)
            }
        }
    }

    fn is_alone_enough(&self, volume: &Volume, target: &str, wanted: &Use) -> Result<(), Status> {
        for other in volume.published.iter().filter(|path| wanted.alone && *path != target) {
            if self.is_mounted(other)? {
                return Err(Status::failed_precondition(format!("volume {} has its single writer already", volume.id)));
            }
        }
        Ok(())
    }

    /// Whether what is mounted at a target is what is wanted there.
    fn is_the_same(&self, volume: &Volume, target: &str, wanted: &Use) -> Result<(), Status> {
        let mounts = self.machine().mounts.list().map_err(|error| internal("listing mounts", &error))?;
        let resolved = Path::new(target).canonicalize().unwrap_or_else(|_| target.into());
        let top = mounts.iter().rfind(|mount| mount.target == resolved);
        let read_only = top.is_some_and(sys::mounts::MountInfo::is_read_only);
        let expected = wanted.read_only && wanted.kind == Kind::Directory;
        if volume.published.contains(target) && read_only == expected {
            return Ok(());
        }
        Err(Status::already_exists(format!("{target} has something else mounted")))
    }

    async fn stats(&self, request: &NodeGetVolumeStatsRequest) -> Result<Vec<VolumeUsage>, Status> {
        required_id(&request.volume_id)?;
        let path = absolute("volume_path", &request.volume_path)?;
        let volume = self.volume(&request.volume_id)?;
        self.must_be_at(&volume, path)?;
        let total = volume.capacity_bytes;
        if volume.kind == Kind::Block {
            return Ok(vec![VolumeUsage { available: 0, total, used: 0, unit: Unit::Bytes.into() }]);
        }
        let data = self.store().data(&volume);
        let looked = tokio::task::spawn_blocking(move || {
            Ok::<_, io::Error>((usage::of_directory(&data)?, usage::of_filesystem(&data)?))
        });
        let looked = looked.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        let (used, room) = looked.map_err(|error| internal("adding up the volume", &error))?;
        let available = (total - used.bytes).min(room.available_bytes).max(0);
        Ok(vec![
            VolumeUsage { available, total, used: used.bytes, unit: Unit::Bytes.into() },
            VolumeUsage {
                available: room.available_inodes,
                total: room.total_inodes,
                used: used.inodes,
                unit: Unit::Inodes.into(),
            },
        ])
    }

    async fn expand(&self, request: &NodeExpandVolumeRequest) -> Result<i64, Status> {
        required_id(&request.volume_id)?;
        let path = absolute("volume_path", &request.volume_path)?;
        let _turn = self.turn(&request.volume_id)?;
        let volume = self.volume(&request.volume_id)?;
        self.must_be_at(&volume, path)?;
        let capacity = volume.capacity_bytes;
        let required = request.capacity_range.as_ref().map_or(0, |range| range.required_bytes);
        if required > capacity {
            return Err(Status::out_of_range(format!("the volume has {capacity} bytes, and was not grown before")));
        }
        if volume.kind == Kind::Block {
            let shown = loops::refresh(&*self.machine().exec, &self.store().data(&volume)).await;
            shown.map_err(|error| internal("growing the loop device", &error))?;
        }
        Ok(capacity)
    }

    fn must_be_at(&self, volume: &Volume, path: &str) -> Result<(), Status> {
        // Of a block volume a kubelet may name a path below the one that was staged.
        let staged = volume.staged.iter().any(|staged| Path::new(path).starts_with(staged));
        if staged || volume.published.contains(path) {
            return Ok(());
        }
        Err(Status::not_found(format!("volume {} is not at {path}", volume.id)))
    }

    fn volume_of_kind(&self, id: &str, kind: Kind) -> Result<Volume, Status> {
        let volume = self.volume(id)?;
        if volume.kind != kind {
            return Err(Status::invalid_argument(format!("volume {id} is of another kind")));
        }
        Ok(volume)
    }

    pub(crate) fn is_mounted(&self, path: &str) -> Result<bool, Status> {
        let mounted = self.machine().mounts.is_mount_point(Path::new(path));
        mounted.map_err(|error| internal("listing mounts", &error))
    }

    fn mount(&self, mount: &Mount) -> Result<(), Status> {
        self.machine().mounts.mount(mount).map_err(|error| internal("mounting", &error))
    }

    /// Takes away all that is mounted at a path.
    fn unmount(&self, path: &str) -> Result<(), Status> {
        for _ in 0..MOST_LAYERS {
            if !self.is_mounted(path)? {
                return Ok(());
            }
            let unmounted = self.machine().mounts.unmount(Path::new(path), Unmount::IfUnused);
            unmounted.map_err(|error| internal("unmounting", &error))?;
        }
        Err(Status::internal(format!("{path} is still mounted after {MOST_LAYERS} mounts were taken away")))
    }
}

/// What the volume is mounted on. Its parent is the caller's business.
fn make_target(target: &Path, kind: Kind) -> io::Result<()> {
    match kind {
        Kind::Directory => match fs::create_dir(target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && target.is_dir() => Ok(()),
            made => made,
        },
        Kind::Block => fs::File::options().create(true).append(true).open(target).map(drop),
    }
}

/// Removes it, never with anything in it.
fn remove_target(target: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(target) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir(target),
        Ok(_) => fs::remove_file(target),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
