//! Update: one read-modify-write loop for `PUT`, patches, apply and the subresources. Admission runs inside it, so that
//! what was admitted is what is written.

use std::sync::Arc;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::gvk::GroupKind;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use kinds::rules::{Endpoint, RuleContext};
use watch_cache::Stored;

use crate::companion::WriteResult;
use crate::context::{Change, CreateWhenAbsent, Hooks, Operation, RequestCx};
use crate::create::Written;
use crate::resource::Resource;
use crate::store::{Live, ManagedFields, Swap};
use crate::{finalizers, key, metadata};

/// An update as far as it depends on neither the live object nor the attempt.
struct Request<'a> {
    cx: &'a RequestCx,
    name: &'a str,
    endpoint: Endpoint,
    change: &'a dyn Change,
    hooks: &'a Hooks<'a>,
}

impl Resource {
    /// Updates an object, or creates it where the kind or the change allows that.
    ///
    /// Tries again for as long as others are faster and the client did not ask for a certain revision; the caller sets
    /// the deadline.
    ///
    /// # Errors
    /// When the object is missing, is not as the client presumed or breaks a rule, admission refuses, or the store fails.
    pub async fn update(
        &self,
        cx: &RequestCx,
        name: &str,
        endpoint: Endpoint,
        change: &dyn Change,
        hooks: &Hooks<'_>,
    ) -> Result<Written, ApiError> {
        let relative = key::relative(self.info().namespaced, &cx.namespace, name)?;
        let request = Request { cx, name, endpoint, change, hooks };
        let mut live =
            if cx.dry_run { self.store.read(&relative).await?.0 } else { self.store.guess(&relative).await? };
        loop {
            let Some(seen) = live else {
                match self.create_by_update(&request, &relative).await {
                    Err(error) if error.is_already_exists() && endpoint == Endpoint::Main => {
                        live = self.store.read(&relative).await?.0;
                        if live.is_none() || self.creation(&request) == CreateWhenAbsent::Never {
                            return Err(error);
                        }
                        continue;
                    }
                    other => return other,
                }
            };
            live = match self.attempt_update(&request, &seen).await {
                Ok(Swap::Done(item)) => return Ok(Written { item, created: false }),
                Ok(Swap::Lost(now)) => now,
                // What looks wrong against the cache may be right against the store.
                Err(error) if !seen.is_certain() => {
                    let (now, _) = self.store.read(&relative).await?;
                    if now.as_ref().is_some_and(|now| now.item.revision() == seen.item.revision()) {
                        return Err(error);
                    }
                    now
                }
                Err(error) => return Err(error),
            };
        }
    }

    fn creation(&self, request: &Request<'_>) -> CreateWhenAbsent {
        match request.change.creates() {
            _ if request.endpoint != Endpoint::Main => CreateWhenAbsent::Never,
            CreateWhenAbsent::AsTheKind if !self.info().create_on_update => CreateWhenAbsent::Never,
            other => other,
        }
    }

