//! Static pods from files: a directory (or one file) read in full at intervals and at every change that inotify tells.
//!
//! Every look delivers the complete set, so a file that vanishes or turns bad takes its pod with it.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use api_types::core_v1::Pod;
use futures_util::StreamExt as _;
use inotify::{Inotify, WatchMask};
use tokio::sync::mpsc;

use super::manifest::{self, MAX_MANIFEST_BYTES, Reading};
use super::{Source, SourceSet};

/// Files of a directory looked at, a bound.
const MAX_FILES: usize = 1000;
/// Changes come in bursts (an editor writes, renames, sets the mode); they are looked at together.
const SETTLE: Duration = Duration::from_millis(100);
const EVENT_BUFFER_BYTES: usize = 4096;

/// Where static pods are read.
pub(crate) struct FileSource {
    pub(crate) path: PathBuf,
    pub(crate) node_name: String,
    pub(crate) period: Duration,
    pub(crate) refuse_references: bool,
}

impl FileSource {
    /// Delivers sets until the receiver is gone or the caller drops the future.
    pub(crate) async fn run(self, sets: mpsc::Sender<SourceSet>) {
        loop {
            let mut changes = self.watch();
            if sets.send(SourceSet { source: Source::File, pods: self.read() }).await.is_err() {
                return;
            }
            let changed = async {
                match &mut changes {
                    Some(changes) => drop(changes.next().await),
                    None => std::future::pending().await,
                }
            };
            if tokio::time::timeout(self.period, changed).await.is_ok() {
                tokio::time::sleep(SETTLE).await;
            }
        }
    }

    /// Changes below the path; `None` where it cannot be watched, then only the period counts.
    fn watch(&self) -> Option<inotify::EventStream<Vec<u8>>> {
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
            inotify.into_event_stream(vec![0; EVENT_BUFFER_BYTES])
        });
        watched
            .inspect_err(|error| tracing::debug!(path = %self.path.display(), %error, "Watching static pods failed"))
            .ok()
    }

    /// All pods there are now. A bad file is passed over with a log line.
    fn read(&self) -> Vec<Pod> {
        let files = match files(&self.path) {
            Ok(files) => files,
            Err(error) => {
                tracing::error!(path = %self.path.display(), %error, "Unable to read static pod path");
                return Vec::new();
            }
        };
        let mut pods = BTreeMap::new();
        for file in files {
            match self.read_file(&file) {
                Ok(pod) => drop(pods.insert(file, pod)),
                Err(error) => tracing::error!(path = %file.display(), %error, "Could not process manifest file"),
            }
        }
        pods.into_values().collect()
    }

    fn read_file(&self, path: &Path) -> Result<Pod, String> {
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
        let read = file.take(MAX_MANIFEST_BYTES + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
        if read as u64 > MAX_MANIFEST_BYTES {
            return Err(format!("the file is larger than {MAX_MANIFEST_BYTES} bytes"));
        }
        let reading = Reading {
            source: Source::File,
            origin: &path.to_string_lossy(),
            node_name: &self.node_name,
            refuse_references: self.refuse_references,
        };
        manifest::read(&text, &reading)
    }
}

/// The manifests of a directory in order of their names, or the one file.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut out = Vec::new();
    for entry in std::fs::read_dir(path)?.take(MAX_FILES) {
        let entry = entry?;
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        let regular = std::fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_file());
        if regular && !hidden {
            out.push(entry.path());
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
        let names = |set: SourceSet| set.pods.into_iter().map(|pod| pod.metadata.name).collect::<Vec<_>>();
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
        assert!(received.recv().await.unwrap().pods.is_empty());
        group.shutdown(Duration::from_secs(5)).await;
    }
}
