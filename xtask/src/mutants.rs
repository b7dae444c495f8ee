//! Bugs planted by hand, each of a kind that has hurt somebody: `tests/mutants/AREA-SLUG.patch` is a diff with two lines
//! before it, what it plants and the tests that see it. `cargo xtask mutants` plants each in a copy of the committed tree
//! and runs these tests, which must fail; `cargo xtask check` sees to it that all can still be planted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail, ensure};

use crate::report;

const FOLDER: &str = "tests/mutants";
const COMMAND: [&str; 3] = ["cargo", "test", "-p"];

/// A planted bug.
#[derive(Debug, PartialEq, Eq)]
struct Mutant {
    name: String,
    plants: String,
    /// The words behind `cargo`.
    tests: Vec<String>,
}

impl Mutant {
    /// Reads the two lines that the file of this name begins with.
    fn parse(name: &str, text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let mut line = |start: &str| {
            let rest = lines.next().and_then(|line| line.strip_prefix(start));
            rest.with_context(|| format!("{FOLDER}/{name}.patch: there is no line that starts with {start:?}"))
        };
        let (plants, command) = (line("# ")?.to_owned(), line("# caught by: ")?);
        let words: Vec<&str> = command.split_whitespace().collect();
        ensure!(
            words.starts_with(&COMMAND) && words.len() > COMMAND.len() + 1,
            "{FOLDER}/{name}.patch: {command:?} is not `cargo test -p CRATE --lib FILTER`"
        );
        let tests = words.iter().skip(1).map(|word| (*word).to_owned()).collect();
        Ok(Self { name: name.to_owned(), plants, tests })
    }
}

/// What came of a run of tests.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    NotBuilt,
    NoTests,
}

/// Reads what cargo printed.
fn outcome(success: bool, text: &str) -> Outcome {
    let results = || text.lines().filter_map(|line| line.strip_prefix("test result: "));
    let ran = |result: &str| {
        let count =
            |what: &str| result.split([';', '.']).find_map(|part| part.trim().strip_suffix(what)?.trim().parse().ok());
        count(" passed").unwrap_or(0_u32) + count(" failed").unwrap_or(0)
    };
    match (success, results().count(), results().map(ran).sum::<u32>()) {
        (false, 0, _) => Outcome::NotBuilt,
        (_, _, 0) => Outcome::NoTests,
        (true, ..) => Outcome::Passed,
        (false, ..) => Outcome::Failed,
    }
}

/// Everything that keeps a bug from being planted.
pub(crate) fn problems(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for file in files(root, "")? {
        let name = stem(&file);
        if let Err(error) = Mutant::parse(&name, &std::fs::read_to_string(&file)?) {
            problems.push(error.to_string());
        }
        let checked = git(root, &["apply", "--check", &file.to_string_lossy()])?;
        if !checked.status.success() {
            problems.push(format!(
                "{FOLDER}/{name}.patch cannot be planted: {}",
                String::from_utf8_lossy(&checked.stderr).trim()
            ));
        }
    }
    Ok(problems)
}

/// Plants each bug whose name has `filter` in it and sees whether it is caught.
pub(crate) fn run(root: &Path, filter: &str) -> Result<()> {
    let files = files(root, filter)?;
    ensure!(!files.is_empty(), "no file in {FOLDER} has {filter:?} in its name");
    let field = Field::prepare(root)?;
    let (mut sound, mut caught) = (BTreeSet::new(), 0);
    for file in &files {
        let mutant = Mutant::parse(&stem(file), &std::fs::read_to_string(file)?)?;
        if sound.insert(mutant.tests.clone()) {
            let clean = field.test(&mutant.tests)?;
            ensure!(
                clean == Outcome::Passed,
                "{}: without the bug: {clean:?}: cargo {}",
                mutant.name,
                mutant.tests.join(" ")
            );
        }
        let said = match field.test_with(file, &mutant)? {
            Outcome::Failed => {
                caught += 1;
                "caught"
            }
            Outcome::Passed => "SURVIVED",
            Outcome::NotBuilt => "error: it does not build",
            Outcome::NoTests => "error: no test ran",
        };
        report(&format!("{said}: {}: {}", mutant.name, mutant.plants));
    }
    report(&format!("{caught} of {} caught", files.len()));
    if caught < files.len() {
        bail!("{} planted bugs were not caught", files.len() - caught)
    }
    Ok(())
}

