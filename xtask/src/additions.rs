//! The structure proven by adding to it: `tests/additions/N-WHAT.patch` adds one more of a uniform list (a kind, a version of
//! one, a controller, a plugin), as a diff with lines before it that say what it adds, in which lists it is entered, and which
//! tests see it. It may bring new files; in a file that is there it may only add, where it is entered: the module, what
//! the module shows, and the entry. `cargo xtask additions` tries them in their order on a copy of the committed tree, one on
//! top of the other; `cargo xtask check` sees to it that the first still fit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

use crate::patches::{self, Field, Outcome};
use crate::report;

const FOLDER: &str = "tests/additions";
/// Lines that an addition may add to a list's file: the module, what it shows, the entry.
const MAX_LINES: usize = 3;

/// Something that is added.
#[derive(Debug, PartialEq, Eq)]
struct Addition {
    name: String,
    adds: String,
    /// The files of the lists.
    entered_in: Vec<String>,
    /// The name of the addition that must be there before.
    after: Option<String>,
    /// Commands, as the words behind `cargo`.
    tests: Vec<Vec<String>>,
}

impl Addition {
    /// Reads the lines that the file of this name begins with.
    fn parse(name: &str, text: &str) -> Result<Self> {
        let (file, mut lines) = (format!("{FOLDER}/{name}.patch"), text.lines());
        let adds = patches::line(&mut lines, "# ", &file)?.to_owned();
        let entered_in = patches::line(&mut lines, "# entered in: ", &file)?;
        let mut tests = Vec::new();
        let mut after = None;
        for line in lines.take_while(|line| line.starts_with("# ")) {
            if let Some(command) = line.strip_prefix("# seen by: ") {
                tests.push(patches::tests(command, &file)?);
            } else if let Some(other) = line.strip_prefix("# after: ") {
                after = Some(other.to_owned());
            } else {
                bail!("{file}: {line:?} is neither \"# after: \" nor \"# seen by: \"");
            }
        }
        ensure!(!tests.is_empty(), "{file}: there is no line that starts with \"# seen by: \"");
        let entered_in = entered_in.split_whitespace().map(str::to_owned).collect();
        Ok(Self { name: name.to_owned(), adds, entered_in, after, tests })
    }
}

/// What a diff does to a file that was there before.
#[derive(Debug, Default, PartialEq, Eq)]
struct Change {
    added: Vec<String>,
    removed: usize,
}

/// What a diff does to files that were there before, by file.
fn changes(diff: &str) -> BTreeMap<String, Change> {
    let mut changes: BTreeMap<String, Change> = BTreeMap::new();
    let (mut is_new, mut file) = (false, String::new());
    for line in diff.lines() {
        if let Some(old) = line.strip_prefix("--- ") {
            is_new = old == "/dev/null";
        } else if let Some(new) = line.strip_prefix("+++ b/") {
            new.clone_into(&mut file);
        } else if let Some(added) = line.strip_prefix('+').filter(|_| !is_new && !file.is_empty()) {
            changes.entry(file.clone()).or_default().added.push(added.trim().to_owned());
        } else if line.starts_with('-') && !is_new && !file.is_empty() {
            changes.entry(file.clone()).or_default().removed += 1;
        } else if line.starts_with("diff ") {
            file.clear();
        }
    }
    changes
}

/// What is wrong with the way that an addition is made: it should be a new file and an entry.
fn faults(addition: &Addition, diff: &str) -> Vec<String> {
    let (mut faults, changes) = (Vec::new(), changes(diff));
    for (file, change) in &changes {
        if !addition.entered_in.contains(file) {
            faults.push(format!("changes {file}, which is no list that it is entered in"));
        }
        if change.removed > 0 {
            faults.push(format!("takes {} lines from {file}", change.removed));
        }
        let words = |line: &&String| {
            ["mod ", "pub mod ", "pub(crate) mod ", "pub use ", "pub(crate) use "]
                .iter()
                .any(|word| line.starts_with(word))
        };
        let entries = change.added.iter().filter(|line| !words(line)).count();
        if change.added.len() > MAX_LINES || entries > 1 {
            faults.push(format!("adds {} lines to {file}, {entries} of them entries", change.added.len()));
        }
    }
    faults.extend(
        addition
            .entered_in
            .iter()
            .filter(|file| !changes.contains_key(*file))
            .map(|file| format!("enters nothing in {file}")),
    );
    faults.into_iter().map(|fault| format!("{FOLDER}/{}.patch {fault}", addition.name)).collect()
}

