//! Ids for pods with a namespace of users of their own: each has a range of the machine's ids that no other has.
//!
//! See KEP-127. What a pod has is on disk before it is used, so that a kubelet that comes back gives it to nobody else.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use node_api::cri::v1::{IdMapping, NamespaceMode, UserNamespace};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sys::exec::{Command, Exec, ExecError};

use crate::interfaces::SideError;

const FILE: &str = "userns";
/// The largest file that is read.
const MAX_BYTES: u64 = 64 << 10;
/// Whose subordinate ids the pods get, and who knows them.
const USER: &str = "kubelet";
const TOOL: &str = "getsubids";
const USERS: &str = "etc/passwd";
/// Ids that the kernel has.
const ALL_IDS: u64 = 1 << 32;
/// `userNamespaces.idsPerPod` must be a multiple of this, and is this where nobody says otherwise.
pub const USUAL_IDS: u32 = 65_536;

/// Why no pod can have a namespace of users, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub enum RangesError {
    #[error("kubelet user assigned IDs are not enough to support {0} pods")]
    TooFew(usize),
    #[error("kubelet user assigned IDs are not a multiple of {0}")]
    Uneven(u32),
    #[error("kubelet user assigned IDs must start at {0} or above")]
    TooLow(u32),
    #[error("mismatching IDs allocated for user {USER:?} (getsubids {uids:?} vs. getsubids -g {gids:?})")]
    Mismatch { uids: String, gids: String },
    #[error("subuid content invalid: {0:?}")]
    Content(String),
    #[error("error finding {TOOL}: {0}")]
    Tool(#[from] ExecError),
    #[error("reading the ids of pod {uid:?} failed: {why}")]
    Pod { uid: String, why: String },
}

/// The ids that pods may have: the first one, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    first: u64,
    count: u64,
}

/// Which pods have which ranges of ids.
pub struct UserNamespaces {
    pods: PathBuf,
    /// Ids of a pod.
    length: u32,
    /// The first id of the first range, and how many ranges there are.
    first: u64,
    ranges: usize,
    /// Ranges that are given away, by uid.
    taken: Mutex<BTreeMap<String, usize>>,
}

impl UserNamespaces {
    /// Ranges of so many ids, enough for `most_pods`, among those that belong to the user `kubelet` where there is one.
    /// Pods that have some already are found below the root directory.
    ///
    /// # Errors
    /// The ids do not suffice, or two pods have the same.
    pub async fn new(
        root: &Path,
        machine: &Path,
        length: u32,
        most_pods: usize,
        exec: &dyn Exec,
    ) -> Result<Self, RangesError> {
        let span = match has_user(machine) {
            true => subordinate(exec).await?,
            false => None,
        };
        let each = u64::from(length.max(1));
        let span = span.unwrap_or(Span { first: each, count: ALL_IDS - each });
        check(span, length, most_pods)?;
        let ranges = usize::try_from(span.count / each).unwrap_or(usize::MAX);
        let own = Self { pods: root.join("pods"), length, first: span.first, ranges, taken: Mutex::default() };
        own.restore()?;
        Ok(own)
    }

    fn file(&self, uid: &str) -> Option<PathBuf> {
        sys::fs::join_below(&self.pods, Path::new(uid)).map(|pod| pod.join(FILE))
    }

