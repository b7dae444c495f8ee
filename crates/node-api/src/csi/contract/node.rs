//! Rules of a node.

use super::*;

impl Contract {
    pub(super) async fn node_info(&mut self) {
        let info = self.node.node_get_info(NodeGetInfoRequest {}).await;
        if let Some(info) = self.answered(info, "NodeGetInfo answers") {
            self.rule(!info.node_id.is_empty(), "the node has a name");
            self.rule(info.max_volumes_per_node >= 0, "the number of volumes is not negative");
        }
    }

    fn path(&self, name: &str) -> String {
        self.scratch.join(name).display().to_string()
    }

    fn to_stage(&self, volume_id: &str) -> NodeStageVolumeRequest {
        NodeStageVolumeRequest {
            volume_id: volume_id.to_owned(),
            staging_target_path: self.path("staging"),
            volume_capability: Some(mount_for_one()),
            ..NodeStageVolumeRequest::default()
        }
    }

    fn to_publish(&self, volume_id: &str) -> NodePublishVolumeRequest {
        let stages = self.node_can.contains(&NodeCan::StageUnstageVolume);
        NodePublishVolumeRequest {
            volume_id: volume_id.to_owned(),
            staging_target_path: if stages { self.path("staging") } else { String::new() },
            target_path: self.path("target"),
            volume_capability: Some(mount_for_one()),
            ..NodePublishVolumeRequest::default()
        }
    }

    fn to_unstage(&self, volume_id: &str) -> NodeUnstageVolumeRequest {
        NodeUnstageVolumeRequest { volume_id: volume_id.to_owned(), staging_target_path: self.path("staging") }
    }

    fn to_unpublish(&self, volume_id: &str) -> NodeUnpublishVolumeRequest {
        NodeUnpublishVolumeRequest { volume_id: volume_id.to_owned(), target_path: self.path("target") }
    }

    pub(super) async fn node_refusals(&mut self) {
        if self.node_can.contains(&NodeCan::StageUnstageVolume) {
            let good = self.to_stage(NOBODY);
            for (request, code, rule) in [
                (self.to_stage(""), Code::InvalidArgument, "NodeStageVolume wants an id"),
                (
                    NodeStageVolumeRequest { staging_target_path: String::new(), ..good.clone() },
                    Code::InvalidArgument,
                    "NodeStageVolume wants a path",
                ),
                (
                    NodeStageVolumeRequest { volume_capability: None, ..good },
                    Code::InvalidArgument,
                    "NodeStageVolume wants a capability",
                ),
            ] {
                let answer = self.node.node_stage_volume(request).await;
                self.refused(answer, code, rule);
            }
            let pathless = NodeUnstageVolumeRequest { staging_target_path: String::new(), ..self.to_unstage(NOBODY) };
            for (request, rule) in
                [(self.to_unstage(""), "NodeUnstageVolume wants an id"), (pathless, "NodeUnstageVolume wants a path")]
            {
                let answer = self.node.node_unstage_volume(request).await;
                self.refused(answer, Code::InvalidArgument, rule);
            }
        }
        let good = self.to_publish(NOBODY);
        for (request, rule) in [
            (self.to_publish(""), "NodePublishVolume wants an id"),
            (NodePublishVolumeRequest { target_path: String::new(), ..good.clone() }, "NodePublishVolume wants a path"),
            (NodePublishVolumeRequest { volume_capability: None, ..good }, "NodePublishVolume wants a capability"),
        ] {
            let answer = self.node.node_publish_volume(request).await;
            self.refused(answer, Code::InvalidArgument, rule);
        }
        let pathless = NodeUnpublishVolumeRequest { target_path: String::new(), ..self.to_unpublish(NOBODY) };
        for (request, code, rule) in [
            (self.to_unpublish(""), Code::InvalidArgument, "NodeUnpublishVolume wants an id"),
            (pathless, Code::InvalidArgument, "NodeUnpublishVolume wants a path"),
            (self.to_unpublish(NOBODY), Code::NotFound, "NodeUnpublishVolume wants a volume"),
        ] {
            let answer = self.node.node_unpublish_volume(request).await;
            self.refused(answer, code, rule);
        }
        self.stats_refusals().await;
    }

