//! Bugs planted by hand, each of a kind that has hurt somebody: `tests/mutants/AREA-SLUG.patch` is a diff with two lines
//! before it, what it plants and the tests that see it. `cargo xtask mutants` plants each in a copy of the committed tree
//! and runs these tests, which must fail; `cargo xtask check` sees to it that all can still be planted.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::patches::{self, Field, Outcome};
use crate::report;

const FOLDER: &str = "tests/mutants";

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
        let (file, mut lines) = (format!("{FOLDER}/{name}.patch"), text.lines());
        let plants = patches::line(&mut lines, "# ", &file)?.to_owned();
        let tests = patches::tests(patches::line(&mut lines, "# caught by: ", &file)?, &file)?;
        Ok(Self { name: name.to_owned(), plants, tests })
    }
}

/// Everything that keeps a bug from being planted.
pub(crate) fn problems(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for file in patches::files(root, FOLDER, "")? {
        let name = patches::stem(&file);
        if let Err(error) = Mutant::parse(&name, &std::fs::read_to_string(&file)?) {
            problems.push(error.to_string());
        }
        if let Some(why) = patches::misfit(root, &file)? {
            problems.push(format!("{FOLDER}/{name}.patch cannot be planted: {why}"));
        }
    }
    Ok(problems)
}

/// Plants each bug whose name has `filter` in it and sees whether it is caught.
pub(crate) fn run(root: &Path, filter: &str) -> Result<()> {
    let files = patches::files(root, FOLDER, filter)?;
    ensure!(!files.is_empty(), "no file in {FOLDER} has {filter:?} in its name");
    let field = Field::prepare(root, "mutants")?;
    let (mut sound, mut caught) = (BTreeSet::new(), 0);
    for file in &files {
        let mutant = Mutant::parse(&patches::stem(file), &std::fs::read_to_string(file)?)?;
        if sound.insert(mutant.tests.clone()) {
            let clean = field.test(&mutant.tests)?;
            ensure!(
                clean == Outcome::Passed,
                "{}: without the bug: {clean:?}: cargo {}",
                mutant.name,
                mutant.tests.join(" ")
            );
        }
        let said = match test_with(&field, file, &mutant)? {
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

fn test_with(field: &Field, patch: &Path, mutant: &Mutant) -> Result<Outcome> {
    field.apply(patch, false)?;
    let outcome = field.test(&mutant.tests);
    field.apply(patch, true)?;
    outcome
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
}
