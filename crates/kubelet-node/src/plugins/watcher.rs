//! Watches the directory that plugins register in, and has registered who appears there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::SharedClock;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use inotify::{EventStream, Inotify};

use super::find::{self, Identity};
use super::plan::{Sockets, Step};
use super::{PluginHandler, PluginInfo, handshake};

/// How often the directory is looked at where changes in it are not told, and in case one was not.
const LOOK_PERIOD: Duration = Duration::from_secs(10);
/// A plugin that starts makes its socket, and a moment later listens at it.
const SETTLE: Duration = Duration::from_millis(20);
const EVENT_BUFFER_BYTES: usize = 4096;

/// Who counts plugins, for `plugin_manager_total_plugins`.
pub trait PluginCounts: Send + Sync + 'static {
    /// Whether there is a plugin at a socket; the state is desired or actual, in upstream's spelling.
    fn count(&self, socket: &str, state: &'static str, there: bool);
}

/// Watches for plugins.
pub struct PluginWatcher {
    /// Where sockets appear.
    pub directory: PathBuf,
    /// Who takes the plugins, one for each kind.
    pub handlers: Vec<Arc<dyn PluginHandler>>,
    pub clock: SharedClock,
    pub counts: Arc<dyn PluginCounts>,
}

/// What came of a step.
enum StepOutcome {
    Registered(PathBuf, Identity, Option<PluginInfo>),
    Unregistered(PathBuf),
}

/// Changes in the directory; `None` where they cannot be told.
type Changes = Option<EventStream<Vec<u8>>>;

/// The sockets that there are.
type Present = BTreeMap<PathBuf, Identity>;

impl PluginWatcher {
    /// Works for ever. A plugin that hangs holds nobody else up.
    pub async fn run(self) {
        let mut sockets = Sockets::default();
        let mut shown = BTreeSet::new();
        let mut running: FuturesUnordered<BoxFuture<'static, StepOutcome>> = FuturesUnordered::new();
        let (mut changes, mut present): (Changes, Present) = (None, Present::new());
        loop {
            // What cannot be read is not gone.
            present = self.look(&mut changes).await.unwrap_or(present);
            sockets.forget_gone(&present);
            let now = self.clock.monotonic();
            let (steps, next) = sockets.plan(&present, now);
            let pause = next.map_or(LOOK_PERIOD, |at| (at - now).min(LOOK_PERIOD));
            for step in steps {
                running.push(self.take(step, &mut sockets));
            }
            self.show(&present, &sockets, &mut shown);
            let changed = async {
                match &mut changes {
                    Some(changes) => drop(changes.next().await),
                    None => std::future::pending().await,
                }
                tokio::time::sleep(SETTLE).await;
            };
            tokio::select! {
                Some(outcome) = running.next() => match outcome {
                    StepOutcome::Registered(path, identity, plugin) => {
                        sockets.registered(&path, identity, plugin, self.clock.monotonic());
                    }
                    StepOutcome::Unregistered(path) => sockets.unregistered(&path),
                },
                () = changed => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// The sockets that there are; `None` where that cannot be told. Directories are watched before they are read for
    /// good, so that nothing is missed.
    async fn look(&self, changes: &mut Changes) -> Option<Present> {
        let directory = self.directory.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let watched = Inotify::init().and_then(|inotify| {
                find::watch(&inotify, &find::look(&directory)?.directories);
                Ok(inotify)
            });
            let warn = |error: &io::Error| {
                tracing::warn!(path = %directory.display(), %error, "Watching for plugins failed");
            };
            let found = find::look(&directory).map(|found| found.sockets);
            (watched.inspect_err(warn).ok(), found.inspect_err(warn).ok())
        });
        let (inotify, sockets) = looked.await.unwrap_or_default();
        *changes = inotify.and_then(|inotify| inotify.into_event_stream(vec![0; EVENT_BUFFER_BYTES]).ok());
        sockets
    }

    fn take(&self, step: Step, sockets: &mut Sockets) -> BoxFuture<'static, StepOutcome> {
        let handlers = self.handlers.clone();
        match step {
            Step::Register(path, identity) => {
                sockets.begin(&path);
                Box::pin(async move {
                    let registered = handshake::register(&path, &handlers).await;
                    match &registered {
                        Ok(plugin) => tracing::info!(
                            kind = plugin.r#type,
                            name = plugin.name,
                            endpoint = plugin.endpoint,
                            "Registered a plugin"
                        ),
                        Err(error) => tracing::error!(path = %path.display(), %error, "Registering a plugin failed"),
                    }
                    StepOutcome::Registered(path, identity, registered.ok())
                })
            }
            Step::Unregister(path) => {
                let plugin = sockets.begin(&path);
                Box::pin(async move {
                    if let Some(plugin) = &plugin {
                        tracing::info!(kind = plugin.r#type, name = plugin.name, "Unregistering a plugin");
                        handshake::unregister(plugin, &handlers).await;
                    }
                    StepOutcome::Unregistered(path)
                })
            }
        }
    }

    fn show(&self, present: &Present, sockets: &Sockets, shown: &mut BTreeSet<(String, &'static str)>) {
        let of = |path: &PathBuf, state| (path.display().to_string(), state);
        let desired = present.keys().map(|path| of(path, "desired_state_of_world"));
        let actual = sockets.actual().map(|path| of(path, "actual_state_of_world"));
        let now: BTreeSet<_> = desired.chain(actual).collect();
        now.difference(shown).for_each(|(socket, state)| self.counts.count(socket, state, true));
        shown.difference(&now).for_each(|(socket, state)| self.counts.count(socket, state, false));
        *shown = now;
    }
}

#[cfg(test)]
#[path = "watcher_tests.rs"]
mod tests;
