//! Which programs there are, as a file or the files of a directory say.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use api_machinery::field_path::ErrorList;
use api_machinery::object::Kind as _;
use api_types::kubelet_config_v1::{self, CredentialProvider, CredentialProviderConfig, cache_type};
use api_types::{Document, kubelet_config_v1beta1};
use component_base::config_file::{self, ConfigFileError};
use component_base::metrics::hash_label;

use super::validation;

/// What a file may say that it is of, the version that is kept first.
const VERSIONS: [&str; 3] = {
    let [beta, alpha] = kubelet_config_v1beta1::API_VERSIONS;
    [kubelet_config_v1::API_VERSION, beta, alpha]
};
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
    #[error("failed to validate credential provider config: {0}")]
    Invalid(ErrorList),
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

/// All programs, and what tells their configuration from another.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderConfigs {
    pub(super) programs: PathBuf,
    pub(super) providers: Vec<CredentialProvider>,
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
        if !programs.is_dir() {
            return Err(ConfigError::NoDirectory(programs.to_owned()));
        }
        let (mut all, mut contents) = (CredentialProviderConfig::default(), Vec::new());
        for path in files(config)? {
            let text = config_file::read(&path)?;
            contents.extend(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            contents.extend(text.as_bytes());
            let own = decode(&text).map_err(|why| ConfigError::Content { path, why })?;
            all.providers.extend(own.providers);
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = all.providers.iter().find(|own| !names.insert(own.name.as_str())) {
            return Err(ConfigError::Duplicate(twice.name.clone()));
        }
        validation::check(&all, tokens).into_result().map_err(ConfigError::Invalid)?;
        let missing = all.providers.iter().map(|own| programs.join(&own.name)).find(|program| !program.is_file());
        if let Some(missing) = missing {
            return Err(ConfigError::NoProgram(missing));
        }
        Ok(Self { programs: programs.to_owned(), providers: all.providers, hash: hash_label(&contents) })
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

/// What a file says, in whichever version.
fn decode(text: &str) -> Result<CredentialProviderConfig, String> {
    let document = Document::read(text)?;
    let mut config = CredentialProviderConfig::default();
    if document.version(CredentialProviderConfig::TYPE.kind, &VERSIONS)? == kubelet_config_v1::API_VERSION {
        return document.decode(&mut config).map(|()| config);
    }
    let mut former = kubelet_config_v1beta1::CredentialProviderConfig::default();
    document.decode(&mut former).map(|()| former.into())
}

/// Whether what a program answers about a token is for this token alone, or for the account.
pub(super) fn is_per_token(provider: &CredentialProvider) -> bool {
    provider.token_attributes.as_ref().is_some_and(|wanted| wanted.cache_type == cache_type::TOKEN)
}
