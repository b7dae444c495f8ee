//! A value that is made of a configuration file and made anew, while the process runs, when the file changes
//! (`docs/adr/0018-swapped-configuration.md`). A new value is in force only after it was checked; a file with a mistake
//! changes nothing, and is told of in the log and in the metrics.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use base::{SharedClock, TaskGroup};
use futures_util::StreamExt as _;
use inotify::{EventStream, Inotify, WatchMask};
use parking_lot::Mutex;

use crate::config_file;
use crate::metrics::{Counters, Desc, Gauges, Metrics, hash_label};
use crate::reload::{RELOAD_INTERVAL, ReloadError};

/// Room for some events with the names of their files.
const EVENT_BUFFER_BYTES: usize = 4096;

/// How a value is made of the text of its file.
#[async_trait]
pub trait Build: Send + Sync + 'static {
    /// What is made.
    type Value: Send + Sync + 'static;

    /// Makes a value, or says everything that is wrong with the text. `former` is what is in force, if anything is.
    ///
    /// # Errors
    /// When the text makes no value, or not one that may follow the former.
    fn build(&self, text: &str, former: Option<&Self::Value>) -> Result<Self::Value, ReloadError>;

    /// Reads what values are made of: the file, unless it is something else that has a text.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&self, path: &Path) -> Result<String, ReloadError> {
        Ok(config_file::read(path)?)
    }

    /// Waits until a new value can do its work; until then the former is in force. The first value is not waited for.
    ///
    /// # Errors
    /// When it does not come to that in time; the new value is dropped.
    async fn is_ready(&self, _: &Self::Value) -> Result<(), ReloadError> {
        Ok(())
    }
}

/// The value that is in force, and the file that it comes from.
pub struct Swappable<B: Build> {
    path: PathBuf,
    build: B,
    current: ArcSwap<B::Value>,
    /// The hash of the file that the value was made of.
    seen: Mutex<String>,
    metrics: ReloadMetrics,
    clock: SharedClock,
}

impl<B: Build> Swappable<B> {
    /// Makes the first value.
    ///
    /// # Errors
    /// When the file cannot be read, or makes no value.
    pub fn load(path: &Path, build: B, metrics: ReloadMetrics, clock: SharedClock) -> Result<Arc<Self>, ReloadError> {
        let text = build.read(path)?;
        let value = build.build(&text, None)?;
        let hash = hash_label(text.as_bytes());
        metrics.in_force(None, &hash);
        let (current, seen) = (ArcSwap::from_pointee(value), Mutex::new(hash));
        Ok(Arc::new(Self { path: path.to_owned(), build, current, seen, metrics, clock }))
    }

    /// What is in force now. Whoever keeps it keeps the value that it was.
    pub fn current(&self) -> Arc<B::Value> {
        self.current.load_full()
    }

    /// Looks at the file; answers whether another value is in force now.
    ///
    /// # Errors
    /// When the file makes no value that may follow; the former stays, and the file is tried again the next time.
    pub async fn check(&self) -> Result<bool, ReloadError> {
        let outcome = self.try_check().await;
        if !matches!(outcome, Ok(false)) {
            let now = self.clock.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            self.metrics.reloaded(outcome.is_ok(), now.as_secs_f64());
        }
        outcome
    }

    async fn try_check(&self) -> Result<bool, ReloadError> {
        let text = self.build.read(&self.path)?;
        let hash = hash_label(text.as_bytes());
        let seen = self.seen.lock().clone();
        if seen == hash {
            return Ok(false);
        }
        let value = self.build.build(&text, Some(&self.current()))?;
        self.build.is_ready(&value).await?;
        self.current.store(Arc::new(value));
        self.metrics.in_force(Some(&seen), &hash);
        *self.seen.lock() = hash;
        Ok(true)
    }

    /// Follows the file for as long as the tasks live: at every change that inotify tells, and every
    /// [`RELOAD_INTERVAL`] as some file systems tell of none.
    pub fn follow(self: &Arc<Self>, tasks: &TaskGroup) {
        let own = Arc::clone(self);
        tasks.spawn_cancellable("configuration", async move {
            let mut events = own.watch();
            loop {
                tokio::select! {
                    () = tokio::time::sleep(RELOAD_INTERVAL) => {}
                    () = next(&mut events) => {}
                }
                own.check_aloud().await;
            }
        });
    }

