//! Webhooks and policies of admission that stand in files of this server (`staticManifestsDir` of a plugin's configuration,
//! KEP-5793, gate `ManifestBasedAdmissionControlConfig`): they count from the first request on, and nobody who writes
//! through the API removes them. A directory is read as a whole, and a changed one takes the place of the former as a whole.
//! <https://kubernetes.io/docs/reference/access-authn-authz/manifest-admission-control/>

mod constraints;
mod directory;
mod objects;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use admission::Manifests;
use api_machinery::object::Object;
use component_base::Gates;
use component_base::lifecycle::Lifecycle;
use component_base::metrics::{Desc, Metrics, Stability};
use component_base::reload::ReloadError;
use component_base::swappable::{Build, ReloadFamilies, ReloadMetrics, Swappable};
use kinds::gates::MANIFEST_BASED_ADMISSION;

use crate::build_error::BuildError;
use crate::server_id::server_id_hash;

const RELOADS: Desc = Desc::new(
    "apiserver_manifest_admission_config_controller_automatic_reloads_total",
    "Times that changed files of webhooks or policies were taken, or refused.",
    Stability::Alpha,
)
.labels(&["status", "plugin", "apiserver_id_hash"]);
const LAST_RELOAD: Desc = Desc::new(
    "apiserver_manifest_admission_config_controller_automatic_reload_last_timestamp_seconds",
    "When changed files of webhooks or policies were last taken, or refused.",
    Stability::Alpha,
)
.labels(&["status", "plugin", "apiserver_id_hash"]);
const IN_FORCE: Desc = Desc::new(
    "apiserver_manifest_admission_config_controller_last_config_info",
    "The hash of the files of webhooks or policies that are in force.",
    Stability::Alpha,
)
.labels(&["plugin", "apiserver_id_hash", "hash"]);
const FAMILIES: ReloadFamilies = ReloadFamilies { reloads: &RELOADS, last_reload: &LAST_RELOAD, in_force: &IN_FORCE };

/// A plugin that takes such files, and the kinds that they state.
pub(crate) struct Source {
    /// The plugin.
    pub(crate) plugin: &'static str,
    /// The kind of its configuration.
    pub(crate) configuration: &'static str,
    kinds: &'static [&'static str],
}

/// All of them.
pub(crate) const SOURCES: [Source; 4] = [
    Source {
        plugin: "MutatingAdmissionPolicy",
        configuration: "MutatingAdmissionPolicyConfiguration",
        kinds: &["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"],
    },
    Source {
        plugin: "MutatingAdmissionWebhook",
        configuration: "WebhookAdmissionConfiguration",
        kinds: &["MutatingWebhookConfiguration"],
    },
    Source {
        plugin: "ValidatingAdmissionPolicy",
        configuration: "ValidatingAdmissionPolicyConfiguration",
        kinds: &["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"],
    },
    Source {
        plugin: "ValidatingAdmissionWebhook",
        configuration: "WebhookAdmissionConfiguration",
        kinds: &["ValidatingWebhookConfiguration"],
    },
];

/// Why there can be no files of a plugin where it wants them.
#[derive(Debug, thiserror::Error)]
enum PlaceError {
    /// The feature is off.
    #[error("{0}: staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled")]
    Off(&'static str),
    /// It depends on where the process was started.
    #[error("{0}: staticManifestsDir must be an absolute file path")]
    Relative(&'static str),
    /// It is a file.
    #[error("{0}: staticManifestsDir must be a directory")]
    NoDirectory(&'static str),
}

fn check_place(plugin: &'static str, path: &Path, gates: &Gates) -> Result<(), PlaceError> {
    if !gates.enabled(MANIFEST_BASED_ADMISSION) {
        return Err(PlaceError::Off(plugin));
    }
    if !path.is_absolute() {
        return Err(PlaceError::Relative(plugin));
    }
    // One that is not there cannot be read, which says more.
    if path.exists() && !path.is_dir() { Err(PlaceError::NoDirectory(plugin)) } else { Ok(()) }
}

/// What is made of the files of a plugin.
struct Reader {
    kinds: &'static [&'static str],
    /// As the rules of the kinds see them: names of files are refused to nobody here.
    gates: Gates,
}

impl Build for Reader {
    type Value = Arc<[Arc<dyn Object>]>;

    fn read(&self, path: &Path) -> Result<String, ReloadError> {
        Ok(directory::read(path)?)
    }

    fn build(&self, text: &str, _: Option<&Self::Value>) -> Result<Self::Value, ReloadError> {
        let objects = objects::of(&directory::files(text), self.kinds, &self.gates)?;
        Ok(objects.into())
    }
}

/// What the directories of plugins state.
#[derive(Default)]
pub(crate) struct Followed(BTreeMap<&'static str, Arc<Swappable<Reader>>>);

impl Followed {
    /// Reads the directories, by their plugins, and follows them for as long as the server's tasks live.
    ///
    /// # Errors
    /// When one of them states something that cannot count.
    pub(crate) fn load(
        directories: &BTreeMap<&'static str, PathBuf>,
        lifecycle: &Lifecycle,
        metrics: &Metrics,
    ) -> Result<Self, BuildError> {
        let mut all = Self::default();
        if directories.is_empty() {
            return Ok(all);
        }
        let reloads = ReloadMetrics::new(metrics, FAMILIES, server_id_hash(lifecycle.gates()));
        for Source { plugin, kinds, .. } in SOURCES {
            let Some(path) = directories.get(plugin) else { continue };
            let failed = |source: ReloadError| BuildError::Configuration { path: path.clone(), source };
            check_place(plugin, path, lifecycle.gates()).map_err(|error| failed(error.into()))?;
            let reader = Reader { kinds, gates: lifecycle.gates().with(MANIFEST_BASED_ADMISSION, false) };
            let objects = Swappable::load(path, reader, reloads.of_plugin(plugin), Arc::clone(lifecycle.clock()))
                .map_err(failed)?;
            objects.follow(lifecycle.tasks());
            all.0.insert(plugin, objects);
        }
        Ok(all)
    }
}

impl Manifests for Followed {
    fn of_plugin(&self, plugin: &str) -> Arc<[Arc<dyn Object>]> {
        match self.0.get(plugin) {
            Some(own) => own.current().as_ref().clone(),
            None => Arc::from([]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_a_directory_of_their_own() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let on = Gates::default().with(MANIFEST_BASED_ADMISSION, true);
        for (path, gates, expected) in [
            (directory.path(), &on, None),
            (directory.path(), &Gates::default(), Some("feature gate to be enabled")),
            (Path::new("m"), &on, Some("must be an absolute file path")),
            (&file, &on, Some("must be a directory")),
        ] {
            let problem = check_place("P", path, gates).err().map(|error| error.to_string());
            assert_eq!(problem.as_ref().is_some(), expected.is_some(), "{path:?}: {problem:?}");
            assert!(problem.unwrap_or_default().ends_with(expected.unwrap_or_default()), "{path:?}");
        }
    }
}
