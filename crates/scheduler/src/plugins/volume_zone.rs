//! `VolumeZone`: a volume that is labelled with zones or regions can be used there only.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_types::core_v1::constants::{
    LABEL_FAILURE_DOMAIN_BETA_REGION, LABEL_FAILURE_DOMAIN_BETA_ZONE, LABEL_TOPOLOGY_REGION, LABEL_TOPOLOGY_ZONE,
};
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use api_types::storage_v1::StorageClass;
use component_helpers::volumes::classes::{class_of_claim, waits_for_consumer};

use super::storage::{hint_of_named_claim, named_claims};
use crate::framework::{
    Action, BuildCx, CycleCx, CycleState, EventObject, Filter, Hint, Plugin, PluginError, PreFilter, PreFiltered,
    Registration, Resource, Status, StatusResult, by_volumes,
};
use crate::listers::Lister;
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;

pub(super) const NAME: &str = "VolumeZone";
const REASON: &str = "node(s) had no available volume zone";

/// The labels that tell of places, each with its name of today.
const LABELS: [(&str, &str); 4] = [
    (LABEL_FAILURE_DOMAIN_BETA_ZONE, LABEL_TOPOLOGY_ZONE),
    (LABEL_FAILURE_DOMAIN_BETA_REGION, LABEL_TOPOLOGY_REGION),
    (LABEL_TOPOLOGY_ZONE, LABEL_TOPOLOGY_ZONE),
    (LABEL_TOPOLOGY_REGION, LABEL_TOPOLOGY_REGION),
];
/// What stands between the values of a label that has several.
const SEPARATOR: &str = "__";

struct VolumeZone {
    claims: Lister<PersistentVolumeClaim>,
    volumes: Lister<PersistentVolume>,
    classes: Lister<StorageClass>,
}

/// A label that a node must have: its two names and the values that will do.
#[derive(Clone)]
struct Wanted {
    label: &'static str,
    today: &'static str,
    values: BTreeSet<String>,
}

#[derive(Clone)]
struct Places(Vec<Wanted>);

pub(super) fn build(cx: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    let plugin = Arc::new(VolumeZone { claims: cx.listers.of(), volumes: cx.listers.of(), classes: cx.listers.of() });
    let changes = Action::ADD.and(Action::UPDATE);
    let events = vec![
        Registration::hinted(Resource::of::<StorageClass>(), Action::ADD, hint_of_class),
        Registration::always(Resource::Node, Action::ADD.and(Action::NODE_LABEL)),
        Registration::hinted(Resource::of::<PersistentVolumeClaim>(), changes, hint_of_named_claim),
        Registration::hinted(Resource::of::<PersistentVolume>(), changes, hint_of_volume),
    ];
    let plugin = Plugin::new(NAME).pre_filter(plugin.clone()).filter(plugin).wakes_on(events);
    Ok(plugin.signed_by(by_volumes))
}

/// A class only helps where claims of it may stay unbound.
fn hint_of_class(_: &Pod, object: &EventObject) -> Hint {
    let Some(class) = object.other::<StorageClass>() else { return Hint::Queue };
    Hint::queue_if(waits_for_consumer(class) == Ok(true))
}

fn hint_of_volume(_: &Pod, object: &EventObject) -> Hint {
    let (Some(old), Some(new)) = object.change::<PersistentVolume>() else { return Hint::Queue };
    let places = |volume: &PersistentVolume| LABELS.map(|(label, _)| volume.metadata.labels.get(label).cloned());
    Hint::queue_if(places(old) != places(new))
}

/// The values of a label; none where one of them is empty.
fn values(text: &str) -> Option<BTreeSet<String>> {
    let values: BTreeSet<String> = text.split(SEPARATOR).map(|value| value.trim().to_owned()).collect();
    (!values.contains("")).then_some(values)
}

/// Where a volume can be used.
fn places_of(volume: &PersistentVolume) -> impl Iterator<Item = Wanted> {
    LABELS.into_iter().filter_map(|(label, today)| {
        let text = volume.metadata.labels.get(label)?;
        let values = values(text);
        if values.is_none() {
            tracing::info!(label, value = %text, volume = %volume.metadata.name, "Failed to parse label, ignoring the label");
        }
        Some(Wanted { label, today, values: values? })
    })
}

impl VolumeZone {
    /// The volume of a claim; none while it waits for its consumer.
    fn volume_of(&self, namespace: &str, name: &str) -> Result<Option<Arc<PersistentVolume>>, Status> {
        if name.is_empty() {
            return Err(Status::unresolvable("PersistentVolumeClaim had no name"));
        }
        let claim = self.claims.get(namespace, name)?;
        if !claim.spec.volume_name.is_empty() {
            return Ok(Some(self.volumes.get("", &claim.spec.volume_name)?));
        }
        let class = class_of_claim(&claim);
        if class.is_empty() {
            return Err(Status::unresolvable("PersistentVolumeClaim had no pv name and storageClass name"));
        }
        let class = self.classes.get("", class)?;
        let waits = waits_for_consumer(&class).map_err(|error| Status::unresolvable(error.to_string()))?;
        if waits { Ok(None) } else { Err(Status::unresolvable("PersistentVolume had no name")) }
    }
}

impl PreFilter for VolumeZone {
    fn pre_filter(&self, _: CycleCx<'_>, state: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status> {
        if !pod.has_volumes() {
            return Ok(PreFiltered::Skip);
        }
        let mut places = Vec::new();
        for name in named_claims(&pod.pod) {
            if let Some(volume) = self.volume_of(&pod.pod.metadata.namespace, name)? {
                places.extend(places_of(&volume));
            }
        }
        if places.is_empty() {
            return Ok(PreFiltered::Skip);
        }
        state.put(Places(places));
        Ok(PreFiltered::All)
    }
}

impl Filter for VolumeZone {
    fn filter(&self, state: &CycleState, _: &PodInfo, node: NodeView<'_>) -> StatusResult {
        let Some(Places(places)) = state.get::<Places>() else { return Ok(()) };
        if LABELS.iter().all(|(label, _)| node.label(label).is_none()) {
            return Ok(());
        }
        let is_there = |wanted: &Wanted| {
            let value = node.label(wanted.label).or_else(|| node.label(wanted.today));
            value.is_some_and(|value| wanted.values.contains(value))
        };
        if places.iter().all(is_there) { Ok(()) } else { Err(Status::unresolvable(REASON)) }
    }
}
