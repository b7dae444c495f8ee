//! Names and facts of custom kinds. They are counted: the last who holds them frees them, however often a definition
//! changes.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use component_base::version::MinorVersion;
use kinds::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use self_cell::self_cell;
use sha2::{Digest as _, Sha256};

/// In the order in which upstream tells them of custom kinds.
const VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const SUBRESOURCE_VERBS: &[&str] = &["get", "patch", "update"];

/// What a definition says of one of its versions.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) short_names: Vec<String>,
    pub(super) categories: Vec<String>,
    pub(super) namespaced: bool,
    pub(super) storage_version: String,
    pub(super) has_status: bool,
    pub(super) has_scale: bool,
    pub(super) selectable: Vec<String>,
}

/// What follows from what is declared.
struct Derived {
    declared: Declared,
    storage_prefix: String,
    storage_hash: String,
}

/// The lists that the facts refer to.
struct Lists<'a> {
    short_names: Vec<&'a str>,
    categories: Vec<&'a str>,
    selectable: Vec<&'a str>,
    subresources: Vec<SubresourceInfo<'a>>,
}

self_cell!(
    struct Listed {
        owner: Derived,
        #[covariant]
        dependent: Lists,
    }
);

self_cell!(
    struct Stated {
        owner: Listed,
        #[covariant]
        dependent: ResourceInfo,
    }
);

/// The facts of one version of a custom kind.
pub(crate) struct CustomInfo(Stated);

impl CustomInfo {
    pub(super) fn new(declared: Declared) -> Self {
        let stored = format!("{}/{}/{}", declared.group, declared.storage_version, declared.kind);
        let hash = Sha256::digest(stored.as_bytes());
        let derived = Derived {
            storage_prefix: format!("{}/{}", declared.group, declared.plural),
            storage_hash: STANDARD.encode(hash.get(..8).unwrap_or_default()),
            declared,
        };
        Self(Stated::new(Listed::new(derived, |derived| lists(&derived.declared)), facts))
    }

    /// The facts.
    pub(crate) fn get(&self) -> &ResourceInfo<'_> {
        self.0.borrow_dependent()
    }
}

fn texts(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

fn lists(declared: &Declared) -> Lists<'_> {
    let verbs = SUBRESOURCE_VERBS;
    let scale = SubresourceInfo { name: "scale", kind: "Scale", group: "autoscaling", version: "v1", verbs };
    let status = SubresourceInfo { name: "status", kind: &declared.kind, group: "", version: "", verbs };
    let scale = declared.has_scale.then_some(scale);
    Lists {
        short_names: texts(&declared.short_names),
        categories: texts(&declared.categories),
        selectable: texts(&declared.selectable),
        subresources: scale.into_iter().chain(declared.has_status.then_some(status)).collect(),
    }
}

fn facts(listed: &Listed) -> ResourceInfo<'_> {
    let (derived, lists) = (listed.borrow_owner(), listed.borrow_dependent());
    let declared = &derived.declared;
    ResourceInfo {
        group: &declared.group,
        version: &declared.version,
        kind: &declared.kind,
        resource: &declared.plural,
        singular: &declared.singular,
        short_names: &lists.short_names,
        categories: &lists.categories,
        namespaced: declared.namespaced,
        verbs: VERBS,
        storage: Some(StorageInfo {
            prefix: &derived.storage_prefix,
            version: &declared.storage_version,
            group: &declared.group,
            hash: &derived.storage_hash,
        }),
        create_on_update: false,
        unconditional_update: false,
        field_selectors: &lists.selectable,
        subresources: &lists.subresources,
        introduced: MinorVersion::default(),
        gates: &[],
    }
}

/// The facts of a kind, for who keeps them.
#[derive(Clone)]
pub(crate) enum InfoRef {
    /// A built-in kind.
    Static(&'static ResourceInfo<'static>),
    /// A custom kind.
    Shared(Arc<CustomInfo>),
}

impl InfoRef {
    /// The facts.
    pub(crate) fn get(&self) -> &ResourceInfo<'_> {
        match self {
            Self::Static(info) => info,
            Self::Shared(info) => info.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_what_is_declared() {
        let info = CustomInfo::new(Declared {
            group: "example.com".into(),
            version: "v1".into(),
            kind: "Apple".into(),
            plural: "apples".into(),
            singular: "apple".into(),
            short_names: vec!["ap".into()],
            categories: vec!["all".into(), "fruit".into()],
            namespaced: true,
            storage_version: "v2".into(),
            has_status: true,
            has_scale: false,
            selectable: vec!["spec.colour".into()],
        });
        let info = info.get();
        assert_eq!(info.place(), ["example.com", "v1", "apples"]);
        assert_eq!((info.short_names, info.categories), (&["ap"][..], &["all", "fruit"][..]));
        assert_eq!(info.field_selectors, ["spec.colour"]);
        let storage = info.storage.unwrap();
        assert_eq!((storage.prefix, storage.version, storage.hash.len()), ("example.com/apples", "v2", 12));
        let subresources: Vec<_> = info.subresources.iter().map(|own| (own.name, own.kind)).collect();
        assert_eq!(subresources, [("status", "Apple")]);
    }
}
