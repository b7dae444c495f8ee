//! Patches that are tried on a copy of the committed tree: what is shared by planted bugs and additions. A patch has lines
//! before the diff that say what it is and which tests are about it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

/// How such a command begins.
const COMMAND: [&str; 3] = ["cargo", "test", "-p"];

/// The rest of the next line, which must have this start.
pub(crate) fn line<'a>(lines: &mut std::str::Lines<'a>, start: &str, file: &str) -> Result<&'a str> {
    let rest = lines.next().and_then(|line| line.strip_prefix(start));
    rest.with_context(|| format!("{file}: there is no line that starts with {start:?}"))
}

/// The words behind `cargo` of a command that runs tests.
pub(crate) fn tests(command: &str, file: &str) -> Result<Vec<String>> {
    let words: Vec<&str> = command.split_whitespace().collect();
    ensure!(
        words.starts_with(&COMMAND) && words.len() > COMMAND.len() + 1,
        "{file}: {command:?} is not `cargo test -p CRATE --lib FILTER`"
    );
    Ok(words.iter().skip(1).map(|word| (*word).to_owned()).collect())
}

/// Why patches cannot be applied to the tree, one on top of the other, if so.
pub(crate) fn misfit(root: &Path, files: &[&Path]) -> Result<Option<String>> {
    // Of several files git would hold each against the tree.
    let mut all = Vec::new();
    for file in files {
        all.extend(std::fs::read(file).with_context(|| file.display().to_string())?);
    }
    let whole = std::env::temp_dir().join(format!("coxswain-patches-{}", std::process::id()));
    std::fs::write(&whole, all).with_context(|| whole.display().to_string())?;
    let checked = git(root, &["apply", "--check", &whole.to_string_lossy()]);
    std::fs::remove_file(&whole).with_context(|| whole.display().to_string())?;
    let checked = checked?;
    Ok((!checked.status.success()).then(|| String::from_utf8_lossy(&checked.stderr).trim().to_owned()))
}

/// What came of a run of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
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

/// The patches of a folder whose names have `filter` in them, sorted.
pub(crate) fn files(root: &Path, folder: &str, filter: &str) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(root.join(folder)).with_context(|| format!("reading {folder}"))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "patch") && stem(file).contains(filter));
    files.sort();
    Ok(files)
}

/// The name of a file without its ending.
pub(crate) fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// A copy of the committed tree, kept from run to run so that builds need not begin anew.
pub(crate) struct Field {
    pub(crate) tree: PathBuf,
    target: PathBuf,
    facts: PathBuf,
}

impl Field {
    /// A copy in `target/NAME`.
    pub(crate) fn prepare(root: &Path, name: &str) -> Result<Self> {
        let base = root.join("target").join(name);
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
        // A run that failed leaves its changes behind.
        field.clean()?;
        Ok(field)
    }

    /// Changes the copy by a patch.
    pub(crate) fn apply(&self, patch: &Path) -> Result<()> {
        let done = git(&self.tree, &["apply", &patch.to_string_lossy()])?;
        ensure!(done.status.success(), "{}: {}", stem(patch), String::from_utf8_lossy(&done.stderr));
        Ok(())
    }

    /// Takes all changes of patches out again.
    pub(crate) fn clean(&self) -> Result<()> {
        for step in [&["reset", "--quiet", "--hard"][..], &["clean", "--quiet", "--force", "-d"]] {
            let done = git(&self.tree, step)?;
            ensure!(done.status.success(), "git {}: {}", step.join(" "), String::from_utf8_lossy(&done.stderr));
        }
        Ok(())
    }

    /// Runs `cargo` with these words, which are tests.
    pub(crate) fn test(&self, words: &[String]) -> Result<Outcome> {
        let output = command("cargo", &self.tree)
            .args(words)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("COXSWAIN_FACTS", &self.facts)
            .output()
            .context("starting cargo")?;
        Ok(outcome(output.status.success(), &String::from_utf8_lossy(&output.stdout)))
    }
}

/// Runs git.
pub(crate) fn git(at: &Path, words: &[&str]) -> Result<Output> {
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
