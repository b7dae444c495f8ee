//! What write requests call: ordinary writes are tracked, applies are merged.
//!
//! A set recorded in another version of the API is read as if it were of the request's version: the names of fields
//! agree between the versions served here. Sets of versions that are not known are forgotten with the next write.

use std::sync::LazyLock;

use api_machinery::field_path::Cause;
use api_machinery::gvk::GroupVersionKind;
use api_machinery::meta::ManagedFieldsEntry;
use api_machinery::reflect::View;
use api_machinery::status::{ApiError, CAUSE_FIELD_MANAGER_CONFLICT};
use api_machinery::time::Time;
use serde_json::Value;

use super::field_set::FieldSet;
use super::managers::{Identity, MAX_UPDATE_ENTRIES, Managers, Operation, Record, sort};
use super::path::{FieldPath, print_path};
use super::typed::{Without, added, compare, compare_within, fields_of, merge, remove_fields, validate};
use super::{last_applied, left_alone};
use crate::openapi::registered::is_registered;
use crate::structural::Structural;
use crate::type_node::TypeNode;

/// The manager that an object's fields go to when its first apply finds no record.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The manager whose applies also look after the annotation of client-side apply.
const KUBECTL: &str = "kubectl";

/// Fields that nobody owns: the server sets them, or they name the object.
const UNOWNED: [&str; 12] = [
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
];

static UNOWNED_SET: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&UNOWNED));

/// Tracks the fields of one endpoint: a kind in one version, or a subresource of it.
pub struct FieldManager<'a> {
    /// The type of the object.
    pub node: TypeNode<'a>,
    /// The version and kind that requests are in.
    pub gvk: GroupVersionKind,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// What the endpoint's strategy overwrites: not tracked, and never in conflict.
    pub reset: FieldSet,
    /// The versions that sets may have been recorded in.
    pub versions: Versions<'a>,
}

/// The versions of a kind.
#[derive(Clone, Copy, Debug)]
pub enum Versions<'a> {
    /// Those of built-in kinds: what is written in one can be written in any.
    BuiltIn,
    /// Those of a custom kind.
    Custom(&'a dyn CustomVersions),
}

/// The versions of a custom kind.
pub trait CustomVersions: std::fmt::Debug + Sync {
    /// Whether there is a version of this `apiVersion`.
    fn has(&self, api_version: &str) -> bool;
    /// The schema of a version, by its `apiVersion`.
    fn schema(&self, api_version: &str) -> Option<&Structural>;
}

impl Versions<'_> {
    fn has(self, api_version: &str) -> bool {
        match self {
            Self::BuiltIn => is_registered(api_version),
            Self::Custom(versions) => versions.has(api_version),
        }
    }

    /// Whether an object can be written in a version.
    fn can_hold(self, api_version: &str, object: &Value) -> bool {
        let Self::Custom(versions) = self else { return true };
        versions.schema(api_version).is_none_or(|schema| validate(object, TypeNode::of_schema(schema)).is_empty())
    }
}

/// How to apply.
#[derive(Clone, Copy, Debug)]
pub struct ApplyOptions<'a> {
    /// Who applies.
    pub manager: &'a str,
    /// Take fields that others own.
    pub force: bool,
    /// The time of the request.
    pub now: Time,
    /// What Go prints of an empty object of the type: what an object that the apply makes starts from.
    pub empty: &'a Value,
}

/// A field that somebody else owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Who, as messages print it.
    pub manager: String,
    /// What.
    pub path: FieldPath,
}

/// Why an apply failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The request makes no sense: 400.
    #[error("{0}")]
    BadRequest(String),
    /// The applied object does not fit its schema, or the record is broken: 500.
    #[error("{0}")]
    Failed(String),
    /// Others own some of the fields: 409.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
}

