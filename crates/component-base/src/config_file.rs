//! Configuration files: YAML or JSON, read into a plain value. What the fields mean is for the caller to decode.

use std::path::{Path, PathBuf};

use serde_json::{Number, Value};

/// The largest file that is read; upstream's largest configurations are a few kilobytes.
pub const MAX_BYTES: u64 = 4 << 20;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    /// It cannot be read.
    #[error("failed to read config file {path:?}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is larger than [`MAX_BYTES`].
    #[error("config file {path:?} is larger than {MAX_BYTES} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not text.
    #[error("config file {path:?} is not UTF-8 text")]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// It is neither YAML nor JSON, or repeats a key.
    #[error("failed to decode config file {path:?}: {reason}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What the parser said, with line and column.
        reason: String,
    },
}

/// Reads a file. An empty one is `null`.
///
/// # Errors
/// When it cannot be read, is too large, or does not parse.
pub fn load(path: &Path) -> Result<Value, ConfigFileError> {
    parse(&read(path)?).map_err(|reason| ConfigFileError::Syntax { path: path.to_owned(), reason })
}

/// Reads the text of a file.
///
/// # Errors
/// When it cannot be read, is too large, or is not text.
pub fn read(path: &Path) -> Result<String, ConfigFileError> {
    let read = |source| ConfigFileError::Read { path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(read)?.len();
    if size > MAX_BYTES {
        return Err(ConfigFileError::TooLarge { path: path.to_owned() });
    }
    let bytes = std::fs::read(path).map_err(read)?;
    String::from_utf8(bytes).map_err(|_| ConfigFileError::NotText { path: path.to_owned() })
}

/// Parses YAML 1.1 as Kubernetes reads it (`0644` is 420, `yes` is true), of which JSON is a part. Repeated keys are
/// refused.
///
/// # Errors
/// With the parser's words.
pub fn parse(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    let mut value: Value = serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?;
    integers(&mut value);
    Ok(value)
}

/// Whole numbers written as fractions (`1e3`) count as integers, as in upstream's YAML. The parser bounds the depth.
fn integers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = whole(number) {
                *number = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(integers),
        Value::Object(fields) => fields.values_mut().for_each(integers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn whole(number: &Number) -> Option<Number> {
    /// Up to here every integer is a double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let fraction = number.as_f64().filter(|value| number.is_f64() && value.fract() == 0.0 && value.abs() <= EXACT)?;
    #[expect(clippy::cast_possible_truncation, reason = "whole and within the range of exact integers")]
    Some(Number::from(fraction as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_is_read_as_upstream_reads_it() {
        let cases = [
            ("a: 1\nb: [x, yes]\n", json!({"a": 1, "b": ["x", true]})),
            ("{\"a\": {\"b\": null}}", json!({"a": {"b": null}})),
            (
                "mode: 0644\ncount: 1e3\nshare: 0.5\nname: \"0644\"",
                json!({"mode": 420, "count": 1000, "share": 0.5, "name": "0644"}),
            ),
            ("# nothing\n", Value::Null),
            ("", Value::Null),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        for bad in ["a: 1\na: 2\n", "{", "a: [1"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn errors_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.yaml");
        let shown = format!("{path:?}");
        assert!(
            load(&path)
                .unwrap_err()
                .to_string()
                .starts_with(&format!("failed to read config file {shown}: No such file"))
        );
        std::fs::write(&path, "a: [").unwrap();
        assert!(load(&path).unwrap_err().to_string().starts_with(&format!("failed to decode config file {shown}: ")));
        std::fs::write(&path, [0xff]).unwrap();
        assert!(matches!(load(&path), Err(ConfigFileError::NotText { .. })));
        std::fs::write(&path, "kind: X").unwrap();
        assert_eq!(load(&path).unwrap(), json!({"kind": "X"}));
    }
}
