//! Rules of snapshots.

use super::*;
use crate::csi::v1::volume_content_source::{SnapshotSource, Type as ContentType};

fn to_snapshot(name: &str, source_volume_id: &str) -> CreateSnapshotRequest {
    CreateSnapshotRequest {
        name: name.to_owned(),
        source_volume_id: source_volume_id.to_owned(),
        ..CreateSnapshotRequest::default()
    }
}

fn to_remove(snapshot_id: &str) -> DeleteSnapshotRequest {
    DeleteSnapshotRequest { snapshot_id: snapshot_id.to_owned(), ..DeleteSnapshotRequest::default() }
}

impl Contract {
    pub(super) async fn snapshots(&mut self, prefix: &str) {
        if !self.controller_can.contains(&ControllerCan::CreateDeleteSnapshot) {
            return;
        }
        let name = format!("{prefix}-snapshot");
        for (name, volume, code, rule) in [
            ("", NOBODY, Code::InvalidArgument, "CreateSnapshot wants a name"),
            (name.as_str(), "", Code::InvalidArgument, "CreateSnapshot wants a volume's id"),
            (name.as_str(), NOBODY, Code::NotFound, "CreateSnapshot wants a volume"),
        ] {
            let answer = self.controller.create_snapshot(to_snapshot(name, volume)).await;
            self.refused(answer, code, rule);
        }
        let mut ids = Vec::new();
        for number in 0..2 {
            let request = to_create(&format!("{prefix}-of-snapshot-{number}"));
            ids.extend(self.create(request, "CreateVolume makes a volume").await.map(|volume| volume.volume_id));
        }
        if let [volume, other] = ids.as_slice() {
            self.snapshot_of(prefix, &name, volume, other).await;
        }
        for id in ids {
            self.delete(&id).await;
        }
    }

    async fn snapshot_of(&mut self, prefix: &str, name: &str, volume: &str, other: &str) {
        let answer = self.controller.create_snapshot(to_snapshot(name, volume)).await;
        let Some(made) = self.answered(answer, "CreateSnapshot makes one").and_then(|answer| answer.snapshot) else {
            return;
        };
        self.rule(made.source_volume_id == volume, "a snapshot says what it is of");
        self.rule(made.creation_time.is_some(), "a snapshot says when it was made");
        let again = self.controller.create_snapshot(to_snapshot(name, volume)).await;
        let again = self.answered(again, "CreateSnapshot is idempotent").and_then(|answer| answer.snapshot);
        let same = again.is_some_and(|again| again.snapshot_id == made.snapshot_id);
        self.rule(same, "the same name is the same snapshot");
        let another = self.controller.create_snapshot(to_snapshot(name, other)).await;
        self.refused(another, Code::AlreadyExists, "a snapshot of another volume with the same name is refused");
        if self.controller_can.contains(&ControllerCan::ListSnapshots) {
            self.snapshot_lists(&made).await;
        }
        self.restored(prefix, &made.snapshot_id).await;
        let nobody = self.controller.delete_snapshot(to_remove("")).await;
        self.refused(nobody, Code::InvalidArgument, "DeleteSnapshot wants an id");
        for id in [made.snapshot_id.as_str(), &made.snapshot_id, NOBODY] {
            let answer = self.controller.delete_snapshot(to_remove(id)).await;
            self.answered(answer, "DeleteSnapshot is idempotent");
        }
    }

    async fn snapshot_lists(&mut self, made: &Snapshot) {
        let by = |snapshot_id: &str, source_volume_id: &str| ListSnapshotsRequest {
            snapshot_id: snapshot_id.to_owned(),
            source_volume_id: source_volume_id.to_owned(),
            ..ListSnapshotsRequest::default()
        };
        let (id, volume) = (made.snapshot_id.as_str(), made.source_volume_id.as_str());
        for (request, expected, rule) in [
            (by(id, ""), 1, "snapshots are found by their id"),
            (by("", volume), 1, "snapshots are found by their volume"),
            (by(NOBODY, ""), 0, "no snapshot is an empty list"),
            (by("", NOBODY), 0, "no volume has no snapshots"),
        ] {
            let answer = self.controller.list_snapshots(request).await;
            let listed = self.answered(answer, rule).unwrap_or_default();
            self.rule(listed.entries.len() == expected, rule);
        }
    }

    async fn restored(&mut self, prefix: &str, snapshot_id: &str) {
        let of = |snapshot_id: &str| {
            let snapshot_id = snapshot_id.to_owned();
            let kind = Some(ContentType::Snapshot(SnapshotSource { snapshot_id }));
            let volume_content_source = Some(VolumeContentSource { r#type: kind });
            CreateVolumeRequest { volume_content_source, ..to_create(&format!("{prefix}-restored")) }
        };
        let orphan = self.controller.create_volume(of(NOBODY)).await;
        self.refused(orphan, Code::NotFound, "a volume of no snapshot is refused");
        if let Some(restored) = self.create(of(snapshot_id), "CreateVolume restores a snapshot").await {
            self.rule(restored.content_source == of(snapshot_id).volume_content_source, "a volume says what it is of");
            self.delete(&restored.volume_id).await;
        }
    }
}
