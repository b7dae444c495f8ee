//! Where tests find what upstream does, and the one place that tells what could not be tested.
//!
//! Tables of facts are in the repository (`facts/`): a test that needs one fails without it. Larger material (golden
//! objects, test vectors, the conformance suite's definition, recorded answers) is outside, in the directory that
//! `COXSWAIN_FACTS` names (default: `../shared`, seen from the repository): without it such tests are skipped, but fail
//! where `CI=true`. What a machine cannot do is skipped everywhere. Every skip is a line in the file that
//! `COXSWAIN_SKIPPED` names; `hack/test.sh` makes that file and counts its lines.

pub mod etcd;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Where the material outside is, if no variable says otherwise; seen from the repository.
const OUTSIDE: &str = "../shared";

/// A table of `facts/`. Panics where it is not there: a clone has it.
#[must_use]
pub fn facts(path: &str) -> Value {
    read(&repository(), path)
}

fn read(repository: &Path, path: &str) -> Value {
    let path = repository.join("facts").join(path);
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A file or directory of the material outside. Nothing, with a word about it, where it is absent: the test is to return.
/// Panics instead where `CI=true`, so that nobody takes a run that proved less for one that proved all.
#[must_use]
pub fn outside(path: &str) -> Option<PathBuf> {
    let configured = std::env::var("COXSWAIN_FACTS").ok();
    let path = place(&repository(), configured.as_deref()).join(path);
    if path.exists() {
        return Some(path);
    }
    absent(&path, is_ci());
    None
}

fn absent(path: &Path, is_ci: bool) {
    assert!(!is_ci, "{} is absent, which CI may not skip: set COXSWAIN_FACTS", path.display());
    skipped(&format!("{} is absent (COXSWAIN_FACTS)", path.display()));
}

/// The directory of the material outside.
fn place(repository: &Path, configured: Option<&str>) -> PathBuf {
    // Joining an absolute path gives that path.
    repository.join(configured.filter(|text| !text.is_empty()).unwrap_or(OUTSIDE))
}

/// Tells that the current test, or a part of it, could not run, and why, on a machine that `make deps` was not run on:
/// panics where `CI=true`.
pub fn not_installed(why: &str) {
    assert!(!is_ci(), "{why}, which CI may not skip: run hack/install-deps.sh");
    skipped(why);
}

fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// Tells that the current test, or a part of it, could not run, and why.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub fn skipped(why: &str) {
    println!("skipped: {why}");
    if let Some(list) = std::env::var_os("COXSWAIN_SKIPPED") {
        note(Path::new(&list), &format!("{}: {why}", test()));
    }
}

/// The test that is running: cargo tells which crate's it is, and libtest names its threads by their tests.
fn test() -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let thread = std::thread::current();
    format!("{package} {}", thread.name().unwrap_or("a test")).trim_start().to_owned()
}

/// One line, in one write: several test programs may have a word to say.
fn note(list: &Path, line: &str) {
    let line = format!("{}\n", line.replace('\n', " "));
    let file = OpenOptions::new().create(true).append(true).open(list);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("{}: {error}", list.display()));
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_the_repository_is_read() {
        assert!(facts("resources.json")["resources"].is_array());
    }

    #[test]
    #[should_panic(expected = "facts/resources.json")]
    fn without_the_table_a_test_fails() {
        let empty = tempfile::tempdir().unwrap();
        read(empty.path(), "resources.json");
    }

    #[test]
    fn the_place_outside_can_be_chosen() {
        let root = Path::new("/src/project");
        for (configured, expected) in [
            (None, "/src/project/../shared"),
            (Some(""), "/src/project/../shared"),
            (Some("/data/upstream"), "/data/upstream"),
            (Some("../upstream"), "/src/project/../upstream"),
        ] {
            assert_eq!(place(root, configured), Path::new(expected), "{configured:?}");
        }
    }

    #[test]
    #[should_panic(expected = "CI may not skip")]
    fn what_is_absent_fails_where_nothing_may_be() {
        absent(Path::new("/nowhere/vectors"), true);
    }

    #[test]
    fn each_skip_is_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("skipped");
        note(&list, "a: no root");
        note(&list, "b: two\nlines");
        assert_eq!(std::fs::read_to_string(&list).unwrap(), "a: no root\nb: two lines\n");
        assert!(test().ends_with("tests::each_skip_is_a_line"), "{}", test());
    }
}