/// Everything that keeps something from being added.
pub(crate) fn problems(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for file in patches::files(root, FOLDER, "")? {
        let (name, text) = (patches::stem(&file), std::fs::read_to_string(&file)?);
        match Addition::parse(&name, &text) {
            Ok(addition) => {
                problems.extend(faults(&addition, &text));
                // What follows another fits only where that is.
                let former = addition.after.map(|name| root.join(FOLDER).join(format!("{name}.patch")));
                let in_order: Vec<&Path> = former.iter().chain([&file]).map(PathBuf::as_path).collect();
                if let Some(why) = patches::misfit(root, &in_order)? {
                    problems.push(format!("{FOLDER}/{name}.patch cannot be added: {why}"));
                }
            }
            Err(error) => problems.push(error.to_string()),
        }
    }
    Ok(problems)
}

/// Adds everything, one on top of the other, each seen by its tests; with `--all`, the whole suite runs at the end.
pub(crate) fn run(root: &Path, all: bool) -> Result<()> {
    let field = Field::prepare(root, "additions")?;
    let files = patches::files(root, FOLDER, "")?;
    let mut failed = 0;
    for file in &files {
        let addition = Addition::parse(&patches::stem(file), &std::fs::read_to_string(file)?)?;
        field.apply(file)?;
        for tests in &addition.tests {
            let outcome = field.test(tests)?;
            let said = if outcome == Outcome::Passed { "added" } else { "FAILED" };
            failed += usize::from(outcome != Outcome::Passed);
            report(&format!("{said}: {}: {} ({outcome:?}: cargo {})", addition.name, addition.adds, tests.join(" ")));
        }
    }
    if all {
        let whole = ["test", "--workspace", "--lib", "--bins"].map(str::to_owned);
        let outcome = field.test(&whole)?;
        failed += usize::from(outcome != Outcome::Passed);
        report(&format!("all unit tests with everything added: {outcome:?}"));
    }
    ensure!(failed == 0, "{failed} runs of tests failed");
    report(&format!("{} added", files.len()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/crates/x/src/new.rs b/crates/x/src/new.rs\nnew file mode 100644\n--- /dev/null\n+++ b/crates/x/src/new.rs\n@@ -0,0 +1,2 @@\n+a\n+b\ndiff --git a/crates/x/src/mod.rs b/crates/x/src/mod.rs\n--- a/crates/x/src/mod.rs\n+++ b/crates/x/src/mod.rs\n@@ -1,2 +1,4 @@\n mod old;\n+mod new;\n x = [\n     old::ENTRY,\n+    new::ENTRY,\n ]\n";

    fn addition(text: &str) -> Addition {
        Addition::parse("1-x", text).expect("a header")
    }

    #[test]
    fn a_new_file_and_an_entry_are_an_addition() {
        let header = "# an x\n# entered in: crates/x/src/mod.rs\n# after: 0-w\n# seen by: cargo test -p x --lib a\n";
        let own = addition(&format!("{header}{DIFF}"));
        assert_eq!((own.adds.as_str(), own.after.as_deref(), own.tests.len()), ("an x", Some("0-w"), 1));
        assert_eq!(faults(&own, DIFF), Vec::<String>::new());
    }

    #[test]
    fn anything_else_is_not() {
        let header = "# an x\n# entered in: crates/x/src/mod.rs\n# seen by: cargo test -p x --lib a\n";
        let own = addition(header);
        for (from, to, expected) in [
            (" mod old;", "-mod old;", "takes 1 lines from crates/x/src/mod.rs"),
            (
                "+    new::ENTRY,",
                "+    new::ENTRY,\n+    new::OTHER,",
                "adds 3 lines to crates/x/src/mod.rs, 2 of them entries",
            ),
            (
                "crates/x/src/mod.rs\n@@",
                "crates/x/src/engine.rs\n@@",
                "changes crates/x/src/engine.rs, which is no list",
            ),
        ] {
            let found = faults(&own, &DIFF.replace(from, to));
            assert!(found.iter().any(|fault| fault.contains(expected)), "{expected}: {found:?}");
        }
        assert!(Addition::parse("1-x", "# an x\n# entered in: y\ndiff\n").is_err(), "nobody sees it");
    }
}
