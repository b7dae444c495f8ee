//! Secrets that drivers are given: which, by the parameters of a class, and what is in them.

use std::collections::{BTreeMap, HashMap};

use api_types::core_v1::{PersistentVolumeClaim, Secret, SecretReference};
use controller::{Cx, ReconcileError};

use crate::names::RESERVED;

/// What a secret is for, by the beginning of the parameters' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    Provision,
    ControllerPublish,
    NodeStage,
    NodePublish,
    ControllerExpand,
    NodeExpand,
    Snapshot,
}

impl Purpose {
    pub(crate) const OF_VOLUMES: [Self; 6] = [
        Self::Provision,
        Self::ControllerPublish,
        Self::NodeStage,
        Self::NodePublish,
        Self::ControllerExpand,
        Self::NodeExpand,
    ];

    fn prefix(self) -> &'static str {
        match self {
            Self::Provision => "provisioner",
            Self::ControllerPublish => "controller-publish",
            Self::NodeStage => "node-stage",
            Self::NodePublish => "node-publish",
            Self::ControllerExpand => "controller-expand",
            Self::NodeExpand => "node-expand",
            Self::Snapshot => "snapshotter",
        }
    }

    /// The names of the two parameters: of the secret's name, and of its namespace.
    pub(crate) fn parameters(self) -> [String; 2] {
        ["name", "namespace"].map(|what| format!("{RESERVED}{}-secret-{what}", self.prefix()))
    }
}

/// What stands for the parts of a template.
pub(crate) struct Terms<'a> {
    pairs: Vec<(&'a str, &'a str)>,
    annotations: Option<&'a BTreeMap<String, String>>,
}

impl<'a> Terms<'a> {
    /// For a volume of a claim.
    pub(crate) fn of_claim(volume: &'a str, claim: &'a PersistentVolumeClaim) -> Self {
        let meta = &claim.metadata;
        let pairs = vec![("pv.name", volume), ("pvc.namespace", &meta.namespace), ("pvc.name", &meta.name)];
        Self { pairs, annotations: Some(&meta.annotations) }
    }

    /// For a snapshot.
    pub(crate) fn of_snapshot(content: &'a str, namespace: &'a str, name: &'a str) -> Self {
        let pairs = vec![
            ("volumesnapshotcontent.name", content),
            ("volumesnapshot.namespace", namespace),
            ("volumesnapshot.name", name),
        ];
        Self { pairs, annotations: None }
    }

    fn term(&self, name: &str) -> Option<&'a str> {
        let annotation = name.strip_prefix("pvc.annotations['").and_then(|rest| rest.strip_suffix("']"));
        match (annotation, self.annotations) {
            (Some(key), Some(annotations)) => annotations.get(key).map(String::as_str),
            _ => self.pairs.iter().find(|(own, _)| *own == name).map(|(_, value)| *value),
        }
    }

    /// A template with everything in its place.
    fn fill(&self, template: &str) -> Result<String, SecretError> {
        let (mut filled, mut rest) = (String::new(), template);
        while let Some((before, after)) = rest.split_once("${") {
            let (name, tail) = after.split_once('}').ok_or_else(|| SecretError::Template(template.to_owned()))?;
            let value = self.term(name).ok_or_else(|| SecretError::Term(name.to_owned()))?;
            filled.push_str(before);
            filled.push_str(value);
            rest = tail;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

/// Why it cannot be said which secret is meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("either name and namespace for {0} secrets specified, Both must be specified")]
    Half(&'static str),
    #[error("invalid tokens: [{0:?}]")]
    Term(String),
    #[error("error resolving template {0:?}: a token is not closed")]
    Template(String),
    #[error("{0} secret: {1:?} is no name")]
    Name(&'static str, String),
}

/// Which secret a class means.
///
/// # Errors
/// When it says half of it, or its template asks for what is not known.
pub(crate) fn resolve(
    purpose: Purpose,
    parameters: &BTreeMap<String, String>,
    terms: &Terms<'_>,
) -> Result<Option<SecretReference>, SecretError> {
    let [name, namespace] = purpose.parameters().map(|key| parameters.get(&key).filter(|text| !text.is_empty()));
    let (name, namespace) = match (name, namespace) {
        (None, None) => return Ok(None),
        (Some(name), Some(namespace)) => (terms.fill(name)?, terms.fill(namespace)?),
        _ => return Err(SecretError::Half(purpose.prefix())),
    };
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let bad = [&name, &namespace].into_iter().find(|text| text.is_empty() || !text.bytes().all(fine)).cloned();
    match bad {
        Some(bad) => Err(SecretError::Name(purpose.prefix(), bad)),
        None => Ok(Some(SecretReference { name, namespace })),
    }
}

/// What is in a secret; nothing where none is meant.
///
/// # Errors
/// When it cannot be read, or is no text.
pub(crate) async fn read(cx: &Cx, secret: Option<&SecretReference>) -> Result<HashMap<String, String>, ReconcileError> {
    let Some(SecretReference { name, namespace }) = secret else { return Ok(HashMap::new()) };
    let found = cx.client.namespaced::<Secret>(namespace).get(name).await;
    let failed =
        |error| ReconcileError::failed(format!("error getting secret {name} in namespace {namespace}: {error}"));
    let data = found.map_err(failed)?.data;
    let text = |(key, value): (String, api_machinery::reflect::ByteString)| match String::from_utf8(value.to_vec()) {
        Ok(value) => Ok((key, value)),
        Err(_) => Err(ReconcileError::failed(format!("secret {namespace}/{name}: {key} is no text"))),
    };
    data.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> PersistentVolumeClaim {
        let mut claim = PersistentVolumeClaim::default();
        (claim.metadata.name, claim.metadata.namespace) = ("c".into(), "ns".into());
        claim.metadata.annotations.insert("team".into(), "blue".into());
        claim
    }

    #[test]
    fn templates_are_filled_in_or_refused() {
        let claim = claim();
        let terms = Terms::of_claim("pvc-1", &claim);
        let some = |name: &str| Ok(Some(SecretReference { name: name.into(), namespace: "ns".into() }));
        for (name, namespace, expected) in [
            (None, None, Ok(None)),
            (Some("s"), Some("ns"), some("s")),
            (Some("${pvc.name}-${pv.name}"), Some("${pvc.namespace}"), some("c-pvc-1")),
            (Some("${pvc.annotations['team']}"), Some("ns"), some("blue")),
            (Some("s"), None, Err(SecretError::Half("node-stage"))),
            (None, Some("ns"), Err(SecretError::Half("node-stage"))),
            (Some("${pod.name}"), Some("ns"), Err(SecretError::Term("pod.name".into()))),
            (Some("${pvc.annotations['x']}"), Some("ns"), Err(SecretError::Term("pvc.annotations['x']".into()))),
            (Some("${pvc.name"), Some("ns"), Err(SecretError::Template("${pvc.name".into()))),
            (Some("A b"), Some("ns"), Err(SecretError::Name("node-stage", "A b".into()))),
        ] {
            let mut parameters = BTreeMap::new();
            let [name_key, namespace_key] = Purpose::NodeStage.parameters();
            parameters.extend(name.map(|name| (name_key, name.to_owned())));
            parameters.extend(namespace.map(|namespace| (namespace_key, namespace.to_owned())));
            assert_eq!(resolve(Purpose::NodeStage, &parameters, &terms), expected, "{name:?} {namespace:?}");
        }
    }
}
