//! What is to be done so that there are the volumes that pods want, and no others. Pure.
//!
//! One step at a time for each volume: what is planned after it follows from how it went.

use std::fmt;

use super::world::{ActualStateOfWorld, DesiredStateOfWorld, Done, VolumeName};

/// What a plugin is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Attach,
    MountDevice,
    SetUp,
    TearDown,
    UnmountDevice,
    Detach,
}

impl Step {
    /// How events and logs name it, for file systems and for block devices.
    pub(super) fn name(self, block: bool) -> &'static str {
        match (self, block) {
            (Self::Attach, false) => "MountVolume.WaitForAttach",
            (Self::MountDevice, false) => "MountVolume.MountDevice",
            (Self::SetUp, false) => "MountVolume.SetUp",
            (Self::TearDown, false) => "UnmountVolume.TearDown",
            (Self::UnmountDevice, false) => "UnmountDevice",
            (Self::Attach, true) => "MapVolume.WaitForAttach",
            (Self::MountDevice, true) => "MapVolume.SetUpDevice",
            (Self::SetUp, true) => "MapVolume.MapPodDevice",
            (Self::TearDown, true) => "UnmapVolume.UnmapBlockVolume",
            (Self::UnmountDevice, true) => "UnmapDevice.TearDownDevice",
            (Self::Detach, _) => "DetachVolume.Detach",
        }
    }

    /// How metrics name it where it ended well or not: upstream counts what comes before a set-up with the set-up, and has no
    /// name for it where that is not reached.
    pub(super) fn counted_as(self, block: bool, done: bool) -> Option<&'static str> {
        match (self, block) {
            (Self::Attach, _) => Some("verify_controller_attached_volume"),
            (Self::MountDevice, _) if done => None,
            (Self::MountDevice | Self::SetUp, false) => Some("volume_mount"),
            (Self::MountDevice | Self::SetUp, true) => Some("map_volume"),
            (Self::TearDown, false) => Some("volume_unmount"),
            (Self::TearDown, true) => Some("unmap_volume"),
            (Self::UnmountDevice, false) => Some("unmount_device"),
            (Self::UnmountDevice, true) => Some("unmap_device"),
            (Self::Detach, _) => None,
        }
    }

    /// Whether it brings a volume nearer to its pods.
    pub(super) fn brings(self) -> bool {
        self <= Self::SetUp
    }
}

/// One step for one volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) step: Step,
    pub(super) volume: VolumeName,
    /// The pod that it is set up for, or torn down; empty where it is about all of them.
    pub(super) uid: String,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.step.name(self.volume.plugin.is_block()), self.volume, self.uid)
    }
}

/// The next steps for the volumes that are meant: first those that take away, then those that bring.
pub(super) fn plan(
    desired: &DesiredStateOfWorld,
    actual: &ActualStateOfWorld,
    is_meant: &dyn Fn(&VolumeName) -> bool,
) -> Vec<Operation> {
    let wanted = desired.volumes(is_meant);
    let mut operations = Vec::new();
    let mut push = |step: Step, volume: &VolumeName, uid: &str| {
        operations.push(Operation { step, volume: volume.clone(), uid: uid.to_owned() });
    };
    for (name, volume) in actual.volumes.iter().filter(|(name, _)| is_meant(name)) {
        let users = wanted.get(name);
        let gone = volume.pods.keys().filter(|uid| !users.is_some_and(|users| users.uids.contains(*uid)));
        gone.for_each(|uid| push(Step::TearDown, name, uid));
        if !volume.pods.is_empty() || users.is_some() {
            continue;
        }
        if volume.device != Done::No {
            push(Step::UnmountDevice, name, "");
        } else if volume.attached != Done::No {
            push(Step::Detach, name, "");
        }
    }
    for (name, users) in wanted {
        let there = actual.volumes.get(name);
        if users.steps.attach && there.is_none_or(|volume| volume.attached != Done::Yes) {
            push(Step::Attach, name, "");
            continue;
        }
        if users.steps.device && there.is_none_or(|volume| volume.device != Done::Yes) {
            push(Step::MountDevice, name, "");
            continue;
        }
        for uid in &users.uids {
            let mount = there.and_then(|volume| volume.pods.get(uid));
            if mount.is_none_or(|mount| mount.done != Done::Yes || mount.remount) {
                push(Step::SetUp, name, uid);
            }
        }
    }
    operations
}

#[cfg(test)]
mod tests {
    use super::super::layout::Plugin;
    use super::super::world::{ActualVolume, DesiredVolume, PodMount, Steps};
    use super::*;

    const ALL: Steps = Steps { attach: true, device: true, remount: false };
    const DEVICE: Steps = Steps { attach: false, ..ALL };
    const PLAIN: Steps = Steps { device: false, ..DEVICE };

    fn name() -> VolumeName {
        VolumeName { plugin: Plugin::Local, id: "v".into() }
    }

    fn desired(steps: Steps, uids: &[&str]) -> DesiredStateOfWorld {
        let volume = DesiredVolume { name: name(), steps, directory: "v".into(), label: None };
        let pods = uids.iter().map(|uid| ((*uid).to_owned(), [("data".to_owned(), volume.clone())].into()));
        DesiredStateOfWorld { pods: pods.collect() }
    }

    fn actual(attached: Done, device: Done, pods: &[(&str, Done, bool)]) -> ActualStateOfWorld {
        let pods = pods.iter().map(|(uid, done, remount)| {
            ((*uid).to_owned(), PodMount { done: *done, remount: *remount, ..PodMount::default() })
        });
        let volume = ActualVolume { attached, device, pods: pods.collect(), ..ActualVolume::default() };
        ActualStateOfWorld { volumes: [(name(), volume)].into() }
    }

