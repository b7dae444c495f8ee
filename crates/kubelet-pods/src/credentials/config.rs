//! Which programs there are, as a file or the files of a directory say.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use api_machinery::time::GoDuration;
use component_base::config_file::{self, ConfigFileError};
use component_base::metrics::hash_label;
use serde_json::{Map, Value};

use super::exchange::ApiVersion;

const KIND: &str = "CredentialProviderConfig";
const GROUP: &str = "kubelet.config.k8s.io/";
/// The version whose providers may want tokens.
const TOKENS_SINCE: &str = "v1";
const VERSIONS: [&str; 3] = [TOKENS_SINCE, "v1beta1", "v1alpha1"];
/// Files of a directory that are read.
const MAX_FILES: usize = 1000;

/// Why it is not known which programs there are; it ends the process at its start.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] ConfigFileError),
    /// The directory cannot be read.
    #[error("unable to read credential provider configuration {path:?}: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is nothing in the directory.
    #[error("no configuration files found in directory {0:?}")]
    NoFiles(PathBuf),
    /// The content of a file is not what it should be.
    #[error("error decoding config {path:?}: {why}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        why: String,
    },
    /// Everything that is wrong with the providers.
    #[error("failed to validate credential provider config: {}", all_of(.0))]
    Invalid(Vec<String>),
    /// Two providers have one name.
    #[error("duplicate provider name {0:?} found in configuration file(s)")]
    Duplicate(String),
    /// There is no directory of programs.
    #[error("plugin binary directory {} did not exist", .0.display())]
    NoDirectory(PathBuf),
    /// A program is not there.
    #[error("plugin binary executable {} did not exist", .0.display())]
    NoProgram(PathBuf),
}

/// Several errors in one.
fn all_of(errors: &[String]) -> String {
    match errors {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// What tokens a provider wants of a pod's service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenAttributes {
    pub(super) audience: String,
    /// Pods without an account do without the provider.
    pub(super) required: bool,
    /// Whether what it answers is for this token alone, or for the account.
    pub(super) per_token: bool,
    pub(super) required_annotations: Vec<String>,
    pub(super) optional_annotations: Vec<String>,
}

/// One program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProviderConfig {
    pub(super) name: String,
    /// The registries, or parts of them, that it has credentials for.
    pub(super) images: Vec<String>,
    /// How long an answer is good that does not say so.
    pub(super) cache_duration: Duration,
    pub(super) version: ApiVersion,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) tokens: Option<TokenAttributes>,
}

/// All programs, and what tells their configuration from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfigs {
    pub(super) programs: PathBuf,
    pub(super) providers: Vec<ProviderConfig>,
    /// For `kubelet_credential_provider_config_info`.
    pub hash: String,
}

impl ProviderConfigs {
    /// Reads a file, or the files of a directory, about programs in `programs`. `tokens` is the gate
    /// `KubeletServiceAccountTokenForCredentialProviders`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(config: &Path, programs: &Path, tokens: bool) -> Result<Self, ConfigError> {
        let (mut providers, mut contents) = (Vec::new(), Vec::new());
        for path in files(config)? {
            let text = config_file::read(&path)?;
            contents.extend(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            contents.extend(text.as_bytes());
            let content = |why| ConfigError::Content { path: path.clone(), why };
            let document = config_file::parse(&text).map_err(content)?;
            providers.extend(decode(&document).map_err(content)?);
        }
        let mut errors = Vec::new();
        if providers.is_empty() {
            errors.push("providers: Required value: at least 1 item in plugins is required".to_owned());
        }
        providers.iter().for_each(|provider| check(provider, tokens, &mut errors));
        if !errors.is_empty() {
            return Err(ConfigError::Invalid(errors));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = providers.iter().find(|own| !names.insert(own.config.name.as_str())) {
            return Err(ConfigError::Duplicate(twice.config.name.clone()));
        }
        let providers: Vec<ProviderConfig> = providers.into_iter().map(|own| own.config).collect();
        if !programs.is_dir() {
            return Err(ConfigError::NoDirectory(programs.to_owned()));
        }
        let missing = providers.iter().map(|own| programs.join(&own.name)).find(|program| !program.is_file());
        if let Some(missing) = missing {
            return Err(ConfigError::NoProgram(missing));
        }
        Ok(Self { programs: programs.to_owned(), providers, hash: hash_label(&contents) })
    }
}

/// The file, or those of the directory in the order of their names.
fn files(config: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    if !config.is_dir() {
        return Ok(vec![config.to_owned()]);
    }
    let entries =
        std::fs::read_dir(config).map_err(|source| ConfigError::Directory { path: config.to_owned(), source })?;
    let known = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("json" | "yaml" | "yml")) && path.is_file()
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(known).take(MAX_FILES).collect();
    files.sort();
    if files.is_empty() { Err(ConfigError::NoFiles(config.to_owned())) } else { Ok(files) }
}

