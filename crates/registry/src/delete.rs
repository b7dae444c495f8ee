//! Deletion: grace, finalizers, preconditions, and the last step, each against the object as it is at that moment.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::gvk::{GroupKind, GroupResource};
use api_machinery::meta::constants::deletion_propagation;
use api_machinery::meta::{DeleteOptions, ObjectMeta, Status, StatusDetails};
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_machinery::time::Time;
use kinds::rules::Grace;
use kinds::strategy::next_generation;
use watch_cache::Stored;

use crate::context::{Hooks, Operation, RequestCx};
use crate::resource::Resource;
use crate::store::{Live, ManagedFields, Swap};
use crate::{finalizers, key, unreadable};

/// The only thing that a write can be asked to leave undone: all of it.
pub(crate) const DRY_RUN_ALL: &str = "All";

/// How a deletion ended.
#[derive(Debug, Clone)]
pub struct Deletion {
    /// What to answer.
    pub body: Deleted,
    /// 202 instead of 200.
    pub accepted: bool,
}

/// The answer to a deletion.
#[derive(Debug, Clone)]
pub enum Deleted {
    /// The object: marked and waiting, or as it was at the end.
    Object(Arc<Stored>),
    /// It is gone.
    Status(Box<Status>),
}

/// What to do with an object that shall go.
enum Plan {
    /// It is going already, at least as fast as asked.
    Pending,
    /// Mark it; it stays, or it goes right after.
    Mark { object: Box<dyn Object>, goes_at_once: bool },
    /// Remove it.
    Remove,
}

impl Resource {
    /// Deletes an object, or marks it where something has to happen first.
    ///
    /// # Errors
    /// When the object is missing or not as presumed, the options contradict each other, admission refuses, or the
    /// store fails.
    pub async fn delete(
        &self,
        cx: &RequestCx,
        name: &str,
        options: &DeleteOptions,
        hooks: &Hooks<'_>,
    ) -> Result<Deletion, ApiError> {
        if let Some(why) = self.rules.keeps(name) {
            return Err(ApiError::forbidden(&self.group_resource, name, why));
        }
        if unreadable::asks_for_unread(options) {
            validate_options(options)?;
            return self.delete_unread(cx, name, hooks).await;
        }
        self.delete_any(cx, name, options, hooks).await
    }

    /// As `delete`, and also what one by one may not be deleted: deleting a collection takes all of it.
    pub(crate) async fn delete_any(
        &self,
        cx: &RequestCx,
        name: &str,
        options: &DeleteOptions,
        hooks: &Hooks<'_>,
    ) -> Result<Deletion, ApiError> {
        validate_options(options)?;
        hooks.admission.warn(&self.delete_warnings(options));
        let relative = key::relative(self.info().namespaced, &cx.namespace, name)?;
        let mut options = options.clone();
        options.grace_period_seconds = options.grace_period_seconds.map(|asked| if asked < 0 { 1 } else { asked });
        if let Some(begun) = self.companion.begin_delete(self, cx, &relative, &options, hooks).await? {
            return Ok(begun);
        }
        let mut live = self.store.read(&relative).await?.0;
        // The version that this deletion itself marked.
        let mut marked: Option<Arc<Stored>> = None;
        loop {
            let Some(seen) = live else {
                return match marked {
                    Some(last) => Ok(self.gone(self.to_served(last).await?)),
                    None => Err(ApiError::not_found(&self.group_resource, name)),
                };
            };
            let served = self.to_served(Arc::clone(&seen.item)).await?;
            let object = served.object();
            if marked.as_ref().is_none_or(|marked| marked.revision() != seen.item.revision()) {
                self.check_preconditions(&options, object)?;
            }
            let plan = match &marked {
                Some(marked) if marked.revision() == seen.item.revision() => Plan::Remove,
                _ => self.plan(cx, object, &options),
            };
            if matches!(plan, Plan::Pending) {
                return Ok(self.stays(&options, served));
            }
            hooks.admission.validate(Operation::Delete, None, Some(object)).await?;
            live = match plan {
                Plan::Mark { object, goes_at_once } => match self.mark(cx, &seen, object).await? {
                    Swap::Done(item) if !goes_at_once => {
                        return Ok(self.stays(&options, self.to_served(item).await?));
                    }
                    Swap::Done(item) if cx.dry_run => return Ok(self.gone(item)),
                    Swap::Done(item) => {
                        marked = Some(Arc::clone(&item));
                        Some(Live::guessed(item))
                    }
                    Swap::Lost(now) => now,
                },
                _ if cx.dry_run => return Ok(self.gone(served)),
                _ => match self.store.remove(&seen).await? {
                    Swap::Done(item) => {
                        self.companion.deleted(object).await;
                        return Ok(self.gone(self.to_served(item).await?));
                    }
                    Swap::Lost(now) => now,
                },
            };
        }
    }

