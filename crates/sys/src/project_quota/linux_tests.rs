//! On real file systems: one that counts, where the kernel can, and one that only knows projects.

use std::path::PathBuf;

use super::*;
use crate::exec::{Command as Program, Exec as _, LinuxExec};
use crate::mounts::{LinuxMounts, Mount, Mounts as _, Source, Unmount};
use crate::test_support::{has_program, is_root};

#[test]
fn commands_are_those_of_the_kernels_headers() {
    assert_eq!((GET_ATTRIBUTES, SET_ATTRIBUTES), (0x801c_581f, 0x401c_5820));
    assert_eq!((XFS_GET_QUOTA, XFS_SET_LIMIT, XFS_GET_STATE), (0x5803, 0x5804, 0x5808));
    assert_eq!(std::mem::offset_of!(Attributes, project), 12);
    assert_eq!(std::mem::offset_of!(Quota, blocks_used), 40);
    assert_eq!(std::mem::offset_of!(State, flags), 2);
}

#[test]
fn file_systems_without_projects_do_not_count() {
    let proc = Path::new("/proc/self");
    assert!(!LinuxProjectQuotas.counts(&proc.canonicalize().unwrap()).unwrap());
    assert!(LinuxProjectQuotas.project(&proc.canonicalize().unwrap()).is_err());
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(dir.path(), dir.path().join("link")).unwrap();
    assert!(LinuxProjectQuotas.counts(&dir.path().join("link")).is_err(), "links are not followed");
    assert!(LinuxProjectQuotas.counts(&dir.path().join("none")).is_err());
}

/// A file system in a file; it goes with [`Image::detach`].
struct Image {
    root: PathBuf,
    device: String,
    _dir: tempfile::TempDir,
}

/// A way to make a file system, by the names that mkfs and the kernel have for it.
struct Recipe {
    kind: &'static str,
    make: &'static [&'static str],
    options: &'static str,
}

/// Such as this feature is for.
const COUNTING: [Recipe; 2] = [
    Recipe { kind: "ext4", make: &["-q", "-F", "-O", "project,quota"], options: "prjquota" },
    Recipe { kind: "xfs", make: &["-q", "-f"], options: "prjquota" },
];
/// Such as know projects alone.
const KNOWING: [Recipe; 2] = [
    Recipe { kind: "ext4", make: &["-q", "-F", "-O", "project"], options: "" },
    Recipe { kind: "xfs", make: &["-q", "-f"], options: "" },
];

impl Image {
    /// The first that can be made and mounted here. Says why it is none.
    async fn any(recipes: &[Recipe]) -> Option<Self> {
        if !(is_root() && has_program("losetup")) {
            return None;
        }
        let mut reasons = Vec::new();
        for recipe in recipes {
            match Self::new(recipe).await {
                Ok(image) => return Some(image),
                Err(why) => reasons.push(format!("{} {:?} {:?}: {why}", recipe.kind, recipe.make, recipe.options)),
            }
        }
        test_facts::skipped(&reasons.join("; "));
        None
    }

    async fn new(recipe: &Recipe) -> Result<Self, String> {
        let dir = tempfile::tempdir().unwrap();
        let (file, root) = (dir.path().join("image"), dir.path().join("root"));
        std::fs::create_dir(&root).unwrap();
        std::fs::File::create(&file).unwrap().set_len(512 << 20).unwrap();
        let make = Program::with(&format!("mkfs.{}", recipe.kind), recipe.make).arg(&file);
        LinuxExec.run_ok(&make).await.map_err(|error| error.to_string())?;
        let find = Program::with("losetup", &["--find", "--show"]).arg(&file);
        let found = LinuxExec.run_ok(&find).await.map_err(|error| error.to_string())?;
        let image = Self { root, device: found.text().trim().to_owned(), _dir: dir };
        let (kind, source, options) = (recipe.kind.into(), image.device.clone().into(), recipe.options.into());
        let mounted = LinuxMounts.mount(&Mount::new(&image.root, Source::Filesystem { kind, source, options }));
        if let Err(error) = mounted {
            image.detach().await;
            let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            return Err(format!("{error}: {why}"));
        }
        Ok(image)
    }

    async fn detach(self) {
        let _ = LinuxMounts.unmount(&self.root, Unmount::Lazy);
        LinuxExec.run_ok(&Program::with("losetup", &["--detach"]).arg(&self.device)).await.unwrap();
    }
}

const PROJECT: ProjectId = 1_048_577;

#[tokio::test]
async fn a_directory_passes_its_project_on() {
    let Some(image) = Image::any(&KNOWING).await else { return };
    let (quotas, own) = (LinuxProjectQuotas, image.root.join("own"));
    std::fs::create_dir_all(own.join("before")).unwrap();
    assert_eq!(quotas.project(&own).unwrap(), 0);
    quotas.assign(&own, PROJECT).unwrap();
    std::fs::create_dir(own.join("after")).unwrap();
    std::fs::create_dir(own.join("after/deep")).unwrap();
    let projects = ["", "own", "own/before", "own/after", "own/after/deep"].map(|name| image.root.join(name));
    assert_eq!(projects.map(|path| quotas.project(&path).unwrap()), [0, PROJECT, 0, PROJECT, PROJECT]);
    assert!(!quotas.counts(&own).unwrap(), "it was made without quotas");
    assert!(quotas.used(&own, PROJECT).is_err());
    assert!(quotas.limit(&own, PROJECT, ProjectLimit::Highest).is_err());
    image.detach().await;
}

#[tokio::test]
async fn what_a_project_has_is_counted() {
    let Some(image) = Image::any(&COUNTING).await else { return };
    let (quotas, own) = (LinuxProjectQuotas, image.root.join("own"));
    std::fs::create_dir(&own).unwrap();
    assert!(quotas.counts(&own).unwrap());
    assert_eq!(quotas.used(&own, PROJECT).unwrap(), ProjectUse::default());
    quotas.limit(&own, PROJECT, ProjectLimit::Highest).unwrap();
    quotas.assign(&own, PROJECT).unwrap();
    std::fs::write(own.join("file"), vec![1_u8; 1 << 20]).unwrap();
    std::fs::write(image.root.join("other"), vec![1_u8; 1 << 20]).unwrap();
    let used = quotas.used(&image.root, PROJECT).unwrap();
    assert_eq!(used.inodes, 2);
    assert!((1 << 20..2 << 20).contains(&used.bytes), "{used:?}");
    quotas.limit(&own, PROJECT, ProjectLimit::None).unwrap();
    image.detach().await;
}
