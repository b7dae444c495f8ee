//! Objects that lie in the store and cannot be read: what is told of them, and how they go all the same (KEP-3926).

use std::sync::Arc;

use api_machinery::field_path::{Cause, ErrorList, Path};
use api_machinery::gvk::{GroupKind, GroupResource};
use api_machinery::meta::{DeleteOptions, Status, StatusDetails};
use api_machinery::object::Kind as _;
use api_machinery::status::ApiError;
use api_types::policy_v1::Eviction;
use feature_gates::{Feature, Gates};
use storage::{Expect, KeyValue, Revision, Txn, Write};
use watch_cache::{CorruptObject, CorruptStage};

use crate::context::{Hooks, Operation, RequestCx};
use crate::delete::{Deleted, Deletion};
use crate::key;
use crate::resource::Resource;
use crate::store::Store;

/// Objects that cannot be read are told apart from other failures, and may be deleted unread.
pub const UNSAFE_DELETION: Feature = Feature::named("AllowUnsafeMalformedObjectDeletion");

/// The option of deletions that asks for it.
const OPTION: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
/// How many objects that cannot be read a list looks at before it gives up.
const MOST_IN_LIST: usize = 100;

/// What clients are told of objects that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Why the first of them cannot be read.
    Why,
    /// That they are corrupt, each by its key.
    Corrupt,
}

impl Told {
    pub(crate) fn by(gates: &Gates) -> Self {
        if gates.enabled(UNSAFE_DELETION) { Self::Corrupt } else { Self::Why }
    }
}

/// Whether a deletion is meant for an object that cannot be read.
pub(crate) fn asks_for_unread(options: &DeleteOptions) -> bool {
    options.ignore_store_read_error_with_cluster_breaking_potential == Some(true)
}

/// An object that cannot be read, met on a get or a write.
pub(crate) fn met_alone(told: Told, error: &CorruptObject, revision: Revision) -> ApiError {
    match (told, error.stage) {
        (Told::Corrupt, _) => ApiError::internal(described(error, revision)),
        (Told::Why, CorruptStage::Transformed) => ApiError::internal(error),
        (Told::Why, CorruptStage::Decoded) => ApiError::unclassified(described(error, revision)),
    }
}

/// What the last event of a watch says of an object that is gone and could not be read.
pub(crate) fn seen_deleted(error: &CorruptObject, revision: Revision) -> ApiError {
    let message = format!("saw a DELETED event, but object data is corrupt - {}", cause(error, revision));
    ApiError { details: None, ..ApiError::storage_read(&GroupResource::default(), "", message, Vec::new()) }
}

fn described(error: &CorruptObject, revision: Revision) -> String {
    let (key, cause) = (&error.key, cause(error, revision));
    format!("StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {cause}")
}

/// Upstream's transformers are not told of revisions.
fn cause(error: &CorruptObject, revision: Revision) -> String {
    match error.stage {
        CorruptStage::Transformed => format!("data from the storage is not transformable revision=0: {error}"),
        CorruptStage::Decoded => format!("object not decodable revision={revision}: {error}"),
    }
}

/// The objects of a list that cannot be read.
pub(crate) struct MetInList {
    told: Told,
    causes: Vec<Cause>,
}

impl MetInList {
    pub(crate) fn new(told: Told) -> Self {
        Self { told, causes: Vec::new() }
    }

    /// Notes one of them.
    ///
    /// # Errors
    /// Where nothing more is to be read.
    pub(crate) fn note(
        &mut self,
        resource: &GroupResource,
        error: &CorruptObject,
        revision: Revision,
    ) -> Result<(), ApiError> {
        if self.told == Told::Why {
            return Err(ApiError::internal(format_args!("unable to transform key {:?}: {error}", error.key)));
        }
        if self.causes.len() == MOST_IN_LIST {
            let message = "too many errors, the list is truncated".to_owned();
            let reason = "FieldValueTooMany".to_owned();
            self.causes.push(Cause { reason, message, field: String::new() });
            return self.end(resource);
        }
        let (reason, message) = ("UnexpectedServerResponse".to_owned(), described(error, revision));
        self.causes.push(Cause { reason, message, field: error.key.clone() });
        Ok(())
    }

    /// Whether any was noted: then the rest of the list is read only for others of them.
    pub(crate) fn is_empty(&self) -> bool {
        self.causes.is_empty()
    }

    /// The end of the list.
    ///
    /// # Errors
    /// When there was any of them.
    pub(crate) fn end(&mut self, resource: &GroupResource) -> Result<(), ApiError> {
        if self.is_empty() {
            return Ok(());
        }
        let message = format!("failed to read one or more {resource} from the storage");
        // Upstream names the operation where a prefix was meant.
        Err(ApiError::storage_read(resource, "list", message, std::mem::take(&mut self.causes)))
    }
}