    pub(crate) fn check_preconditions(&self, options: &DeleteOptions, object: &dyn Object) -> Result<(), ApiError> {
        let Some(preconditions) = &options.preconditions else { return Ok(()) };
        let meta = object.meta();
        let uid = preconditions.uid.as_ref().filter(|uid| **uid != meta.uid);
        let version = preconditions.resource_version.as_ref().filter(|version| **version != meta.resource_version);
        if self.rules.lifecycle().finalizer.is_some() {
            let cause = match (uid, version) {
                (Some(uid), _) => format!("UID in precondition: {uid}, UID in object meta: {}", meta.uid),
                (None, Some(version)) => {
                    let own = &meta.resource_version;
                    format!("ResourceVersion in precondition: {version}, ResourceVersion in object meta: {own}")
                }
                (None, None) => return Ok(()),
            };
            let cause = format!("Precondition failed: {cause}");
            return Err(ApiError::conflict(&self.group_resource, &meta.name, cause));
        }
        let cause = match (uid, version) {
            (Some(uid), _) => format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). \
                 The object might have been deleted and then recreated",
                meta.uid
            ),
            (None, Some(version)) => format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). \
                 The object might have been modified",
                meta.resource_version
            ),
            (None, None) => return Ok(()),
        };
        // Upstream names the kind here where everyone else names the resource.
        let GroupKind { group, kind } = self.group_kind();
        Err(ApiError::conflict(&GroupResource { group, resource: kind }, &meta.name, cause))
    }

    fn plan(&self, cx: &RequestCx, object: &dyn Object, options: &DeleteOptions) -> Plan {
        let meta = object.meta();
        let held = self.rules.lifecycle().finalizer.filter(|_| meta.deletion_timestamp.is_none());
        if let Some(held) = held {
            let mut object = object.clone_object();
            hold(object.meta_mut(), held, cx.rules.now);
            return Plan::Mark { object, goes_at_once: false };
        }
        let finalizers = if self.shared.garbage_collector {
            finalizers::for_deletion(self.rules.lifecycle(), meta, options)
        } else {
            meta.finalizers.clone()
        };
        let grace = self.rules.grace(object, options.grace_period_seconds);
        let mut new = object.clone_object();
        match begin_grace(new.meta_mut(), grace, options.grace_period_seconds, cx.rules.now) {
            Graceful::Pending => Plan::Pending,
            Graceful::Begins { seconds } => {
                let goes_at_once = seconds == 0 && finalizers.is_empty();
                new.meta_mut().finalizers = finalizers;
                Plan::Mark { object: new, goes_at_once }
            }
            Graceful::No if finalizers.is_empty() && self.companion.may_go(object) => Plan::Remove,
            Graceful::No => {
                mark_held(new.meta_mut(), finalizers, cx.rules.now);
                Plan::Mark { object: new, goes_at_once: false }
            }
        }
    }

    async fn mark(&self, cx: &RequestCx, seen: &Live, object: Box<dyn Object>) -> Result<Swap, ApiError> {
        if cx.dry_run {
            let view = Stored::unwritten(Arc::clone(seen.item.key()), seen.item.revision(), object);
            return Ok(Swap::Done(Arc::new(view)));
        }
        self.store.replace(seen, self.to_stored(object).await?, ManagedFields::Stay).await
    }

    pub(crate) fn stays(&self, options: &DeleteOptions, item: Arc<Stored>) -> Deletion {
        let accepted = options.orphan_dependents == Some(false);
        Deletion { body: Deleted::Object(item), accepted }
    }

    fn gone(&self, item: Arc<Stored>) -> Deletion {
        let returns_deleted = self.rules.lifecycle().delete_answer.is_object();
        let body = if returns_deleted { Deleted::Object(item) } else { Deleted::Status(Box::new(self.success(&item))) };
        Deletion { body, accepted: false }
    }

    fn success(&self, item: &Stored) -> Status {
        let meta = item.object().meta();
        let details = StatusDetails {
            name: meta.name.clone(),
            group: self.info().group.to_owned(),
            kind: self.info().resource.to_owned(),
            uid: meta.uid.clone(),
            ..StatusDetails::default()
        };
        Status { status: "Success".to_owned(), details: Some(details), ..Status::default() }
    }

    /// What to tell a client that deletes with these options, whatever comes of it.
    pub(crate) fn delete_warnings(&self, options: &DeleteOptions) -> Vec<String> {
        let silent = options.propagation_policy.is_some() || options.orphan_dependents.is_some();
        self.rules.lifecycle().delete_warning.filter(|_| !silent).map(str::to_owned).into_iter().collect()
    }
}

/// How grace applies to a deletion.
#[derive(Debug, PartialEq, Eq)]
enum Graceful {
    /// The kind, or the object now, has none.
    No,
    /// The deletion that began before goes on.
    Pending,
    /// It begins, or was shortened, to this.
    Begins { seconds: i64 },
}

