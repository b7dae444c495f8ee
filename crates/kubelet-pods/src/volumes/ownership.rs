//! The group of a pod's volumes (`fsGroup`).

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api_types::core_v1::Pod;
use client::object_reference;
use sys::tree::{self, Bits};

use crate::interfaces::{Events, Level};

/// How long it takes until a pod is told that its volume is still being given to its group, and until it is told again.
const TOLD_FIRST: Duration = Duration::from_secs(30);
const TOLD_AGAIN: Duration = Duration::from_secs(60);
const REASON: &str = "VolumePermissionChangeInProgress";
/// What makes it quicker.
const ADVICE: &str = "consider using OnRootMismatch - https://kubernetes.io/docs/tasks/configure-pod-container/\
                      security-context/#configure-volume-permission-and-ownership-change-policy-for-pods";

/// What the group may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    ReadOnly,
    ReadWrite,
}

/// When ownership is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Always,
    /// Not if the root of the volume is as wanted (`fsGroupChangePolicy: OnRootMismatch`).
    RootMismatch,
}

/// Gives everything below `root` and `root` itself to a group. The root comes last, so that it marks completion.
/// Containers that have the volume cannot lead this elsewhere. `given` counts what is done.
pub(super) fn give_to_group(root: &Path, group: u32, access: Access, when: When, given: &AtomicU64) -> io::Result<()> {
    if when == When::RootMismatch && tree::is_given_to_group(root, group, bits(access))? {
        return Ok(());
    }
    tree::give_to_group(root, group, bits(access), given)
}

/// Waits for work that gives a pod's volume, at a place in the pod's directory, to its group; tells the pod while that takes long.
pub(super) async fn told_of<T>(
    work: impl Future<Output = T>,
    events: &dyn Events,
    pod: &Pod,
    place: &Path,
    given: &AtomicU64,
) -> T {
    let place = place.display().to_string();
    let shown = place.find(pod.metadata.uid.as_str()).and_then(|at| place.get(at..)).unwrap_or(&place);
    let tell = |text: &str| events.event(object_reference(pod), Level::Warning, REASON, text);
    let mut work = std::pin::pin!(work);
    let mut rest = TOLD_FIRST;
    loop {
        if let Ok(done) = tokio::time::timeout(rest, &mut work).await {
            return done;
        }
        let what = match rest {
            TOLD_FIRST => format!(" is taking longer than expected, {ADVICE}"),
            _ => format!(", processed {} files.", given.load(Ordering::Relaxed)),
        };
        tell(&format!("Setting volume ownership for {shown}{what}"));
        rest = TOLD_AGAIN;
    }
}

fn bits(access: Access) -> Bits {
    let of_files = match access {
        Access::ReadOnly => 0o440,
        Access::ReadWrite => 0o660,
    };
    Bits { of_files, of_directories: of_files | 0o2110 }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;
    use crate::events::RecordedEvents;

    #[test]
    fn everything_below_gets_the_group() {
        let dir = tempfile::tempdir().unwrap();
        let own = fs::metadata(dir.path()).unwrap().gid();
        let give = |access, when| give_to_group(dir.path(), own, access, when, &AtomicU64::default()).unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/file"), "x").unwrap();
        symlink("/nowhere", dir.path().join("link")).unwrap();
        fs::set_permissions(dir.path().join("sub/file"), fs::Permissions::from_mode(0o600)).unwrap();
        give(Access::ReadWrite, When::Always);
        let mode = |path: &str| fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode("sub/file"), 0o660);
        assert_eq!(mode("sub") & 0o2770, 0o2770);

        fs::set_permissions(dir.path().join("sub/file"), fs::Permissions::from_mode(0o600)).unwrap();
        give(Access::ReadWrite, When::RootMismatch);
        assert_eq!(mode("sub/file"), 0o600, "the root is as wanted");
        give(Access::ReadOnly, When::Always);
        assert_eq!(mode("sub/file"), 0o640);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_hears_of_what_takes_long() {
        let mut pod = Pod::default();
        pod.metadata.uid = "u1".into();
        let place = Path::new("/var/lib/kubelet/pods/u1/volumes/kubernetes.io~csi/pv/mount");
        let shown = "u1/volumes/kubernetes.io~csi/pv/mount";
        let first = format!("Setting volume ownership for {shown} is taking longer than expected, {ADVICE}");
        let again = format!("Setting volume ownership for {shown}, processed 7 files.");
        for (seconds, expected) in [
            (29, vec![]),
            (31, vec![&first]),
            (89, vec![&first]),
            (91, vec![&first, &again]),
            (151, vec![&first, &again, &again]),
        ] {
            let events = RecordedEvents::default();
            let work = tokio::time::sleep(Duration::from_secs(seconds));
            told_of(work, &events, &pod, place, &AtomicU64::new(7)).await;
            let told = events.taken();
            assert!(told.iter().all(|event| event.reason == REASON && event.about.uid == "u1"), "{told:?}");
            assert_eq!(told.iter().map(|event| &event.message).collect::<Vec<_>>(), expected, "{seconds} s");
        }
    }
}
