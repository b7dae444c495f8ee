//! Where tables of commands are worked through.

use std::collections::BTreeMap;
use std::path::PathBuf;

use parking_lot::Mutex;

use crate::kubectl::Kubectl;
use crate::table::Row;

/// One version's `kubectl` in a namespace of its own, with a directory for files.
pub struct Desk {
    pub kubectl: Kubectl,
    version: String,
    pub files: PathBuf,
    /// What stands in a text for something that only this desk knows.
    names: Mutex<BTreeMap<String, String>>,
    /// What went wrong: a table is worked through to its end all the same.
    problems: Mutex<Vec<String>>,
}

impl Desk {
    /// Makes the directory. `$NS` and `$DIR` stand for the namespace and for it.
    ///
    /// # Panics
    /// When the directory cannot be made.
    #[must_use]
    pub fn new(kubectl: Kubectl, version: &str, files: PathBuf) -> Self {
        std::fs::create_dir_all(&files).expect("the directory can be made");
        let names = BTreeMap::from([
            ("NS".to_owned(), kubectl.namespace.clone()),
            ("DIR".to_owned(), files.display().to_string()),
        ]);
        Self { kubectl, version: version.to_owned(), files, names: Mutex::new(names), problems: Mutex::default() }
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Lets a name, after a `$`, stand for a text from now on.
    #[must_use]
    pub fn knowing(self, name: &str, text: &str) -> Self {
        self.names.lock().insert(name.to_owned(), text.to_owned());
        self
    }

    /// Lets a name stand for what a command printed, and for a file that holds it.
    pub(crate) fn keep(&self, name: &str, printed: &str) {
        std::fs::write(self.files.join(name), printed).expect("a file can be written");
        self.names.lock().insert(name.to_owned(), printed.trim().to_owned());
    }

    /// The text with what its names stand for.
    #[must_use]
    pub fn filled(&self, text: &str) -> String {
        let names = self.names.lock();
        // Of two that begin alike, the longer one comes first.
        names.iter().rev().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
    }

    /// # Panics
    /// When the file cannot be written.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.files.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&self.files)).expect("the directory can be made");
        std::fs::write(path, self.filled(text)).expect("a file can be written");
    }

    /// Works through a table from top to bottom.
    #[expect(clippy::print_stdout, reason = "what is wrong is said as soon as it is known")]
    pub async fn work_through(&self, rows: &[Row]) {
        for row in rows {
            if let Err(problem) = row.check(self).await {
                println!("{}: {problem}\n", self.kubectl.namespace);
                self.problems.lock().push(problem);
            }
        }
    }

    /// Tidies up; how many commands did not do what they should.
    #[must_use]
    pub fn leave(self) -> usize {
        let _ = std::fs::remove_dir_all(&self.files);
        self.problems.into_inner().len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sys::exec::LinuxExec;

    use super::*;

    #[test]
    fn names_stand_for_what_is_known() {
        let directory = tempfile::tempdir().expect("a directory");
        let kubectl = Kubectl {
            program: PathBuf::new(),
            kubeconfig: PathBuf::new(),
            cache: PathBuf::new(),
            namespace: "here".to_owned(),
            flags: Vec::new(),
            exec: Arc::new(LinuxExec),
        };
        let desk = Desk::new(kubectl, "1.36", directory.path().join("files")).knowing("N", "short");
        desk.keep("POD", "what was printed\n");
        assert_eq!(desk.filled("$NS $N-$POD $OTHER"), "here short-what was printed $OTHER");
        assert_eq!(std::fs::read_to_string(desk.files.join("POD")).expect("a file"), "what was printed\n");
        desk.write("deep/file", "of $NS");
        assert_eq!(std::fs::read_to_string(desk.files.join("deep/file")).expect("a file"), "of here");
    }
}
