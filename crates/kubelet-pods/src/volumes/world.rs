//! Which volumes pods want, and which there are: attached to the node, their device mounted, set up for pods.
//!
//! Several pods may use one volume; its attachment and its device go when the last of them is gone. Upstream:
//! DesiredStateOfWorld, ActualStateOfWorld.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use super::layout::Plugin;
use super::reconcile::{Operation, Step};
use super::selinux::Labelled;
use crate::metrics::Counts;

/// A volume by upstream's unique name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VolumeName {
    pub(super) plugin: Plugin,
    /// What tells it from others of the plugin.
    pub(super) id: String,
}

impl VolumeName {
    /// The volume that a plugin has in this directory of a pod.
    pub(super) fn new(plugin: Plugin, steps: Steps, uid: &str, directory: &str) -> Self {
        let shared = steps.attach || steps.device;
        let id = if shared { directory.to_owned() } else { format!("{uid}-{directory}") };
        Self { plugin, id }
    }
}

impl VolumeName {
    /// The plugin as metrics name it: drivers are told apart.
    pub(super) fn plugin_name(&self) -> String {
        let plugin = self.plugin.directory().replace('~', "/");
        match self.id.split_once('^') {
            Some((driver, _)) if matches!(self.plugin, Plugin::Csi | Plugin::CsiBlock) => format!("{plugin}:{driver}"),
            _ => plugin,
        }
    }
}

impl fmt::Display for VolumeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.plugin.directory().replace('~', "/"), self.id)
    }
}

/// Which volume it is, and what its plugin does for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) name: VolumeName,
    pub(super) steps: Steps,
}

/// What a plugin does for a volume beside setting it up for a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Steps {
    /// It is attached to the node before anything else.
    pub(super) attach: bool,
    /// Its device is mounted once, whatever pods use it.
    pub(super) device: bool,
    /// It is set up again at every sync, as its content follows objects.
    pub(super) remount: bool,
}

/// A volume in place for a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountedVolume {
    /// Where on the machine it is.
    pub path: PathBuf,
    /// Whether containers may not write, whatever their mount says.
    pub read_only: bool,
    /// Whether the runtime is to label its files for containers: what the kubelet made, unless it was mounted with a label.
    pub relabel: bool,
    /// The group it adds to the pod.
    pub(super) group: Option<i64>,
}

/// What a pod wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DesiredVolume {
    pub(super) name: VolumeName,
    pub(super) steps: Steps,
    /// Its directory below the pod's.
    pub(super) directory: String,
    /// The label that the pod wants it to have, where that is anybody's concern.
    pub(super) label: Option<Labelled>,
}

/// What all pods want: by uid, and by the volume's name in the pod.
#[derive(Debug, Default)]
pub(super) struct DesiredStateOfWorld {
    pub(super) pods: BTreeMap<String, BTreeMap<String, DesiredVolume>>,
}

/// Who wants a volume.
pub(super) struct Users {
    pub(super) steps: Steps,
    pub(super) uids: BTreeSet<String>,
}

impl DesiredStateOfWorld {
    /// The volumes that are meant, with those who want them.
    pub(super) fn volumes(&self, is_meant: &dyn Fn(&VolumeName) -> bool) -> BTreeMap<&VolumeName, Users> {
        let mut out: BTreeMap<&VolumeName, Users> = BTreeMap::new();
        for (uid, volumes) in &self.pods {
            for volume in volumes.values().filter(|volume| is_meant(&volume.name)) {
                let users = Users { steps: volume.steps, uids: BTreeSet::new() };
                out.entry(&volume.name).or_insert(users).uids.insert(uid.clone());
            }
        }
        out
    }

    pub(super) fn get(&self, uid: &str, volume: &str) -> Option<&DesiredVolume> {
        self.pods.get(uid)?.get(volume)
    }

    /// The label that another pod wants a volume to have.
    pub(super) fn label_beside(&self, uid: &str, name: &VolumeName) -> Option<&Labelled> {
        let others = self.pods.iter().filter(|(other, _)| *other != uid).flat_map(|(_, volumes)| volumes.values());
        others.filter(|volume| volume.name == *name).find_map(|volume| volume.label.as_ref())
    }

    /// A volume's directory below a pod's that wants it.
    pub(super) fn directory(&self, uid: &str, name: &VolumeName) -> Option<String> {
        let found = self.pods.get(uid)?.values().find(|volume| volume.name == *name)?;
        Some(found.directory.clone())
    }
}

/// Whether a step has been done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Done {
    #[default]
    No,
    /// It was begun, now or by an earlier kubelet: to be done again where it is wanted, otherwise to be undone.
    Uncertain,
    Yes,
}

/// A volume that there is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ActualVolume {
    pub(super) attached: Done,
    pub(super) device: Done,
    /// That the device is mounted with (SELinux), if it is; empty for none.
    pub(super) label: String,
    /// Set up for these pods, by uid.
    pub(super) pods: BTreeMap<String, PodMount>,
}

/// A volume as one pod has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PodMount {
    pub(super) done: Done,
    pub(super) directory: String,
    /// `None` until it was in place once.
    pub(super) mounted: Option<MountedVolume>,
    /// Its content is to be looked after again.
    pub(super) remount: bool,
}

