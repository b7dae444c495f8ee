//! Files stay small enough to be read at one sitting.

use std::path::Path;

use anyhow::{Context, Result};

/// The most lines a source file may have. Pure data tables are exempt by name; the list only shrinks.
const MAX_LINES: usize = 800;

/// Files that are data from end to end.
const TABLES: &[&str] = &[];

pub(crate) fn problems(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for folder in ["crates", "bins", "xtask", "tests", "bench", "images"] {
        let folder = root.join(folder);
        if folder.is_dir() {
            visit(root, &folder, &mut problems)?;
        }
    }
    Ok(problems)
}

fn visit(root: &Path, folder: &Path, problems: &mut Vec<String>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    for entry in entries {
        let path = entry.with_context(|| format!("listing {}", folder.display()))?.path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                visit(root, &path, problems)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            let lines = text.lines().count();
            if lines > MAX_LINES && !TABLES.contains(&name.as_str()) {
                problems.push(format!("{name}: {lines} lines, more than {MAX_LINES}: is there a seam?"));
            }
            if !text.starts_with("//!") && !name.ends_with("tests.rs") && !name.contains("/tests/") {
                problems.push(format!("{name}: does not start by saying what it is for (//!)"));
            }
        }
    }
    Ok(())
}
