//! Creation: what the server fills in, the checks in upstream's order, and names that are tried until one is free.

use std::sync::Arc;

use api_machinery::gvk::GroupKind;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use watch_cache::Stored;

use crate::companion::WriteResult;
use crate::context::{Hooks, Operation, RequestCx};
use crate::resource::Resource;
use crate::store::{ManagedFields, Swap};
use crate::{key, metadata};

/// How many generated names are tried.
const NAME_ATTEMPTS: u32 = 8;

/// What a write left behind.
#[derive(Debug, Clone)]
pub struct Written {
    /// The object as it is now (in a dry run: as it would be).
    pub item: Arc<Stored>,
    /// It was not there before: 201.
    pub created: bool,
}

impl Resource {
    /// Creates an object. The caller has decoded and defaulted it and has set its namespace.
    ///
    /// # Errors
    /// When the object breaks a rule, admission refuses, the name is taken, or the store fails.
    pub async fn create(
        &self,
        cx: &RequestCx,
        mut object: Box<dyn Object>,
        hooks: &Hooks<'_>,
    ) -> Result<Written, ApiError> {
        metadata::wipe_system_fields(object.meta_mut());
        if let Some(track) = hooks.track {
            track(None, &mut *object)?;
        }
        hooks.admission.mutate(Operation::Create, &mut object, None).await?;
        self.create_admitted(cx, object, hooks).await
    }

    /// The part of a creation that follows mutating admission.
    pub(crate) async fn create_admitted(
        &self,
        cx: &RequestCx,
        mut object: Box<dyn Object>,
        hooks: &Hooks<'_>,
    ) -> Result<Written, ApiError> {
        let repeated = metadata::dedup_owner_references(object.meta_mut());
        if !repeated.is_empty() {
            hooks.admission.warn(&[metadata::duplicate_owners_warning(&repeated)]);
        }
        let generated = object.meta().name.is_empty() && !object.meta().generate_name.is_empty();
        let asked_for_generation = !object.meta().generate_name.is_empty();
        let mut attempts_left = NAME_ATTEMPTS;
        loop {
            attempts_left -= 1;
            // Only a name that was made up can be tried again, so only then is the object needed once more.
            let may_repeat = generated && attempts_left > 0;
            let again = may_repeat.then(|| object.clone());
            let mut candidate = object;
            self.fill_in(cx, candidate.meta_mut(), generated);
            let name = candidate.meta().name.clone();
            let outcome = self.attempt_create(cx, candidate, hooks).await;
            match outcome {
                Err(error) if error.is_already_exists() && asked_for_generation => {
                    if let Some(again) = again {
                        object = again;
                        continue;
                    }
                    return Err(ApiError::generate_name_conflict(&self.group_resource, &name));
                }
                Err(error) => return Err(error),
                Ok(item) => return Ok(Written { item, created: true }),
            }
        }
    }

    fn fill_in(&self, cx: &RequestCx, meta: &mut api_machinery::meta::ObjectMeta, generated: bool) {
        meta.creation_timestamp = cx.rules.now;
        meta.uid = self.shared.rng.uuid();
        if generated {
            meta.name = metadata::generate_name(&meta.generate_name, &self.shared.rng);
        }
        if !self.info().namespaced {
            meta.namespace.clear();
        }
    }

    async fn attempt_create(
        &self,
        cx: &RequestCx,
        mut object: Box<dyn Object>,
        hooks: &Hooks<'_>,
    ) -> Result<Arc<Stored>, ApiError> {
        let reservation = self.companion.begin_create(cx, &mut *object).await?;
        let result = self.check_and_create(cx, object, hooks).await;
        let outcome = result.as_ref().map_or_else(WriteResult::of_error, |_| {
            if cx.dry_run { WriteResult::Refused } else { WriteResult::Written }
        });
        self.companion.finish(reservation, outcome).await;
        result
    }

    async fn check_and_create(
        &self,
        cx: &RequestCx,
        mut object: Box<dyn Object>,
        hooks: &Hooks<'_>,
    ) -> Result<Arc<Stored>, ApiError> {
        self.rules.prepare_create(&cx.rules, &mut *object);
        let mut errors = metadata::validate_create(&*self.rules, &cx.rules, object.meta());
        let rules = self.rules_about(cx, &*object).await;
        errors.extend(self.rules.validate_create(&rules, &*object));
        if errors.is_empty() {
            errors = metadata::validate_path_segment(object.meta());
        }
        hooks.admission.warn(&cx.rules.remarks.take());
        if !errors.is_empty() {
            return Err(ApiError::invalid(&self.group_kind(), &object.meta().name, &errors));
        }
        hooks.admission.warn(&self.rules.warnings(&*object, None));
        hooks.admission.validate(Operation::Create, Some(&*object), None).await?;
        // A dry run does not come to where the store would say this.
        if !cx.dry_run && !matches!(object.meta().resource_version.as_str(), "" | "0") {
            return Err(ApiError::unclassified("resourceVersion should not be set on objects to be created"));
        }
        let relative = key::relative(self.info().namespaced, &object.meta().namespace, &object.meta().name)?;
        self.store_new(cx, &relative, object, hooks.managed_fields()).await
    }

    async fn store_new(
        &self,
        cx: &RequestCx,
        relative: &Arc<str>,
        object: Box<dyn Object>,
        managed_fields: ManagedFields,
    ) -> Result<Arc<Stored>, ApiError> {
        if cx.dry_run {
            return match self.store.read(relative).await?.0 {
                Some(there) => Err(self.already_exists(there.item.object())),
                None => Ok(Arc::new(Stored::unwritten(Arc::clone(relative), storage::Revision(0), object))),
            };
        }
        let stored_form = self.to_stored(object).await?;
        match self.store.create(relative, stored_form, managed_fields).await? {
            Swap::Done(item) => self.to_served(item).await,
            Swap::Lost(Some(there)) => Err(self.already_exists(there.item.object())),
            // It was there and is gone again: the caller would be right to try once more.
            Swap::Lost(None) => Err(ApiError::already_exists(&self.group_resource, key::name_of(relative))),
        }
    }

    fn already_exists(&self, there: &dyn Object) -> ApiError {
        let meta = there.meta();
        if meta.deletion_timestamp.is_some() {
            ApiError::already_exists_terminating(&self.group_resource, &meta.name)
        } else {
            ApiError::already_exists(&self.group_resource, &meta.name)
        }
    }

    /// The kind as field errors name it: that of the group which the object is stored in.
    pub(crate) fn group_kind(&self) -> GroupKind {
        let info = self.info();
        GroupKind::named(info.storage.as_ref().map_or(info.group, |storage| storage.group), info.kind)
    }
}
