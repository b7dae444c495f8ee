//! Whether the machine is fit for pods, and what is brought in order at start.

use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use component_base::serving::BoxError;
use sys::cgroups::{Cgroups, Version};
use sys::mounts::Mounts;

use crate::config::{LIMITED_SWAP, Plan};
use crate::node::Facts;
use crate::volumes::Layout;

/// Kernel settings that pods need.
const KERNEL: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];
/// From this kernel on containers can be slowed down by memory without harm.
const THROTTLING_SINCE: (u32, u32) = (5, 9);
/// What control groups of version 1 must offer.
const CONTROLLERS: [&str; 4] = ["cpu", "cpuacct", "cpuset", "memory"];

/// Checks the machine and brings it in order. Returns events about the node: reason and message.
pub(crate) fn check(
    plan: &Plan,
    facts: &Facts,
    cgroups: &dyn Cgroups,
    mounts: &dyn Mounts,
) -> Result<Vec<(&'static str, String)>, BoxError> {
    let mut events = Vec::new();
    check_cgroups(plan, cgroups, &mut events)?;
    if plan.config.memory_swap.swap_behavior == LIMITED_SWAP && cgroups.version() == Version::V1 {
        return Err("swap feature is enabled and LimitedSwap but it is only supported with cgroupv2".into());
    }
    check_swap(plan, facts, mounts, &mut events)?;
    set_kernel(plan, facts)?;
    check_throttling(plan, cgroups.version(), &facts.proc().kernel_version().unwrap_or_default());
    protect_self(plan, facts)?;
    join_group(plan, cgroups)?;
    limit_files(plan);
    Ok(events)
}

fn check_cgroups(plan: &Plan, cgroups: &dyn Cgroups, events: &mut Vec<(&'static str, String)>) -> Result<(), BoxError> {
    let config = &plan.config;
    if cgroups.version() == Version::V2 {
        return Ok(());
    }
    if config.fail_cgroup_v1 != Some(false) {
        return Err(
            "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will \
                    be removed in a future release"
                .into(),
        );
    }
    if config.single_process_oom_kill == Some(false) {
        let text =
            "invalid configuration: singleProcessOOMKill must not be explicitly set to false when using cgroup v1";
        return Err(text.into());
    }
    let present = cgroups.controllers();
    let missing: Vec<&str> = CONTROLLERS.into_iter().filter(|name| !present.contains(*name)).collect();
    if !missing.is_empty() {
        let missing = missing.join(" ");
        return Err(format!("system validation failed - Following Cgroup subsystem not mounted: [{missing}]").into());
    }
    let text = "cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. Please migrate \
                to cgroup v2. More information at https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1";
    events.push(("CgroupV1", text.to_owned()));
    Ok(())
}

fn check_swap(
    plan: &Plan,
    facts: &Facts,
    mounts: &dyn Mounts,
    events: &mut Vec<(&'static str, String)>,
) -> Result<(), BoxError> {
    let swaps = facts.proc().swaps().map_err(|error| format!("failed to determine if swap is on: {error}"))?;
    if swaps && plan.config.fail_swap_on != Some(false) {
        return Err(
            "running with swap on is not supported, please disable swap or set --fail-swap-on flag to false".into()
        );
    }
    if swaps && !mounts.can_refuse_swap() {
        let text = "The tmpfs noswap option is not supported. Memory-backed volumes (e.g. secrets, emptyDirs, etc.) might \
                    be swapped to disk and should no longer be considered secure.";
        events.push(("PossibleMemoryBackedVolumesOnDisk", text.to_owned()));
    }
    Ok(())
}

/// Sets kernel parameters, or insists on them. What cannot be set (a container's kernel is not its own) is logged.
fn set_kernel(plan: &Plan, facts: &Facts) -> Result<(), BoxError> {
    for (name, wanted) in KERNEL {
        let Ok(actual) = facts.proc().sysctl(name) else { continue };
        if actual == wanted {
            continue;
        }
        if plan.config.protect_kernel_defaults {
            let text = format!("invalid kernel flag: {name}, expected value: {wanted}, actual value: {actual}");
            return Err(text.into());
        }
        tracing::info!(v = 2, flag = name, expected = wanted, actual, "Updating kernel flag");
        if let Err(error) = facts.proc().set_sysctl(name, wanted) {
            tracing::warn!(flag = name, %error, "Setting a kernel flag failed");
        }
    }
    Ok(())
}

/// Older kernels may stand still where memory is taken back from a container that is being slowed down.
fn check_throttling(plan: &Plan, version: Version, kernel: &str) {
    if plan.throttling_factor.is_some() && version == Version::V2 && is_older(kernel, THROTTLING_SINCE) {
        tracing::warn!(kernel, "Slowing containers down by memory.high may hang kernels before 5.9 (gate MemoryQoS)");
    }
}

/// Whether a kernel's release, such as `5.4.0-42-generic`, is older than this version. What says nothing is not.
fn is_older(release: &str, than: (u32, u32)) -> bool {
    let mut numbers = release.split(|part: char| !part.is_ascii_digit()).map(str::parse::<u32>);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < than)
}

/// Has the kernel pick others first when memory runs out.
fn protect_self(plan: &Plan, facts: &Facts) -> Result<(), BoxError> {
    let score = plan.config.oom_score_adj.unwrap_or(-999);
    if let Err(error) = facts.proc().set_oom_score_adj(std::process::id(), score) {
        // Within a namespace of users that is the privilege of those outside.
        if !plan.in_user_namespace {
            return Err(error.into());
        }
        tracing::info!(score, %error, "The kubelet's own score cannot be set");
    }
    Ok(())
}

/// `kubeletCgroups`: the kubelet's own group.
fn join_group(plan: &Plan, cgroups: &dyn Cgroups) -> Result<(), BoxError> {
    let name = &plan.config.kubelet_cgroups;
    if name.is_empty() {
        return Ok(());
    }
    if name == "/" {
        return Err("system container cannot be root (\"/\")".into());
    }
    let group = sys::cgroups::CgroupPath::new(name).ok_or("invalid kubeletCgroups")?;
    cgroups.create(&group)?;
    cgroups.add_process(&group, std::process::id())?;
    Ok(())
}

/// Raises the bound on open files as far as the machine allows.
fn limit_files(plan: &Plan) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = u64::try_from(plan.config.max_open_files).unwrap_or_default();
    let limits = [Some(wanted), getrlimit(Resource::Nofile).maximum];
    for limit in limits.into_iter().flatten() {
        if setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum: Some(limit) }).is_ok() {
            return;
        }
    }
    tracing::warn!(wanted, "Raising the limit of open files failed");
}

