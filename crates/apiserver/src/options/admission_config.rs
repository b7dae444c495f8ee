//! `--admission-control-config-file`: what plugins are told beyond their flags.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use api_machinery::value::Value;
use component_base::config_file;

use crate::admission_manifests::{SOURCES, Source};
use crate::config::WebhookKubeconfigs;

const KIND: &str = "AdmissionConfiguration";
const VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"];
/// The member with a directory of webhooks or policies.
const MANIFESTS: &str = "staticManifestsDir";
/// The plugins that have a file of credentials.
const MUTATING: &str = "MutatingAdmissionWebhook";
const VALIDATING: &str = "ValidatingAdmissionWebhook";
/// Members of a file that has no kind, and whose they are: before there was a kind the whole file was the plugin's.
const OLD_MEMBERS: [(&str, &str); 2] =
    [("imagePolicy", "ImagePolicyWebhook"), ("podNodeSelectorPluginConfig", "PodNodeSelector")];

/// What a file says of plugins.
#[derive(Debug, Default, PartialEq)]
pub(super) struct PluginFiles {
    /// By plugin; the plugins read it.
    pub(super) plugins: BTreeMap<String, Value>,
    pub(super) webhooks: WebhookKubeconfigs,
    /// Directories of webhooks and policies, by plugin.
    pub(super) manifests: BTreeMap<&'static str, PathBuf>,
}

/// What a file says of plugins.
///
/// # Errors
/// The file cannot be read, is not an `AdmissionConfiguration`, or says something that would have no effect.
pub(super) fn read(path: &str) -> Result<PluginFiles, String> {
    let failed = |why: String| format!("unable to read admission control configuration from {path:?}: {why}");
    let value = config_file::load(Path::new(path)).map_err(|error| failed(error.to_string()))?;
    let directory = Path::new(path).parent().unwrap_or(Path::new(""));
    from_value(&value, directory).map_err(failed)
}

fn from_value(value: &Value, directory: &Path) -> Result<PluginFiles, String> {
    if let Some(plugins) = old_plugins(value)? {
        return Ok(PluginFiles { plugins, ..PluginFiles::default() });
    }
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("kind") != KIND || !VERSIONS.contains(&text("apiVersion")) {
        return Err(format!("no kind {:?} is registered for version {:?}", text("kind"), text("apiVersion")));
    }
    refuse_others(value, "", &["apiVersion", "kind", "plugins"])?;
    let mut plugins = BTreeMap::new();
    for (name, plugin) in entries(value)? {
        if let Some(configuration) = configuration(plugin, directory)? {
            plugins.insert(name.to_owned(), configuration);
        }
    }
    let (mut kubeconfigs, mut manifests) = (BTreeMap::new(), BTreeMap::new());
    for source in &SOURCES {
        let Some(own) = plugins.remove(source.plugin) else { continue };
        let stated = configured(source, &own).map_err(|why| format!("{}: {why}", source.plugin))?;
        manifests.extend(stated.manifests.map(|directory| (source.plugin, directory)));
        kubeconfigs.extend(stated.kubeconfig.map(|file| (source.plugin, file)));
    }
    let webhooks =
        WebhookKubeconfigs { mutating: kubeconfigs.remove(MUTATING), validating: kubeconfigs.remove(VALIDATING) };
    Ok(PluginFiles { plugins, webhooks, manifests })
}

/// What a file without a kind says.
fn old_plugins(value: &Value) -> Result<Option<BTreeMap<String, Value>>, String> {
    let has = |name: &str| value.get(name).is_some();
    if has("apiVersion") || has("kind") || !OLD_MEMBERS.iter().any(|(member, _)| has(member)) {
        return Ok(None);
    }
    refuse_others(value, "", &OLD_MEMBERS.map(|(member, _)| member))?;
    let of_plugin = |(member, plugin): (&str, &str)| {
        let own = value.get(member)?.clone();
        Some((plugin.to_owned(), Value::Object([(member.to_owned(), own)].into_iter().collect())))
    };
    Ok(Some(OLD_MEMBERS.into_iter().filter_map(of_plugin).collect()))
}

/// Whether a plugin has a configuration.
fn is_configurable(name: &str) -> bool {
    let has_own = |entry: &admission::PluginEntry| entry.name == name && entry.configuration.is_some();
    SOURCES.iter().any(|source| source.plugin == name) || admission::ALL.iter().any(has_own)
}

