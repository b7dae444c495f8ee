//! `--admission-control-config-file`: what plugins are told beyond their flags.

use std::path::Path;

use admission::PodSecurityConfig;
use api_machinery::value::Value;
use component_base::config_file;

const KIND: &str = "AdmissionConfiguration";
const VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"];
/// The plugin that can be configured.
const POD_SECURITY: &str = "PodSecurity";

/// What a file says of PodSecurity.
///
/// # Errors
/// The file cannot be read, is not an `AdmissionConfiguration`, or says something that would have no effect.
pub(super) fn read(path: &str) -> Result<PodSecurityConfig, String> {
    let failed = |why: String| format!("unable to read admission control configuration from {path:?}: {why}");
    let value = config_file::load(Path::new(path)).map_err(|error| failed(error.to_string()))?;
    let directory = Path::new(path).parent().unwrap_or(Path::new(""));
    from_value(&value, directory).map_err(failed)
}

fn from_value(value: &Value, directory: &Path) -> Result<PodSecurityConfig, String> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("kind") != KIND || !VERSIONS.contains(&text("apiVersion")) {
        return Err(format!("no kind {:?} is registered for version {:?}", text("kind"), text("apiVersion")));
    }
    refuse_others(value, "", &["apiVersion", "kind", "plugins"])?;
    let none = Vec::new();
    let plugins = match value.get("plugins") {
        None | Some(Value::Null) => &none,
        Some(Value::Array(plugins)) => plugins,
        Some(_) => return Err("plugins: must be a list".to_owned()),
    };
    let mut found = None;
    for (index, plugin) in plugins.iter().enumerate() {
        let at = format!("plugins[{index}]");
        refuse_others(plugin, &at, &["name", "path", "configuration"])?;
        match plugin.get("name").and_then(Value::as_str) {
            // The first entry counts.
            Some(POD_SECURITY) => drop(found.get_or_insert(plugin)),
            Some(other) => return Err(format!("{at}: plugin {other:?} takes no configuration in this server")),
            None => return Err(format!("{at}.name: must be a text")),
        }
    }
    let Some(plugin) = found else { return Ok(PodSecurityConfig::default()) };
    let read = |value: &Value| PodSecurityConfig::read(value).map_err(|why| format!("{POD_SECURITY}: {why}"));
    match (plugin.get("configuration").filter(|own| !own.is_null()), plugin.get("path").and_then(Value::as_str)) {
        (Some(configuration), _) => read(configuration),
        (None, Some(path)) if !path.is_empty() => {
            read(&config_file::load(&directory.join(path)).map_err(|error| error.to_string())?)
        }
        (None, _) => Ok(PodSecurityConfig::default()),
    }
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
        let expected = PodSecurityConfig::read(&config_file::parse(SECURITY).unwrap()).unwrap();
        assert_ne!(expected, PodSecurityConfig::default());
        let inline = "{name: PodSecurity, configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: \
                      PodSecurityConfiguration, defaults: {enforce: baseline}}}";
        let by_path = "{name: PodSecurity, path: security.yaml}";
        let file = directory.path().join("admission.yaml");
        for (plugins, expected) in [
            (format!("[{inline}]"), &expected),
            (format!("[{by_path}]"), &expected),
            (format!("[{by_path}, {{name: PodSecurity, path: none.yaml}}]"), &expected),
            ("[{name: PodSecurity}]".to_owned(), &PodSecurityConfig::default()),
            ("[]".to_owned(), &PodSecurityConfig::default()),
        ] {
            std::fs::write(&file, configuration(&plugins)).unwrap();
            assert_eq!(read(file.to_str().unwrap()).as_ref(), Ok(expected), "{plugins}");
        }
    }

    #[test]
    fn what_would_have_no_effect_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("admission.yaml");
        let wrong = "[{name: PodSecurity, configuration: {apiVersion: v1, kind: X}}]";
        for (text, expected) in [
            ("kind: AdmissionConfiguration\n".to_owned(), "no kind \"AdmissionConfiguration\" is registered"),
            (configuration("[{name: EventRateLimit, path: x}]"), "\"EventRateLimit\" takes no configuration"),
            (configuration("[{name: PodSecurity, config: {}}]"), "unknown field \"plugins[0].config\""),
            (configuration("[{name: PodSecurity, path: none.yaml}]"), "none.yaml"),
            (configuration(wrong), "PodSecurity: no kind \"X\" is registered for version \"v1\""),
            (configuration("{}"), "plugins: must be a list"),
            ("a: [".to_owned(), "failed to decode config file"),
        ] {
            std::fs::write(&file, &text).unwrap();
            let problem = read(file.to_str().unwrap()).unwrap_err();
            assert!(problem.contains(expected) && problem.contains("admission.yaml"), "{text}: {problem}");
        }
    }
}
