//! Namespaces: they have finalizers in their spec as well, and the first deletion only begins the end.

use std::sync::Arc;

use api_machinery::meta::DeleteOptions;
use api_machinery::object::{Kind, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::Namespace;
use api_types::core_v1::constants::namespace_phase;
use async_trait::async_trait;
use watch_cache::Stored;

use crate::companion::{Companion, Entry};
use crate::context::{Hooks, Operation, RequestCx};
use crate::delete::Deletion;
use crate::finalizers;
use crate::resource::Resource;
use crate::store::{ManagedFields, Swap};

/// Namespaces have one.
pub(crate) const COMPANION: Entry = Entry { kind: Namespace::TYPE, build: |_| Arc::new(NamespaceCompanion) };

/// Holds a namespace while its spec has finalizers.
struct NamespaceCompanion;

#[async_trait]
impl Companion for NamespaceCompanion {
    async fn begin_delete(
        &self,
        resource: &Resource,
        cx: &RequestCx,
        relative: &Arc<str>,
        options: &DeleteOptions,
        hooks: &Hooks<'_>,
    ) -> Result<Option<Deletion>, ApiError> {
        resource.delete_namespace(cx, relative, options, hooks).await
    }

    fn may_go(&self, object: &dyn Object) -> bool {
        object.downcast_ref::<Namespace>().is_none_or(|namespace| namespace.spec.finalizers.is_empty())
    }
}

impl Resource {
    async fn delete_namespace(
        &self,
        cx: &RequestCx,
        relative: &Arc<str>,
        options: &DeleteOptions,
        hooks: &Hooks<'_>,
    ) -> Result<Option<Deletion>, ApiError> {
        let mut live = self.store.read(relative).await?.0;
        loop {
            let Some(seen) = live else { return Err(ApiError::not_found(&self.group_resource, relative)) };
            let object = seen.item.object();
            self.check_namespace_preconditions(options, object)?;
            let Some(namespace) = object.downcast_ref::<Namespace>() else { return Ok(None) };
            if namespace.metadata.deletion_timestamp.is_some() {
                let waits = !namespace.spec.finalizers.is_empty();
                return Ok(waits.then(|| self.stays(options, Arc::clone(&seen.item))));
            }
            hooks.admission.validate(Operation::Delete, None, Some(object)).await?;
            let marked = self.marked_namespace(cx, namespace, options);
            if cx.dry_run {
                let view = Stored::unwritten(Arc::clone(relative), seen.item.revision(), Box::new(marked));
                return Ok(Some(self.stays(options, Arc::new(view))));
            }
            live = match self.store.replace(&seen, Box::new(marked), ManagedFields::Stay).await? {
                Swap::Done(item) => return Ok(Some(self.stays(options, item))),
                Swap::Lost(now) => now,
            };
        }
    }

    fn marked_namespace(&self, cx: &RequestCx, namespace: &Namespace, options: &DeleteOptions) -> Namespace {
        let mut marked = namespace.clone();
        marked.metadata.deletion_timestamp = Some(cx.rules.now);
        marked.status.phase = namespace_phase::TERMINATING.to_owned();
        if self.shared.garbage_collector {
            let mut options = options.clone();
            // For namespaces alone, "do not orphan" is "in the foreground".
            if options.orphan_dependents == Some(false) {
                options.orphan_dependents = None;
                options.propagation_policy = Some("Foreground".to_owned());
            }
            marked.metadata.finalizers = finalizers::for_deletion(self.rules.lifecycle(), &marked.metadata, &options);
        }
        marked
    }

    fn check_namespace_preconditions(&self, options: &DeleteOptions, object: &dyn Object) -> Result<(), ApiError> {
        let Some(preconditions) = &options.preconditions else { return Ok(()) };
        let meta = object.meta();
        let failed = |what: &str, wanted: &String, present: &str| {
            let cause =
                format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {present}");
            Err(ApiError::conflict(&self.group_resource, &meta.name, cause))
        };
        match (&preconditions.uid, &preconditions.resource_version) {
            (Some(uid), _) if *uid != meta.uid => failed("UID", uid, &meta.uid),
            (_, Some(version)) if *version != meta.resource_version => {
                failed("ResourceVersion", version, &meta.resource_version)
            }
            _ => Ok(()),
        }
    }
}
