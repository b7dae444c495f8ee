//! Where the control groups of pods are.

use api_types::core_v1::constants::pod_qos_class;
use sys::cgroups::CgroupPath;

/// Who makes groups, which decides how they are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    Cgroupfs,
    Systemd,
}

impl Driver {
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "cgroupfs" => Some(Self::Cgroupfs),
            "systemd" => Some(Self::Systemd),
            _ => None,
        }
    }
}

/// The group of all pods, below `cgroupRoot`.
const ALL_PODS: &str = "kubepods";
const CLASSES: [&str; 3] = [pod_qos_class::GUARANTEED, pod_qos_class::BURSTABLE, pod_qos_class::BEST_EFFORT];

/// Names groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupNames {
    driver: Driver,
    /// The elements of `cgroupRoot`.
    root: Vec<String>,
}

impl CgroupNames {
    /// Names below `root`, a path such as `/` or `/a/b`; nothing if it climbs.
    pub fn new(driver: Driver, root: &str) -> Option<Self> {
        CgroupPath::new(root)?;
        let root = root.split('/').filter(|part| !part.is_empty()).map(ToOwned::to_owned).collect();
        Some(Self { driver, root })
    }

    /// The root itself.
    pub fn root(&self) -> CgroupPath {
        self.path(&[])
    }

    /// The group of all pods.
    pub fn all_pods(&self) -> CgroupPath {
        self.path(&[ALL_PODS])
    }

    /// What the group of all pods is called in events, whoever makes it.
    pub(super) fn name_of_all(&self) -> String {
        let parts: Vec<String> =
            self.root.iter().map(String::as_str).chain([ALL_PODS]).map(|part| format!("{part:?}")).collect();
        format!("[{}]", parts.join(" "))
    }

    /// The group of a class; guaranteed pods are right below the group of all pods.
    pub fn class(&self, class: &str) -> CgroupPath {
        match element(class) {
            Some(name) => self.path(&[ALL_PODS, name]),
            None => self.all_pods(),
        }
    }

    /// Those of all classes.
    pub fn classes(&self) -> [CgroupPath; 3] {
        CLASSES.map(|class| self.class(class))
    }

    /// The group of a pod.
    pub fn pod(&self, class: &str, uid: &str) -> CgroupPath {
        let own = format!("pod{uid}");
        match element(class) {
            Some(name) => self.path(&[ALL_PODS, name, &own]),
            None => self.path(&[ALL_PODS, &own]),
        }
    }

    /// The uid of the pod that a group below a class belongs to.
    pub fn uid_of(&self, group: &str) -> Option<String> {
        match self.driver {
            Driver::Cgroupfs => group.strip_prefix("pod").map(ToOwned::to_owned),
            Driver::Systemd => {
                let own = group.strip_suffix(".slice")?.rsplit('-').next()?;
                own.strip_prefix("pod").map(|uid| uid.replace('_', "-"))
            }
        }
    }

    fn path(&self, below: &[&str]) -> CgroupPath {
        let parts = self.root.iter().map(String::as_str).chain(below.iter().copied());
        let text = match self.driver {
            Driver::Cgroupfs => parts.collect::<Vec<_>>().join("/"),
            Driver::Systemd => slices(parts),
        };
        CgroupPath::new(&text).unwrap_or_else(|| CgroupPath::new("").expect("invariant: the empty path is the root"))
    }
}

fn element(class: &str) -> Option<&'static str> {
    match class {
        pod_qos_class::BURSTABLE => Some("burstable"),
        pod_qos_class::BEST_EFFORT => Some("besteffort"),
        _ => None,
    }
}

/// systemd nests slices by name: `a-b.slice` is inside `a.slice`, so dashes within a name become underscores.
fn slices<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let (mut name, mut path) = (String::new(), Vec::new());
    for part in parts {
        if !name.is_empty() {
            name.push('-');
        }
        name.push_str(&part.replace('-', "_"));
        path.push(format!("{name}.slice"));
    }
    path.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_upstreams_names() {
        let fs = CgroupNames::new(Driver::Cgroupfs, "/").unwrap();
        let systemd = CgroupNames::new(Driver::Systemd, "/").unwrap();
        let below = CgroupNames::new(Driver::Systemd, "/a/b").unwrap();
        let cases = [
            (fs.all_pods(), "/kubepods"),
            (fs.pod("Guaranteed", "u-1"), "/kubepods/podu-1"),
            (fs.pod("Burstable", "u-1"), "/kubepods/burstable/podu-1"),
            (fs.class("BestEffort"), "/kubepods/besteffort"),
            (systemd.pod("Guaranteed", "u-1"), "/kubepods.slice/kubepods-podu_1.slice"),
            (
                systemd.pod("BestEffort", "u-1"),
                "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podu_1.slice",
            ),
            (below.all_pods(), "/a.slice/a-b.slice/a-b-kubepods.slice"),
        ];
        for (path, expected) in cases {
            assert_eq!(path.to_string(), expected);
        }
        assert_eq!(
            (fs.name_of_all().as_str(), below.name_of_all().as_str()),
            (r#"["kubepods"]"#, r#"["a" "b" "kubepods"]"#)
        );
        assert_eq!(fs.uid_of("podu-1").as_deref(), Some("u-1"));
        assert_eq!(fs.uid_of("burstable"), None);
        assert_eq!(systemd.uid_of("kubepods-besteffort-podu_1.slice").as_deref(), Some("u-1"));
        assert_eq!(systemd.uid_of("kubepods-burstable.slice"), None);
        assert!(CgroupNames::new(Driver::Cgroupfs, "/../x").is_none());
    }
}