/// Whether swap is counted in control groups, so that it can be denied.
pub(crate) fn counts_swap(version: Version) -> bool {
    let file = match version {
        Version::V1 => "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes".to_owned(),
        Version::V2 => {
            let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
            let own = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").to_owned();
            format!("/sys/fs/cgroup{own}/memory.swap.max")
        }
    };
    Path::new(&file).exists()
}

/// Whether the kernel enforces AppArmor profiles.
pub(crate) fn enforces_app_armor() -> bool {
    let enabled = std::fs::read_to_string("/sys/module/apparmor/parameters/enabled");
    enabled.is_ok_and(|text| text.starts_with('Y'))
}

/// Makes the directories that the kubelet works in.
pub(crate) fn make_directories(layout: &Layout, plan: &Plan) -> Result<(), BoxError> {
    let make = |path: &Path, mode: u32| -> Result<(), BoxError> {
        let made = std::fs::DirBuilder::new().recursive(true).mode(mode).create(path);
        made.map_err(|error| format!("mkdir {}: {error}", path.display()).into())
    };
    make(layout.root(), 0o750)?;
    std::fs::set_permissions(layout.root(), std::fs::Permissions::from_mode(0o750))?;
    for directory in layout.top_directories() {
        make(&directory, 0o750)?;
    }
    make(&plan.pods.pod_logs_dir, 0o755)?;
    make(&plan.pods.container_logs_dir, 0o755)
}

#[cfg(test)]
mod tests {
    use component_base::{Feature, Gates};
    use sys::mounts::FakeMounts;

    use super::*;
    use crate::config::{COMPONENT, gates, load, plan};

    #[test]
    fn releases_of_kernels_are_compared_by_number() {
        let cases = [
            ("5.8.18-100.fc31", true),
            ("5.10.0-8-amd64", false),
            ("5.9.0", false),
            ("4.19", true),
            ("6.1.0+", false),
            ("", false),
            ("next", false),
        ];
        for (release, expected) in cases {
            assert_eq!(is_older(release, THROTTLING_SINCE), expected, "{release}");
        }
    }

    #[test]
    fn swap_is_what_the_kernel_names_places_of() {
        let options = component_base::flags::parse(COMPONENT.flags, Vec::<String>::new()).unwrap();
        let mut plan = plan(&options, load(&options).unwrap(), "host").unwrap();
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        // Within a container its file tells what the container may use, whatever the machine has.
        std::fs::write(root.path().join("proc/meminfo"), "MemTotal: 100 kB\nSwapTotal: 0 kB\n").unwrap();
        let head = "Filename\tType\tSize\tUsed\tPriority\n";
        for (swaps, fails, expected) in [
            (head.to_owned(), None, Ok(0)),
            (format!("{head}/swap.img file 1024 0 -2\n"), Some(false), Ok(1)),
            (format!("{head}/swap.img file 1024 0 -2\n"), None, Err("running with swap on is not supported, ")),
        ] {
            std::fs::write(root.path().join("proc/swaps"), &swaps).unwrap();
            plan.config.fail_swap_on = fails;
            let mut events = Vec::new();
            let checked = check_swap(&plan, &Facts::at(root.path()), &FakeMounts::default(), &mut events);
            match (checked, expected) {
                (Ok(()), Ok(told)) => assert_eq!(events.len(), told, "{swaps}"),
                (Err(error), Err(text)) => assert!(error.to_string().starts_with(text), "{error}"),
                (checked, expected) => panic!("{swaps}: {checked:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn within_a_namespace_of_users_the_kubelet_goes_on_without_its_score() {
        let options = component_base::flags::parse(COMPONENT.flags, Vec::<String>::new()).unwrap();
        let protect = |set: &Gates| {
            let plan = plan(&options, load(&options).unwrap(), "host").unwrap().with_gates(set);
            // A machine without processes: nobody's score can be set.
            let root = tempfile::tempdir().unwrap();
            protect_self(&plan, &Facts::at(root.path())).is_ok()
        };
        let on = |gate: Feature| Gates::default().with(gate, true);
        assert!(!protect(&Gates::default()) && protect(&on(gates::IN_USER_NAMESPACE)));
    }
}
