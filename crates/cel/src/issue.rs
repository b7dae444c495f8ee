//! What is wrong with an expression, and where: texts and snippets as clients of Kubernetes see them.

use std::fmt;

/// A mistake at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Byte offset into the source.
    pub offset: usize,
    /// What is wrong.
    pub message: String,
}

/// All mistakes of an expression, in source order, with the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issues {
    source: String,
    list: Vec<Issue>,
}

/// How many mistakes of one expression are told.
pub(crate) const MAX_ISSUES: usize = 100;
/// How many bytes a line may have to be shown.
const MAX_SNIPPET_BYTES: usize = 16_384;

impl Issues {
    /// The mistakes of `source`.
    pub(crate) fn new(source: &str, mut list: Vec<Issue>) -> Self {
        list.sort_by_key(|issue| issue.offset);
        list.dedup();
        list.truncate(MAX_ISSUES);
        Self { source: source.to_owned(), list }
    }

    /// The mistakes by themselves.
    #[must_use]
    pub fn list(&self) -> &[Issue] {
        &self.list
    }
}

impl std::error::Error for Issues {}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.list.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write_issue(f, &self.source, issue)?;
        }
        Ok(())
    }
}

fn write_issue(f: &mut fmt::Formatter<'_>, source: &str, issue: &Issue) -> fmt::Result {
    let before = source.get(..issue.offset).unwrap_or(source);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let row = before.matches('\n').count() + 1;
    let prefix = before.get(line_start..).unwrap_or_default();
    let line = source.get(line_start..).unwrap_or_default().split('\n').next().unwrap_or_default();
    write!(f, "ERROR: <input>:{row}:{}: {}", prefix.chars().count() + 1, issue.message)?;
    if line.len() > MAX_SNIPPET_BYTES {
        return Ok(());
    }
    write!(f, "\n | {}\n | ", line.replace('\t', " "))?;
    for c in prefix.chars() {
        f.write_str(if c.len_utf8() > 1 { "．" } else { "." })?;
    }
    let wide = line.get(prefix.len()..).and_then(|rest| rest.chars().next()).is_some_and(|c| c.len_utf8() > 1);
    f.write_str(if wide { "＾" } else { "^" })
}
