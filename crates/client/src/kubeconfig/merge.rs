//! Reading files, making their paths absolute, and merging several files into one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use api_machinery::json::DecodeError;
use api_machinery::object::from_value;
use api_machinery::yaml::{self, YamlError};

use super::Kubeconfig;
use crate::config::ConfigError;

/// The largest file that is read; certificates of a large fleet still fit.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Why a text is no kubeconfig.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// The file is larger than it may be.
    #[error("file is too large")]
    TooLarge,
    /// It is not YAML.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// It is of another form; says at which field.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A list has a name twice.
    #[error("error converting *[]Named into map: duplicate name \"{name}\" in list: {list}")]
    Duplicate {
        /// The name.
        name: String,
        /// The list.
        list: &'static str,
    },
}

impl Kubeconfig {
    /// Reads a file; the paths in it become relative to its directory.
    ///
    /// # Errors
    /// When the file cannot be read or understood, or names something twice.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let failed = |source| ConfigError::Read { path: path.to_owned(), source };
        if std::fs::metadata(path).map_err(failed)?.len() > MAX_FILE_BYTES {
            return Err(ConfigError::Parse { path: path.to_owned(), reason: ParseError::TooLarge });
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let mut config = Self::parse(&text).map_err(|reason| ConfigError::Parse { path: path.to_owned(), reason })?;
        config.resolve_paths(path.parent().unwrap_or_else(|| Path::new("")));
        Ok(config)
    }

    /// Reads the text of a file, YAML or JSON.
    ///
    /// # Errors
    /// When it is not YAML, or not of this kind.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let document = yaml::parse(text)?;
        if document.value.is_null() {
            return Ok(Self::default());
        }
        let config: Self = from_value(&document.value)?;
        for (list, names) in [
            ("clusters", config.clusters.iter().map(|item| &item.name).collect::<Vec<_>>()),
            ("users", config.users.iter().map(|item| &item.name).collect()),
            ("contexts", config.contexts.iter().map(|item| &item.name).collect()),
        ] {
            let mut seen = BTreeSet::new();
            if let Some(twice) = names.into_iter().find(|name| !seen.insert(name.as_str())) {
                return Err(ParseError::Duplicate { name: twice.clone(), list });
            }
        }
        Ok(config)
    }

    /// Reads the files that are there, of several. What is missing is skipped.
    ///
    /// # Errors
    /// When a file that is there cannot be read or understood.
    pub fn read_all(paths: &[PathBuf]) -> Result<Self, ConfigError> {
        let mut merged = Self::default();
        for path in paths {
            match Self::read(path) {
                Ok(config) => merged.merge(config),
                Err(ConfigError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(merged)
    }

    /// The paths in `KUBECONFIG`, or `$HOME/.kube/config` where it is not set.
    #[must_use]
    pub fn default_paths() -> Vec<PathBuf> {
        if let Some(list) = std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
            let mut seen = BTreeSet::new();
            return std::env::split_paths(&list)
                .filter(|path| !path.as_os_str().is_empty() && seen.insert(path.clone()))
                .collect();
        }
        std::env::var_os("HOME").map(|home| Path::new(&home).join(".kube/config")).into_iter().collect()
    }

    /// Adds what `other` has and this has not: the first file that has a name or a value wins.
    pub fn merge(&mut self, other: Self) {
        for item in other.clusters {
            if !self.clusters.iter().any(|known| known.name == item.name) {
                self.clusters.push(item);
            }
        }
        for item in other.users {
            if !self.users.iter().any(|known| known.name == item.name) {
                self.users.push(item);
            }
        }
        for item in other.contexts {
            if !self.contexts.iter().any(|known| known.name == item.name) {
                self.contexts.push(item);
            }
        }
        if self.current_context.is_empty() {
            self.current_context = other.current_context;
        }
    }

    /// Makes relative paths relative to `directory`.
    pub fn resolve_paths(&mut self, directory: &Path) {
        let resolve = |path: &mut String| {
            if !path.is_empty() && Path::new(path.as_str()).is_relative() {
                *path = directory.join(path.as_str()).to_string_lossy().into_owned();
            }
        };
        for item in &mut self.clusters {
            resolve(&mut item.cluster.certificate_authority);
        }
        for item in &mut self.users {
            let user = &mut item.user;
            [&mut user.client_certificate, &mut user.client_key, &mut user.token_file].into_iter().for_each(resolve);
            // A bare name is looked up where programs are.
            user.exec.iter_mut().map(|exec| &mut exec.command).filter(|name| name.contains('/')).for_each(resolve);
        }
    }
}
