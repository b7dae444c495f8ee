//! Storage classes: which one a claim or a volume is of, which is the default, when claims of one are bound.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use api_types::core_v1::constants::BETA_STORAGE_CLASS_ANNOTATION;
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim};
use api_types::storage_v1::StorageClass;
use api_types::storage_v1::constants::volume_binding_mode;

/// What marks the class that claims without one get; the second as older clusters have it.
pub const DEFAULT_CLASS_ANNOTATIONS: &[&str] =
    &["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// A class says nothing of when its claims are bound; the API server fills that in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("VolumeBindingMode not set for StorageClass \"{0}\"")]
pub struct BindingModeNotSet(pub String);

/// The class of a claim, empty for none. The old annotation wins over the field.
#[must_use]
pub fn class_of_claim(claim: &PersistentVolumeClaim) -> &str {
    annotated(&claim.metadata.annotations).or(claim.spec.storage_class_name.as_deref()).unwrap_or_default()
}

/// Whether a claim says anything of its class, be it that it wants none.
#[must_use]
pub fn names_class(claim: &PersistentVolumeClaim) -> bool {
    annotated(&claim.metadata.annotations).is_some() || claim.spec.storage_class_name.is_some()
}

/// The class of a volume, empty for none. The old annotation wins over the field.
#[must_use]
pub fn class_of_volume(volume: &PersistentVolume) -> &str {
    annotated(&volume.metadata.annotations).unwrap_or(&volume.spec.storage_class_name)
}

fn annotated(annotations: &BTreeMap<String, String>) -> Option<&str> {
    annotations.get(BETA_STORAGE_CLASS_ANNOTATION).map(String::as_str)
}

/// Whether the class is marked as the default.
#[must_use]
pub fn is_default(class: &StorageClass) -> bool {
    let annotations = &class.metadata.annotations;
    DEFAULT_CLASS_ANNOTATIONS.iter().any(|mark| annotations.get(*mark).is_some_and(|value| value == "true"))
}

/// The default class: the newest of those that are marked, and of equally old ones the first by name.
pub fn default_class<C: AsRef<StorageClass>>(classes: impl IntoIterator<Item = C>) -> Option<C> {
    let marked = classes.into_iter().filter(|class| is_default(class.as_ref()));
    marked.min_by_key(|class| {
        let meta = &class.as_ref().metadata;
        (Reverse(meta.creation_timestamp), meta.name.clone())
    })
}

/// Whether claims of the class are bound only once a pod that uses them is placed.
///
/// # Errors
/// When the class does not say.
pub fn waits_for_consumer(class: &StorageClass) -> Result<bool, BindingModeNotSet> {
    let mode = class.volume_binding_mode.as_deref();
    let mode = mode.ok_or_else(|| BindingModeNotSet(class.metadata.name.clone()))?;
    Ok(mode == volume_binding_mode::WAIT_FOR_FIRST_CONSUMER)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api_machinery::time::Time;

    use super::*;

    #[test]
    fn the_annotation_wins_over_the_field() {
        for (annotation, field, class, named) in [
            (None, None, "", false),
            (None, Some(""), "", true),
            (None, Some("field"), "field", true),
            (Some("old"), Some("field"), "old", true),
            (Some(""), Some("field"), "", true),
        ] {
            let annotations: BTreeMap<_, _> = annotation
                .map(|class: &str| (BETA_STORAGE_CLASS_ANNOTATION.to_owned(), class.to_owned()))
                .into_iter()
                .collect();
            let mut claim = PersistentVolumeClaim::default();
            claim.metadata.annotations = annotations.clone();
            claim.spec.storage_class_name = field.map(str::to_owned);
            assert_eq!((class_of_claim(&claim), names_class(&claim)), (class, named), "{annotation:?} {field:?}");
            let mut volume = PersistentVolume::default();
            volume.metadata.annotations = annotations;
            volume.spec.storage_class_name = field.unwrap_or_default().to_owned();
            assert_eq!(class_of_volume(&volume), class, "{annotation:?} {field:?}");
        }
    }

    #[test]
    fn the_newest_marked_class_is_the_default() {
        let class = |name: &str, mark: Option<(&str, &str)>, at: i64| {
            let mut class = StorageClass::default();
            class.metadata.name = name.into();
            class.metadata.creation_timestamp = Time::from_unix_seconds(at);
            class.metadata.annotations.extend(mark.map(|(mark, value)| (mark.to_owned(), value.to_owned())));
            Arc::new(class)
        };
        let [now, beta] = [DEFAULT_CLASS_ANNOTATIONS[0], DEFAULT_CLASS_ANNOTATIONS[1]];
        let all = [
            class("old", Some((now, "true")), 1),
            class("z", Some((beta, "true")), 2),
            class("b", Some((now, "true")), 2),
            class("not", Some((now, "false")), 3),
            class("plain", None, 4),
        ];
        assert_eq!(default_class(&all).map(|class| class.metadata.name.as_str()), Some("b"));
        assert!(default_class(&all[3..]).is_none());
    }

    #[test]
    fn a_class_says_when_its_claims_are_bound() {
        let mut class = StorageClass::default();
        class.metadata.name = "c".into();
        let error = waits_for_consumer(&class).unwrap_err();
        assert_eq!(error.to_string(), "VolumeBindingMode not set for StorageClass \"c\"");
        for (mode, expected) in [("WaitForFirstConsumer", true), ("Immediate", false)] {
            class.volume_binding_mode = Some(mode.into());
            assert_eq!(waits_for_consumer(&class), Ok(expected), "{mode}");
        }
    }
}