/// The entries of plugins by their names; the first of each counts.
fn entries(value: &Value) -> Result<Vec<(&str, &Value)>, String> {
    let plugins = match value.get("plugins") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(plugins)) => plugins,
        Some(_) => return Err("plugins: must be a list".to_owned()),
    };
    let mut found: Vec<(&str, &Value)> = Vec::new();
    for (index, plugin) in plugins.iter().enumerate() {
        let at = format!("plugins[{index}]");
        refuse_others(plugin, &at, &["name", "path", "configuration"])?;
        match plugin.get("name").and_then(Value::as_str) {
            Some(name) if found.iter().any(|(own, _)| *own == name) => {}
            Some(name) if is_configurable(name) => found.push((name, plugin)),
            Some(other) => return Err(format!("{at}: plugin {other:?} takes no configuration in this server")),
            None => return Err(format!("{at}.name: must be a text")),
        }
    }
    Ok(found)
}

/// The configuration of a plugin: in its place, or in a file of its own.
fn configuration(plugin: &Value, directory: &Path) -> Result<Option<Value>, String> {
    match (plugin.get("configuration").filter(|own| !own.is_null()), plugin.get("path").and_then(Value::as_str)) {
        (Some(configuration), _) => Ok(Some(configuration.clone())),
        (None, Some(path)) if !path.is_empty() => {
            config_file::load(&directory.join(path)).map(Some).map_err(|error| error.to_string())
        }
        (None, _) => Ok(None),
    }
}

/// What a plugin of webhooks or policies is told.
struct Configured {
    kubeconfig: Option<PathBuf>,
    manifests: Option<PathBuf>,
}

/// What a `WebhookAdmissionConfiguration` or one of a plugin of policies says.
fn configured(source: &Source, value: &Value) -> Result<Configured, String> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("kind") != source.configuration || text("apiVersion") != VERSIONS[0] {
        return Err(format!("no kind {:?} is registered for version {:?}", text("kind"), text("apiVersion")));
    }
    let of_webhooks = [MUTATING, VALIDATING].contains(&source.plugin).then_some("kubeConfigFile");
    let known: Vec<&str> = ["apiVersion", "kind", MANIFESTS].into_iter().chain(of_webhooks).collect();
    refuse_others(value, "", &known)?;
    let file = |name: &str| Some(PathBuf::from(text(name))).filter(|file| !file.as_os_str().is_empty());
    let (kubeconfig, manifests) = (file("kubeConfigFile"), file(MANIFESTS));
    if let Some(file) = kubeconfig.as_ref().filter(|file| !file.is_absolute()) {
        return Err(format!("kubeConfigFile must be an absolute file path: {:?}", file.display().to_string()));
    }
    Ok(Configured { kubeconfig, manifests })
}