    fn restore(&self) -> Result<(), RangesError> {
        let Ok(entries) = std::fs::read_dir(&self.pods) else { return Ok(()) };
        let mut taken = self.taken.lock();
        for entry in entries.flatten() {
            let uid = entry.file_name().to_string_lossy().into_owned();
            let failed = |why: String| RangesError::Pod { uid: uid.clone(), why };
            let text = match read(&entry.path().join(FILE)) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                text => text.map_err(|error| failed(error.to_string()))?,
            };
            let first = decode(&text, self.length).ok_or_else(|| failed("its content is invalid".to_owned()))?;
            let range = self.range_of(first).ok_or_else(|| failed(format!("id {first} is outside of the range")))?;
            if taken.values().any(|other| *other == range) {
                return Err(failed("another pod has the same".to_owned()));
            }
            taken.insert(uid, range);
        }
        Ok(())
    }

    /// The range that begins with an id.
    fn range_of(&self, first: u64) -> Option<usize> {
        let offset = first.checked_sub(self.first)?;
        let each = u64::from(self.length);
        let range = usize::try_from(offset / each).ok()?;
        (offset.is_multiple_of(each) && range < self.ranges).then_some(range)
    }

    /// The namespace of a pod that has one of its own; the same each time.
    ///
    /// # Errors
    /// All ranges are given away, or that this pod has one cannot be written down.
    pub fn of_pod(&self, uid: &str) -> Result<UserNamespace, SideError> {
        let mut taken = self.taken.lock();
        let range = match taken.get(uid) {
            Some(range) => *range,
            None => {
                let used: std::collections::BTreeSet<usize> = taken.values().copied().collect();
                let free = (0..self.ranges).find(|range| !used.contains(range));
                let range =
                    free.ok_or_else(|| SideError::new("could not find an empty slot to allocate a user namespace"))?;
                self.write(uid, range)?;
                taken.insert(uid.to_owned(), range);
                range
            }
        };
        drop(taken);
        let mapping = IdMapping { host_id: self.host_id(range), container_id: 0, length: self.length };
        Ok(UserNamespace { mode: NamespaceMode::Pod.into(), uids: vec![mapping], gids: vec![mapping] })
    }

    fn host_id(&self, range: usize) -> u32 {
        let offset = u64::from(self.length).saturating_mul(u64::try_from(range).unwrap_or(u64::MAX));
        u32::try_from(self.first.saturating_add(offset)).unwrap_or(u32::MAX)
    }

    fn write(&self, uid: &str, range: usize) -> Result<(), SideError> {
        let failed = |error: std::io::Error| SideError(format!("write user namespace file: {error}"));
        let file = self.file(uid).ok_or_else(|| SideError(format!("pod {uid:?} has no directory")))?;
        let mapping = json!([{"hostId": self.host_id(range), "containerId": 0, "length": self.length}]);
        let text = json!({"uidMappings": mapping, "gidMappings": mapping}).to_string();
        if let Some(directory) = file.parent() {
            std::fs::create_dir_all(directory).map_err(failed)?;
        }
        sys::fs::write_atomic(&file, text.as_bytes(), 0o644).map_err(failed)
    }

    /// Takes back what a pod has of which nothing is left.
    pub fn release(&self, uid: &str) {
        if self.taken.lock().remove(uid).is_none() {
            return;
        }
        let removed = self.file(uid).map_or(Ok(()), std::fs::remove_file);
        if let Err(error) =
            removed.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
        {
            tracing::warn!(uid, %error, "Removing a user namespace file failed");
        }
    }

    /// Takes back what pods have that are not among these.
    pub fn keep(&self, uids: &std::collections::BTreeSet<String>) {
        let gone: Vec<String> = self.taken.lock().keys().filter(|uid| !uids.contains(*uid)).cloned().collect();
        gone.iter().for_each(|uid| self.release(uid));
    }
}

fn check(span: Span, length: u32, most_pods: usize) -> Result<(), RangesError> {
    let each = u64::from(length.max(1));
    if span.first < each {
        return Err(RangesError::TooLow(length));
    }
    if !span.first.is_multiple_of(each) || !span.count.is_multiple_of(each) {
        return Err(RangesError::Uneven(length));
    }
    let beyond = span.first.checked_add(span.count).is_none_or(|end| end > ALL_IDS);
    if beyond || span.count / each < u64::try_from(most_pods).unwrap_or(u64::MAX) {
        return Err(RangesError::TooFew(most_pods));
    }
    Ok(())
}

/// Whether the machine knows a user `kubelet`.
fn has_user(machine: &Path) -> bool {
    let users = std::fs::read_to_string(machine.join(USERS)).unwrap_or_default();
    users.lines().any(|line| line.split(':').next() == Some(USER))
}

/// The subordinate ids of the user; none where nobody on the machine can tell.
async fn subordinate(exec: &dyn Exec) -> Result<Option<Span>, RangesError> {
    let uids = match exec.run_ok(&Command::with(TOOL, &[USER])).await {
        Err(ExecError::NotFound { .. }) => return Ok(None),
        answer => answer?,
    };
    let gids = exec.run_ok(&Command::with(TOOL, &["-g", USER])).await?;
    let (uids, gids) = (uids.text().trim().to_owned(), gids.text().trim().to_owned());
    if uids != gids {
        return Err(RangesError::Mismatch { uids, gids });
    }
    parse(&uids).map(Some).ok_or(RangesError::Content(uids))
}

/// `0: kubelet 65536 2147483648`.
fn parse(text: &str) -> Option<Span> {
    let mut words = text.split_whitespace();
    let (index, user) = (words.next()?, words.next()?);
    let span = Span { first: words.next()?.parse().ok()?, count: words.next()?.parse().ok()? };
    (index == "0:" && user == USER && words.next().is_none()).then_some(span)
}

