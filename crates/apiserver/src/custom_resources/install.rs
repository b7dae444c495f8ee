//! Putting a definition's versions into service, and taking them out again.

use std::sync::{Arc, OnceLock};

use api_types::apiextensions_v1::constants::{conversion_strategy_type, resource_scope};
use api_types::apiextensions_v1::{
    CustomResourceDefinition, CustomResourceDefinitionSpec, CustomResourceDefinitionVersion,
};
use kinds::info::ResourceInfo;
use registry::{Conversion, Resource, RulesRef, Setup, StorageMedia};
use schema::JsonPath;

use super::columns;
use super::conversion::{Caller, Side, WebhookConversion};
use super::facts::{CustomInfo, Declared};
use super::rules::CustomRules;
use super::scale::{ScalePath, ScalePaths};
use super::served::{ServedKind, ServedKinds};
use super::version_rename::VersionRename;
use crate::custom_kinds::{CustomKind, VersionSchema, VersionSchemas};
use crate::cx::ApiCx;
use crate::discovery::order::compare_versions;
use crate::gates;

/// One version, ready to be served.
struct Prepared {
    version: String,
    info: Arc<CustomInfo>,
    rules: Arc<CustomRules>,
    kind: Arc<CustomKind>,
}

/// What stored objects look like to their reader. While it stays, the cache of a definition that changes stays, and
/// with it the watches.
#[derive(PartialEq)]
struct StoredForm {
    uid: String,
    storage_prefix: String,
    version: String,
    kind: String,
    preserve_unknown_fields: bool,
    converts: bool,
    /// That of the schema.
    digest: [u8; 32],
}

/// What is in service for a definition.
pub(super) struct Installed {
    pub(super) infos: Vec<Arc<CustomInfo>>,
    /// One of its versions, and how they are stored; nothing where none is served.
    stored: Option<(Arc<Resource>, StoredForm)>,
}

/// Versions that nobody finds yet.
pub(super) struct Ready {
    versions: Vec<(Arc<Resource>, Arc<CustomKind>, ServedKind)>,
    form: StoredForm,
}

/// Makes all versions of a definition that are to be served, the stored one first, as the others share its cache. They
/// take over the cache of what is in service if that would read the same from the store.
pub(super) fn make(cx: &ApiCx, definition: &CustomResourceDefinition, former: Option<&Installed>) -> Ready {
    let spec = &definition.spec;
    let stored = spec.versions.iter().find(|version| version.storage).map_or("", |version| version.name.as_str());
    let mut versions: Vec<&CustomResourceDefinitionVersion> = spec.versions.iter().collect();
    versions.sort_by_key(|version| !version.storage);
    let schema = |own: &&CustomResourceDefinitionVersion| {
        (format!("{}/{}", spec.group, own.name), Arc::new(VersionSchema::new(own)))
    };
    let schemas = Arc::new(VersionSchemas(versions.iter().map(schema).collect()));
    let prepare = |(version, (_, schema)): (&&CustomResourceDefinitionVersion, &(String, Arc<VersionSchema>))| {
        prepare(definition, version, stored, (schema, &schemas))
    };
    let prepared: Vec<Prepared> = versions.iter().zip(&schemas.0).map(prepare).collect();
    let storage_side =
        prepared.first().map(|first| Side { kind: Arc::clone(&first.kind), rules: Arc::clone(&first.rules) });
    let caller = Caller::of(cx, definition);
    let form = StoredForm {
        uid: definition.metadata.uid.clone(),
        storage_prefix: format!("{}/{}", spec.group, definition.status.accepted_names.plural),
        version: stored.to_owned(),
        kind: definition.status.accepted_names.kind.clone(),
        preserve_unknown_fields: spec.preserve_unknown_fields,
        converts: has_webhook(spec),
        digest: schemas.0.first().map(|(_, first)| first.digest()).unwrap_or_default(),
    };
    let same = former.and_then(|former| former.stored.as_ref()).filter(|(_, former)| *former == form);
    let mut shared: Option<Arc<Resource>> = same.map(|(resource, _)| Arc::clone(resource));
    let mut ready = Vec::new();
    for (own, declared) in prepared.into_iter().zip(versions) {
        if !declared.served {
            continue;
        }
        let media = cx.lifecycle.gates().enabled(gates::CBOR).then_some(StorageMedia::Cbor);
        let mut setup = Setup { shared_with: shared.clone(), media, ..Setup::default() };
        setup.conversion = conversion(spec, &own, (stored, storage_side.as_ref()), caller.as_ref());
        if own.version != stored {
            setup.storage_rules = storage_side.as_ref().map(|side| RulesRef::Shared(Arc::clone(&side.rules) as _));
        }
        let resource = cx.registry().make(RulesRef::Shared(own.rules), setup);
        shared.get_or_insert_with(|| Arc::clone(&resource));
        let schema = Arc::clone(&own.kind.schema);
        let shown = ServedKind { model: model_name(own.info.get()), info: own.info, schema };
        ready.push((resource, own.kind, shown));
    }
    Ready { versions: ready, form }
}

/// From the stored form to a version: by the definition's webhook if it has one, by name if not.
fn conversion(
    spec: &CustomResourceDefinitionSpec,
    own: &Prepared,
    (stored, storage_side): (&str, Option<&Side>),
    caller: Option<&Arc<Caller>>,
) -> Option<Arc<Conversion>> {
    if let (Some(caller), Some(stored)) = (caller, storage_side) {
        let served = Side { kind: Arc::clone(&own.kind), rules: Arc::clone(&own.rules) };
        let conversion = WebhookConversion { caller: Arc::clone(caller), served, stored: stored.clone() };
        return Some(Conversion::elsewhere(Arc::new(conversion)));
    }
    (own.version != stored).then(|| {
        Conversion::at_once(Arc::new(VersionRename {
            served: format!("{}/{}", spec.group, own.version),
            stored: format!("{}/{stored}", spec.group),
            kept: storage_side.map(|side| Arc::clone(&side.kind)),
        }))
    })
}

