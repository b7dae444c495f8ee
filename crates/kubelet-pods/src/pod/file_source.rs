//! Static pods from files: a directory (or one file) read in full at intervals and at every change that inotify tells.
//!
//! Every look delivers the complete set, so a file that vanishes or turns bad takes its pod with it. What cannot be read
//! is another matter: a disk that fails must not stop the control plane, so the pods that were there last stay.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api_types::core_v1::Pod;
use futures_util::StreamExt as _;
use inotify::{Inotify, WatchMask};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::manifest::{self, MAX_MANIFEST_BYTES, ManifestError, Reading};
use super::{Delivery, Source, SourceSet};

/// Files of a directory looked at, a bound.
const MAX_FILES: usize = 1000;
/// Changes come in bursts (an editor writes, renames, sets the mode); they are looked at together.
const SETTLE: Duration = Duration::from_millis(100);
const EVENT_BUFFER_BYTES: usize = 4096;

/// Where static pods are read.
pub(crate) struct FileSource {
    pub path: PathBuf,
    pub node_name: String,
    pub period: Duration,
    pub refuse_references: bool,
}

/// Reads a source again and again, on threads that may block.
struct Reader {
    source: FileSource,
    /// The pods of the files as they were last.
    last: Mutex<BTreeMap<PathBuf, Manifest>>,
}

/// What a file holds, and since when.
#[derive(Debug, Clone)]
struct Manifest {
    pod: Arc<Pod>,
    written: SystemTime,
}

/// Why a file has no pod.
#[derive(Debug, thiserror::Error)]
enum NoPod {
    /// It went while it was looked for.
    #[error("the file is gone")]
    Gone,
    /// What it says is not a valid pod.
    #[error(transparent)]
    Invalid(#[from] ManifestError),
    /// It is no text.
    #[error(transparent)]
    Binary(io::Error),
    /// It is not read to its end.
    #[error("the file is larger than {MAX_MANIFEST_BYTES} bytes")]
    TooLarge,
    /// It may hold a pod; the machine does not say, and may at the next look.
    #[error(transparent)]
    Unreadable(io::Error),
}

impl FileSource {
    /// Delivers sets until the receiver is gone or the caller drops the future.
    pub(crate) async fn run(self, deliveries: mpsc::Sender<Delivery>) {
        let period = self.period;
        let reader = Arc::new(Reader { source: self, last: Mutex::default() });
        loop {
            let watch = Arc::clone(&reader);
            let watched = tokio::task::spawn_blocking(move || watch.source.watch()).await.ok().flatten();
            let mut changes = watched.and_then(|watch| watch.into_event_stream(vec![0; EVENT_BUFFER_BYTES]).ok());
            let look = Arc::clone(&reader);
            let set = tokio::task::spawn_blocking(move || look.look()).await.ok().flatten();
            if let Some(set) = set
                && deliveries.send(Delivery::All(set)).await.is_err()
            {
                return;
            }
            let changed = async {
                match &mut changes {
                    Some(changes) => drop(changes.next().await),
                    None => std::future::pending().await,
                }
            };
            if tokio::time::timeout(period, changed).await.is_ok() {
                tokio::time::sleep(SETTLE).await;
            }
        }
    }

