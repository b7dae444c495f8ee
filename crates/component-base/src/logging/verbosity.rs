//! Which events are shown: `-v`, and `--vmodule` for single files.

use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use tracing::{Level, Metadata};

/// Verbosity from which DEBUG and TRACE events without a `v` field are shown.
const DEBUG_AT: i32 = 4;
const TRACE_AT: i32 = 6;
/// Libraries below us are this much quieter.
const LIBRARY_STEP: i32 = 4;
/// Crates whose DEBUG and TRACE are about their own insides.
const LIBRARIES: &[&str] =
    &["h2", "hyper", "hyper_util", "mio", "rustls", "tokio", "tokio_util", "tonic", "tower", "want"];
/// The name of the field that sets an event's verbosity.
pub(super) const FIELD: &str = "v";

/// How much is shown.
#[derive(Debug)]
pub struct Verbosity {
    level: AtomicI32,
    /// File patterns with their own level, first match wins.
    patterns: Vec<(String, i32)>,
}

impl Verbosity {
    /// Shows up to `level`, or what the first pattern that matches a file says.
    #[must_use]
    pub const fn new(level: i32, patterns: Vec<(String, i32)>) -> Self {
        Self { level: AtomicI32::new(level), patterns }
    }

    /// Changes the level for files without a pattern.
    pub fn set(&self, level: i32) {
        self.level.store(level, Ordering::Relaxed);
        tracing::callsite::rebuild_interest_cache();
    }

    /// Whether events of this place can be shown. With a `v` field the answer may change event by event.
    pub(super) fn shows(&self, metadata: &Metadata<'_>) -> bool {
        let has_field = metadata.fields().field(FIELD).is_some();
        has_field || default_verbosity(metadata) <= self.limit(metadata)
    }

    /// Whether an event of this place with this verbosity is shown.
    pub(super) fn shows_at(&self, metadata: &Metadata<'_>, verbosity: i32) -> bool {
        *metadata.level() <= Level::WARN || verbosity <= self.limit(metadata)
    }

    fn limit(&self, metadata: &Metadata<'_>) -> i32 {
        let level = self.level.load(Ordering::Relaxed);
        if self.patterns.is_empty() {
            return level;
        }
        let path = Path::new(metadata.file().unwrap_or_default()).with_extension("");
        let stem = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let whole = path.to_string_lossy();
        let matching = self.patterns.iter().find(|(pattern, _)| {
            // A pattern with a slash is about the path, as in klog.
            matches(pattern.as_bytes(), if pattern.contains('/') { whole.as_bytes() } else { stem.as_bytes() })
        });
        matching.map_or(level, |(_, own)| *own)
    }
}

/// The verbosity of events without a `v` field.
pub(super) fn default_verbosity(metadata: &Metadata<'_>) -> i32 {
    let own = match *metadata.level() {
        Level::DEBUG => DEBUG_AT,
        Level::TRACE => TRACE_AT,
        _ => return 0,
    };
    let crate_name = metadata.target().split("::").next().unwrap_or_default();
    if LIBRARIES.contains(&crate_name) { own + LIBRARY_STEP } else { own }
}

/// Parses `--vmodule`: `pattern=N,...`.
///
/// # Errors
/// When an entry is not of that form.
pub fn parse_vmodule(text: &str) -> Result<Vec<(String, i32)>, String> {
    let entries = text.split(',').filter(|entry| !entry.is_empty());
    let parse = |entry: &str| {
        let bad = || format!("{entry:?} does not have the pattern=N format");
        let (pattern, level) = entry.split_once('=').ok_or_else(bad)?;
        match level.parse::<i32>() {
            Ok(level) if level >= 0 && !pattern.is_empty() => Ok((pattern.to_owned(), level)),
            Ok(level) if level < 0 => Err("negative value for vmodule level".to_owned()),
            _ => Err(bad()),
        }
    };
    entries.map(parse).collect()
}

/// Shell patterns with `*` and `?`, by remembering the last star: linear space, no recursion.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match (pattern.get(p), text.get(t)) {
            (Some(b'*'), _) => {
                star = Some((p, t));
                p += 1;
            }
            (Some(b'?'), Some(_)) => (p, t) = (p + 1, t + 1),
            (Some(want), Some(have)) if want == have => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((star_p, star_t)) => {
                    (p, t) = (star_p + 1, star_t + 1);
                    star = Some((star_p, star_t + 1));
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, text, expected) in [
            ("server", "server", true),
            ("server", "servers", false),
            ("s*r", "server", true),
            ("s*x", "server", false),
            ("*", "", true),
            ("??", "ab", true),
            ("?", "", false),
            ("*a*b", "xaybb", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn vmodule_values_parse() {
        assert_eq!(parse_vmodule("a=1,b*=2"), Ok(vec![("a".to_owned(), 1), ("b*".to_owned(), 2)]));
        assert_eq!(parse_vmodule(""), Ok(vec![]));
        for bad in ["a", "a=x", "=1", "a=-1"] {
            assert!(parse_vmodule(bad).is_err(), "{bad}");
        }
    }
}
