//! Labels (SELinux) that volumes are mounted with as a whole, so that nobody has to label their files one by one (KEP-1710).
//!
//! Volumes of one pod alone (`ReadWriteOncePod`) are, and with the gate `SELinuxMount` all, where their driver can and the
//! pod does not want otherwise. Of the rest it is only counted where that would not do.

use std::collections::BTreeSet;

use api_types::core_v1::{Container, Pod, SELinuxOptions};
use component_base::metrics::Gauges;
use sys::selinux::SeLinux;

use super::plugin::VolumeSpec;
use crate::metrics::KubeletMetrics;

/// The only access mode of volumes that are mounted with a label.
const ONE_POD: &str = "ReadWriteOncePod";
const RECURSIVE: &str = "Recursive";

/// The parts of a label of files.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileLabel {
    user: String,
    role: String,
    kind: String,
}

/// What containers' files are labelled with on a machine; nothing where it has no labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    file: Option<FileLabel>,
    /// Whether volumes of every access mode are mounted with a label.
    every_mode: bool,
}

impl Labels {
    /// What holds for a machine; `every_mode` is the gate `SELinuxMount`.
    pub fn of_machine(machine: &SeLinux, every_mode: bool) -> Self {
        let file = machine.container_file_label().filter(|_| machine.is_enabled()).and_then(|label| {
            let mut parts = label.splitn(4, ':').map(ToOwned::to_owned);
            Some(FileLabel { user: parts.next()?, role: parts.next()?, kind: parts.next()? })
        });
        Self { file, every_mode }
    }

    #[cfg(test)]
    pub(super) fn of_test(every_mode: bool) -> Self {
        let [user, role, kind] = ["system_u", "object_r", "container_file_t"].map(ToOwned::to_owned);
        Self { file: Some(FileLabel { user, role, kind }), every_mode }
    }

    /// The label of the files of containers with these options. Without a level the runtime chooses one that nobody knows.
    fn of(&self, options: &SELinuxOptions) -> Option<String> {
        let FileLabel { user, role, kind } = self.file.as_ref().filter(|_| !options.level.is_empty())?;
        let user = if options.user.is_empty() { user } else { &options.user };
        Some(format!("{user}:{role}:{kind}:{}", options.level))
    }

    /// Whether nothing has a label here.
    pub(super) fn are_none(&self) -> bool {
        self.file.is_none()
    }

    /// The labels that a pod's containers want a volume to have; none where it is not known of one of them what it wants.
    fn wanted(&self, pod: &Pod, volume: &str) -> BTreeSet<String> {
        let of_pod = pod.spec.security_context.as_ref().and_then(|context| context.se_linux_options.as_ref());
        let label = |container: &Container| {
            let own = container.security_context.as_ref().and_then(|context| context.se_linux_options.as_ref());
            self.of(own.or(of_pod)?)
        };
        let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
        let users = containers.filter(|container| container.volume_mounts.iter().any(|mount| mount.name == volume));
        users.map(label).collect::<Option<BTreeSet<String>>>().unwrap_or_default()
    }
}

/// A volume's label, as one pod wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Labelled {
    /// All that containers want; none where it is not to be mounted with one, several where they do not agree.
    labels: BTreeSet<String>,
    /// Whether such volumes are mounted with labels; otherwise conflicts are counted and nothing else.
    enforced: bool,
    /// Short names of the volume's access modes, and its plugin's name: what it is counted by.
    modes: String,
    plugin: String,
}

/// Why a pod cannot have a volume.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LabelError {
    #[error("multiple SELinux labels found: {}", .0.join(", "))]
    Several(Vec<String>),
    #[error("conflicting SELinux labels of volume {volume}: {one:?} and {other:?}")]
    Conflict { volume: String, one: String, other: String },
}

impl Labelled {
    /// What a pod wants of a volume of a driver that can mount with labels.
    fn new(labels: &Labels, pod: &Pod, volume: &str, driver: &str, access_modes: &[String]) -> Self {
        let policy = pod.spec.security_context.as_ref().and_then(|context| context.se_linux_change_policy.as_deref());
        Self {
            labels: if policy == Some(RECURSIVE) { BTreeSet::new() } else { labels.wanted(pod, volume) },
            enforced: labels.every_mode || access_modes == [ONE_POD],
            modes: kinds_frame::table::access_modes(access_modes),
            plugin: format!("kubernetes.io/csi:{driver}"),
        }
    }