/// A provider as it is written, with what has to be known to check it.
struct Written {
    config: ProviderConfig,
    has_duration: bool,
    /// As it is written.
    cache_duration: String,
    is_negative: bool,
    version: String,
    /// The version of the file has tokens.
    may_have_tokens: bool,
    has_required: bool,
    cache_type: String,
}

type Object = Map<String, Value>;

/// The members of an object, of which all must be known.
fn object<'v>(value: &'v Value, path: &str, known: &[&str]) -> Result<&'v Object, String> {
    let members = value.as_object().ok_or_else(|| format!("{path}: it is not an object"))?;
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("strict decoding error: unknown field \"{}\"", join(path, name))),
        None => Ok(members),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn text(object: &Object, path: &str, name: &str) -> Result<String, String> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("{}: it is not a string", join(path, name))),
    }
}

fn list<'v>(object: &'v Object, path: &str, name: &str) -> Result<&'v [Value], String> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("{}: it is not a list", join(path, name))),
    }
}

fn texts(object: &Object, path: &str, name: &str) -> Result<Vec<String>, String> {
    let item = |(index, item): (usize, &Value)| {
        let not = || format!("{}[{index}]: it is not a string", join(path, name));
        item.as_str().map(str::to_owned).ok_or_else(not)
    };
    list(object, path, name)?.iter().enumerate().map(item).collect()
}

fn decode(document: &Value) -> Result<Vec<Written>, String> {
    let root = object(document, "", &["apiVersion", "kind", "providers"])?;
    let (kind, full) = (text(root, "", "kind")?, text(root, "", "apiVersion")?);
    let version = full.strip_prefix(GROUP).filter(|version| VERSIONS.contains(version));
    let Some(version) = version.filter(|_| kind == KIND) else {
        return Err(format!("no kind {kind:?} is registered for version {full:?}"));
    };
    let providers = list(root, "", "providers")?.iter().enumerate();
    providers.map(|(index, provider)| one(provider, &format!("providers[{index}]"), version)).collect()
}

fn one(provider: &Value, path: &str, version: &str) -> Result<Written, String> {
    let mut known = vec!["name", "matchImages", "defaultCacheDuration", "apiVersion", "args", "env"];
    known.extend((version == TOKENS_SINCE).then_some("tokenAttributes"));
    let own = object(provider, path, &known)?;
    let duration = text(own, path, "defaultCacheDuration")?;
    let parsed = match duration.as_str() {
        "" => None,
        text => Some(GoDuration::parse(text).map_err(|error| format!("{path}.defaultCacheDuration: {error}"))?),
    };
    let spoken = text(own, path, "apiVersion")?;
    let mut written = Written {
        config: ProviderConfig {
            name: text(own, path, "name")?,
            images: texts(own, path, "matchImages")?,
            cache_duration: parsed.map(GoDuration::to_std).unwrap_or_default(),
            version: ApiVersion::of(&spoken).unwrap_or(ApiVersion::V1),
            args: texts(own, path, "args")?,
            env: environment(own, path)?,
            tokens: None,
        },
        has_duration: parsed.is_some(),
        is_negative: parsed.is_some_and(|duration| duration.nanos() < 0),
        cache_duration: duration,
        version: spoken,
        may_have_tokens: version == TOKENS_SINCE,
        has_required: false,
        cache_type: String::new(),
    };
    if let Some(attributes) = own.get("tokenAttributes").filter(|value| !value.is_null()) {
        tokens(attributes, &format!("{path}.tokenAttributes"), &mut written)?;
    }
    Ok(written)
}

fn environment(own: &Object, path: &str) -> Result<Vec<(String, String)>, String> {
    let variable = |(index, variable): (usize, &Value)| {
        let path = format!("{path}.env[{index}]");
        let variable = object(variable, &path, &["name", "value"])?;
        Ok((text(variable, &path, "name")?, text(variable, &path, "value")?))
    };
    list(own, path, "env")?.iter().enumerate().map(variable).collect()
}

