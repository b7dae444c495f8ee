//! From flags and files to one configuration, in upstream's order: the file, drop-ins, flags; then defaults.

use std::path::{Path, PathBuf};

use api_machinery::leaf::RawJson;
use api_machinery::{defaults, json};
use api_types::kubelet_config_v1beta1::{API_VERSION, KIND, KubeletConfiguration};
use component_base::config_file::{self, ConfigFileError};
use component_base::flags::{Invalid, Options, format_duration};
use serde_json::{Map, Value};

use super::{fields, refuse, validate};

/// Fields that name files; relative ones count from the file's own directory.
const PATHS: [&str; 7] = [
    "staticPodPath",
    "authentication.x509.clientCAFile",
    "tlsCertFile",
    "tlsPrivateKeyFile",
    "resolvConf",
    "volumePluginDir",
    "podLogsDir",
];
/// What holds when there is no file: older defaults of the flags.
const FLAG_DEFAULTS: [(&str, &str); 4] = [
    ("authentication.anonymous.enabled", "true"),
    ("authentication.webhook.enabled", "false"),
    ("authorization.mode", "\"AlwaysAllow\""),
    ("readOnlyPort", "10255"),
];
/// Hard thresholds where the file says nothing.
const HARD_EVICTION: [(&str, &str); 5] = [
    ("memory.available", "100Mi"),
    ("nodefs.available", "10%"),
    ("nodefs.inodesFree", "5%"),
    ("imagefs.available", "15%"),
    ("imagefs.inodesFree", "5%"),
];
/// Drop-ins that are read, and directories that are looked into.
const MAX_DROP_INS: usize = 1000;

/// Why there is no configuration, in upstream's words.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error("failed to load kubelet config file, path: {}, error: {source}", .path.display())]
    File { path: PathBuf, source: FileError },
    #[error("failed to load kubelet dropin file, path: {}, {source}", .path.display())]
    DropIn { path: PathBuf, source: FileError },
    #[error("failed to walk through kubelet dropin directory {path:?}: {source}")]
    Directory { path: PathBuf, source: std::io::Error },
    #[error("more than {MAX_DROP_INS} kubelet dropin files")]
    TooMany,
}

/// Why a file holds no configuration of a kubelet.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error(transparent)]
    Load(#[from] ConfigFileError),
    #[error("kubelet config file was empty")]
    Empty,
    #[error("the file is not an object")]
    NoObject,
    #[error("no apiVersion/kind")]
    Unnamed,
    #[error("unknown apiVersion/kind: {version}, Kind={kind}")]
    Kind { version: String, kind: String },
}

/// The configuration in effect.
///
/// # Errors
/// Everything that is wrong with it.
pub(crate) fn load(options: &Options) -> Result<KubeletConfiguration, Invalid> {
    let mut document = base(options).map_err(Invalid::one)?;
    fields::apply(options, &mut document).map_err(Invalid::one)?;
    // Nothing of this project leans on iptables, so its chains are only made where somebody asks for them.
    document.entry("makeIPTablesUtilChains").or_insert(Value::Bool(false));
    // Checked file by file; the type itself has no such fields.
    ["apiVersion", "kind"].iter().for_each(|name| drop(document.remove(*name)));
    let mut config = KubeletConfiguration::default();
    let text = Value::Object(document).to_string();
    let decoded = json::decode(text.as_bytes(), &mut config).map_err(Invalid::one)?;
    if let Some(problem) = decoded.problems.first() {
        return Err(Invalid::one(format!(
            "failed to decode the kubelet configuration: strict decoding error: {problem}"
        )));
    }
    defaults::fill(&mut config);
    default_eviction(&mut config);
    validate::check(&config)?;
    refuse::check(options, &config)?;
    Ok(config)
}

/// The file with its drop-ins, or the defaults of the flags.
fn base(options: &Options) -> Result<Map<String, Value>, LoadError> {
    let (file, dir) = (options.string("config"), options.string("config-dir"));
    let mut document = Map::new();
    if file.is_empty() && dir.is_empty() {
        for (path, text) in FLAG_DEFAULTS {
            fields::put(&mut document, path, json::parse_value(text).unwrap_or_default());
        }
        return Ok(document);
    }
    if !file.is_empty() {
        let path = Path::new(file);
        document = read(path).map_err(|source| LoadError::File { path: path.to_owned(), source })?;
    }
    if !dir.is_empty() {
        for path in drop_ins(Path::new(dir))? {
            let part = read(&path).map_err(|source| LoadError::DropIn { path, source })?;
            merge(&mut document, part);
        }
    }
    Ok(document)
}

/// A file, its paths resolved.
fn read(path: &Path) -> Result<Map<String, Value>, FileError> {
    let mut document = match config_file::load(path)? {
        Value::Object(document) => document,
        Value::Null => return Err(FileError::Empty),
        _ => return Err(FileError::NoObject),
    };
    check_kind(&document)?;
    resolve(&mut document, path.parent().unwrap_or(Path::new("")));
    Ok(document)
}

fn check_kind(document: &Map<String, Value>) -> Result<(), FileError> {
    let text = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version.is_empty() || kind.is_empty() {
        return Err(FileError::Unnamed);
    }
    if (version, kind) != (API_VERSION, KIND) {
        return Err(FileError::Kind { version: version.to_owned(), kind: kind.to_owned() });
    }
    Ok(())
}

/// All `*.conf` below a directory, in lexical order.
fn drop_ins(dir: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let (mut open, mut found) = (vec![dir.to_owned()], Vec::new());
    while let Some(dir) = open.pop() {
        let failed = |source| LoadError::Directory { path: dir.clone(), source };
        for entry in std::fs::read_dir(&dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if open.len() + found.len() >= MAX_DROP_INS {
                return Err(LoadError::TooMany);
            }
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "conf") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A JSON merge patch (RFC 7386).
fn merge(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, value) in patch {
        match value {
            Value::Null => drop(target.remove(&name)),
            Value::Object(inner) => {
                let slot = target.entry(name).or_insert_with(|| Value::Object(Map::new()));
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                if let Some(slot) = slot.as_object_mut() {
                    merge(slot, inner);
                }
            }
            value => drop(target.insert(name, value)),
        }
    }
}

fn resolve(document: &mut Map<String, Value>, directory: &Path) {
    for path in PATHS {
        let (parents, name) = path.rsplit_once('.').unwrap_or(("", path));
        let mut place = Some(&mut *document);
        for parent in parents.split('.').filter(|parent| !parent.is_empty()) {
            place = place.and_then(|map| map.get_mut(parent)).and_then(Value::as_object_mut);
        }
        if let Some(Value::String(text)) = place.and_then(|map| map.get_mut(name))
            && !text.is_empty()
            && Path::new(text).is_relative()
        {
            *text = directory.join(&*text).display().to_string();
        }
    }
}

fn default_eviction(config: &mut KubeletConfiguration) {
    if !config.eviction_hard.is_empty() && config.merge_default_eviction_settings != Some(true) {
        return;
    }
    for (signal, value) in HARD_EVICTION {
        config.eviction_hard.entry(signal.to_owned()).or_insert_with(|| value.to_owned());
    }
}

/// A duration that may be written as text or as a number of nanoseconds.
pub(super) fn duration_text(raw: &RawJson) -> String {
    match raw.value() {
        Value::String(text) => text,
        Value::Number(nanos) => format_duration(nanos.as_i64().unwrap_or_default()),
        _ => "5s".to_owned(),
    }
}