/// All volumes that there are.
#[derive(Debug, Default)]
pub(super) struct ActualStateOfWorld {
    pub(super) volumes: BTreeMap<VolumeName, ActualVolume>,
}

impl ActualStateOfWorld {
    /// A volume was found on disk: which steps were taken is not known for sure.
    pub(super) fn reconstruct(&mut self, found: Identity, uid: String, directory: String) {
        let pods = &mut self.reconstruct_device(found).pods;
        pods.insert(uid, PodMount { done: Done::Uncertain, directory, ..PodMount::default() });
    }

    /// The same of what pods share, whether one of them has it or not.
    pub(super) fn reconstruct_device(&mut self, found: Identity) -> &mut ActualVolume {
        let volume = self.volumes.entry(found.name).or_default();
        let seen = |step: bool| if step { Done::Uncertain } else { Done::No };
        (volume.attached, volume.device) = (seen(found.steps.attach), seen(found.steps.device));
        volume
    }

    /// The label with which a volume's device is mounted, or may be; empty for none.
    pub(super) fn staged_label(&self, name: &VolumeName) -> Option<&str> {
        self.volumes.get(name).filter(|volume| volume.device != Done::No).map(|volume| volume.label.as_str())
    }

    /// Whether no pod has something of a volume that is there still.
    pub(super) fn has_unused(&self) -> bool {
        self.volumes.values().any(|volume| volume.pods.is_empty())
    }

    pub(super) fn pod(&self, name: &VolumeName, uid: &str) -> Option<&PodMount> {
        self.volumes.get(name)?.pods.get(uid)
    }

    pub(super) fn pod_mut(&mut self, name: &VolumeName, uid: &str) -> Option<&mut PodMount> {
        self.volumes.get_mut(name)?.pods.get_mut(uid)
    }

    /// Notes how far a step has come.
    pub(super) fn note(&mut self, operation: &Operation, done: Done) {
        let volume = self.volumes.entry(operation.volume.clone()).or_default();
        match operation.step {
            Step::Attach | Step::Detach => volume.attached = done,
            Step::MountDevice | Step::UnmountDevice => {
                volume.device = done;
                if done == Done::No {
                    volume.label.clear();
                }
            }
            Step::SetUp | Step::TearDown if done == Done::No => drop(volume.pods.remove(&operation.uid)),
            Step::SetUp | Step::TearDown => volume.pods.entry(operation.uid.clone()).or_default().done = done,
        }
        if *volume == ActualVolume::default() {
            self.volumes.remove(&operation.volume);
        }
    }

    /// Nothing is left of a pod on disk.
    pub(super) fn forget_pod(&mut self, uid: &str) {
        self.volumes.values_mut().for_each(|volume| drop(volume.pods.remove(uid)));
        self.volumes.retain(|_, volume| *volume != ActualVolume::default());
    }
}

/// How many volumes pods want, and how many are set up for them, by plugin.
pub(super) fn counts(desired: &DesiredStateOfWorld, actual: &ActualStateOfWorld) -> Counts {
    let mut counts = Counts::new();
    let mut count = |name: &VolumeName, state| *counts.entry((name.plugin_name(), state)).or_default() += 1;
    for volume in desired.pods.values().flat_map(BTreeMap::values) {
        count(&volume.name, "desired_state_of_world");
    }
    for (name, volume) in &actual.volumes {
        let there = volume.pods.values().filter(|mount| mount.done == Done::Yes);
        there.for_each(|_| count(name, "actual_state_of_world"));
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_counted_by_plugin_and_driver() {
        let name = |plugin, id: &str| VolumeName { plugin, id: id.into() };
        let (disk, secret) = (name(Plugin::Csi, "csi.example.com^handle"), name(Plugin::Secret, "a-token"));
        let wanted = |name: &VolumeName| {
            let (steps, directory) = (Steps::default(), "v".to_owned());
            ("v".to_owned(), DesiredVolume { name: name.clone(), steps, directory, label: None })
        };
        let pods = [("a", &disk), ("b", &disk), ("c", &secret)];
        let pods = pods.map(|(uid, name)| (uid.to_owned(), [wanted(name)].into())).into();
        let mount = |done| PodMount { done, ..PodMount::default() };
        let pods_of_disk = [("a".to_owned(), mount(Done::Yes)), ("b".to_owned(), mount(Done::Uncertain))].into();
        let there = ActualVolume { pods: pods_of_disk, ..ActualVolume::default() };
        let counts = counts(&DesiredStateOfWorld { pods }, &ActualStateOfWorld { volumes: [(disk, there)].into() });
        let shown: Vec<String> =
            counts.iter().map(|((name, state), count)| format!("{name} {state} {count}")).collect();
        assert_eq!(
            shown,
            [
                "kubernetes.io/csi:csi.example.com actual_state_of_world 1",
                "kubernetes.io/csi:csi.example.com desired_state_of_world 2",
                "kubernetes.io/secret desired_state_of_world 1",
            ]
        );
    }
}
