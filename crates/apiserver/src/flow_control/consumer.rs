//! Following the two kinds, and what goes on for as long as the server lives: lending seats, and freeing those that were
//! held.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::{Kind, Object};
use api_types::flowcontrol_v1::{FlowSchema, PriorityLevelConfiguration};
use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::conditions::Conditions;
use super::control::{Current, FlowControl};
use crate::cx::ApiCx;
use crate::follow::{Follower, follow};
use crate::hooks::{HookError, PostStartHook};

/// How often seats are shared out anew.
const BORROWING_PERIOD: Duration = Duration::from_secs(10);

/// The hook `priority-and-fairness-config-consumer`.
pub(crate) struct Consumer(pub(crate) Arc<FlowControl>);

/// The hook `priority-and-fairness-filter`.
pub(crate) struct Filter(pub(crate) Arc<FlowControl>);

/// All objects of a kind, and a word whenever one changes.
struct Followed<T> {
    objects: Mutex<(BTreeMap<String, Arc<T>>, bool)>,
    changed: Arc<Notify>,
}

impl<T: Object + Kind> Followed<T> {
    fn start(cx: &ApiCx, changed: &Arc<Notify>) -> Arc<Self> {
        let own = Arc::new(Self { objects: Mutex::default(), changed: Arc::clone(changed) });
        let place = (T::TYPE.group, T::TYPE.version, T::TYPE.resource);
        follow(cx.registry(), place, Arc::clone(&own) as _, cx.tasks());
        own
    }

    /// Nothing before they are all there.
    fn all(&self) -> Option<Vec<Arc<T>>> {
        let objects = self.objects.lock();
        objects.1.then(|| objects.0.values().cloned().collect())
    }
}

impl<T: Object + Kind> Follower for Followed<T> {
    fn set(&self, _: &Arc<str>, object: &dyn Object) {
        let Some(object) = object.downcast_ref::<T>() else { return };
        self.objects.lock().0.insert(object.meta().name.clone(), Arc::new(object.clone()));
        self.changed.notify_one();
    }

    fn gone(&self, _: &str, name: &str) {
        self.objects.lock().0.remove(name);
        self.changed.notify_one();
    }

    fn complete(&self) {
        self.objects.lock().1 = true;
        self.changed.notify_one();
    }
}

#[async_trait]
impl PostStartHook for Consumer {
    fn name(&self) -> &'static str {
        "priority-and-fairness-config-consumer"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let (control, cx) = (Arc::clone(&self.0), Arc::clone(cx));
        let changed = Arc::new(Notify::new());
        let levels = Followed::<PriorityLevelConfiguration>::start(&cx, &changed);
        let schemas = Followed::<FlowSchema>::start(&cx, &changed);
        let tasks = cx.tasks().clone();
        tasks.spawn_cancellable("flow-control-config", async move {
            let mut conditions = Conditions::default();
            let mut again: Option<Duration> = None;
            loop {
                let due = async {
                    match again {
                        Some(pause) => tokio::time::sleep(pause).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! { () = changed.notified() => {}, () = due => {} }
                let (Some(levels), Some(schemas)) = (levels.all(), schemas.all()) else { continue };
                let found = control.configure(&levels, &schemas);
                again = conditions.write(&cx, &found).await;
            }
        });
        Ok(())
    }
}

impl FlowControl {
    /// Takes over what there is now; tells which schemas have a level.
    fn configure(
        &self,
        levels: &[Arc<PriorityLevelConfiguration>],
        schemas: &[Arc<FlowSchema>],
    ) -> Vec<(Arc<FlowSchema>, bool)> {
        let configured = self.controller.lock().configure(self.now(), levels, schemas);
        for name in &configured.broken {
            tracing::warn!(name, "A priority level cannot be understood, and is ignored");
        }
        self.current.store(Arc::new(Current::new(configured.table, &self.metrics)));
        configured.found
    }

    /// Frees the seats that were held until now. Says when the next ones are free.
    fn release(&self) -> Option<tokio::time::Instant> {
        let levels: Vec<_> = self.controller.lock().states().map(|state| Arc::clone(&state.level)).collect();
        let next = levels.iter().filter_map(|level| level.queues().tick(self.now())).min()?;
        Some(self.shared.at(next))
    }
}

#[async_trait]
impl PostStartHook for Filter {
    fn name(&self) -> &'static str {
        "priority-and-fairness-filter"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let control = Arc::clone(&self.0);
        cx.tasks().spawn_cancellable("flow-control-borrowing", async move {
            loop {
                tokio::time::sleep(BORROWING_PERIOD).await;
                let adjustment = control.controller.lock().adjust(control.now());
                if adjustment.fair_fraction.is_none() {
                    tracing::warn!("Seats could not be shared out; they stay as they are");
                }
            }
        });
        let control = Arc::clone(&self.0);
        cx.tasks().spawn_cancellable("flow-control-releases", async move {
            loop {
                match control.release() {
                    Some(next) => tokio::select! {
                        () = tokio::time::sleep_until(next) => {}
                        () = control.shared.held().notified() => {}
                    },
                    None => control.shared.held().notified().await,
                }
            }
        });
        Ok(())
    }
}
