//! What is to be done about a claim's size. Pure.

use api_machinery::quantity::Quantity;
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::core_v1::constants::{
    claim_resource_status as resize, persistent_volume_claim_condition_type as condition,
};
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimCondition};
use component_helpers::volumes::matching::storage;
use serde_json::json;

/// What is next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Plan {
    Nothing,
    /// The driver grows it to this.
    Grow(Quantity),
    /// The volume has grown to this; the node has to do the rest.
    Pending(Quantity),
}

fn progress(claim: &PersistentVolumeClaim) -> &str {
    claim.status.allocated_resource_statuses.get("storage").map(String::as_str).unwrap_or_default()
}

/// What was promised last stays promised while it is not known whether it will happen.
pub(super) fn plan(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Plan {
    let (wanted, has) = (storage(&claim.spec.resources.requests), storage(&claim.status.capacity));
    let (allocated, real) = (storage(&claim.status.allocated_resources), storage(&volume.spec.capacity));
    match progress(claim) {
        resize::CONTROLLER_RESIZE_IN_PROGRESS => Plan::Grow(allocated.max(wanted).clone()),
        resize::NODE_RESIZE_PENDING | resize::NODE_RESIZE_IN_PROGRESS if wanted <= allocated => Plan::Nothing,
        _ if wanted <= has => Plan::Nothing,
        // A node that could not do it has said so; somebody has to ask for less, or for more.
        resize::NODE_RESIZE_INFEASIBLE if wanted <= real => Plan::Nothing,
        "" if wanted <= real => Plan::Pending(real.clone()),
        _ => Plan::Grow(wanted.clone()),
    }
}

/// How far growing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Begun,
    Infeasible,
    OnNode,
    Done,
}

fn of(kind: &str, now: Time, message: &str) -> PersistentVolumeClaimCondition {
    PersistentVolumeClaimCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        last_transition_time: now,
        last_probe_time: Time::default(),
        reason: String::new(),
        message: message.to_owned(),
    }
}

/// The conditions that a stage leaves: those of growing are replaced.
fn conditions(
    claim: &PersistentVolumeClaim,
    stage: Stage,
    now: Time,
    message: &str,
) -> Vec<PersistentVolumeClaimCondition> {
    const GROWING: [&str; 4] = [
        condition::RESIZING,
        condition::FILE_SYSTEM_RESIZE_PENDING,
        condition::CONTROLLER_RESIZE_ERROR,
        condition::NODE_RESIZE_ERROR,
    ];
    let own = match stage {
        Stage::Begun => Some(of(condition::RESIZING, now, "")),
        Stage::Infeasible => Some(of(condition::CONTROLLER_RESIZE_ERROR, now, message)),
        Stage::OnNode => Some(of(
            condition::FILE_SYSTEM_RESIZE_PENDING,
            now,
            "Waiting for user to (re-)start a pod to finish file system resize of volume on node.",
        )),
        Stage::Done => None,
    };
    let was = claim.status.conditions.iter().find(|was| own.as_ref().is_some_and(|own| own.type_ == was.type_));
    let own = own.map(|own| {
        let last_transition_time = was.map_or(own.last_transition_time, |was| was.last_transition_time);
        PersistentVolumeClaimCondition { last_transition_time, ..own }
    });
    let others = claim.status.conditions.iter().filter(|other| !GROWING.contains(&other.type_.as_str())).cloned();
    others.chain(own).collect()
}