fn tokens(value: &Value, path: &str, written: &mut Written) -> Result<(), String> {
    let known = [
        "serviceAccountTokenAudience",
        "cacheType",
        "requireServiceAccount",
        "requiredServiceAccountAnnotationKeys",
        "optionalServiceAccountAnnotationKeys",
    ];
    let own = object(value, path, &known)?;
    let required = match own.get("requireServiceAccount") {
        None | Some(Value::Null) => None,
        Some(Value::Bool(required)) => Some(*required),
        Some(_) => return Err(format!("{path}.requireServiceAccount: it is not a boolean")),
    };
    written.has_required = required.is_some();
    written.cache_type = text(own, path, "cacheType")?;
    written.config.tokens = Some(TokenAttributes {
        audience: text(own, path, "serviceAccountTokenAudience")?,
        required: required.unwrap_or_default(),
        per_token: written.cache_type == "Token",
        required_annotations: texts(own, path, "requiredServiceAccountAnnotationKeys")?,
        optional_annotations: texts(own, path, "optionalServiceAccountAnnotationKeys")?,
    });
    Ok(())
}

fn check(own: &Written, tokens: bool, errors: &mut Vec<String>) {
    let name = &own.config.name;
    let mut tell = |field: &str, what: String| errors.push(format!("providers.{field}: {what}"));
    if name.contains('/') {
        tell("name", format!("Invalid value: {name:?}: provider name cannot contain '/'"));
    }
    if name.contains(' ') {
        tell("name", format!("Invalid value: {name:?}: provider name cannot contain spaces"));
    }
    if name == "." || name == ".." {
        tell("name", format!("Invalid value: {name:?}: provider name cannot be '{name}'"));
    }
    if name.is_empty() {
        tell("name", "Required value: provider name is required".to_owned());
    }
    if own.config.images.is_empty() {
        tell("matchImages", "Required value: at least 1 item in matchImages is required".to_owned());
    }
    for image in own.config.images.iter().filter(|image| !is_pattern(image)) {
        tell("matchImages", format!("Invalid value: {image:?}: match image is invalid"));
    }
    if !own.has_duration {
        tell("defaultCacheDuration", "Required value".to_owned());
    }
    if own.is_negative {
        let written = &own.cache_duration;
        tell("defaultCacheDuration", format!("Invalid value: {written:?}: must be greater than or equal to 0"));
    }
    if own.version.is_empty() {
        tell("apiVersion", "Required value".to_owned());
    } else if ApiVersion::of(&own.version).is_none() {
        let known = ApiVersion::ALL.map(|version| format!("{:?}", version.name())).join(", ");
        tell("apiVersion", format!("Unsupported value: {:?}: supported values: {known}", own.version));
    }
    if let Some(attributes) = &own.config.tokens {
        check_tokens(own, attributes, tokens, &mut tell);
    }
}

/// A host with globs, and what may follow it.
fn is_pattern(image: &str) -> bool {
    let bare = image.trim_start_matches("https://").trim_start_matches("http://");
    let host = bare.split('/').next().unwrap_or_default();
    !host.is_empty() && !image.contains(char::is_whitespace) && !image.contains("://*://")
}

fn check_tokens(own: &Written, attributes: &TokenAttributes, gate: bool, tell: &mut dyn FnMut(&str, String)) {
    let mut tell = |field: &str, what: &str| tell(&format!("tokenAttributes{field}"), what.to_owned());
    if !gate {
        let what = "Forbidden: tokenAttributes is not supported when KubeletServiceAccountTokenForCredentialProviders \
                    feature gate is disabled";
        return tell("", what);
    }
    if !own.may_have_tokens || own.config.version != ApiVersion::V1 {
        tell("", "Forbidden: tokenAttributes is only supported for credentialprovider.kubelet.k8s.io/v1 API version");
    }
    if attributes.audience.is_empty() {
        tell(".serviceAccountTokenAudience", "Required value");
    }
    if !own.has_required {
        tell(".requireServiceAccount", "Required value");
    }
    match own.cache_type.as_str() {
        "Token" | "ServiceAccount" => {}
        "" => tell(".cacheType", "Required value: cacheType is required to be set when tokenAttributes is specified"),
        _ => tell(".cacheType", "Unsupported value: supported values: \"ServiceAccount\", \"Token\""),
    }
    if own.has_required && !attributes.required && !attributes.required_annotations.is_empty() {
        let what = "Forbidden: requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set";
        tell(".requiredServiceAccountAnnotationKeys", what);
    }
    let both = attributes.required_annotations.iter().find(|key| attributes.optional_annotations.contains(key));
    if let Some(both) = both {
        let what = format!("Invalid value: {both:?}: annotation keys cannot be both required and optional");
        tell("", &what);
    }
}