    /// Counts that a pod has it, where that is with a label.
    pub(super) fn admit(&self, metrics: &KubeletMetrics) {
        if self.enforced && !self.labels.is_empty() {
            metrics.labelled_volumes.with(&[&self.modes, &self.plugin]).inc();
        }
    }

    /// The label, where containers agree; empty for none.
    ///
    /// # Errors
    /// They do not.
    fn label(&self) -> Result<&str, LabelError> {
        let mut labels = self.labels.iter();
        match (labels.next(), labels.next()) {
            (only, None) => Ok(only.map_or("", String::as_str)),
            _ => Err(LabelError::Several(self.labels.iter().cloned().collect())),
        }
    }

    /// Counts what does not agree: it is an error for volumes that are mounted with labels.
    fn judge(&self, agreed: Result<(), LabelError>, counts: [&Gauges; 2], labels: &[&str]) -> Result<(), LabelError> {
        let [errors, warnings] = counts;
        let Err(error) = agreed else { return Ok(()) };
        if self.enforced {
            errors.with(labels).inc();
            return Err(error);
        }
        warnings.with(labels).inc();
        Ok(())
    }

    /// Whether this is also the label with which the volume is there already.
    ///
    /// # Errors
    /// It is not.
    fn check_beside(&self, there: &str, volume: &str) -> Result<(), LabelError> {
        let own = self.label().unwrap_or_default();
        if there == own {
            return Ok(());
        }
        Err(LabelError::Conflict { volume: volume.to_owned(), one: there.to_owned(), other: own.to_owned() })
    }
}

/// How a pod's volume gets its label.
pub(super) struct Labelling<'a> {
    pub(super) labels: &'a Labels,
    pub(super) metrics: &'a KubeletMetrics,
    /// What another pod wants of the volume; where labels are enforced, all of them want the same.
    pub(super) other: Option<Labelled>,
    /// The label with which the volume is mounted for all pods, if it is; empty for none.
    pub(super) staged: Option<String>,
}

