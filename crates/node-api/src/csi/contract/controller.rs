//! Rules of volumes.

use super::*;
use crate::csi::v1::volume_content_source::{Type as ContentType, VolumeSource};

impl Contract {
    pub(super) async fn volumes(&mut self, prefix: &str) {
        if !self.controller_can.contains(&ControllerCan::CreateDeleteVolume) {
            return;
        }
        let nameless = self.controller.create_volume(to_create("")).await;
        self.refused(nameless, Code::InvalidArgument, "CreateVolume wants a name");
        let useless = CreateVolumeRequest { volume_capabilities: Vec::new(), ..to_create(prefix) };
        let useless = self.controller.create_volume(useless).await;
        self.refused(useless, Code::InvalidArgument, "CreateVolume wants capabilities");
        let impossible = Some(CapacityRange { required_bytes: SIZE, limit_bytes: SIZE / 2 });
        let impossible = CreateVolumeRequest { capacity_range: impossible, ..to_create(prefix) };
        let impossible = self.controller.create_volume(impossible).await;
        self.refused(impossible, Code::OutOfRange, "CreateVolume refuses a range with nothing in it");

        let name = format!("{prefix}-volume");
        let Some(first) = self.create(to_create(&name), "CreateVolume makes a volume").await else { return };
        let (id, size) = (first.volume_id.clone(), first.capacity_bytes);
        self.rule(size == 0 || size >= SIZE, "a volume is as large as it was asked for");
        if let Some(again) = self.create(to_create(&name), "CreateVolume is idempotent").await {
            self.rule(again.volume_id == id, "the same name is the same volume");
        }
        let larger = Some(CapacityRange { required_bytes: SIZE * 2, limit_bytes: 0 });
        let larger = self.controller.create_volume(CreateVolumeRequest { capacity_range: larger, ..to_create(&name) });
        let larger = larger.await;
        if size != 0 && size < SIZE * 2 {
            self.refused(larger, Code::AlreadyExists, "another volume of the same name is refused");
        }
        self.validation(&id).await;
        let nobody = self.controller.delete_volume(to_delete("")).await;
        self.refused(nobody, Code::InvalidArgument, "DeleteVolume wants an id");
        self.delete(&id).await;
        self.delete(&id).await;
        let unknown = self.controller.delete_volume(to_delete(NOBODY)).await;
        self.answered(unknown, "DeleteVolume of no volume is done");
    }

    async fn validation(&mut self, id: &str) {
        let request = |id: &str, volume_capabilities| ValidateVolumeCapabilitiesRequest {
            volume_id: id.to_owned(),
            volume_capabilities,
            ..ValidateVolumeCapabilitiesRequest::default()
        };
        let good = self.controller.validate_volume_capabilities(request(id, vec![mount_for_one()])).await;
        if let Some(good) = self.answered(good, "ValidateVolumeCapabilities answers") {
            self.rule(good.confirmed.is_some(), "what a volume was made for is confirmed");
        }
        for (id, capabilities, code, rule) in [
            ("", vec![mount_for_one()], Code::InvalidArgument, "ValidateVolumeCapabilities wants an id"),
            (id, Vec::new(), Code::InvalidArgument, "ValidateVolumeCapabilities wants capabilities"),
            (NOBODY, vec![mount_for_one()], Code::NotFound, "ValidateVolumeCapabilities wants a volume"),
        ] {
            let answer = self.controller.validate_volume_capabilities(request(id, capabilities)).await;
            self.refused(answer, code, rule);
        }
    }