    async fn create_by_update(&self, request: &Request<'_>, relative: &Arc<str>) -> Result<Written, ApiError> {
        if self.creation(request) == CreateWhenAbsent::Never {
            return Err(ApiError::not_found(&self.group_resource, request.name));
        }
        let mut object = request.change.apply(None)?;
        self.check_identity(request, &*object)?;
        if !object.meta().uid.is_empty() {
            let cause = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                object.meta().uid
            );
            return Err(ApiError::conflict(&self.group_resource, request.name, cause));
        }
        let names_version = !matches!(object.meta().resource_version.as_str(), "" | "0");
        if names_version && self.creation(request) != CreateWhenAbsent::Always {
            // The client means an object that is gone.
            return Err(ApiError::not_found(&self.group_resource, request.name));
        }
        object.meta_mut().resource_version.clear();
        request.hooks.admission.authorize_create().await?;
        debug_assert_eq!(key::name_of(relative), object.meta().name);
        self.create(request.cx, object, request.hooks).await
    }

    async fn attempt_update(&self, request: &Request<'_>, live: &Live) -> Result<Swap, ApiError> {
        let served = self.to_served(Arc::clone(&live.item)).await?;
        // It is about to be an older version of the object, which nobody will ask for.
        let old = &*served.shared_for_once();
        let mut object = request.change.apply(Some(old))?;
        self.check_identity(request, &*object)?;
        self.check_uid(request, &mut *object, old)?;
        if let Some(track) = request.hooks.track {
            track(Some(old), &mut *object)?;
        }
        request.hooks.admission.mutate(Operation::Update, &mut object, Some(old)).await?;
        let repeated = metadata::dedup_owner_references(object.meta_mut());
        if !repeated.is_empty() {
            request.hooks.admission.warn(&[metadata::duplicate_owners_warning(&repeated)]);
        }
        self.check_resource_version(request, &mut *object, old)?;
        let reservation = match request.endpoint {
            Endpoint::Main => self.companion.begin_update(request.cx, &mut *object, old).await?,
            _ => Default::default(),
        };
        let result = self.check_and_write(request, live, object, old).await;
        let outcome = match &result {
            Ok(Swap::Done(item)) if !request.cx.dry_run => {
                self.shared.writes.updated(self.info(), request.endpoint, old, item.object());
                WriteResult::Written
            }
            Ok(_) => WriteResult::Refused,
            Err(error) => WriteResult::of_error(error),
        };
        self.companion.finish(reservation, outcome).await;
        result
    }

    fn check_identity(&self, request: &Request<'_>, object: &dyn Object) -> Result<(), ApiError> {
        let (meta, name) = (object.meta(), request.name);
        if meta.name.is_empty() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            )));
        }
        if meta.name != name {
            let text = format!("the name of the object ({}) does not match the name on the URL ({name})", meta.name);
            return Err(ApiError::bad_request(text));
        }
        if self.info().namespaced && meta.namespace != request.cx.namespace {
            return Err(ApiError::bad_request(format!(
                "the namespace of the object ({}) does not match the namespace on the request ({})",
                meta.namespace, request.cx.namespace
            )));
        }
        Ok(())
    }

    fn check_uid(&self, request: &Request<'_>, object: &mut dyn Object, old: &dyn Object) -> Result<(), ApiError> {
        let (wanted, present) = (&object.meta().uid, &old.meta().uid);
        if wanted.is_empty() {
            object.meta_mut().uid = present.clone();
        } else if wanted != present && request.change.names_uid() {
            return Err(self.precondition_failed(request.cx, request.name, "UID", wanted, present));
        }
        Ok(())
    }

    /// A precondition that the store itself checks, in the store's words.
    pub(crate) fn precondition_failed(
        &self,
        cx: &RequestCx,
        name: &str,
        what: &str,
        wanted: &str,
        present: &str,
    ) -> ApiError {
        let relative = key::relative(self.info().namespaced, &cx.namespace, name).unwrap_or_default();
        let cause = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {present}",
            self.store.key(&relative)
        );
        ApiError::conflict(&self.group_resource, name, cause)
    }

    fn check_resource_version(
        &self,
        request: &Request<'_>,
        object: &mut dyn Object,
        old: &dyn Object,
    ) -> Result<(), ApiError> {
        let wanted = object.meta().resource_version.as_str();
        if matches!(wanted, "" | "0") {
            if !self.info().unconditional_update {
                let path = Path::new("metadata").child("resourceVersion");
                let mut errors = ErrorList::new();
                errors.push(path.invalid(0, "must be specified for an update"));
                // Upstream names the resource here, not the kind.
                let kind = GroupKind::named(self.info().group, self.info().resource);
                return Err(ApiError::invalid(&kind, request.name, &errors));
            }
            object.meta_mut().resource_version = old.meta().resource_version.clone();
            return Ok(());
        }
        crate::resource_version::parse_stored(wanted).map_err(ApiError::unclassified)?;
        if wanted != old.meta().resource_version {
            return Err(ApiError::modified(&self.group_resource, request.name));
        }
        Ok(())
    }

    async fn check_and_write(
        &self,
        request: &Request<'_>,
        live: &Live,
        mut object: Box<dyn Object>,
        old: &dyn Object,
    ) -> Result<Swap, ApiError> {
        self.prepare(request, &mut *object, old);
        let rules = self.rules_about(request.cx, &*object).await;
        let errors = self.validate_update(request, &rules, &*object, old);
        request.hooks.admission.warn(&rules.remarks.take());
        if !errors.is_empty() {
            return Err(ApiError::invalid(&self.group_kind(), request.name, &errors));
        }
        request.hooks.admission.warn(&self.rules.update_warnings(request.endpoint, &*object, old));
        self.revert_idle_timestamps(request, &mut *object, old);
        request.hooks.admission.validate(Operation::Update, Some(&*object), Some(old)).await?;
        let goes = finalizers::last_one_gone(object.meta(), old.meta()) && self.companion.may_go(&*object);
        if request.cx.dry_run {
            object.meta_mut().resource_version = old.meta().resource_version.clone();
            let item = Stored::unwritten(Arc::clone(live.item.key()), live.item.revision(), object);
            return Ok(Swap::Done(Arc::new(item)));
        }
        if goes {
            return self.delete_instead(live, object, old).await;
        }
        let stored_form = self.to_stored(object).await?;
        match self.store.replace(live, stored_form, request.hooks.managed_fields()).await? {
            Swap::Done(item) => Ok(Swap::Done(self.to_served(item).await?)),
            lost => Ok(lost),
        }
    }

    fn revert_idle_timestamps(&self, request: &Request<'_>, object: &mut dyn Object, old: &dyn Object) {
        let begun = self.shared.clock.monotonic();
        let outcome = metadata::revert_idle_timestamps(object, old);
        if !request.cx.dry_run {
            self.shared.writes.compared(outcome, self.shared.clock.monotonic().saturating_duration_since(begun));
        }
    }

    /// All that is wrong with an object that is to replace `old`, in upstream's order.
    fn validate_update(
        &self,
        request: &Request<'_>,
        rules: &RuleContext,
        object: &dyn Object,
        old: &dyn Object,
    ) -> ErrorList {
        let looks = metadata::validate_update(&*self.rules, request.endpoint, object.meta(), old.meta());
        let (mut errors, mut own) = (looks.shared, looks.own.into_iter());
        if let Some(as_new) = self.rules.validate_as_new(rules, request.endpoint, object, old) {
            errors.extend(own.next().unwrap_or_default());
            errors.extend(as_new);
        }
        own.for_each(|look| errors.extend(look));
        errors.extend(self.rules.validate_update(rules, request.endpoint, object, old));
        errors
    }

    /// Gives the server's own fields back to the server, then lets the kind prepare.
    fn prepare(&self, request: &Request<'_>, object: &mut dyn Object, old: &dyn Object) {
        let (meta, live) = (object.meta_mut(), old.meta());
        meta.generation = live.generation;
        meta.creation_timestamp = live.creation_timestamp;
        // What the stored object has not got is refused later.
        meta.deletion_timestamp = live.deletion_timestamp.or(meta.deletion_timestamp);
        meta.deletion_grace_period_seconds = meta.deletion_grace_period_seconds.or(live.deletion_grace_period_seconds);
        meta.self_link.clear();
        if !self.info().namespaced {
            meta.namespace.clear();
        }
        self.rules.prepare_update(&request.cx.rules, request.endpoint, object, old);
    }

    /// The update took the last finalizer of an object that is being deleted.
    async fn delete_instead(&self, live: &Live, object: Box<dyn Object>, old: &dyn Object) -> Result<Swap, ApiError> {
        Ok(match self.store.remove(live).await? {
            Swap::Done(gone) => {
                self.companion.deleted(old).await;
                Swap::Done(Arc::new(Stored::unwritten(Arc::clone(gone.key()), gone.revision(), object)))
            }
            lost => lost,
        })
    }
}

impl Resource {
    /// The server's own change of a stored object: no rules, no admission, and what a write of someone else in between
    /// spoils is done again.
    pub(crate) async fn rewrite(
        &self,
        cx: &RequestCx,
        name: &str,
        change: impl Fn(&dyn Object) -> Result<Box<dyn Object>, ApiError> + Send + Sync,
    ) -> Result<Arc<Stored>, ApiError> {
        let relative = key::relative(self.info().namespaced, &cx.namespace, name)?;
        let mut live = self.store.read(&relative).await?.0;
        loop {
            let Some(seen) = live else { return Err(ApiError::not_found(&self.group_resource, name)) };
            let object = change(&*seen.item.shared_for_once())?;
            if cx.dry_run {
                let view = Stored::unwritten(Arc::clone(&relative), seen.item.revision(), object);
                return Ok(Arc::new(view));
            }
            live = match self.store.replace(&seen, object, ManagedFields::Stay).await? {
                Swap::Done(item) => return Ok(item),
                Swap::Lost(now) => now,
            };
        }
    }
}
