//! `docs/vulnerabilities.md` tells of every known attack how it is met; this keeps it from telling of what is not there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};

const TABLE: &str = "docs/vulnerabilities.md";
/// Rows of the table: a letter and up to which number.
const ROWS: [(char, u32); 2] = [('A', 9), ('V', 52)];
const STATES: [&str; 4] = ["held", "weaker: ", "not there yet: ", "n/a: "];

pub(crate) fn problems(root: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(TABLE)).with_context(|| format!("cannot read {TABLE}"))?;
    let mut sources = Sources::default();
    let mut problems = Vec::new();
    let mut ids = Vec::new();
    for row in rows(&text) {
        ids.push(row.id.to_owned());
        problems.extend(row.problems().into_iter().map(|problem| format!("{TABLE}: {}: {problem}", row.id)));
        for test in &row.tests {
            if !sources.have(root, test)? {
                problems.push(format!("{TABLE}: {}: there is no test `{test}`", row.id));
            }
        }
    }
    let wanted: Vec<String> =
        ROWS.iter().flat_map(|(letter, last)| (1..=*last).map(move |number| id(*letter, number))).collect();
    if ids != wanted {
        problems
            .push(format!("{TABLE}: the rows must be A1 to A9 and V01 to V52, each once and sorted, but are {ids:?}"));
    }
    Ok(problems)
}

fn id(letter: char, number: u32) -> String {
    if letter == 'V' { format!("V{number:02}") } else { format!("{letter}{number}") }
}

/// A row: what is told of one attack.
struct Row<'a> {
    id: &'a str,
    state: &'a str,
    tests: Vec<&'a str>,
}

impl Row<'_> {
    fn problems(&self) -> Vec<&'static str> {
        let mut problems = Vec::new();
        if !STATES.iter().any(|state| self.state == state.trim() || self.state.starts_with(state)) {
            problems.push("the state is `held`, or `weaker: `, `not there yet: ` or `n/a: ` with what and why");
        }
        if self.state == "held" && self.tests.is_empty() {
            problems.push("what is held has a test");
        }
        problems
    }
}

fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
        let [id, _, _, state, tests] = cells.as_slice() else { return None };
        let is_id = id.starts_with(['A', 'V']) && id.get(1..).is_some_and(|rest| rest.parse::<u32>().is_ok());
        // Every other piece stands between backquotes.
        is_id.then(|| Row { id, state, tests: tests.split('`').skip(1).step_by(2).collect() })
    })
}

/// The names of the functions of each crate.
#[derive(Default)]
struct Sources(BTreeMap<String, BTreeSet<String>>);

impl Sources {
    /// Whether a test, written `crate::module::name`, is there: a function of that name in the file of the module.
    fn have(&mut self, root: &Path, test: &str) -> Result<bool> {
        let (Some((folder, _)), Some((module, name))) = (test.split_once("::"), test.rsplit_once("::")) else {
            return Ok(false);
        };
        let of_tests = |part: &&str| !["tests", "hostile_tests"].contains(part);
        let module = module.rsplit("::").find(of_tests).unwrap_or_default().to_owned();
        if !self.0.contains_key(folder) {
            let mut found = BTreeSet::new();
            for base in ["crates", ""] {
                let at = root.join(base).join(folder.replace('_', "-"));
                if at.is_dir() {
                    visit(&at, &mut found)?;
                }
            }
            self.0.insert(folder.to_owned(), found);
        }
        Ok(self.0.get(folder).is_some_and(|found| found.contains(&format!("{module}::{name}"))))
    }
}

/// Notes every function as `part::name`, for each part of its file's path.
fn visit(directory: &Path, found: &mut BTreeSet<String>) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            visit(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let parts = path.components().map(|part| part.as_os_str().to_string_lossy().replace('-', "_"));
            let parts: Vec<String> = parts.map(|part| part.trim_end_matches(".rs").to_owned()).collect();
            for name in text.lines().filter_map(function) {
                let modules = parts.iter().flat_map(|part| [part.as_str(), module(part)]);
                found.extend(modules.map(|module| format!("{module}::{name}")));
            }
        }
    }
    Ok(())
}

/// Tests of `a.rs` stand in `a_tests.rs` or `a/tests.rs`, and are called `a::tests`.
fn module(file: &str) -> &str {
    ["_hostile_tests", "_tests", "_test"].iter().find_map(|end| file.strip_suffix(end)).unwrap_or(file)
}

fn function(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.strip_prefix("fn ").or_else(|| line.strip_prefix("async fn "))?;
    rest.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read() {
        let text = "| ID | CVE | x | State | Tests |\n|---|---|---|---|---|\n| V01 | 1 | x | held | `a::b`, `c::d` |\n";
        let found: Vec<Row<'_>> = rows(text).collect();
        assert_eq!((found.len(), found[0].id, &found[0].tests), (1, "V01", &vec!["a::b", "c::d"]));
        assert!(found[0].problems().is_empty());
        let bad = Row { id: "V01", state: "held", tests: Vec::new() };
        assert_eq!(bad.problems().len(), 1);
        assert_eq!(Row { state: "fine", ..bad }.problems().len(), 1);
    }

    #[test]
    fn tests_are_found_by_crate_module_and_name() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut sources = Sources::default();
        for (test, expected) in [
            ("xtask::vulnerabilities::tests::rows_are_read", true),
            ("xtask::sizes::tests::rows_are_read", false),
            ("xtask::vulnerabilities::tests::rows_are_not_read", false),
            ("none::vulnerabilities::tests::rows_are_read", false),
            ("rows_are_read", false),
        ] {
            assert_eq!(sources.have(root, test).unwrap(), expected, "{test}");
        }
    }
}