    async fn check_aloud(&self) {
        let path = self.path.display();
        match self.check().await {
            Ok(true) => tracing::info!(%path, "A changed configuration is in force"),
            Ok(false) => {}
            Err(error) => tracing::error!(%path, %error, "A changed configuration was not taken, the former stays"),
        }
    }

    /// Changes in the file's directory: files are often replaced, and mounted ones are links that change. Where the path is
    /// a directory, files may go as well.
    fn watch(&self) -> Option<EventStream<Vec<u8>>> {
        let changes = WatchMask::CLOSE_WRITE | WatchMask::MOVED_TO;
        let (directory, changes) = if self.path.is_dir() {
            (self.path.as_path(), changes | WatchMask::DELETE | WatchMask::MOVED_FROM)
        } else {
            let parent = self.path.parent().filter(|own| !own.as_os_str().is_empty());
            (parent.unwrap_or(Path::new(".")), changes)
        };
        let watched = Inotify::init().and_then(|inotify| {
            inotify.watches().add(directory, changes)?;
            inotify.into_event_stream(vec![0; EVENT_BUFFER_BYTES])
        });
        watched.inspect_err(|error| tracing::warn!(path = %self.path.display(), %error, "Watching a file failed")).ok()
    }
}

/// Ends when something has changed; never where nothing is watched any more.
async fn next(events: &mut Option<EventStream<Vec<u8>>>) {
    if let Some(stream) = events {
        if stream.next().await.is_some_and(|event| event.is_ok()) {
            return;
        }
        *events = None;
    }
    std::future::pending().await
}

/// The families of one kind of configuration: each has upstream's three, under a name of its own.
#[derive(Debug, Clone, Copy)]
pub struct ReloadFamilies {
    /// `..._automatic_reloads_total`, with the labels `status` and `apiserver_id_hash`, and `plugin` between them where the
    /// configuration is a plugin's.
    pub reloads: &'static Desc,
    /// `..._automatic_reload_last_timestamp_seconds`, with the same labels.
    pub last_reload: &'static Desc,
    /// `..._last_config_info`, with the labels `apiserver_id_hash` and `hash`, after `plugin` where there is one.
    pub in_force: &'static Desc,
}

/// What is told of changes of a configuration.
#[derive(Clone)]
pub struct ReloadMetrics {
    reloads: Counters,
    last_reload: Gauges,
    in_force: Gauges,
    /// Whose configuration it is: the plugin, where there is one, and the server.
    whose: Vec<String>,
}

impl ReloadMetrics {
    /// Adds the families; `server` is the hash of the server's identity.
    #[must_use]
    pub fn new(metrics: &Metrics, families: ReloadFamilies, server: String) -> Self {
        Self {
            reloads: metrics.counters(families.reloads),
            last_reload: metrics.gauges(families.last_reload),
            in_force: metrics.gauges(families.in_force),
            whose: vec![server],
        }
    }

    /// The same of the configuration of a plugin, of which the families tell by a label.
    #[must_use]
    pub fn of_plugin(&self, plugin: &str) -> Self {
        let mut own = self.clone();
        own.whose.insert(0, plugin.to_owned());
        own
    }