    async fn stats_refusals(&mut self) {
        if !self.node_can.contains(&NodeCan::GetVolumeStats) {
            return;
        }
        for (id, path, code, rule) in [
            ("", "/", Code::InvalidArgument, "NodeGetVolumeStats wants an id"),
            (NOBODY, "", Code::InvalidArgument, "NodeGetVolumeStats wants a path"),
            (NOBODY, "/", Code::NotFound, "NodeGetVolumeStats wants a volume"),
        ] {
            let (volume_id, volume_path) = (id.to_owned(), path.to_owned());
            let request = NodeGetVolumeStatsRequest { volume_id, volume_path, staging_target_path: String::new() };
            let answer = self.node.node_get_volume_stats(request).await;
            self.refused(answer, code, rule);
        }
    }

    /// A volume is made, brought to a pod, and goes the whole way back; every step twice. Drivers that have to attach
    /// are left out.
    pub(super) async fn way_to_a_pod(&mut self, prefix: &str) {
        let can = |can| self.controller_can.contains(&can);
        if !can(ControllerCan::CreateDeleteVolume) || can(ControllerCan::PublishUnpublishVolume) {
            return;
        }
        let stages = self.node_can.contains(&NodeCan::StageUnstageVolume);
        let name = format!("{prefix}-published");
        let Some(volume) = self.create(to_create(&name), "CreateVolume makes a volume").await else { return };
        let id = volume.volume_id;
        if stages {
            let unstaged = NodePublishVolumeRequest { staging_target_path: String::new(), ..self.to_publish(&id) };
            let unstaged = self.node.node_publish_volume(unstaged).await;
            self.refused(unstaged, Code::FailedPrecondition, "NodePublishVolume wants a staging path");
            for _ in 0..2 {
                let answer = self.node.node_stage_volume(self.to_stage(&id)).await;
                self.answered(answer, "NodeStageVolume is idempotent");
            }
        }
        for _ in 0..2 {
            let mut request = self.to_publish(&id);
            request.volume_context.clone_from(&volume.volume_context);
            let answer = self.node.node_publish_volume(request).await;
            self.answered(answer, "NodePublishVolume is idempotent");
        }
        let other = NodePublishVolumeRequest { readonly: true, ..self.to_publish(&id) };
        let other = self.node.node_publish_volume(other).await;
        self.refused(other, Code::AlreadyExists, "NodePublishVolume in another way is refused");
        self.usage(&id).await;
        for _ in 0..2 {
            let answer = self.node.node_unpublish_volume(self.to_unpublish(&id)).await;
            self.answered(answer, "NodeUnpublishVolume is idempotent");
        }
        let gone = !Path::new(&self.path("target")).exists();
        self.rule(gone, "NodeUnpublishVolume removes the target");
        if stages {
            for _ in 0..2 {
                let answer = self.node.node_unstage_volume(self.to_unstage(&id)).await;
                self.answered(answer, "NodeUnstageVolume is idempotent");
            }
        }
        self.delete(&id).await;
    }

    async fn usage(&mut self, id: &str) {
        if !self.node_can.contains(&NodeCan::GetVolumeStats) {
            return;
        }
        let request = |path: &str| NodeGetVolumeStatsRequest {
            volume_id: id.to_owned(),
            volume_path: path.to_owned(),
            staging_target_path: String::new(),
        };
        let answer = self.node.node_get_volume_stats(request(&self.path("target"))).await;
        let usage = self.answered(answer, "NodeGetVolumeStats answers").unwrap_or_default().usage;
        let fine = !usage.is_empty() && usage.iter().all(|one| one.total >= 0 && one.used >= 0 && one.available >= 0);
        self.rule(fine, "a volume that is published says how full it is");
        let elsewhere = self.node.node_get_volume_stats(request(&self.path("elsewhere"))).await;
        self.refused(elsewhere, Code::NotFound, "NodeGetVolumeStats wants a path that the volume is at");
    }
}