    /// Steps, and the pods they are for.
    fn planned(desired: &DesiredStateOfWorld, actual: &ActualStateOfWorld) -> String {
        let all = plan(desired, actual, &|_| true).into_iter();
        all.map(|it| format!("{:?} {}", it.step, it.uid).trim_end().to_owned()).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn one_step_after_the_other_brings_a_volume_and_takes_it_away() {
        use Done::{No, Uncertain, Yes};
        type Pods<'a> = &'a [(&'a str, Done, bool)];
        type Case<'a> = (&'a str, Steps, &'a [&'a str], (Done, Done, Pods<'a>), &'a str);
        let cases: [Case<'_>; 19] = [
            ("nothing there", ALL, &["a"], (No, No, &[]), "Attach"),
            ("attach begun", ALL, &["a"], (Uncertain, No, &[]), "Attach"),
            ("attached", ALL, &["a"], (Yes, No, &[]), "MountDevice"),
            ("device begun", ALL, &["a", "b"], (Yes, Uncertain, &[]), "MountDevice"),
            ("device mounted", ALL, &["a", "b"], (Yes, Yes, &[]), "SetUp a, SetUp b"),
            ("one of two", ALL, &["a", "b"], (Yes, Yes, &[("a", Yes, false)]), "SetUp b"),
            ("set up begun", ALL, &["a"], (Yes, Yes, &[("a", Uncertain, false)]), "SetUp a"),
            ("all in place", ALL, &["a"], (Yes, Yes, &[("a", Yes, false)]), ""),
            ("content to follow", ALL, &["a"], (Yes, Yes, &[("a", Yes, true)]), "SetUp a"),
            ("no attachment needed", DEVICE, &["a"], (No, No, &[]), "MountDevice"),
            ("nothing but a mount needed", PLAIN, &["a"], (No, No, &[]), "SetUp a"),
            ("one pod goes", ALL, &["a"], (Yes, Yes, &[("a", Yes, false), ("b", Yes, false)]), "TearDown b"),
            ("the last pod goes", ALL, &[], (Yes, Yes, &[("b", Yes, false)]), "TearDown b"),
            ("never known mounted", ALL, &[], (Yes, Yes, &[("b", Uncertain, false)]), "TearDown b"),
            ("no pod left", ALL, &[], (Yes, Yes, &[]), "UnmountDevice"),
            ("device perhaps mounted", ALL, &[], (Yes, Uncertain, &[]), "UnmountDevice"),
            ("device gone", ALL, &[], (Yes, No, &[]), "Detach"),
            ("wanted again before the device went", ALL, &["c"], (Yes, Yes, &[]), "SetUp c"),
            ("reconstructed", ALL, &["a"], (Uncertain, Uncertain, &[("a", Uncertain, false)]), "Attach"),
        ];
        for (case, steps, uids, (attached, device, pods), expected) in cases {
            assert_eq!(planned(&desired(steps, uids), &actual(attached, device, pods)), expected, "{case}");
        }
        assert_eq!(planned(&desired(ALL, &["a"]), &ActualStateOfWorld::default()), "Attach", "never heard of");
    }

    #[test]
    fn others_are_not_planned_for() {
        let other = VolumeName { id: "w".into(), ..name() };
        let (mut desired, mut actual) = (desired(ALL, &["a"]), actual(Done::Yes, Done::Yes, &[("a", Done::Yes, true)]));
        let wanted = DesiredVolume { name: other.clone(), ..desired.pods["a"]["data"].clone() };
        desired.pods.entry("b".into()).or_default().insert("data".into(), wanted);
        actual.volumes.insert(VolumeName { id: "x".into(), ..name() }, ActualVolume::default());
        let planned = |meant: &VolumeName| plan(&desired, &actual, &|name| name == meant);
        let only = |step, volume: VolumeName, uid: &str| [Operation { step, volume, uid: uid.into() }];
        assert_eq!(planned(&name()), only(Step::SetUp, name(), "a"));
        assert_eq!(planned(&other), only(Step::Attach, other.clone(), ""));
        assert!(actual.has_unused());
    }

    /// Whatever state the world is in, following the plan ends with what is wanted and nothing else.
    #[test]
    fn following_the_plan_comes_to_an_end() {
        let states = [Done::No, Done::Uncertain, Done::Yes];
        for steps in [ALL, DEVICE, PLAIN] {
            for (attached, device, first) in
                states.iter().flat_map(|a| states.iter().flat_map(move |d| states.map(|f| (*a, *d, f))))
            {
                for uids in [&[][..], &["a"], &["a", "b"]] {
                    let pods = [("a", first, true)];
                    let pods = if first == Done::No { &[][..] } else { &pods };
                    let (desired, mut actual) = (desired(steps, uids), actual(attached, device, pods));
                    let mut left = 20;
                    while let Some(operation) = plan(&desired, &actual, &|_| true).into_iter().next() {
                        actual.note(&operation, if operation.step.brings() { Done::Yes } else { Done::No });
                        if let Some(mount) = actual.volumes.get_mut(&name()).and_then(|it| it.pods.get_mut("a")) {
                            mount.remount = false;
                        }
                        left -= 1;
                        assert!(left > 0, "no end from {attached:?} {device:?} {first:?} for {uids:?}");
                    }
                    let there = actual.volumes.get(&name()).filter(|volume| **volume != ActualVolume::default());
                    assert_eq!(there.is_some(), !uids.is_empty());
                    assert_eq!(there.map_or(0, |volume| volume.pods.len()), uids.len());
                }
            }
        }
    }
}