    /// Changes below the path; `None` where it cannot be watched, then only the period counts.
    fn watch(&self) -> Option<Inotify> {
        let mask = WatchMask::CREATE
            | WatchMask::CLOSE_WRITE
            | WatchMask::MODIFY
            | WatchMask::ATTRIB
            | WatchMask::MOVED_FROM
            | WatchMask::MOVED_TO
            | WatchMask::DELETE
            | WatchMask::DELETE_SELF;
        let watched = Inotify::init().and_then(|inotify| {
            inotify.watches().add(&self.path, mask)?;
            Ok(inotify)
        });
        watched
            .inspect_err(|error| tracing::debug!(path = %self.path.display(), %error, "Watching static pods failed"))
            .ok()
    }
}

impl Reader {
    /// All pods there are now; `None` where that cannot be told, and what was there last is to stay.
    fn look(&self) -> Option<SourceSet> {
        let path = &self.source.path;
        let mut last = self.last.lock();
        let files = match files(path) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tracing::error!(path = %path.display(), "The static pod path does not exist");
                last.clear();
                Vec::new()
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "Unable to read static pod path; its pods stay");
                return None;
            }
        };
        let (mut pods, mut whole) = (BTreeMap::new(), true);
        for file in files {
            let pod = match self.source.read_file(&file) {
                Ok(pod) => Some(pod),
                Err(NoPod::Gone) => None,
                Err(NoPod::Unreadable(error)) => {
                    let before = last.get(&file).cloned();
                    whole &= before.is_some();
                    tracing::error!(path = %file.display(), %error, stays = before.is_some(), "Unable to read a manifest file");
                    before
                }
                Err(error) => {
                    tracing::error!(path = %file.display(), %error, "Could not process manifest file");
                    None
                }
            };
            if let Some(pod) = pod {
                pods.insert(file, pod);
            }
        }
        last.clone_from(&pods);
        let written = pods.values().map(|found| (found.pod.metadata.uid.clone(), found.written)).collect();
        let pods = pods.into_values().map(|found| found.pod).collect();
        Some(SourceSet { source: Source::File, pods, whole, written })
    }
}

impl FileSource {
    fn read_file(&self, path: &Path) -> Result<Manifest, NoPod> {
        let mut text = String::new();
        let mut changed = (0, 0);
        let read = std::fs::File::open(path).and_then(|file| {
            // Unlike the time of modification, nobody sets this one.
            let meta = file.metadata()?;
            changed = (meta.ctime(), meta.ctime_nsec());
            file.take(MAX_MANIFEST_BYTES + 1).read_to_string(&mut text)
        });
        match read {
            Ok(read) if read as u64 > MAX_MANIFEST_BYTES => return Err(NoPod::TooLarge),
            Ok(_) => {}
            Err(error) => {
                return Err(match error.kind() {
                    io::ErrorKind::NotFound => NoPod::Gone,
                    io::ErrorKind::InvalidData => NoPod::Binary(error),
                    _ => NoPod::Unreadable(error),
                });
            }
        }
        let reading = Reading {
            source: Source::File,
            origin: &path.to_string_lossy(),
            node_name: &self.node_name,
            refuse_references: self.refuse_references,
        };
        let pod = manifest::read(&text, &reading)?;
        let written = UNIX_EPOCH + Duration::from_secs(u64::try_from(changed.0).unwrap_or_default());
        let written = written + Duration::from_nanos(u64::try_from(changed.1).unwrap_or_default());
        Ok(Manifest { pod: Arc::new(pod), written })
    }
}

