//! Documents that say their kind: files of configuration, records on disk, what other programs write. They are read
//! strictly, and refused in upstream's words.

use std::borrow::Cow;

use api_machinery::json::{self, TypeMeta};
use api_machinery::reflect::Reflect;
use api_machinery::{defaults, yaml};

/// A document of which the kind is known, and the rest not yet.
#[derive(Debug)]
pub struct Document<'t> {
    json: Cow<'t, str>,
    /// What its YAML said twice; of JSON that is told when it is decoded.
    repeated: Vec<String>,
    type_meta: TypeMeta,
}

impl<'t> Document<'t> {
    /// Reads JSON, or the first document of YAML.
    ///
    /// # Errors
    /// When the text is neither, or is no object.
    pub fn read(text: &'t str) -> Result<Self, String> {
        if text.trim_start().starts_with('{') {
            return Self::read_json(text);
        }
        let yaml::Document { value, duplicates } = yaml::parse(text).map_err(|error| error.to_string())?;
        // Nothing is a document that does not say its kind.
        let json = if value.is_null() { "{}".to_owned() } else { json::encode_value(&value) };
        let type_meta = read_type_meta(&json)?;
        Ok(Self { json: json.into(), repeated: duplicates, type_meta })
    }

    /// Reads JSON.
    ///
    /// # Errors
    /// When the text is not JSON, or is no object.
    pub fn read_json(text: &'t str) -> Result<Self, String> {
        Ok(Self { json: text.into(), repeated: Vec::new(), type_meta: read_type_meta(text)? })
    }

    /// What it says that it is.
    #[must_use]
    pub fn type_meta(&self) -> &TypeMeta {
        &self.type_meta
    }

    /// Which of these versions it is of.
    ///
    /// # Errors
    /// When it is of another, or of another kind.
    pub fn version<'v>(&self, kind: &str, versions: &[&'v str]) -> Result<&'v str, String> {
        version_of(&self.type_meta, kind, versions)
    }

    /// Reads what it holds, and fills in defaults.
    ///
    /// # Errors
    /// When it does not fit, says something twice, or has members that nobody knows; the text names them all.
    pub fn decode(&self, into: &mut dyn Reflect) -> Result<(), String> {
        let repeated =
            (!self.repeated.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {}", self.repeated.join("\n  ")));
        decode_strictly(&self.json, repeated, into)
    }
}

fn read_type_meta(text: &str) -> Result<TypeMeta, String> {
    json::read_type_meta(text).map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))
}

/// Which of these versions a document of this kind is of.
pub(crate) fn version_of<'v>(own: &TypeMeta, kind: &str, versions: &[&'v str]) -> Result<&'v str, String> {
    if own.kind.is_empty() {
        return Err("Object 'Kind' is missing".to_owned());
    }
    let known = versions.iter().find(|version| own.kind == kind && own.api_version == **version);
    known.copied().ok_or_else(|| format!("no kind {:?} is registered for version {:?}", own.kind, own.api_version))
}

/// Reads JSON, refuses what is wrong with it beside what was noticed before, and fills in defaults.
pub(crate) fn decode_strictly(text: &str, noticed: Option<String>, into: &mut dyn Reflect) -> Result<(), String> {
    let decoded = json::decode(text.as_bytes(), into).map_err(|error| error.to_string())?;
    let problems: Vec<String> = noticed.into_iter().chain(decoded.problems).collect();
    if !problems.is_empty() {
        return Err(format!("strict decoding error: {}", problems.join(", ")));
    }
    defaults::fill(into);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubelet_config_v1::{API_VERSION, CredentialProviderConfig};

    const KIND: &str = "CredentialProviderConfig";

    fn read(text: &str) -> Result<CredentialProviderConfig, String> {
        let document = Document::read(text)?;
        document.version(KIND, &[API_VERSION, "kubelet.config.k8s.io/v1beta1"])?;
        let mut config = CredentialProviderConfig::default();
        document.decode(&mut config).map(|()| config)
    }

    #[test]
    fn yaml_and_json_say_the_same() {
        let yaml = "# a comment\nkind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v1\nproviders:\n- name: a\n";
        let json = r#" {"kind":"CredentialProviderConfig","apiVersion":"kubelet.config.k8s.io/v1","providers":[{"name":"a"}]}"#;
        for text in [yaml, json] {
            assert_eq!(read(text).unwrap().providers[0].name, "a", "{text}");
        }
    }

    #[test]
    fn mistakes_are_told_in_upstreams_words() {
        let head = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\n";
        let json = |rest: &str| format!(r#"{{"kind":"{KIND}","apiVersion":"{API_VERSION}",{rest}}}"#);
        for (text, expected) in [
            (String::new(), "Object 'Kind' is missing"),
            ("{}".to_owned(), "Object 'Kind' is missing"),
            ("kind: [".to_owned(), "error converting YAML to JSON: yaml: "),
            ("- a".to_owned(), "couldn't get version/kind; json parse error: json: cannot unmarshal array into"),
            ("{".to_owned(), "couldn't get version/kind; json parse error: unexpected end of JSON input"),
            (
                head.replace("v1", "v2"),
                "no kind \"CredentialProviderConfig\" is registered for version \"kubelet.config.k8s.io/v2\"",
            ),
            (
                head.replace("Config\n", "\n"),
                "no kind \"CredentialProvider\" is registered for version \"kubelet.config.k8s.io/v1\"",
            ),
            (
                format!("{head}providers:\n- name: a\n  name: b\n  nome: c\n"),
                "strict decoding error: yaml: unmarshal errors:\n  line 5: key \"name\" already set in map, \
                 unknown field \"providers[0].nome\"",
            ),
            (
                json(r#""providers":[{"name":"a","name":"b"}],"x":1"#),
                "strict decoding error: duplicate field \"providers[0].name\", unknown field \"x\"",
            ),
            (json(r#""kind":"X""#), "no kind \"X\" is registered"),
            (
                json(r#""providers":[{"env":[{"name":7}]}]"#),
                "json: cannot unmarshal number into Go struct field ExecEnvVar.providers.env.name of type string",
            ),
        ] {
            let error = read(&text).expect_err(&text);
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