    pub(super) async fn growth(&mut self, prefix: &str) {
        if !self.controller_can.contains(&ControllerCan::ExpandVolume) {
            return;
        }
        let request = |id: &str, required_bytes| ControllerExpandVolumeRequest {
            volume_id: id.to_owned(),
            capacity_range: Some(CapacityRange { required_bytes, limit_bytes: 0 }),
            ..ControllerExpandVolumeRequest::default()
        };
        let nobody = self.controller.controller_expand_volume(request("", SIZE)).await;
        self.refused(nobody, Code::InvalidArgument, "ControllerExpandVolume wants an id");
        let unknown = self.controller.controller_expand_volume(request(NOBODY, SIZE)).await;
        self.refused(unknown, Code::NotFound, "ControllerExpandVolume wants a volume");
        let name = format!("{prefix}-growing");
        let Some(volume) = self.create(to_create(&name), "CreateVolume makes a volume").await else { return };
        let id = volume.volume_id;
        let rangeless = ControllerExpandVolumeRequest { capacity_range: None, ..request(&id, 0) };
        let rangeless = self.controller.controller_expand_volume(rangeless).await;
        self.refused(rangeless, Code::InvalidArgument, "ControllerExpandVolume wants a range");
        for (required, rule) in [
            (SIZE * 2, "a volume grows"),
            (SIZE * 2, "ControllerExpandVolume is idempotent"),
            (SIZE, "a volume that is large enough does not shrink"),
        ] {
            let answer = self.controller.controller_expand_volume(request(&id, required)).await;
            let grown = self.answered(answer, rule).unwrap_or_default();
            self.rule(grown.capacity_bytes >= SIZE * 2, rule);
        }
        self.delete(&id).await;
    }

    pub(super) async fn lists(&mut self, prefix: &str) {
        if !self.controller_can.contains(&ControllerCan::ListVolumes) {
            return;
        }
        let invalid = ListVolumesRequest { max_entries: 0, starting_token: NOBODY.to_owned() };
        let invalid = self.controller.list_volumes(invalid).await;
        self.refused(invalid, Code::Aborted, "ListVolumes refuses a token that it did not give");
        let mut made = BTreeSet::new();
        for number in 0..3 {
            let request = to_create(&format!("{prefix}-listed-{number}"));
            made.extend(self.create(request, "CreateVolume makes a volume").await.map(|volume| volume.volume_id));
        }
        let (mut listed, mut starting_token) = (Vec::new(), String::new());
        // Each page has one at least, so that a driver that turns in circles is found out.
        for _ in 0..10_000 {
            let request = ListVolumesRequest { max_entries: 1, starting_token };
            let answer = self.controller.list_volumes(request).await;
            let Some(page) = self.answered(answer, "ListVolumes answers") else { break };
            self.rule(page.entries.len() <= 1, "a page has no more than it was asked for");
            listed.extend(page.entries.into_iter().filter_map(|entry| Some(entry.volume?.volume_id)));
            starting_token = page.next_token;
            if starting_token.is_empty() {
                break;
            }
        }
        let each_once = made.iter().all(|id| listed.iter().filter(|listed| *listed == id).count() == 1);
        self.rule(each_once && made.len() == 3, "the pages have every volume once");
        for id in made {
            self.delete(&id).await;
        }
    }

    pub(super) async fn origins(&mut self, prefix: &str) {
        if !self.controller_can.contains(&ControllerCan::CloneVolume) {
            return;
        }
        let clone_of = |name: &str, volume_id: &str| CreateVolumeRequest {
            volume_content_source: Some(VolumeContentSource {
                r#type: Some(ContentType::Volume(VolumeSource { volume_id: volume_id.to_owned() })),
            }),
            ..to_create(name)
        };
        let (name, clone_name) = (format!("{prefix}-original"), format!("{prefix}-clone"));
        let orphan = self.controller.create_volume(clone_of(&clone_name, NOBODY)).await;
        self.refused(orphan, Code::NotFound, "a clone of no volume is refused");
        let Some(original) = self.create(to_create(&name), "CreateVolume makes a volume").await else { return };
        let request = clone_of(&clone_name, &original.volume_id);
        if let Some(clone) = self.create(request.clone(), "CreateVolume clones a volume").await {
            self.rule(clone.volume_id != original.volume_id, "a clone is another volume");
            self.rule(clone.content_source == request.volume_content_source, "a clone says what it is of");
            self.delete(&clone.volume_id).await;
        }
        self.delete(&original.volume_id).await;
    }
}