impl Resource {
    /// Takes an object that cannot be read out of the store. Finalizers and preconditions are not looked at, for nobody
    /// knows them; admission is asked about an object without content.
    pub(crate) async fn delete_unread(
        &self,
        cx: &RequestCx,
        name: &str,
        hooks: &Hooks<'_>,
    ) -> Result<Deletion, ApiError> {
        let relative = key::relative(self.info().namespaced, &cx.namespace, name)?;
        let empty = self.rules.new_object();
        let mut lies_there = self.store.raw(&relative).await?;
        loop {
            let Some(kv) = lies_there.filter(|kv| self.store.decode(kv).is_err()) else {
                return Err(self.is_readable(name));
            };
            hooks.admission.validate(Operation::Delete, None, Some(&*empty)).await?;
            let removed = self.store.remove_unread(&relative, kv.mod_revision).await?;
            let Txn::Conflict { current, .. } = removed else { return Ok(self.gone_unread(name)) };
            lies_there = current;
        }
    }

    /// The refusal of somebody who does not need the option.
    fn is_readable(&self, name: &str) -> ApiError {
        let detail = "is exclusively used to delete corrupt object(s), try again by removing this option";
        let errors = ErrorList::from(Path::new(OPTION).invalid(true, detail));
        // Upstream names the resource here where everyone else names the kind.
        let GroupResource { group, resource } = self.group_resource.clone();
        ApiError::invalid(&GroupKind { group, kind: resource }, name, &errors)
    }

    fn gone_unread(&self, name: &str) -> Deletion {
        let details =
            StatusDetails { name: name.to_owned(), kind: self.info().kind.to_owned(), ..StatusDetails::default() };
        let status = Status { status: "Success".to_owned(), code: 200, details: Some(details), ..Status::default() };
        Deletion { body: Deleted::Status(Box::new(status)), accepted: false }
    }
}

impl Store {
    /// What lies under a key, read or not.
    async fn raw(&self, relative: &Arc<str>) -> Result<Option<KeyValue>, ApiError> {
        let got = self.backend.get(&self.key(relative)).await.map_err(|error| self.failed("get", error))?;
        Ok(got.kv)
    }

    async fn remove_unread(&self, relative: &Arc<str>, at: Revision) -> Result<Txn, ApiError> {
        let removed = self.backend.txn(&self.key(relative), Expect::At(at), Write::Delete).await;
        removed.map_err(|error| self.failed("delete", error))
    }
}

/// What is wrong with the options of a deletion that is meant for an object that cannot be read: whatever else they say
/// would have to be looked up in it.
pub(crate) fn check_options(options: &DeleteOptions, errors: &mut ErrorList) {
    if !asks_for_unread(options) {
        return;
    }
    for (is_set, other) in [
        (!options.dry_run.is_empty(), "dryRun"),
        (options.propagation_policy.is_some(), "propagationPolicy"),
        (options.orphan_dependents.is_some(), "orphanDependents"),
        (options.grace_period_seconds.is_some(), "gracePeriodSeconds"),
        (options.preconditions.is_some(), "preconditions"),
    ] {
        if is_set {
            errors.push(Path::new(OPTION).invalid(true, format!("cannot be set together with .{other}")));
        }
    }
}

/// A collection is deleted by what is read of it.
///
/// # Errors
/// 422 where objects are to go unread.
pub(crate) fn refuse_for_many(options: &DeleteOptions) -> Result<(), ApiError> {
    let detail = "is not allowed with DELETECOLLECTION, try again after removing the option";
    refuse(options, &GroupKind::new("meta.k8s.io", "DeleteOptions"), "", (&Path::new(OPTION), detail))
}

/// Whether a pod may be evicted has to be read of it.
///
/// # Errors
/// 422 where it is to go unread.
pub(crate) fn refuse_for_eviction(options: &DeleteOptions, name: &str) -> Result<(), ApiError> {
    let detail = "can not be set for pod eviction, try after removing the option";
    let path = Path::new("deleteOptions").child(OPTION);
    refuse(options, &GroupKind::new(Eviction::TYPE.group, Eviction::TYPE.kind), name, (&path, detail))
}

fn refuse(
    options: &DeleteOptions,
    kind: &GroupKind,
    name: &str,
    (path, detail): (&Path, &str),
) -> Result<(), ApiError> {
    if !asks_for_unread(options) {
        return Ok(());
    }
    let mut errors = ErrorList::new();
    errors.push(path.invalid(true, detail));
    Err(ApiError::invalid(kind, name, &errors))
}
