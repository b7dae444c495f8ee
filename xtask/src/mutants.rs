//! Bugs planted by hand, each of a kind that has hurt somebody: `tests/mutants/AREA-SLUG.patch` is a diff with two lines
//! before it, what it plants and the tests that see it. `cargo xtask mutants` plants them in a copy of the committed tree
//! and runs these tests, which must fail with it and pass without it; `cargo xtask check` sees to it that all can still be planted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

use crate::patches::{self, Field, Outcome};
use crate::report;

const FOLDER: &str = "tests/mutants";
/// Enough for 924 bugs of one crate.
const MAX_ROUNDS: u32 = 12;

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

    /// The crate whose tests see it; the words are `test -p CRATE ..`.
    fn package(&self) -> &str {
        self.tests.get(2).map_or("", String::as_str)
    }

    fn patch(&self, root: &Path) -> PathBuf {
        root.join(FOLDER).join(format!("{}.patch", self.name))
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
        if let Some(why) = patches::misfit(root, &[&file])? {
            problems.push(format!("{FOLDER}/{name}.patch cannot be planted: {why}"));
        }
    }
    Ok(problems)
}

/// Plants the bugs whose names have `filter` in them and sees which are caught. Those of one crate are planted together,
/// in a few rounds (see [`rounds`]), as building takes most of the time; where the rounds do not tell, one is planted alone.
pub(crate) fn run(root: &Path, filter: &str) -> Result<()> {
    let mut mutants = Vec::new();
    for file in patches::files(root, FOLDER, filter)? {
        mutants.push(Mutant::parse(&patches::stem(&file), &std::fs::read_to_string(&file)?)?);
    }
    ensure!(!mutants.is_empty(), "no file in {FOLDER} has {filter:?} in its name");
    let field = Field::prepare(root, "mutants")?;
    let mut crates: BTreeMap<&str, Vec<&Mutant>> = BTreeMap::new();
    for mutant in &mutants {
        crates.entry(mutant.package()).or_default().push(mutant);
    }
    let mut caught = 0;
    for (package, own) in crates {
        report(&format!("{package}: {} bugs in {} rounds", own.len(), rounds(own.len()).0));
        for (mutant, is_told) in own.iter().zip(together(&field, root, &own)?) {
            let outcome = if is_told { Outcome::Failed } else { alone(&field, root, mutant)? };
            caught += usize::from(outcome == Outcome::Failed);
            report(&format!("{}: {}: {}", said(&outcome), mutant.name, mutant.plants));
        }
    }
    report(&format!("{caught} of {} caught", mutants.len()));
    if caught < mutants.len() {
        bail!("{} planted bugs were not caught", mutants.len() - caught)
    }
    Ok(())
}

fn said(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Failed => "caught",
        Outcome::Passed => "SURVIVED",
        Outcome::NotBuilt => "error: it does not build",
        Outcome::NoTests => "error: no test ran",
    }
}

/// How many rounds so many bugs need, and for each bug a set of them, one bit each, in which it is planted.
///
/// All sets are of one size, so that none is part of another: for any two bugs there is a round that has the one and not
/// the other. A test that fails in exactly the rounds of its bug is failed by no other.
fn rounds(bugs: usize) -> (u32, Vec<u32>) {
    let sets = |count: u32| (0..1_u32 << count).filter(move |set| set.count_ones() == count / 2);
    let count = (2..MAX_ROUNDS).find(|count| sets(*count).count() >= bugs).unwrap_or(MAX_ROUNDS);
    (count, sets(count).take(bugs).collect())
}

/// For each bug of a crate whether its tests failed in exactly the rounds in which it was planted.
fn together(field: &Field, root: &Path, bugs: &[&Mutant]) -> Result<Vec<bool>> {
    let (count, sets) = rounds(bugs.len());
    ensure!(
        sets.len() == bugs.len(),
        "{} bugs of one crate are more than {MAX_ROUNDS} rounds can tell apart",
        bugs.len()
    );
    let mut told = vec![true; bugs.len()];
    for round in 0..count {
        field.clean()?;
        let is_in = |set: &u32| set >> round & 1 == 1;
        for ((bug, _), told) in bugs.iter().zip(&sets).zip(&mut told).filter(|((_, set), _)| is_in(set)) {
            if field.apply(&bug.patch(root)).is_err() {
                // It is where another one is already.
                *told = false;
            }
        }
        let mut known: BTreeMap<&[String], Outcome> = BTreeMap::new();
        for ((bug, set), told) in bugs.iter().zip(&sets).zip(&mut told) {
            let outcome = match known.get(bug.tests.as_slice()) {
                Some(outcome) => *outcome,
                None => field.test(&bug.tests)?,
            };
            if outcome == Outcome::NotBuilt {
                return Ok(vec![false; bugs.len()]);
            }
            known.insert(&bug.tests, outcome);
            *told &= outcome == if is_in(set) { Outcome::Failed } else { Outcome::Passed };
        }
    }
    field.clean()?;
    Ok(told)
}

/// What comes of the tests of a bug that is planted by itself; without it they must pass.
fn alone(field: &Field, root: &Path, bug: &Mutant) -> Result<Outcome> {
    field.clean()?;
    let clean = field.test(&bug.tests)?;
    ensure!(clean == Outcome::Passed, "{}: without the bug: {clean:?}: cargo {}", bug.name, bug.tests.join(" "));
    field.apply(&bug.patch(root))?;
    let outcome = field.test(&bug.tests)?;
    field.clean()?;
    Ok(outcome)
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
    fn any_two_bugs_are_told_apart_by_a_round() {
        for (bugs, expected) in [(1, 2), (2, 2), (3, 3), (6, 4), (7, 5), (27, 7), (100, 9)] {
            let (count, sets) = rounds(bugs);
            assert_eq!((count, sets.len()), (expected, bugs));
            for (index, one) in sets.iter().enumerate() {
                assert!(*one != 0 && one.count_ones() < count, "{bugs}: each is planted, and each is left out");
                let others = sets.iter().enumerate().filter(|(other, _)| *other != index);
                others.for_each(|(_, other)| assert_ne!(one & !other, 0, "{bugs}: {one:b} is part of {other:b}"));
            }
        }
    }
}