/// Decides on grace, and marks the object where it begins.
fn begin_grace(meta: &mut ObjectMeta, grace: Grace, asked: Option<i64>, now: Time) -> Graceful {
    let Grace::Seconds(chosen) = grace else { return Graceful::No };
    let Some(since) = meta.deletion_timestamp else {
        let seconds = if chosen < 0 { 1 } else { chosen };
        meta.deletion_timestamp = Some(later(now, seconds));
        meta.deletion_grace_period_seconds = Some(seconds);
        count_generation(meta);
        return Graceful::Begins { seconds };
    };
    let stored = meta.deletion_grace_period_seconds.unwrap_or_default();
    if stored == 0 {
        return Graceful::No;
    }
    let Some(mut seconds) = asked.filter(|asked| *asked < stored) else { return Graceful::Pending };
    let began = earlier(since, stored);
    let mut ends = later(began, seconds);
    if ends < now {
        ends = now;
        seconds = seconds.min(1);
    }
    meta.deletion_timestamp = Some(ends);
    meta.deletion_grace_period_seconds = Some(seconds);
    Graceful::Begins { seconds }
}

/// Marks an object of a kind that holds its objects itself: nothing else that a deletion asks for is looked at.
fn hold(meta: &mut ObjectMeta, finalizer: &str, now: Time) {
    if !meta.finalizers.iter().any(|own| own == finalizer) {
        meta.finalizers.push(finalizer.to_owned());
    }
    meta.deletion_timestamp = Some(now);
}

/// Marks an object that finalizers hold.
fn mark_held(meta: &mut ObjectMeta, finalizers: Vec<String>, now: Time) {
    meta.finalizers = finalizers;
    if meta.deletion_timestamp.is_none() {
        count_generation(meta);
    }
    if meta.deletion_timestamp.is_none_or(|marked| marked > now) {
        meta.deletion_timestamp = Some(now);
    }
    meta.deletion_grace_period_seconds = Some(0);
}

fn count_generation(meta: &mut ObjectMeta) {
    if meta.generation > 0 {
        next_generation(meta);
    }
}

fn later(time: Time, seconds: i64) -> Time {
    time + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

fn earlier(time: Time, seconds: i64) -> Time {
    time.unix_seconds().map_or(time, |at| Time::from_unix_seconds(at.saturating_sub(seconds)))
}

/// Refuses options that contradict each other.
///
/// # Errors
/// 422 with every problem.
pub fn validate_options(options: &DeleteOptions) -> Result<(), ApiError> {
    let mut errors = ErrorList::new();
    let path = Path::new("propagationPolicy");
    if let Some(policy) = &options.propagation_policy {
        if options.orphan_dependents.is_some() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(path.invalid(policy.as_str(), detail));
        }
        let known =
            [deletion_propagation::FOREGROUND, deletion_propagation::BACKGROUND, deletion_propagation::ORPHAN, "nil"];
        if !known[..3].contains(&policy.as_str()) {
            errors.push(path.not_supported_in_order(policy.as_str(), &known));
        }
    }
    if options.dry_run.iter().any(|value| value != DRY_RUN_ALL) {
        let value = api_machinery::field_path::BadValue::list(&options.dry_run);
        errors.push(Path::new("dryRun").not_supported(value, &[DRY_RUN_ALL]));
    }
    unreadable::check_options(options, &mut errors);
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&GroupKind::new("meta.k8s.io", "DeleteOptions"), "", &errors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grace_begins_shortens_and_never_grows() {
        let now = Time::from_unix_seconds(1_000);
        let going = |ends: i64, stored: i64| ObjectMeta {
            deletion_timestamp: Some(Time::from_unix_seconds(ends)),
            deletion_grace_period_seconds: Some(stored),
            ..ObjectMeta::default()
        };
        let cases = [
            ("begins", ObjectMeta::default(), None, Graceful::Begins { seconds: 30 }, Some(1_030)),
            ("pending without a wish", going(1_020, 30), None, Graceful::Pending, Some(1_020)),
            ("pending when longer", going(1_020, 30), Some(60), Graceful::Pending, Some(1_020)),
            ("shorter", going(1_020, 30), Some(15), Graceful::Begins { seconds: 15 }, Some(1_005)),
            ("shorter and past", going(1_001, 30), Some(5), Graceful::Begins { seconds: 1 }, Some(1_000)),
            ("now", going(1_020, 30), Some(0), Graceful::Begins { seconds: 0 }, Some(1_000)),
            ("no grace left", going(1_000, 0), None, Graceful::No, Some(1_000)),
        ];
        for (name, mut meta, asked, expected, ends) in cases {
            assert_eq!(begin_grace(&mut meta, Grace::Seconds(30), asked, now), expected, "{name}");
            assert_eq!(meta.deletion_timestamp.and_then(Time::unix_seconds), ends, "{name}");
        }
        assert_eq!(begin_grace(&mut ObjectMeta::default(), Grace::None, Some(5), now), Graceful::No);
    }

    #[test]
    fn contradictory_options_are_refused() {
        let both = DeleteOptions {
            orphan_dependents: Some(true),
            propagation_policy: Some("Orphan".into()),
            ..DeleteOptions::default()
        };
        assert!(validate_options(&both).unwrap_err().message.contains("cannot be both set"));
        let unknown = DeleteOptions { propagation_policy: Some("Later".into()), ..DeleteOptions::default() };
        let text = validate_options(&unknown).unwrap_err().message;
        assert!(text.contains(r#"supported values: "Foreground", "Background", "Orphan", "nil""#), "{text}");
        assert!(validate_options(&DeleteOptions::default()).is_ok());
    }
}