fn refuse_others(value: &Value, at: &str, known: &[&str]) -> Result<(), String> {
    let Some(map) = value.as_object() else {
        return Err(format!("{}: must be a map", if at.is_empty() { "configuration" } else { at }));
    };
    let dot = if at.is_empty() { "" } else { "." };
    match map.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("strict decoding error: unknown field \"{at}{dot}{name}\"")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECURITY: &str = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n\
                            defaults: {enforce: baseline}\n";

    fn configuration(plugins: &str) -> String {
        format!("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: {plugins}\n")
    }

    #[test]
    fn the_plugin_finds_its_part() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("security.yaml"), SECURITY).unwrap();
        let expected = BTreeMap::from([("PodSecurity".to_owned(), config_file::parse(SECURITY).unwrap())]);
        let inline = "{name: PodSecurity, configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: \
                      PodSecurityConfiguration, defaults: {enforce: baseline}}}";
        let by_path = "{name: PodSecurity, path: security.yaml}";
        let file = directory.path().join("admission.yaml");
        for (plugins, expected) in [
            (format!("[{inline}]"), &expected),
            (format!("[{by_path}]"), &expected),
            (format!("[{by_path}, {{name: PodSecurity, path: none.yaml}}]"), &expected),
            ("[{name: PodSecurity}]".to_owned(), &BTreeMap::new()),
            ("[]".to_owned(), &BTreeMap::new()),
        ] {
            std::fs::write(&file, configuration(&plugins)).unwrap();
            let found = read(file.to_str().unwrap()).map(|own| own.plugins);
            assert_eq!(found.as_ref(), Ok(expected), "{plugins}");
        }
    }

    #[test]
    fn files_of_before_there_was_a_kind_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("admission.yaml");
        let of = |text: &str| {
            std::fs::write(&file, text).unwrap();
            read(file.to_str().unwrap())
        };
        let both = of("imagePolicy: {allowTTL: 5}\npodNodeSelectorPluginConfig: {a: b=c}\n").unwrap().plugins;
        let expected = |text: &str| config_file::parse(text).unwrap();
        assert_eq!(both["ImagePolicyWebhook"], expected("imagePolicy: {allowTTL: 5}"));
        assert_eq!(both["PodNodeSelector"], expected("podNodeSelectorPluginConfig: {a: b=c}"));
        assert_eq!(of("imagePolicy: {}\n").unwrap().plugins.len(), 1);
        let mixed = of("imagePolicy: {}\nplugins: []\n").unwrap_err();
        assert!(mixed.contains("unknown field \"plugins\""), "{mixed}");
    }

    #[test]
    fn webhooks_have_a_kubeconfig_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("admission.yaml");
        let kind = "apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration";
        let of = |plugin: &str, more: &str| {
            let text = configuration(&format!("[{{name: {plugin}, configuration: {{{kind}, {more}}}}}]"));
            std::fs::write(&file, text).unwrap();
            read(file.to_str().unwrap()).map(|own| own.webhooks)
        };
        let kubeconfig = || Some(PathBuf::from("/etc/k"));
        let mutating = WebhookKubeconfigs { mutating: kubeconfig(), validating: None };
        assert_eq!(of("MutatingAdmissionWebhook", "kubeConfigFile: /etc/k"), Ok(mutating));
        let validating = WebhookKubeconfigs { mutating: None, validating: kubeconfig() };
        assert_eq!(of("ValidatingAdmissionWebhook", "kubeConfigFile: /etc/k"), Ok(validating));
        for (more, expected) in
            [("kubeConfigFile: k", "must be an absolute file path"), ("kubeconfig: /k", "unknown field")]
        {
            assert!(of("MutatingAdmissionWebhook", more).is_err_and(|why| why.contains(expected)), "{more}");
        }
    }

    #[test]
    fn webhooks_and_policies_may_stand_in_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("admission.yaml");
        let of = |plugin: &str, kind: &str| {
            let kind = format!("apiVersion: apiserver.config.k8s.io/v1, kind: {kind}");
            let plugins = format!("[{{name: {plugin}, configuration: {{{kind}, staticManifestsDir: /m}}}}]");
            std::fs::write(&file, configuration(&plugins)).unwrap();
            read(file.to_str().unwrap()).map(|own| own.manifests)
        };
        for Source { plugin, configuration, .. } in &SOURCES {
            assert_eq!(of(plugin, configuration), Ok(BTreeMap::from([(*plugin, PathBuf::from("/m"))])), "{plugin}");
        }
        let problem = of("ValidatingAdmissionPolicy", "WebhookAdmissionConfiguration").unwrap_err();
        assert!(problem.contains("ValidatingAdmissionPolicy: no kind \"WebhookAdmissionConfiguration\""), "{problem}");
    }

    #[test]
    fn what_would_have_no_effect_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("admission.yaml");
        for (text, expected) in [
            ("kind: AdmissionConfiguration\n".to_owned(), "no kind \"AdmissionConfiguration\" is registered"),
            (configuration("[{name: Priority, path: x}]"), "\"Priority\" takes no configuration"),
            (configuration("[{name: PodSecurity, config: {}}]"), "unknown field \"plugins[0].config\""),
            (configuration("[{name: PodSecurity, path: none.yaml}]"), "none.yaml"),
            (configuration("{}"), "plugins: must be a list"),
            ("a: [".to_owned(), "failed to decode config file"),
        ] {
            std::fs::write(&file, &text).unwrap();
            let problem = read(file.to_str().unwrap()).unwrap_err();
            assert!(problem.contains(expected) && problem.contains("admission.yaml"), "{text}: {problem}");
        }
    }
}