impl Ready {
    /// Waits until its objects can be read.
    pub(super) async fn filled(&self) {
        if let Some((resource, ..)) = self.versions.first() {
            resource.ready().await;
        }
    }
}

/// Puts versions into service: in the place of those of the same name, so that nobody who asks meanwhile finds none.
/// Others of the former ones go out of service.
pub(super) fn put(cx: &Arc<ApiCx>, served: &ServedKinds, ready: Ready, former: Option<Installed>) -> Installed {
    let mut installed = Installed { infos: Vec::new(), stored: None };
    let first = ready.versions.first().map(|(resource, ..)| Arc::clone(resource));
    let mut replaced = Vec::new();
    for (resource, kind, shown) in ready.versions {
        let info = shown.info.get();
        cx.custom_kinds().insert(info.group, info.version, info.resource, kind);
        replaced.extend(cx.registry().put(&resource));
        installed.infos.push(Arc::clone(&shown.info));
        served.insert(shown);
    }
    installed.stored = first.map(|first| (first, ready.form));
    let mut gone = former.map(|former| former.infos).unwrap_or_default();
    gone.retain(|info| !installed.infos.iter().any(|own| own.get().place() == info.get().place()));
    withdraw(cx, served, &gone);
    if !replaced.is_empty() {
        cx.tasks().spawn_cancellable("custom-resource-retirement", retire(Arc::clone(cx), replaced));
    }
    installed
}

/// Ends resources that were replaced once the requests that found them are done: none but watches, which end with them,
/// takes longer than a request may.
async fn retire(cx: Arc<ApiCx>, replaced: Vec<Arc<Resource>>) {
    tokio::time::sleep(cx.config().requests.timeout).await;
    replaced.iter().for_each(|former| cx.registry().retire(former));
}

/// Takes versions out of service; their objects stay.
pub(super) fn withdraw(cx: &ApiCx, served: &ServedKinds, infos: &[Arc<CustomInfo>]) {
    for info in infos.iter().map(|info| info.get()) {
        served.remove(info);
        cx.registry().remove(info.group, info.version, info.resource);
        cx.custom_kinds().remove(info.group, info.version, info.resource);
    }
}

fn prepare(
    definition: &CustomResourceDefinition,
    version: &CustomResourceDefinitionVersion,
    stored: &str,
    (structural, versions): (&Arc<VersionSchema>, &Arc<VersionSchemas>),
) -> Prepared {
    let (spec, names) = (&definition.spec, &definition.status.accepted_names);
    let subresources = version.subresources.clone().unwrap_or_default();
    let selectable: Vec<(String, JsonPath)> = version
        .selectable_fields
        .iter()
        .filter_map(|field| {
            Some((field.json_path.trim_start_matches('.').to_owned(), JsonPath::parse(&field.json_path)?))
        })
        .collect();
    let scale = subresources.scale.as_ref().and_then(|scale| {
        Some(ScalePaths {
            spec_replicas: ScalePath::parse(&scale.spec_replicas_path)?,
            status_replicas: ScalePath::parse(&scale.status_replicas_path)?,
            selector: scale.label_selector_path.as_deref().and_then(ScalePath::parse),
        })
    });
    let declared = Declared {
        group: spec.group.clone(),
        version: version.name.clone(),
        kind: names.kind.clone(),
        plural: names.plural.clone(),
        singular: names.singular.clone(),
        short_names: names.short_names.clone(),
        categories: names.categories.clone(),
        namespaced: spec.scope == resource_scope::NAMESPACED,
        storage_version: stored.to_owned(),
        has_status: subresources.status.is_some(),
        has_scale: scale.is_some(),
        selectable: selectable.iter().map(|(name, _)| name.clone()).collect(),
    };
    let has_status = declared.has_status;
    let info = Arc::new(CustomInfo::new(declared));
    let cells = columns::declared(&version.additional_printer_columns);
    let rules = CustomRules {
        info: Arc::clone(&info),
        schema: Arc::clone(structural),
        versions: Arc::clone(versions),
        converts: has_webhook(spec),
        preserve_unknown_fields: spec.preserve_unknown_fields,
        cells,
        scale,
        has_status,
        selectable,
        expressions: OnceLock::new(),
    };
    let kind = CustomKind {
        schema: Arc::clone(structural),
        list_kind: names.list_kind.clone(),
        replicas_path: subresources.scale.as_ref().map(|own| own.spec_replicas_path.clone()).unwrap_or_default(),
        deprecation: deprecation(spec, version),
        preserve_unknown_fields: spec.preserve_unknown_fields,
        versions: Arc::clone(versions),
    };
    Prepared { version: version.name.clone(), info, rules: Arc::new(rules), kind: Arc::new(kind) }
}

/// Whether objects of one version become others by a webhook.
fn has_webhook(spec: &CustomResourceDefinitionSpec) -> bool {
    spec.conversion.as_ref().is_some_and(|conversion| conversion.strategy == conversion_strategy_type::WEBHOOK)
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
fn model_name(info: &ResourceInfo<'_>) -> String {
    let mut parts: Vec<&str> = info.group.split('.').collect();
    parts.reverse();
    parts.extend([info.version, info.kind]);
    parts.join(".")
}