/// The change to a claim's status for a stage, as a merge.
pub(super) fn change(claim: &PersistentVolumeClaim, stage: Stage, size: &Quantity, now: Time, message: &str) -> Value {
    let listed: Vec<Value> =
        conditions(claim, stage, now, message).iter().map(|one| api_machinery::value::to_value(one)).collect();
    let size = size.to_string();
    let mut status = json!({"conditions": listed});
    let told = match stage {
        Stage::Begun => Some(resize::CONTROLLER_RESIZE_IN_PROGRESS),
        Stage::Infeasible => Some(resize::CONTROLLER_RESIZE_INFEASIBLE),
        Stage::OnNode => Some(resize::NODE_RESIZE_PENDING),
        Stage::Done => None,
    };
    status["allocatedResourceStatuses"]["storage"] = told.map_or(Value::Null, Into::into);
    status["allocatedResources"]["storage"] = size.clone().into();
    if stage == Stage::Done {
        status["capacity"]["storage"] = size.into();
    }
    json!({"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(wanted: &str, has: &str, allocated: &str, progress: &str) -> PersistentVolumeClaim {
        let mut claim = PersistentVolumeClaim::default();
        let set = |list: &mut api_types::core_v1::ResourceList, text: &str| {
            if !text.is_empty() {
                list.insert("storage".into(), text.parse().unwrap());
            }
        };
        set(&mut claim.spec.resources.requests, wanted);
        set(&mut claim.status.capacity, has);
        set(&mut claim.status.allocated_resources, allocated);
        if !progress.is_empty() {
            claim.status.allocated_resource_statuses.insert("storage".into(), progress.into());
        }
        claim
    }

    fn volume(size: &str) -> PersistentVolume {
        let mut volume = PersistentVolume::default();
        volume.spec.capacity.insert("storage".into(), size.parse().unwrap());
        volume
    }

    #[test]
    fn growing_goes_on_where_it_was() {
        let grow = |size: &str| Plan::Grow(size.parse().unwrap());
        for (name, claim, real, expected) in [
            ("as asked", claim("1Gi", "1Gi", "", ""), "1Gi", Plan::Nothing),
            ("less is not possible", claim("1Gi", "2Gi", "", ""), "2Gi", Plan::Nothing),
            ("more", claim("2Gi", "1Gi", "", ""), "1Gi", grow("2Gi")),
            ("begun", claim("2Gi", "1Gi", "2Gi", "ControllerResizeInProgress"), "1Gi", grow("2Gi")),
            ("begun, then less", claim("2Gi", "1Gi", "3Gi", "ControllerResizeInProgress"), "1Gi", grow("3Gi")),
            ("done, not told", claim("2Gi", "1Gi", "2Gi", "ControllerResizeInProgress"), "2Gi", grow("2Gi")),
            ("was not possible", claim("2Gi", "1Gi", "5Gi", "ControllerResizeInfeasible"), "1Gi", grow("2Gi")),
            ("on the node", claim("2Gi", "1Gi", "2Gi", "NodeResizePending"), "2Gi", Plan::Nothing),
            ("on the node, more", claim("3Gi", "1Gi", "2Gi", "NodeResizePending"), "2Gi", grow("3Gi")),
            ("the node failed", claim("2Gi", "1Gi", "2Gi", "NodeResizeInfeasible"), "2Gi", Plan::Nothing),
            ("grown by hand", claim("2Gi", "1Gi", "", ""), "2Gi", Plan::Pending("2Gi".parse().unwrap())),
        ] {
            assert_eq!(plan(&claim, &volume(real)), expected, "{name}");
        }
    }

    #[test]
    fn a_stage_replaces_the_conditions_of_the_one_before() {
        let mut claim = claim("2Gi", "1Gi", "", "");
        claim.status.conditions = vec![of("Other", Time::default(), ""), of("Resizing", Time::default(), "")];
        let size = "2Gi".parse().unwrap();
        for (stage, types, progress, capacity) in [
            (Stage::Begun, vec!["Other", "Resizing"], "\"ControllerResizeInProgress\"", "null"),
            (Stage::Infeasible, vec!["Other", "ControllerResizeError"], "\"ControllerResizeInfeasible\"", "null"),
            (Stage::OnNode, vec!["Other", "FileSystemResizePending"], "\"NodeResizePending\"", "null"),
            (Stage::Done, vec!["Other"], "null", "\"2Gi\""),
        ] {
            let change = change(&claim, stage, &size, Time::default(), "why");
            let found: Vec<_> = change["status"]["conditions"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["type"].as_str().unwrap())
                .collect();
            assert_eq!(found, types, "{stage:?}");
            assert_eq!(change["status"]["allocatedResourceStatuses"]["storage"].to_string(), progress, "{stage:?}");
            assert_eq!(change["status"]["capacity"]["storage"].to_string(), capacity, "{stage:?}");
        }
    }
}
