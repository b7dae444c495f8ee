//! Variables in files that an init container wrote (`fileKeyRef`): lines `NAME='value'`.

use std::io::{self, Read as _};
use std::path::Path;

/// The largest file that is read, as upstream bounds it.
const MAX_BYTES: u64 = 64 * 1024;

/// Why a file gives no value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnvFileError {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("the file is too large")]
    TooLarge,
    #[error(transparent)]
    Line(#[from] LineError),
}

/// Why the text of a file gives no values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid environment variable format: {line}")]
pub(crate) struct LineError {
    line: String,
}

impl LineError {
    fn of(line: &str) -> Self {
        Self { line: line.to_owned() }
    }
}

/// The value of `key` in the file `relative` below `volume`, which pods write and must not lead out of.
pub(super) fn read(volume: &Path, relative: &Path, key: &str) -> Result<Option<String>, EnvFileError> {
    let opened = match sys::fs::open_beneath(volume, relative) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut text = String::new();
    let file = std::fs::File::open(opened.path())?;
    file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(EnvFileError::TooLarge);
    }
    Ok(find(&text, key)?)
}

/// The last value that the text gives to `key`.
fn find(text: &str, key: &str) -> Result<Option<String>, LineError> {
    let (mut rest, mut found) = (text, None);
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(found);
        }
        if rest.starts_with('#') {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
            continue;
        }
        let line = rest.lines().next().unwrap_or_default();
        let (name, after) =
            rest.split_once('=').filter(|(name, _)| !name.contains('\n')).ok_or_else(|| LineError::of(line))?;
        if name.ends_with(char::is_whitespace) || name.is_empty() {
            return Err(LineError::of(line));
        }
        let value;
        (value, rest) = quoted(after, line)?;
        if name == key {
            found = Some(value);
        }
    }
}

/// A value in single quotes and what follows its line. A blank after `=` makes the value empty.
fn quoted<'a>(text: &'a str, line: &str) -> Result<(String, &'a str), LineError> {
    let end_of_line = |text: &'a str| text.split_once('\n').map_or((text, ""), |(line, after)| (line, after));
    if text.starts_with([' ', '\t', '\n']) || text.is_empty() {
        return Ok((String::new(), end_of_line(text).1));
    }
    let inner = text.strip_prefix('\'').ok_or_else(|| LineError::of(line))?;
    let (value, after) = inner.split_once('\'').ok_or_else(|| LineError::of(line))?;
    let (tail, rest) = end_of_line(after);
    let tail = tail.trim();
    if !tail.is_empty() && !tail.starts_with('#') {
        return Err(LineError::of(line));
    }
    Ok((value.to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_give_values() {
        let text = "# first\n  A='one'\nB='two\nlines' # why\nC= 'x'\nA='again'\n";
        assert_eq!(find(text, "A"), Ok(Some("again".into())));
        assert_eq!(find(text, "B"), Ok(Some("two\nlines".into())));
        assert_eq!(find(text, "C"), Ok(Some(String::new())));
        assert_eq!(find(text, "D"), Ok(None));
        for bad in ["A =1", "A=1", "A='x", "nothing", "A='x' y", "='x'"] {
            assert_eq!(find(bad, "A"), Err(LineError::of(bad)));
        }
    }
}
