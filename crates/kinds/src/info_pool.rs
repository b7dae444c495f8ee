//! Names and facts of kinds that come at run time. Everything leans on `&'static ResourceInfo`; a custom kind's is kept
//! for good, once for each distinct definition, and only up to a limit: a definition that changes for ever must not
//! eat the server.

use std::collections::HashMap;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};

/// A [`ResourceInfo`] that is made at run time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct OwnedResourceInfo {
    /// The API group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural name in paths.
    pub resource: String,
    /// The singular name.
    pub singular: String,
    /// Short names that kubectl knows.
    pub short_names: Vec<String>,
    /// Categories such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The verbs of the resource itself, sorted.
    pub verbs: Vec<String>,
    /// Key prefix below the storage root.
    pub storage_prefix: String,
    /// The version that is stored.
    pub storage_version: String,
    /// `storageVersionHash` of discovery.
    pub storage_hash: String,
    /// `PUT` may create.
    pub create_on_update: bool,
    /// `PUT` without a resource version is allowed.
    pub unconditional_update: bool,
    /// Field selectors besides those of metadata.
    pub field_selectors: Vec<String>,
    /// Printed columns: name, type, format, priority.
    pub columns: Vec<(String, String, String, i32)>,
    /// Subresources, sorted by name: name, kind, group, version, verbs.
    pub subresources: Vec<(String, String, String, String, Vec<String>)>,
}

/// There is no room for another definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolFull;

impl std::fmt::Display for PoolFull {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("too many different definitions of custom kinds since the server started")
    }
}

impl std::error::Error for PoolFull {}

/// Definitions of custom kinds, each kept once and for good.
#[derive(Debug)]
pub struct InfoPool {
    known: HashMap<OwnedResourceInfo, &'static ResourceInfo>,
    texts: HashMap<String, &'static str>,
    room_bytes: usize,
}

impl InfoPool {
    /// A pool that takes about so many bytes of definitions.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self { known: HashMap::new(), texts: HashMap::new(), room_bytes: limit_bytes }
    }

    /// The definition, in the form that everything leans on. Equal definitions give the same one.
    ///
    /// # Errors
    /// When the pool is full; what it has stays usable.
    pub fn intern(&mut self, info: &OwnedResourceInfo) -> Result<&'static ResourceInfo, PoolFull> {
        if let Some(known) = self.known.get(info) {
            return Ok(known);
        }
        self.room_bytes = self.room_bytes.checked_sub(size_bytes(info)).ok_or(PoolFull)?;
        let columns = info.columns.iter().map(|(name, type_, format, priority)| Column {
            name: self.text(name),
            type_: self.text(type_),
            format: self.text(format),
            priority: *priority,
        });
        let columns: Vec<Column> = columns.collect();
        let subresources = info.subresources.iter().map(|(name, kind, group, version, verbs)| SubresourceInfo {
            name: self.text(name),
            kind: self.text(kind),
            group: self.text(group),
            version: self.text(version),
            verbs: self.texts(verbs),
        });
        let subresources: Vec<SubresourceInfo> = subresources.collect();
        let interned: &'static ResourceInfo = Box::leak(Box::new(ResourceInfo {
            group: self.text(&info.group),
            version: self.text(&info.version),
            kind: self.text(&info.kind),
            resource: self.text(&info.resource),
            singular: self.text(&info.singular),
            short_names: self.texts(&info.short_names),
            categories: self.texts(&info.categories),
            namespaced: info.namespaced,
            verbs: self.texts(&info.verbs),
            storage: Some(StorageInfo {
                prefix: self.text(&info.storage_prefix),
                version: self.text(&info.storage_version),
                group: self.text(&info.group),
                hash: self.text(&info.storage_hash),
            }),
            create_on_update: info.create_on_update,
            unconditional_update: info.unconditional_update,
            field_selectors: self.texts(&info.field_selectors),
            columns: Vec::leak(columns),
            subresources: Vec::leak(subresources),
        }));
        self.known.insert(info.clone(), interned);
        Ok(interned)
    }

    fn text(&mut self, text: &str) -> &'static str {
        if let Some(known) = self.texts.get(text) {
            return known;
        }
        let kept: &'static str = String::leak(text.to_owned());
        self.texts.insert(text.to_owned(), kept);
        kept
    }

    fn texts(&mut self, texts: &[String]) -> &'static [&'static str] {
        let kept: Vec<&'static str> = texts.iter().map(|text| self.text(text)).collect();
        Vec::leak(kept)
    }
}

/// About what a definition takes, counted as if it shared nothing.
fn size_bytes(info: &OwnedResourceInfo) -> usize {
    let list = |texts: &[String]| texts.iter().map(|text| text.len() + size_of::<&str>()).sum::<usize>();
    let names = [&info.group, &info.version, &info.kind, &info.resource, &info.singular, &info.storage_prefix];
    let columns = info.columns.iter().map(|(name, type_, format, _)| name.len() + type_.len() + format.len());
    let subresources = info.subresources.iter().map(|(name, kind, _, _, verbs)| name.len() + kind.len() + list(verbs));
    size_of::<ResourceInfo>()
        + size_of::<OwnedResourceInfo>()
        + names.iter().map(|text| text.len()).sum::<usize>()
        + [&info.short_names, &info.categories, &info.verbs, &info.field_selectors]
            .map(|texts| list(texts))
            .iter()
            .sum::<usize>()
        + columns.map(|bytes| bytes + size_of::<Column>()).sum::<usize>()
        + subresources.map(|bytes| bytes + size_of::<SubresourceInfo>()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widget(version: &str) -> OwnedResourceInfo {
        OwnedResourceInfo {
            group: "example.com".into(),
            version: version.into(),
            kind: "Widget".into(),
            resource: "widgets".into(),
            verbs: vec!["get".into(), "list".into()],
            columns: vec![("Name".into(), "string".into(), "name".into(), 0)],
            ..OwnedResourceInfo::default()
        }
    }

    #[test]
    fn equal_definitions_are_kept_once_and_not_without_end() {
        let mut pool = InfoPool::new(2_000);
        let one = pool.intern(&widget("v1")).unwrap();
        assert!(std::ptr::eq(one, pool.intern(&widget("v1")).unwrap()));
        assert_eq!((one.kind, one.columns[0].format, one.verbs), ("Widget", "name", &["get", "list"][..]));
        let full = (2..100).map(|number| pool.intern(&widget(&format!("v{number}")))).find(Result::is_err);
        assert_eq!(full.map(|outcome| outcome.unwrap_err()), Some(PoolFull));
        assert!(pool.intern(&widget("v1")).is_ok(), "what is there stays usable");
    }
}