    /// The labels of whose configuration it is, with another one before or behind them.
    fn labels<'a>(&'a self, first: Option<&'a str>, last: Option<&'a str>) -> Vec<&'a str> {
        first.into_iter().chain(self.whose.iter().map(String::as_str)).chain(last).collect()
    }

    /// `now` in seconds since 1970.
    fn reloaded(&self, ok: bool, now: f64) {
        let status = if ok { "success" } else { "failure" };
        let labels = self.labels(Some(status), None);
        self.reloads.with(&labels).inc();
        self.last_reload.with(&labels).set(now);
    }

    fn in_force(&self, former: Option<&str>, hash: &str) {
        if let Some(former) = former {
            self.in_force.remove(&self.labels(None, Some(former)));
        }
        self.in_force.with(&self.labels(None, Some(hash))).set(1.0);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::TokioClock;

    use super::*;
    use crate::metrics::{MetricsOptions, Stability};

    const RELOADS: Desc = Desc::new("test_automatic_reloads_total", "Reloads.", Stability::Alpha)
        .labels(&["status", "apiserver_id_hash"]);
    const LAST: Desc = Desc::new("test_automatic_reload_last_timestamp_seconds", "Last.", Stability::Alpha)
        .labels(&["status", "apiserver_id_hash"]);
    const INFO: Desc =
        Desc::new("test_last_config_info", "Hash.", Stability::Alpha).labels(&["apiserver_id_hash", "hash"]);
    const FAMILIES: ReloadFamilies = ReloadFamilies { reloads: &RELOADS, last_reload: &LAST, in_force: &INFO };

    /// A number, which may only grow, and of which some never work.
    struct Number;

    #[async_trait]
    impl Build for Number {
        type Value = u32;

        fn build(&self, text: &str, former: Option<&u32>) -> Result<u32, ReloadError> {
            let value: u32 = text.trim().parse()?;
            if former.is_some_and(|former| value < *former) { Err("it shrinks".into()) } else { Ok(value) }
        }

        async fn is_ready(&self, value: &u32) -> Result<(), ReloadError> {
            if *value == 13 { Err("it never works".into()) } else { Ok(()) }
        }
    }

    struct Fixture {
        directory: tempfile::TempDir,
        metrics: Arc<Metrics>,
        value: Arc<Swappable<Number>>,
    }

    impl Fixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("number");
            std::fs::write(&path, "1").expect("a file");
            let metrics = Metrics::new(MetricsOptions::default());
            let reloads = ReloadMetrics::new(&metrics, FAMILIES, "me".to_owned());
            let value = Swappable::load(&path, Number, reloads, TokioClock::shared()).expect("a value");
            Self { directory, metrics, value }
        }

        fn write(&self, text: &str) {
            std::fs::write(self.directory.path().join("number"), text).expect("a file");
        }
    }

    #[tokio::test]
    async fn only_what_is_good_is_taken() {
        let fixture = Fixture::new();
        let kept = fixture.value.current();
        for (text, taken, then) in [
            ("1", Some(false), 1),
            ("2", Some(true), 2),
            ("x", None, 2),
            ("1", None, 2),
            ("13", None, 2),
            ("2", Some(false), 2),
            ("3", Some(true), 3),
        ] {
            fixture.write(text);
            assert_eq!(fixture.value.check().await.ok(), taken, "{text}");
            assert_eq!(*fixture.value.current(), then, "{text}");
        }
        assert_eq!(*kept, 1, "who holds a value keeps it");
        let text = fixture.metrics.text();
        for expected in [
            "test_automatic_reloads_total{apiserver_id_hash=\"me\",status=\"success\"} 2",
            "test_automatic_reloads_total{apiserver_id_hash=\"me\",status=\"failure\"} 3",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert_eq!(text.matches("test_last_config_info{").count(), 1, "{text}");
        std::fs::remove_file(fixture.directory.path().join("number")).expect("it is gone");
        assert!(fixture.value.check().await.is_err());
        assert_eq!(*fixture.value.current(), 3);
    }

    #[tokio::test]
    async fn changes_are_seen_at_once_however_the_file_changes() {
        let fixture = Fixture::new();
        let tasks = TaskGroup::new("test");
        fixture.value.follow(&tasks);
        let becomes = async |wanted: u32| {
            for _ in 0..200 {
                if *fixture.value.current() == wanted {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            panic!("it never became {wanted}");
        };
        // The watch begins when its task runs.
        tokio::time::sleep(Duration::from_millis(20)).await;
        fixture.write("2");
        becomes(2).await;
        let other = fixture.directory.path().join("other");
        std::fs::write(&other, "5").expect("a file");
        std::fs::rename(&other, fixture.directory.path().join("number")).expect("it moves");
        becomes(5).await;
        tasks.shutdown(Duration::from_secs(1)).await;
    }
}
