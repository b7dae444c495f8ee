//! The objects that the server keeps: those that must be there as they are, and those that are suggested and may be
//! taken over by whoever says so in an annotation.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{CreateOptions, DeleteOptions, ListOptions, ObjectMeta, Preconditions, UpdateOptions};
use api_machinery::object::Kind;
use api_types::flowcontrol_v1::constants::AUTO_UPDATE_ANNOTATION_KEY;
use api_types::flowcontrol_v1::{FlowSchema, PriorityLevelConfiguration};
use async_trait::async_trait;
use client::{ApiObject, Client, ClientError};

use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};

const MANAGER: &str = "api-priority-and-fairness-config-producer-v1";
const PERIOD: Duration = Duration::from_secs(60);
/// Pause after a failure, at start and later.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the start waits for the objects.
const START_LIMIT: Duration = Duration::from_secs(300);

/// The hook `priority-and-fairness-config-producer`.
pub(crate) struct Producer;

#[async_trait]
impl PostStartHook for Producer {
    fn name(&self) -> &'static str {
        "priority-and-fairness-config-producer"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let client = cx.loopback();
        let first = async {
            while let Err(error) = keep_all(client).await {
                tracing::debug!(%error, "Keeping the objects of flow control failed");
                tokio::time::sleep(PAUSE).await;
            }
        };
        let made = tokio::time::timeout(START_LIMIT, first).await;
        made.map_err(|_| HookError::Late("APF bootstrap ensurer timed out waiting for cache sync"))?;
        let client = client.clone();
        cx.tasks().spawn_cancellable("flow-control-objects", async move {
            let mut pause = PERIOD;
            loop {
                tokio::time::sleep(pause).await;
                pause = match keep_all(&client).await {
                    Ok(()) => PERIOD,
                    Err(error) => {
                        tracing::warn!(%error, "Keeping the objects of flow control failed");
                        PAUSE
                    }
                };
            }
        });
        Ok(())
    }
}

/// A kind of which the server keeps objects.
trait Kept: ApiObject + Kind {
    fn is_mandatory(name: &str) -> bool;
    /// Takes the spec of `wanted` over, but for what may differ.
    fn take_spec(&mut self, wanted: &Self);
}

impl Kept for PriorityLevelConfiguration {
    fn is_mandatory(name: &str) -> bool {
        flow_control::is_mandatory_level(name)
    }

    /// What the exempt level has of the server is for its users to say.
    fn take_spec(&mut self, wanted: &Self) {
        let own = self.spec.exempt.take().filter(|_| wanted.spec.exempt.is_some());
        self.spec = wanted.spec.clone();
        if own.is_some() {
            self.spec.exempt = own;
        }
    }
}

impl Kept for FlowSchema {
    fn is_mandatory(name: &str) -> bool {
        flow_control::is_mandatory_schema(name)
    }

    fn take_spec(&mut self, wanted: &Self) {
        self.spec = wanted.spec.clone();
    }
}

async fn keep_all(client: &Client) -> Result<(), ClientError> {
    let levels = flow_control::suggested_levels().into_iter().chain(flow_control::mandatory_levels()).collect();
    keep::<PriorityLevelConfiguration>(client, levels).await?;
    let schemas = flow_control::suggested_schemas().into_iter().chain(flow_control::mandatory_schemas()).collect();
    keep::<FlowSchema>(client, schemas).await
}

/// Brings all objects of a kind to what they should be, and deletes those that the server made once and knows no more.
async fn keep<T: Kept>(client: &Client, wanted: Vec<T>) -> Result<(), ClientError> {
    let api = client.all::<T>();
    let stored = api.list_all(&ListOptions::default()).await?.items;
    for object in &wanted {
        match stored.iter().find(|own| own.meta().name == object.meta().name) {
            None => {
                let options = CreateOptions { field_manager: MANAGER.to_owned(), ..CreateOptions::default() };
                match api.create_with(object, &options).await {
                    Err(error) if !error.is_already_exists() => return Err(error),
                    _ => {}
                }
            }
            Some(former) => {
                if let Some(next) = updated(former, object) {
                    let options = UpdateOptions { field_manager: MANAGER.to_owned(), ..UpdateOptions::default() };
                    api.update_with(&next, &options).await?;
                }
            }
        }
    }
    for former in stored.iter().filter(|own| annotation(own.meta()) == Some(true)) {
        if wanted.iter().any(|own| own.meta().name == former.meta().name) {
            continue;
        }
        let meta = former.meta();
        let (uid, resource_version) = (Some(meta.uid.clone()), Some(meta.resource_version.clone()));
        let preconditions = Some(Preconditions { uid, resource_version });
        match api.delete(&meta.name, &DeleteOptions { preconditions, ..DeleteOptions::default() }).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// What an object should be; nothing where it is that.
fn updated<T: Kept>(former: &T, wanted: &T) -> Option<T> {
    let meta = former.meta();
    let follows = T::is_mandatory(&meta.name) || annotation(meta).unwrap_or(meta.generation == 1);
    let mut next = former.clone();
    if follows {
        next.take_spec(wanted);
    }
    next.meta_mut().annotations.insert(AUTO_UPDATE_ANNOTATION_KEY.to_owned(), follows.to_string());
    (api_machinery::json::encode(&next) != api_machinery::json::encode(former)).then_some(next)
}

/// What the annotation says, as Go reads truths; nothing where it says nothing.
fn annotation(meta: &ObjectMeta) -> Option<bool> {
    match meta.annotations.get(AUTO_UPDATE_ANNOTATION_KEY)?.as_str() {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_objects_are_left_to_whoever_took_them_over() {
        let wanted = flow_control::suggested_schemas().remove(0);
        for (annotation, generation, restored, then) in [
            (Some("true"), 5, true, "true"),
            (Some("false"), 1, false, "false"),
            (None, 1, true, "true"),
            (None, 2, false, "false"),
            (Some("maybe"), 2, false, "false"),
        ] {
            let mut former = wanted.clone();
            former.spec.matching_precedence = 7;
            former.metadata.generation = generation;
            former.metadata.annotations.clear();
            if let Some(value) = annotation {
                former.metadata.annotations.insert(AUTO_UPDATE_ANNOTATION_KEY.to_owned(), value.to_owned());
            }
            let next = updated(&former, &wanted).unwrap_or_else(|| former.clone());
            let case = format!("{annotation:?} {generation}");
            assert_eq!(next.spec.matching_precedence == wanted.spec.matching_precedence, restored, "{case}");
            assert_eq!(next.metadata.annotations[AUTO_UPDATE_ANNOTATION_KEY], then, "{case}");
            assert!(updated(&next, &wanted).is_none(), "{case}: once is enough");
        }
    }

    #[test]
    fn of_the_exempt_level_its_part_may_differ() {
        let wanted = flow_control::mandatory_levels().pop().expect("the exempt level");
        let mut former = wanted.clone();
        former.spec.exempt.as_mut().expect("its part").lendable_percent = Some(50);
        assert!(updated(&former, &wanted).is_none());
    }
}