impl From<ApplyError> for ApiError {
    fn from(error: ApplyError) -> Self {
        let message = error.to_string();
        match error {
            ApplyError::BadRequest(_) => ApiError::bad_request(message),
            ApplyError::Failed(_) => ApiError::unclassified(message),
            ApplyError::Conflicts(conflicts) => {
                let cause = |conflict: &Conflict| Cause {
                    reason: CAUSE_FIELD_MANAGER_CONFLICT.into(),
                    message: format!("conflict with {}", conflict.manager),
                    field: print_path(&conflict.path),
                };
                ApiError::apply_conflict(message, conflicts.iter().map(cause).collect())
            }
        }
    }
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", only.manager, print_path(&only.path));
    }
    let mut managers: Vec<&str> = conflicts.iter().map(|conflict| conflict.manager.as_str()).collect();
    managers.sort_unstable();
    managers.dedup();
    let mut lines = Vec::new();
    for manager in managers {
        lines.push(format!("conflicts with {manager}:"));
        let theirs = conflicts.iter().filter(|conflict| conflict.manager == manager);
        lines.extend(theirs.map(|conflict| format!("- {}", print_path(&conflict.path))));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

pub(super) fn managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

/// Whether a request asks to forget the record: one empty entry.
fn asks_for_reset(given: &[ManagedFieldsEntry]) -> bool {
    matches!(given, [only] if *only == ManagedFieldsEntry::default())
}

impl FieldManager<'_> {
    fn api_version(&self) -> String {
        self.gvk.group_version().to_string()
    }

    fn identity(&self, manager: &str, operation: Operation) -> Identity {
        let api_version = if operation == Operation::Update { self.api_version() } else { String::new() };
        Identity { manager: manager.to_owned(), operation, api_version, subresource: self.subresource.clone() }
    }

    /// The record of an object that is created. `given` is its own `metadata.managedFields` as it came, which `new` does
    /// not have.
    pub fn create(
        &self,
        new: View<'_>,
        given: &[ManagedFieldsEntry],
        manager: &str,
        now: Time,
    ) -> Vec<ManagedFieldsEntry> {
        let managers = self.record_to_start_from(None, given);
        let managers = self.of_known_versions(managers);
        // What nobody owns is taken away from others as well.
        let places = managers.entries.is_empty().then_some(&*UNOWNED_SET);
        let written = added(new, self.node, Without { trees: Some(&self.reset), places });
        if managers.entries.is_empty() {
            let identity = self.identity(manager, Operation::Update);
            let owns = written != FieldSet::NOTHING;
            return owns.then(|| identity.entry(self.api_version(), now, written)).into_iter().collect();
        }
        let written = FieldSet::from_fields_v1_text(&written).unwrap_or_default();
        self.updated(managers, written, &FieldSet::default(), manager, now).capped().to_entries()
    }

    /// The record of an object that is written instead of the live one. Objects and their records come apart: neither
    /// object has `metadata.managedFields`, and those of built-in kinds need not have what is the same in both. Never
    /// fails: a record that cannot be read counts as empty.
    pub fn update(
        &self,
        (live, record): (&Value, &[ManagedFieldsEntry]),
        (new, given): (&Value, &[ManagedFieldsEntry]),
        manager: &str,
        now: Time,
    ) -> Vec<ManagedFieldsEntry> {
        let (written, removed) = self.changes(live, new);
        let (mut alone, managers) = self.record_of_changes(record, given, [&written, &removed], manager);
        // An object that nobody tracks stays so; a reset begins anew.
        if managers.entries.is_empty() && alone.is_empty() && !asks_for_reset(given) {
            return Vec::new();
        }
        let managers = self.of_known_versions(managers);
        alone.retain(|entry| self.versions.has(&entry.api_version));
        // Upstream looks at the change in every version that a set is of, and drops the record where it cannot.
        let own = self.api_version();
        let others = managers.entries.values().map(|record| &record.api_version);
        let mut others = others.chain(alone.iter().map(|entry| &entry.api_version)).filter(|other| **other != own);
        if !others.all(|other| [live, new].iter().all(|object| self.versions.can_hold(other, object))) {
            return Vec::new();
        }
        let mut entries = self.updated(managers, written, &removed, manager, now).capped().to_entries();
        if !alone.is_empty() {
            entries.extend(alone);
            sort(&mut entries);
        }
        entries
    }

    /// What of a record the changes cannot touch, and the rest of it, to start from.
    fn record_of_changes(
        &self,
        record: &[ManagedFieldsEntry],
        given: &[ManagedFieldsEntry],
        changes: [&FieldSet; 2],
        manager: &str,
    ) -> (Vec<ManagedFieldsEntry>, Managers) {
        let is_of_live = !self.subresource.is_empty() || given.is_empty() || given == record;
        // Where there are too many, old ones are united, whatever they are about.
        if !is_of_live || record.len() >= MAX_UPDATE_ENTRIES {
            return (Vec::new(), self.record_to_start_from(Some(record), given));
        }
        let (alone, rest) = left_alone::split(record, changes, manager);
        match Managers::of_entries(rest) {
            Ok(managers) => (alone, managers),
            Err(_) => Default::default(),
        }
    }

    fn of_known_versions(&self, mut managers: Managers) -> Managers {
        managers.entries.retain(|_, record| self.versions.has(&record.api_version));
        managers
    }

    fn record_to_start_from(&self, live: Option<&[ManagedFieldsEntry]>, given: &[ManagedFieldsEntry]) -> Managers {
        let of_live = || live.and_then(|live| Managers::of_entries(live).ok()).unwrap_or_default();
        if !self.subresource.is_empty() {
            return of_live();
        }
        if asks_for_reset(given) {
            return Managers::default();
        }
        match Managers::of_entries(given) {
            Ok(managers) if !managers.entries.is_empty() => managers,
            _ => of_live(),
        }
    }

    /// The record after an ordinary write.
    fn recorded(&self, live: &Value, new: &Value, managers: Managers, manager: &str, now: Time) -> Managers {
        let (written, removed) = self.changes(live, new);
        self.updated(managers, written, &removed, manager, now)
    }

    /// The places that are new or other, and those that are gone.
    fn changes(&self, live: &Value, new: &Value) -> (FieldSet, FieldSet) {
        compare(live, new, self.node).without(&self.reset).into_written_and_removed()
    }

    /// The record after an ordinary write of these places.
    fn updated(
        &self,
        mut managers: Managers,
        written: FieldSet,
        removed: &FieldSet,
        manager: &str,
        now: Time,
    ) -> Managers {
        for record in managers.entries.values_mut() {
            record.set = std::mem::take(&mut record.set).difference(&written).difference(removed);
        }
        let mine = written.difference(&UNOWNED_SET);
        if !mine.is_empty() {
            let record = managers.entries.entry(self.identity(manager, Operation::Update)).or_default();
            let set = std::mem::take(&mut record.set).union(mine);
            *record = Record { api_version: self.api_version(), set, time: now };
        }
        managers.prune();
        managers
    }

    /// The object that results from an apply, and its record; `live` is absent when the apply creates. Objects and their
    /// records come apart, as for [`update`](Self::update).
    pub fn apply(
        &self,
        live: Option<(&Value, &[ManagedFieldsEntry])>,
        applied: &Value,
        options: ApplyOptions<'_>,
    ) -> Result<(Value, Vec<ManagedFieldsEntry>), ApplyError> {
        self.check_applied(applied)?;
        let (base, record) = live.unwrap_or((options.empty, &[]));
        let mut managers = Managers::of_entries(record)
            .map_err(|error| ApplyError::Failed(format!("failed to decode managed fields: {error}")))?;
        if live.is_some() && managers.entries.is_empty() {
            managers = self.recorded(options.empty, base, managers, BEFORE_FIRST_APPLY, options.now);
        }
        let mut managers = self.of_known_versions(managers);
        for record in managers.entries.values_mut() {
            record.set.reconcile(self.node);
        }
        let (mut object, managers) = self.merged(base, applied, managers, options)?;
        if options.manager == KUBECTL {
            last_applied::refresh(&mut object, applied);
        }
        Ok((object, managers.to_entries()))
    }

    fn check_applied(&self, applied: &Value) -> Result<(), ApplyError> {
        let text = |name: &str| applied.get(name).and_then(Value::as_str).unwrap_or_default();
        // Even an empty list is one.
        if managed_fields(applied).is_some_and(|list| !list.is_null()) {
            return Err(ApplyError::BadRequest("metadata.managedFields must be nil".into()));
        }
        let given = GroupVersionKind::from_type_meta(text("apiVersion"), text("kind"))
            .map_err(|error| ApplyError::BadRequest(error.to_string()))?;
        if given != self.gvk {
            return Err(ApplyError::BadRequest(format!("invalid object type: {given}")));
        }
        let problems: Vec<String> = validate(applied, self.node).iter().map(ToString::to_string).collect();
        let errors = match problems.as_slice() {
            [] => return Ok(()),
            [only] => only.clone(),
            several => format!("errors:\n  {}", several.join("\n  ")),
        };
        let of_metadata = |name: &str| {
            applied.get("metadata").and_then(|metadata| metadata.get(name)).and_then(Value::as_str).unwrap_or_default()
        };
        let (namespace, name) = (of_metadata("namespace"), of_metadata("name"));
        Err(ApplyError::Failed(format!(
            "failed to create typed patch object ({namespace}/{name}; {}): {errors}",
            self.gvk
        )))
    }

    /// Merges, prunes and resolves conflicts: the object without its record, and the record.
    fn merged(
        &self,
        live: &Value,
        applied: &Value,
        mut managers: Managers,
        options: ApplyOptions<'_>,
    ) -> Result<(Value, Managers), ApplyError> {
        let identity = self.identity(options.manager, Operation::Apply);
        let mine = fields_of(applied, self.node).without_trees(&self.reset);
        let before = managers.entries.remove(&identity).unwrap_or_default();
        let record = Record { api_version: self.api_version(), set: mine, time: before.time };
        managers.entries.insert(identity.clone(), record);
        let applies_all = managers.entries.get(&identity).is_some_and(|mine| mine.set.keeps(&before.set, self.node));
        let merged = merge(live, applied, self.node);
        // Most applies leave nothing out that the one before had.
        let (result, found) = if applies_all {
            let found = compare_within(live, &merged, applied, self.node);
            (merged, found)
        } else {
            let result = pruned(self.node, merged, &managers, &before.set, options.empty);
            let found = compare(live, &result, self.node);
            (result, found)
        };
        let has_changed = !found.is_same();
        let (written, removed) = found.without(&self.reset).into_written_and_removed();
        self.refuse_conflicts(live, &managers, &identity, &written, options)?;
        for record in managers.entries.iter_mut().filter(|(other, _)| **other != identity).map(|(_, record)| record) {
            record.set = std::mem::take(&mut record.set).difference(&written).difference(&removed);
        }
        if let Some(record) = managers.entries.get_mut(&identity) {
            record.set = std::mem::take(&mut record.set).difference(&UNOWNED_SET);
            if has_changed {
                record.time = options.now;
            }
        }
        managers.prune();
        Ok((result, managers))
    }

    /// Reports what the other managers own of what is written, unless it may be taken from them.
    fn refuse_conflicts(
        &self,
        live: &Value,
        managers: &Managers,
        identity: &Identity,
        written: &FieldSet,
        options: ApplyOptions<'_>,
    ) -> Result<(), ApplyError> {
        if options.force || written.is_empty() {
            return Ok(());
        }
        let mut conflicts = Vec::new();
        for (other, record) in managers.entries.iter().filter(|(other, _)| *other != identity) {
            let contested = record.set.intersection(written);
            let manager = other.describe();
            conflicts.extend(contested.paths().into_iter().map(|path| Conflict { manager: manager.clone(), path }));
        }
        if !conflicts.is_empty() && options.manager == KUBECTL {
            let excused = last_applied::excused_fields(live, self.node, &self.api_version());
            conflicts.retain(|conflict| !excused.contains(&conflict.path));
        }
        if conflicts.is_empty() { Ok(()) } else { Err(ApplyError::Conflicts(conflicts)) }
    }
}

/// Removes what the manager applied last time and nobody wants any more.
fn pruned(node: TypeNode<'_>, merged: Value, managers: &Managers, last: &FieldSet, empty: &Value) -> Value {
    let deepened = |set: &FieldSet| set.with_declared_parents(node);
    let last = deepened(last);
    let all = deepened(&fields_of(&merged, node));
    let present = |value: &Value| deepened(&fields_of(value, node));
    // What anybody owns comes back.
    let owned = managers.entries.values().fold(FieldSet::default(), |sum, record| sum.union(record.set.clone()));
    let stripped = remove_fields(&merged, &last, node);
    let kept = present(&stripped).union(deepened(&owned));
    let with_owned = remove_fields(&merged, &all.clone().difference(&kept), node);
    // So does what the manager never applied.
    let gone = all.difference(&present(&with_owned)).intersection(&last);
    match remove_fields(&merged, &gone, node) {
        Value::Null => empty.clone(),
        object => object,
    }
}

#[cfg(test)]
mod tests;