/// The patches whose names have `filter` in them, sorted.
fn files(root: &Path, filter: &str) -> Result<Vec<PathBuf>> {
    let folder = root.join(FOLDER);
    let entries = std::fs::read_dir(&folder).with_context(|| format!("reading {FOLDER}"))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "patch") && stem(file).contains(filter));
    files.sort();
    Ok(files)
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// A copy of the committed tree, kept from run to run so that builds need not begin anew.
struct Field {
    tree: PathBuf,
    target: PathBuf,
    facts: PathBuf,
}

impl Field {
    fn prepare(root: &Path) -> Result<Self> {
        let base = root.join("target/mutants");
        let field = Self {
            tree: base.join("tree"),
            target: base.join("build"),
            facts: std::env::var_os("COXSWAIN_FACTS").map_or_else(|| root.join("../shared"), |own| root.join(own)),
        };
        if !field.tree.exists() {
            std::fs::create_dir_all(&base)?;
            let cloned = git(root, &["clone", "--quiet", "--shared", ".", &field.tree.to_string_lossy()])?;
            ensure!(cloned.status.success(), "copying the tree: {}", String::from_utf8_lossy(&cloned.stderr));
        }
        for step in [&["fetch", "--quiet", "origin", "HEAD"][..], &["reset", "--quiet", "--hard", "FETCH_HEAD"]] {
            let done = git(&field.tree, step)?;
            ensure!(done.status.success(), "git {}: {}", step.join(" "), String::from_utf8_lossy(&done.stderr));
        }
        Ok(field)
    }

    fn test_with(&self, patch: &Path, mutant: &Mutant) -> Result<Outcome> {
        let file = patch.to_string_lossy();
        let planted = git(&self.tree, &["apply", &file])?;
        ensure!(planted.status.success(), "{}: {}", mutant.name, String::from_utf8_lossy(&planted.stderr));
        let outcome = self.test(&mutant.tests);
        let restored = git(&self.tree, &["apply", "--reverse", &file])?;
        ensure!(restored.status.success(), "{}: cannot be taken out again", mutant.name);
        outcome
    }

    fn test(&self, words: &[String]) -> Result<Outcome> {
        let output = command("cargo", &self.tree)
            .args(words)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("COXSWAIN_FACTS", &self.facts)
            .output()
            .context("starting cargo")?;
        Ok(outcome(output.status.success(), &String::from_utf8_lossy(&output.stdout)))
    }
}

fn git(at: &Path, words: &[&str]) -> Result<Output> {
    // The tree may be somebody else's: nothing of its configuration is obeyed.
    let own = ["-c", "safe.directory=*"];
    command("git", at)
        .args(own)
        .args(words)
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .output()
        .context("starting git")
}

#[expect(clippy::disallowed_methods, reason = "this tool runs programs")]
fn command(program: &str, at: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(at);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_lines_say_what_is_planted_and_who_sees_it() {
        let text = "# it is gone too soon\n# caught by: cargo test -p registry --lib a_test\ndiff --git a/x b/x\n";
        let mutant = Mutant::parse("registry-soon", text).expect("a header");
        assert_eq!(mutant.plants, "it is gone too soon");
        assert_eq!(mutant.tests, ["test", "-p", "registry", "--lib", "a_test"]);
        for (text, expected) in [
            ("diff --git a/x b/x\n", "tests/mutants/x.patch: there is no line that starts with \"# \""),
            ("# what\ndiff\n", "tests/mutants/x.patch: there is no line that starts with \"# caught by: \""),
            (
                "# what\n# caught by: sh -c y\n",
                "tests/mutants/x.patch: \"sh -c y\" is not `cargo test -p CRATE --lib FILTER`",
            ),
            (
                "# what\n# caught by: cargo test -p x\n",
                "tests/mutants/x.patch: \"cargo test -p x\" is not `cargo test -p CRATE --lib FILTER`",
            ),
        ] {
            assert_eq!(Mutant::parse("x", text).expect_err(text).to_string(), expected);
        }
    }

    #[test]
    fn outcomes_are_read_from_what_cargo_prints() {
        let result = |passed: u32, failed: u32| {
            let word = if failed == 0 { "ok" } else { "FAILED" };
            format!(
                "test result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 9 filtered out; finished\n"
            )
        };
        for (success, text, expected) in [
            (true, result(2, 0), Outcome::Passed),
            (false, result(1, 1), Outcome::Failed),
            (false, result(0, 0) + &result(0, 1), Outcome::Failed),
            (true, result(0, 0), Outcome::NoTests),
            (false, "error: could not compile".to_owned(), Outcome::NotBuilt),
        ] {
            assert_eq!(outcome(success, &text), expected, "{text}");
        }
    }
}
