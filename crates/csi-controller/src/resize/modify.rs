//! Has the driver change a volume's attributes.

use api_machinery::value::Value;
use api_types::core_v1::constants::persistent_volume_claim_modify_volume_status as progress;
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim};
use client::Patch;
use controller::{Cx, ReconcileError};
use node_api::csi::v1::ControllerModifyVolumeRequest;
use serde_json::json;
use tonic::Code;

use super::Resizer;
use crate::{notice, secrets};

/// The class that a claim is to be changed to, where it is not of that yet. One that was begun is finished first.
fn target(claim: &PersistentVolumeClaim) -> Option<&str> {
    let begun = claim.status.modify_volume_status.as_ref();
    let begun = begun.filter(|begun| begun.status == progress::IN_PROGRESS);
    let begun = begun.map(|begun| begun.target_volume_attributes_class_name.as_str());
    let wanted = claim.spec.volume_attributes_class_name.as_deref().filter(|name| !name.is_empty());
    let current = claim.status.current_volume_attributes_class_name.as_deref();
    begun.or(wanted.filter(|wanted| Some(*wanted) != current))
}

impl Resizer {
    pub(super) async fn modify(
        &self,
        cx: &Cx,
        claim: &PersistentVolumeClaim,
        volume: &PersistentVolume,
        handle: &str,
    ) -> Result<(), ReconcileError> {
        let Some(target) = target(claim) else { return Ok(()) };
        let Some(class) = self.classes.find("", target).filter(|class| class.driver_name == self.driver.name) else {
            self.write_progress(cx, claim, told(target, progress::PENDING)).await?;
            let reason = format!("VAC {target} does not exist.");
            notice::warning(cx, claim, "VolumeModifyFailed", reason.clone());
            return Err(ReconcileError::failed(reason));
        };
        let name = &claim.metadata.name;
        notice::normal(
            cx,
            claim,
            "VolumeModify",
            format!("external resizer is modifying volume {name} with vac {target}"),
        );
        self.write_progress(cx, claim, told(target, progress::IN_PROGRESS)).await?;
        let secret = volume.spec.persistent_volume_source.csi.as_ref();
        let request = ControllerModifyVolumeRequest {
            volume_id: handle.to_owned(),
            secrets: secrets::read(cx, secret.and_then(|csi| csi.controller_expand_secret_ref.as_ref())).await?,
            mutable_parameters: class.parameters.clone().into_iter().collect(),
        };
        if let Err(error) = self.driver.calls.modify_volume(request).await {
            let driver = &self.driver.name;
            let reason = format!("modify volume \"{}\" by resizer \"{driver}\" failed: {error}", volume.metadata.name);
            notice::warning(cx, claim, "VolumeModifyFailed", reason.clone());
            if matches!(error.code, Code::InvalidArgument | Code::OutOfRange | Code::NotFound) {
                self.write_progress(cx, claim, told(target, progress::INFEASIBLE)).await?;
            }
            return Err(ReconcileError::failed(reason));
        }
        let of_volume = Patch::Merge(json!({"spec": {"volumeAttributesClassName": target}}));
        cx.client.all::<PersistentVolume>().patch(&volume.metadata.name, &of_volume).await?;
        let done = json!({"currentVolumeAttributesClassName": target, "modifyVolumeStatus": null});
        self.write_progress(cx, claim, done).await?;
        let message = format!("external resizer modified volume {name} with vac {target} successfully");
        notice::normal(cx, claim, "VolumeModifySuccessful", message);
        Ok(())
    }

    async fn write_progress(
        &self,
        cx: &Cx,
        claim: &PersistentVolumeClaim,
        status: Value,
    ) -> Result<(), ReconcileError> {
        let api = cx.client.namespaced::<PersistentVolumeClaim>(&claim.metadata.namespace);
        api.patch_status(&claim.metadata.name, &Patch::Merge(json!({"status": status}))).await?;
        Ok(())
    }
}

fn told(target: &str, status: &str) -> Value {
    json!({"modifyVolumeStatus": {"targetVolumeAttributesClassName": target, "status": status}})
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::ModifyVolumeStatus;

    use super::*;

    #[test]
    fn what_was_begun_is_finished_first() {
        let claim = |wanted: &str, current: &str, begun: Option<(&str, &str)>| {
            let mut claim = PersistentVolumeClaim::default();
            claim.spec.volume_attributes_class_name = Some(wanted.into());
            claim.status.current_volume_attributes_class_name = Some(current.into()).filter(|_| !current.is_empty());
            claim.status.modify_volume_status = begun.map(|(target, status)| ModifyVolumeStatus {
                target_volume_attributes_class_name: target.into(),
                status: status.into(),
            });
            claim
        };
        for (claim, expected) in [
            (claim("gold", "gold", None), None),
            (claim("", "gold", None), None),
            (claim("gold", "", None), Some("gold")),
            (claim("gold", "silver", None), Some("gold")),
            (claim("gold", "", Some(("silver", "InProgress"))), Some("silver")),
            (claim("gold", "", Some(("silver", "Infeasible"))), Some("gold")),
        ] {
            assert_eq!(target(&claim), expected);
        }
    }
}
