//! Snapshots: copies of what volumes hold.

use node_api::csi::v1::*;
use tonic::Status;

use crate::capability::{no_parameters, required};
use crate::driver::{Driver, internal};
use crate::listing::page;
use crate::record::{Snapshot, is_snapshot_id, snapshot_id};

/// A snapshot as callers see it.
fn told(snapshot: &Snapshot) -> node_api::csi::v1::Snapshot {
    node_api::csi::v1::Snapshot {
        size_bytes: snapshot.size_bytes,
        snapshot_id: snapshot.id.clone(),
        source_volume_id: snapshot.volume_id.clone(),
        creation_time: Some(Timestamp { seconds: snapshot.made_seconds, nanos: 0 }),
        ready_to_use: true,
        group_snapshot_id: String::new(),
    }
}

impl Driver {
    /// A snapshot that must be there.
    pub(crate) fn snapshot(&self, id: &str) -> Result<Snapshot, Status> {
        if id.is_empty() {
            return Err(Status::invalid_argument("snapshot_id is required"));
        }
        let found = self.contents().snapshots.get(id).cloned();
        found.ok_or_else(|| Status::not_found(format!("snapshot {id} does not exist")))
    }

    pub(crate) fn snapshot_told(&self, id: &str) -> Result<node_api::csi::v1::Snapshot, Status> {
        self.snapshot(id).map(|snapshot| told(&snapshot))
    }

    pub(crate) async fn make_snapshot(
        &self,
        request: &CreateSnapshotRequest,
    ) -> Result<node_api::csi::v1::Snapshot, Status> {
        let name = required("name", &request.name)?;
        let volume_id = required("source_volume_id", &request.source_volume_id)?;
        no_parameters(&request.parameters)?;
        let id = snapshot_id(name);
        let _turn = self.turn(&id)?;
        let former = self.contents().snapshots.get(&id).cloned();
        if let Some(former) = former {
            if former.volume_id != volume_id {
                return Err(Status::already_exists(format!("snapshot {name} exists, and is of another volume")));
            }
            return Ok(told(&former));
        }
        // Neither grows nor goes what is being copied.
        let _origin = self.turn(volume_id)?;
        let volume = self.volume(volume_id)?;
        let Some(_promise) = self.promise(&id, volume.capacity_bytes)? else {
            return Err(Status::resource_exhausted("there is no room for the snapshot on this node"));
        };
        let now = self.machine().clock.wall().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let snapshot = Snapshot {
            id,
            name: name.to_owned(),
            volume_id: volume_id.to_owned(),
            kind: volume.kind,
            size_bytes: volume.capacity_bytes,
            made_seconds: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
        };
        let data = self.store().begin(&snapshot.id).map_err(|error| internal("making the snapshot", &error))?;
        let origin = self.store().data(&volume);
        self.fill(&data, snapshot.kind, snapshot.size_bytes, Some(&origin)).await?;
        self.store().finish(&snapshot).map_err(|error| internal("making the snapshot", &error))?;
        self.contents().snapshots.insert(snapshot.id.clone(), snapshot.clone());
        Ok(told(&snapshot))
    }

    /// Removes a snapshot; fine if there is none.
    pub(crate) async fn drop_snapshot(&self, id: &str) -> Result<(), Status> {
        if id.is_empty() {
            return Err(Status::invalid_argument("snapshot_id is required"));
        }
        let _turn = self.turn(id)?;
        let Some(snapshot) = self.contents().snapshots.get(id).cloned() else { return Ok(()) };
        let removed = self.take_away(&snapshot)?;
        self.contents().snapshots.remove(id);
        self.clear(removed).await;
        Ok(())
    }

    pub(crate) fn snapshots_listed(&self, request: &ListSnapshotsRequest) -> Result<ListSnapshotsResponse, Status> {
        let contents = self.contents();
        let paging = (request.max_entries, request.starting_token.as_str());
        let page = page(&contents.snapshots, paging, is_snapshot_id, |snapshot| {
            let wanted = |filter: &str, own: &str| filter.is_empty() || filter == own;
            let listed =
                wanted(&request.snapshot_id, &snapshot.id) && wanted(&request.source_volume_id, &snapshot.volume_id);
            listed.then(|| list_snapshots_response::Entry { snapshot: Some(told(snapshot)) })
        })?;
        Ok(ListSnapshotsResponse { entries: page.entries, next_token: page.next_token })
    }
}
