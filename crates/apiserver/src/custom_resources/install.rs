//! Putting a definition's versions into service, and taking them out again.

use std::sync::Arc;

use api_machinery::value::Value;
use api_types::apiextensions_v1::{
    CustomResourceDefinition, CustomResourceDefinitionSpec, CustomResourceDefinitionVersion,
};
use kinds::apiextensions_v1::schema_of;
use kinds::info::ResourceInfo;
use registry::{Resource, RulesRef, Setup};
use schema::{JsonPath, Structural};

use super::columns::{self, Cell};
use super::info_pool::{Facts, InfoPool, PoolFull};
use super::rules::CustomRules;
use super::scale::{Place, ScalePaths};
use super::served::{ServedKind, ServedKinds};
use super::version_rename::VersionRename;
use crate::custom_kinds::CustomKind;
use crate::cx::ApiCx;
use crate::discovery::compare_versions;

/// One version, ready to be served.
struct Prepared {
    version: String,
    info: &'static ResourceInfo,
    rules: Arc<CustomRules>,
    kind: CustomKind,
    schema: Value,
}

/// Serves all versions of a definition that are to be served, the stored one first, as the others share its cache.
///
/// # Errors
/// When there is no room for more.
pub(super) fn serve(
    cx: &ApiCx,
    pool: &InfoPool,
    served: &ServedKinds,
    definition: &CustomResourceDefinition,
) -> Result<Vec<&'static ResourceInfo>, PoolFull> {
    let spec = &definition.spec;
    let stored = spec.versions.iter().find(|version| version.storage).map_or("", |version| version.name.as_str());
    let mut versions: Vec<&CustomResourceDefinitionVersion> = spec.versions.iter().collect();
    versions.sort_by_key(|version| !version.storage);
    let prepared: Result<Vec<Prepared>, PoolFull> =
        versions.iter().map(|version| prepare(pool, definition, version, stored)).collect();
    let prepared = prepared?;
    let storage_rules = prepared.first().map(|first| Arc::clone(&first.rules));
    let mut shared: Option<Arc<Resource>> = None;
    let mut infos = Vec::new();
    for (own, declared) in prepared.into_iter().zip(versions) {
        if !declared.served {
            continue;
        }
        let mut setup = Setup::default();
        if own.version != stored {
            setup.conversion = Some(Arc::new(VersionRename {
                served: format!("{}/{}", spec.group, own.version),
                stored: format!("{}/{stored}", spec.group),
            }));
            setup.storage_rules = storage_rules.clone().map(|rules| RulesRef::Shared(rules));
            setup.shared_with.clone_from(&shared);
        }
        cx.custom_kinds().insert(own.info.group, own.info.version, own.info.resource, Arc::new(own.kind));
        let resource = cx.registry().install(RulesRef::Shared(own.rules), setup);
        shared.get_or_insert(resource);
        served.insert(ServedKind { info: own.info, model: model_name(own.info), schema: own.schema });
        infos.push(own.info);
    }
    Ok(infos)
}

/// Takes versions out of service; their objects stay.
pub(super) fn withdraw(cx: &ApiCx, served: &ServedKinds, infos: &[&'static ResourceInfo]) {
    for info in infos {
        served.remove(info);
        cx.registry().remove(info.group, info.version, info.resource);
        cx.custom_kinds().remove(info.group, info.version, info.resource);
    }
}

fn prepare(
    pool: &InfoPool,
    definition: &CustomResourceDefinition,
    version: &CustomResourceDefinitionVersion,
    stored: &str,
) -> Result<Prepared, PoolFull> {
    let (spec, names) = (&definition.spec, &definition.status.accepted_names);
    let schema = schema_of(version);
    let structural = Arc::new(Structural::root(&schema));
    let subresources = version.subresources.clone().unwrap_or_default();
    let (columns, cells): (Vec<_>, Vec<Cell>) =
        columns::declared(&version.additional_printer_columns).into_iter().unzip();
    let name = ("Name".to_owned(), "string".to_owned(), "name".to_owned(), 0);
    let selectable: Vec<(String, JsonPath)> = version
        .selectable_fields
        .iter()
        .filter_map(|field| {
            Some((field.json_path.trim_start_matches('.').to_owned(), JsonPath::parse(&field.json_path)?))
        })
        .collect();
    let scale = subresources.scale.as_ref().and_then(|scale| {
        Some(ScalePaths {
            spec_replicas: Place::parse(&scale.spec_replicas_path)?,
            status_replicas: Place::parse(&scale.status_replicas_path)?,
            selector: scale.label_selector_path.as_deref().and_then(Place::parse),
        })
    });
    let facts = Facts {
        group: spec.group.clone(),
        version: version.name.clone(),
        kind: names.kind.clone(),
        plural: names.plural.clone(),
        singular: names.singular.clone(),
        short_names: names.short_names.clone(),
        categories: names.categories.clone(),
        namespaced: spec.scope == "Namespaced",
        storage_version: stored.to_owned(),
        has_status: subresources.status.is_some(),
        has_scale: scale.is_some(),
        selectable: selectable.iter().map(|(name, _)| name.clone()).collect(),
        columns: std::iter::once(name).chain(columns).collect(),
    };
    let info = pool.intern(&facts)?;
    let rules =
        CustomRules { info, schema: Arc::clone(&structural), cells, scale, has_status: facts.has_status, selectable };
    let kind = CustomKind {
        schema: structural,
        list_kind: names.list_kind.clone(),
        replicas_path: subresources.scale.as_ref().map(|own| own.spec_replicas_path.clone()).unwrap_or_default(),
        deprecation: deprecation(spec, version),
        preserve_unknown_fields: spec.preserve_unknown_fields,
    };
    Ok(Prepared { version: version.name.clone(), info, rules: Arc::new(rules), kind, schema })
}

/// What to say to who uses a deprecated version: what the definition says, or else which version to use.
fn deprecation(spec: &CustomResourceDefinitionSpec, version: &CustomResourceDefinitionVersion) -> Option<String> {
    if !version.deprecated {
        return None;
    }
    if let Some(text) = version.deprecation_warning.as_ref().filter(|text| !text.is_empty()) {
        return Some(text.clone());
    }
    let (group, kind) = (&spec.group, &spec.names.kind);
    let newer = spec.versions.iter().filter(|other| other.served && !other.deprecated).map(|other| other.name.as_str());
    let best = newer
        .filter(|other| compare_versions(group, other, &version.name).is_lt())
        .min_by(|a, b| compare_versions(group, a, b));
    let instead = best.map_or_else(String::new, |best| format!("; use {group}/{best} {kind}"));
    Some(format!("{group}/{} {kind} is deprecated{instead}", version.name))
}

/// `com.example.stable.v1.CronTab`
fn model_name(info: &ResourceInfo) -> String {
    let mut parts: Vec<&str> = info.group.split('.').collect();
    parts.reverse();
    parts.extend([info.version, info.kind]);
    parts.join(".")
}