fn read(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The first id in a pod's file.
fn decode(text: &str, length: u32) -> Option<u64> {
    let value: Value = serde_json::from_str(text).ok()?;
    let (uids, gids) = (value.get("uidMappings")?.as_array()?, value.get("gidMappings")?.as_array()?);
    let [only] = uids.as_slice() else { return None };
    let whole = only["containerId"] == 0 && only["length"] == length && uids == gids;
    only["hostId"].as_u64().filter(|_| whole)
}

#[cfg(test)]
mod tests {
    use sys::exec::{FakeExec, Output};

    use super::*;

    async fn ranges(root: &Path, pods: usize) -> Result<UserNamespaces, RangesError> {
        UserNamespaces::new(root, root, USUAL_IDS, pods, &FakeExec::new()).await
    }

    #[tokio::test]
    async fn each_pod_has_a_range_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let own = ranges(dir.path(), 110).await.unwrap();
        let first = |own: &UserNamespaces, uid: &str| own.of_pod(uid).unwrap().uids[0].host_id;
        assert_eq!((first(&own, "a"), first(&own, "b"), first(&own, "a")), (65_536, 131_072, 65_536));
        let text = std::fs::read_to_string(dir.path().join("pods/a/userns")).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["gidMappings"], json!([{"hostId": 65_536, "containerId": 0, "length": 65_536}]));

        let next = ranges(dir.path(), 110).await.unwrap();
        assert_eq!((first(&next, "c"), first(&next, "b")), (196_608, 131_072), "also after a restart");
        next.keep(&["b".to_owned()].into());
        assert!(!dir.path().join("pods/a/userns").exists());
        assert_eq!(first(&next, "d"), 65_536, "it is free again");
        assert!(next.of_pod("../e").is_err());
    }

    #[tokio::test]
    async fn ids_of_the_user_are_taken_where_there_is_one() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("etc")).unwrap();
        std::fs::write(dir.path().join(USERS), "root:x:0:0::/:\nkubelet:x:99:99::/:\n").unwrap();
        let line = "0: kubelet 131072 7208960\n";
        let made = async |uids: &str, gids: &str| {
            let exec = FakeExec::new().answer("-g", Output::ok(gids)).answer("getsubids kubelet", Output::ok(uids));
            let own = UserNamespaces::new(dir.path(), dir.path(), USUAL_IDS, 110, &exec).await;
            own.map(|own| (own.first, own.ranges)).map_err(|error| error.to_string())
        };
        assert_eq!(made(line, line).await, Ok((131_072, 110)));
        assert!(made(line, "0: kubelet 1 1").await.unwrap_err().starts_with("mismatching IDs allocated for user"));
        assert!(made("none", "none").await.unwrap_err().starts_with("subuid content invalid"));
    }

    #[tokio::test]
    async fn files_that_cannot_be_are_refused() {
        let mapping = |first: u64, length: u32| json!([{"hostId": first, "containerId": 0, "length": length}]);
        let file = |uids: &Value, gids: &Value| json!({"uidMappings": uids, "gidMappings": gids}).to_string();
        let (good, other) = (mapping(65_536, USUAL_IDS), mapping(131_072, USUAL_IDS));
        let cases = [
            ("{".to_owned(), "its content is invalid"),
            (file(&good, &other), "its content is invalid"),
            (file(&mapping(65_536, 1), &mapping(65_536, 1)), "its content is invalid"),
            (file(&mapping(65_537, USUAL_IDS), &mapping(65_537, USUAL_IDS)), "id 65537 is outside of the range"),
            (file(&mapping(0, USUAL_IDS), &mapping(0, USUAL_IDS)), "id 0 is outside of the range"),
        ];
        for (text, expected) in cases {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(dir.path().join("pods/a")).unwrap();
            std::fs::write(dir.path().join("pods/a/userns"), &text).unwrap();
            let error = ranges(dir.path(), 1).await.map(drop).unwrap_err().to_string();
            assert_eq!(error, format!("reading the ids of pod \"a\" failed: {expected}"), "{text}");
        }
        let dir = tempfile::tempdir().unwrap();
        for uid in ["a", "b"] {
            std::fs::create_dir_all(dir.path().join("pods").join(uid)).unwrap();
            std::fs::write(dir.path().join("pods").join(uid).join(FILE), file(&good, &good)).unwrap();
        }
        assert!(ranges(dir.path(), 1).await.map(drop).unwrap_err().to_string().contains("another pod has the same"));
    }

    #[test]
    fn ids_must_suffice() {
        let span = |first: u64, count: u64| Span { first, count };
        let checked = |span, pods| check(span, USUAL_IDS, pods).map_err(|error| error.to_string());
        assert_eq!(checked(span(65_536, 65_536 * 110), 110), Ok(()));
        for (span, pods, expected) in [
            (span(65_536, 65_536 * 109), 110, "kubelet user assigned IDs are not enough to support 110 pods"),
            (span(0, 65_536 * 110), 110, "kubelet user assigned IDs must start at 65536 or above"),
            (span(65_537, 65_536 * 110), 110, "kubelet user assigned IDs are not a multiple of 65536"),
            (span(65_536, ALL_IDS), 110, "kubelet user assigned IDs are not enough to support 110 pods"),
        ] {
            assert_eq!(checked(span, pods), Err(expected.to_owned()));
        }
        assert_eq!(parse("0: kubelet 65536 131072"), Some(span(65_536, 131_072)));
        for text in ["", "0: other 65536 131072", "0: kubelet 65536", "0: kubelet 65536 131072\n1: kubelet 1 1"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