/// The manifests of a directory in order of their names, or the one file.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut out = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let wanted = match std::fs::metadata(entry.path()) {
            Ok(metadata) => metadata.is_file(),
            // Reading it tells why.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        if wanted {
            out.push(entry.path());
        }
        if out.len() > MAX_FILES {
            return Err(io::Error::other(format!("more than {MAX_FILES} files")));
        }
    }
    out.sort();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use base::TaskGroup;

    use super::*;

    fn manifest(name: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c, image: i}}]}}\n"
        )
    }

    #[tokio::test]
    async fn files_come_and_go() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.yaml"), manifest("a")).unwrap();
        std::fs::write(dir.path().join(".hidden"), manifest("h")).unwrap();
        std::fs::write(dir.path().join("bad.yaml"), "{").unwrap();
        let (sets, mut received) = mpsc::channel(10);
        let source = FileSource {
            path: dir.path().to_owned(),
            node_name: "n".into(),
            period: Duration::from_secs(600),
            refuse_references: true,
        };
        let group = TaskGroup::new("test");
        group.spawn_cancellable("source", source.run(sets));
        let names = |delivery| {
            let Delivery::All(set) = delivery else { panic!("{delivery:?}") };
            set.pods.iter().map(|pod| pod.metadata.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(received.recv().await.unwrap()), ["a-n"]);
        std::fs::write(dir.path().join("b.yaml"), manifest("b")).unwrap();
        let wanted = ["a-n".to_owned(), "b-n".to_owned()];
        while names(received.recv().await.unwrap()) != wanted {}
        std::fs::remove_file(dir.path().join("a.yaml")).unwrap();
        while names(received.recv().await.unwrap()) != ["b-n"] {}
        group.shutdown(Duration::from_secs(5)).await;
    }

    #[tokio::test]
    async fn a_missing_path_is_an_empty_set() {
        let (sets, mut received) = mpsc::channel(1);
        let group = TaskGroup::new("test");
        let source = FileSource {
            path: "/nonexistent/manifests".into(),
            node_name: "n".into(),
            period: Duration::from_secs(600),
            refuse_references: true,
        };
        group.spawn_cancellable("source", source.run(sets));
        let Some(Delivery::All(set)) = received.recv().await else { panic!() };
        assert!(set.pods.is_empty());
        group.shutdown(Duration::from_secs(5)).await;
    }

    fn reader(path: &Path) -> Reader {
        let source = FileSource {
            path: path.to_owned(),
            node_name: "n".into(),
            period: Duration::from_secs(600),
            refuse_references: true,
        };
        Reader { source, last: Mutex::default() }
    }

    /// The names of a look's pods and whether these are all.
    fn seen(reader: &Reader) -> Option<(Vec<String>, bool)> {
        let set = reader.look()?;
        Some((set.pods.iter().map(|pod| pod.metadata.name.clone()).collect(), set.whole))
    }

    /// Reading this fails, for root too, and not because nothing is there.
    fn make_unreadable(path: &Path) {
        let _ = std::fs::remove_file(path);
        std::os::unix::fs::symlink(path, path).unwrap();
    }

    #[test]
    fn what_cannot_be_read_stays() {
        let dir = tempfile::tempdir().unwrap();
        let manifests = dir.path().join("manifests");
        std::fs::create_dir(&manifests).unwrap();
        for name in ["a", "b"] {
            std::fs::write(manifests.join(format!("{name}.yaml")), manifest(name)).unwrap();
        }
        let source = reader(&manifests);
        let both = Some((vec!["a-n".to_owned(), "b-n".to_owned()], true));
        assert_eq!(seen(&source), both);
        make_unreadable(&manifests.join("a.yaml"));
        assert_eq!(seen(&source), both, "a file that cannot be read");
        assert_eq!(seen(&source), both, "however often");
        assert_eq!(seen(&reader(&manifests)), Some((vec!["b-n".to_owned()], false)), "nobody knows what was in it");
        std::fs::rename(&manifests, dir.path().join("aside")).unwrap();
        make_unreadable(&manifests);
        assert_eq!(seen(&source), None, "a directory that cannot be read");
        std::fs::remove_file(&manifests).unwrap();
        assert_eq!(seen(&source), Some((vec![], true)), "a directory that is not there");
    }

    #[test]
    fn what_is_gone_or_not_valid_goes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.yaml");
        std::fs::write(&file, manifest("a")).unwrap();
        std::os::unix::fs::symlink("/nonexistent", dir.path().join("dangling.yaml")).unwrap();
        let source = reader(dir.path());
        assert_eq!(seen(&source), Some((vec!["a-n".to_owned()], true)));
        std::fs::write(&file, [0xff, 0xfe]).unwrap();
        assert_eq!(seen(&source), Some((vec![], true)));
        std::fs::write(&file, manifest("a")).unwrap();
        assert_eq!(seen(&source), Some((vec!["a-n".to_owned()], true)));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(seen(&source), Some((vec![], true)));
    }
}