impl Labelling<'_> {
    /// Has a driver's volume mounted with its label, where it can be. What is not mounted with one fails for nothing of this;
    /// that it would is counted.
    ///
    /// # Errors
    /// The pod's containers want several labels, or the volume is there with another.
    pub(super) fn of(self, pod: &Pod, spec: &mut VolumeSpec) -> Result<Option<Labelled>, LabelError> {
        let name = spec.directory().to_owned();
        let Some(volume) = spec.csi.as_deref_mut() else { return Ok(None) };
        let Some(modes) = volume.modes_of_labelled() else { return Ok(None) };
        let wanted = Labelled::new(self.labels, pod, &spec.volume.name, volume.driver(), modes);
        let (modes, plugin) = (wanted.modes.as_str(), wanted.plugin.as_str());
        let of_pod = [&self.metrics.pod_label_errors, &self.metrics.pod_label_warnings];
        wanted.judge(wanted.label().map(drop), of_pod, &[modes])?;
        // A volume that is not mounted with labels is compared with what other pods would want it to be mounted with.
        let there = match (self.other, self.staged) {
            (Some(other), _) => Some(other.label().unwrap_or_default().to_owned()),
            (None, staged) => staged.filter(|_| wanted.enforced),
        };
        if let Some(there) = there {
            let of_volume = [&self.metrics.volume_label_errors, &self.metrics.volume_label_warnings];
            wanted.judge(wanted.check_beside(&there, &name), of_volume, &[modes, plugin])?;
        }
        let label = wanted.label().unwrap_or_default();
        if wanted.enforced && !label.is_empty() {
            volume.label = Some(label.to_owned());
        }
        Ok(Some(wanted))
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{PodSecurityContext, SecurityContext, VolumeMount};

    use super::*;

    fn options(user: &str, level: &str) -> SELinuxOptions {
        SELinuxOptions {
            user: user.into(),
            type_: "container_t".into(),
            level: level.into(),
            ..SELinuxOptions::default()
        }
    }

    /// A pod whose containers mount a volume, with options of their own.
    fn pod(of_pod: Option<SELinuxOptions>, containers: &[Option<SELinuxOptions>]) -> Pod {
        let mut pod = Pod::default();
        pod.spec.security_context =
            Some(PodSecurityContext { se_linux_options: of_pod, ..PodSecurityContext::default() });
        let mount = VolumeMount { name: "v".into(), ..VolumeMount::default() };
        pod.spec.containers = containers
            .iter()
            .map(|own| Container {
                security_context: own
                    .clone()
                    .map(|own| SecurityContext { se_linux_options: Some(own), ..Default::default() }),
                volume_mounts: vec![mount.clone()],
                ..Container::default()
            })
            .collect();
        pod
    }

    fn once() -> [String; 1] {
        [ONE_POD.to_owned()]
    }

    #[test]
    fn the_label_is_that_of_files_of_the_pods_containers() {
        let level = |level: &str| Some(options("", level));
        type Case<'a> = (&'a str, Option<SELinuxOptions>, Vec<Option<SELinuxOptions>>, Result<&'a str, &'a str>);
        let cases: [Case<'_>; 7] = [
            ("of the pod", level("s0:c1,c2"), vec![None], Ok("system_u:object_r:container_file_t:s0:c1,c2")),
            ("of the container", level("s0:c1"), vec![level("s0:c3")], Ok("system_u:object_r:container_file_t:s0:c3")),
            ("another user", Some(options("u", "s0:c1")), vec![None], Ok("u:object_r:container_file_t:s0:c1")),
            ("no level", Some(options("u", "")), vec![None], Ok("")),
            ("no options", None, vec![None], Ok("")),
            ("not of all containers", None, vec![level("s0:c1"), None], Ok("")),
            (
                "two labels",
                None,
                vec![level("s0:c1"), level("s0:c2")],
                Err("multiple SELinux labels found: system_u:object_r:container_file_t:s0:c1, \
                     system_u:object_r:container_file_t:s0:c2"),
            ),
        ];
        for (case, of_pod, containers, expected) in cases {
            let pod = pod(of_pod, &containers);
            let found = |volume: &str| {
                let found = Labelled::new(&Labels::of_test(false), &pod, volume, "d", &once());
                found.label().map(ToOwned::to_owned).map_err(|error| error.to_string())
            };
            assert_eq!(found("v"), expected.map(ToOwned::to_owned).map_err(ToOwned::to_owned), "{case}");
            assert_eq!(found("other"), Ok(String::new()), "not mounted");
        }
    }

    #[test]
    fn only_volumes_of_one_pod_are_mounted_with_a_label_unless_the_gate_is_on() {
        let label = "system_u:object_r:container_file_t:s0:c1";
        let mut own = pod(Some(options("", "s0:c1")), &[None]);
        let shared = ["ReadWriteOnce".to_owned(), ONE_POD.to_owned()];
        for (modes, policy, every_mode, expected) in [
            (&once()[..], None, false, (label, true, "RWOP")),
            (&once()[..], Some("MountOption"), false, (label, true, "RWOP")),
            (&once()[..], Some("Recursive"), false, ("", true, "RWOP")),
            (&shared[..], None, false, (label, false, "RWO,RWOP")),
            (&shared[..1], None, false, (label, false, "RWO")),
            (&shared[..1], None, true, (label, true, "RWO")),
            (&shared[..1], Some("Recursive"), true, ("", true, "RWO")),
        ] {
            if let Some(context) = &mut own.spec.security_context {
                context.se_linux_change_policy = policy.map(ToOwned::to_owned);
            }
            let found = Labelled::new(&Labels::of_test(every_mode), &own, "v", "d", modes);
            let found = (found.label().unwrap(), found.enforced, found.modes.as_str());
            assert_eq!(found, expected, "{modes:?} {policy:?} {every_mode}");
        }
    }

    #[test]
    fn a_volume_has_one_label() {
        let of = |level: &str| {
            let pod = pod(Some(options("", level)), &[None]);
            Labelled::new(&Labels::of_test(false), &pod, "v", "d", &once())
        };
        let label = |level: &str| format!("system_u:object_r:container_file_t:{level}");
        assert_eq!(of("s0:c1").check_beside(&label("s0:c1"), "pv"), Ok(()));
        assert_eq!(of("").check_beside("", "pv"), Ok(()));
        let (one, other) = (label("s0:c1"), label("s0:c2"));
        for (there, own, expected) in [
            (&*one, "s0:c2", format!("conflicting SELinux labels of volume pv: {one:?} and {other:?}")),
            (&*one, "", format!("conflicting SELinux labels of volume pv: {one:?} and \"\"")),
            ("", "s0:c2", format!("conflicting SELinux labels of volume pv: \"\" and {other:?}")),
        ] {
            assert_eq!(of(own).check_beside(there, "pv").unwrap_err().to_string(), expected);
        }
    }
}
