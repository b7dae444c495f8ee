//! What users do with `kubectl`, as tables of commands and what each must say; for the newest and for an older version.

mod changing;
mod creating;
mod inspecting;
mod streaming;
mod table;

use std::path::PathBuf;

use parking_lot::Mutex;

use crate::cluster::{Cluster, manifest};
use crate::kubectl::Kubectl;
use table::{Row, Want::*};

/// One version's `kubectl` in a namespace of its own, with a directory for files.
pub(crate) struct Desk {
    kubectl: Kubectl,
    files: PathBuf,
    /// What went wrong: a table is worked through to its end all the same.
    problems: Mutex<Vec<String>>,
}

impl Desk {
    /// Works through a table from top to bottom.
    #[expect(clippy::print_stdout, reason = "what is wrong is said as soon as it is known")]
    async fn work_through(&self, rows: &[Row]) {
        for row in rows {
            if let Err(problem) = row.check(self).await {
                println!("{}: {problem}\n", self.kubectl.namespace);
                self.problems.lock().push(problem);
            }
        }
    }

    /// `$NS`, `$DIR` and `$MANIFEST` in a line stand for the desk's own.
    fn filled(&self, text: &str) -> String {
        text.replace("$NS", &self.kubectl.namespace)
            .replace("$DIR", &self.files.display().to_string())
            .replace("$MANIFEST", &manifest("kubectl.yaml"))
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.files.join(name), self.filled(text)).expect("a file can be written");
    }
}

/// One version's way through all of it.
pub(crate) async fn story(cluster: Cluster, version: &str) {
    let namespace = format!("kubectl-{}", version.replace('.', "-"));
    let kubectl = cluster.kubectl(version, &namespace);
    let files = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&namespace);
    std::fs::create_dir_all(&files).expect("cargo's own directory can be made");
    let desk = Desk { kubectl, files, problems: Mutex::default() };
    inspecting::story(&desk).await;
    streaming::story(&desk, &cluster).await;
    changing::story(&desk).await;
    creating::story(&desk).await;
    desk.work_through(&[
        Row::new("delete namespace $NS --timeout=120s", Says(&["namespace \"$NS\" deleted"])),
        Row::new("get namespace $NS", Fails(&["namespaces \"$NS\" not found"])),
    ])
    .await;
    let _ = std::fs::remove_dir_all(&desk.files);
    let problems = desk.problems.lock();
    assert!(problems.is_empty(), "{} commands did not do what they should", problems.len());
}
