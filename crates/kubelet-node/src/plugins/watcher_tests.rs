//! Plugins in this process that behave and that do not, at real sockets.

use std::path::Path;

use base::{SystemClock, TaskGroup};
use node_api::registration::v1::registration_server::{Registration, RegistrationServer};
use node_api::registration::v1::{InfoRequest, RegistrationStatus, RegistrationStatusResponse};
use node_api::tonic::{Request, Response, Status, transport::Server};
use parking_lot::Mutex;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;

use super::*;
use crate::interfaces::SideError;

/// How a plugin misbehaves.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Good,
    /// It never says what it is.
    Hanging,
    /// It does not want to hear that it is registered.
    Deaf,
}

#[derive(Clone)]
struct Plugin {
    kind: &'static str,
    name: &'static str,
    manner: Manner,
    heard: Arc<Mutex<Vec<RegistrationStatus>>>,
}

#[node_api::tonic::async_trait]
impl Registration for Plugin {
    async fn get_info(&self, _: Request<InfoRequest>) -> Result<Response<PluginInfo>, Status> {
        if self.manner == Manner::Hanging {
            std::future::pending::<()>().await;
        }
        let (r#type, name) = (self.kind.to_owned(), self.name.to_owned());
        let supported_versions = vec!["1.0.0".to_owned()];
        Ok(Response::new(PluginInfo { r#type, name, endpoint: String::new(), supported_versions }))
    }

    async fn notify_registration_status(
        &self,
        request: Request<RegistrationStatus>,
    ) -> Result<Response<RegistrationStatusResponse>, Status> {
        self.heard.lock().push(request.into_inner());
        if self.manner == Manner::Deaf {
            return Err(Status::internal("no"));
        }
        Ok(Response::new(RegistrationStatusResponse {}))
    }
}

/// Keeps what it was asked to do.
#[derive(Default)]
struct Journal(Mutex<Vec<String>>);

impl Journal {
    fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    async fn wait_for(&self, line: &str) {
        let seen = async {
            while !self.lines().iter().any(|seen| seen == line) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let told = tokio::time::timeout(Duration::from_secs(20), seen).await;
        assert!(told.is_ok(), "{line} is not among {:?}", self.lines());
    }
}

#[async_trait::async_trait]
impl PluginHandler for Journal {
    fn kind(&self) -> &'static str {
        "CSIPlugin"
    }

    fn validate(&self, plugin: &PluginInfo) -> Result<(), SideError> {
        if plugin.name == "invalid" { Err(SideError::new("no such name")) } else { Ok(()) }
    }

    async fn register(&self, plugin: &PluginInfo) -> Result<(), SideError> {
        self.0.lock().push(format!("+{}", plugin.name));
        if plugin.name == "refused" { Err(SideError::new("not today")) } else { Ok(()) }
    }

    async fn unregister(&self, plugin: &PluginInfo) {
        self.0.lock().push(format!("-{}", plugin.name));
    }
}

impl PluginCounts for Journal {
    fn count(&self, socket: &str, state: &'static str, there: bool) {
        let name = Path::new(socket).file_name().unwrap().to_string_lossy().into_owned();
        let state = state.split('_').next().unwrap();
        self.0.lock().push(format!("{name} {state} {there}"));
    }
}

struct Bench {
    dir: tempfile::TempDir,
    journal: Arc<Journal>,
    tasks: TaskGroup,
}

fn bench() -> Bench {
    let (dir, journal, tasks) = (tempfile::tempdir().unwrap(), Arc::new(Journal::default()), TaskGroup::new("test"));
    let watcher = PluginWatcher {
        directory: dir.path().to_owned(),
        handlers: vec![journal.clone()],
        clock: SystemClock::shared(),
        counts: journal.clone(),
    };
    tasks.spawn_cancellable("watcher", watcher.run());
    Bench { dir, journal, tasks }
}

impl Bench {
    /// A plugin that listens at its socket until the group that is returned ends.
    fn start(&self, kind: &'static str, name: &'static str, manner: Manner) -> (Plugin, TaskGroup) {
        let plugin = Plugin { kind, name, manner, heard: Arc::default() };
        let listener = UnixListener::bind(self.dir.path().join(format!("{name}.sock"))).unwrap();
        let service = RegistrationServer::new(plugin.clone());
        let group = TaskGroup::new("plugin");
        group.spawn_cancellable("plugin", async move {
            let served = Server::builder().add_service(service);
            served.serve_with_incoming(UnixListenerStream::new(listener)).await.unwrap();
        });
        (plugin, group)
    }
}

async fn hears(plugin: &Plugin) -> RegistrationStatus {
    let heard = async {
        loop {
            if let Some(status) = plugin.heard.lock().first().cloned() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), heard).await.expect("the plugin is told")
}

#[tokio::test]
async fn plugins_come_are_made_anew_and_go() {
    let bench = bench();
    let (plugin, group) = bench.start("CSIPlugin", "a", Manner::Good);
    assert!(hears(&plugin).await.plugin_registered);
    bench.journal.wait_for("a.sock actual true").await;
    group.shutdown(Duration::from_secs(1)).await;
    std::fs::remove_file(bench.dir.path().join("a.sock")).unwrap();
    let (again, _group) = bench.start("CSIPlugin", "a", Manner::Good);
    assert!(hears(&again).await.plugin_registered);
    let moves: Vec<String> = bench.journal.lines().into_iter().filter(|line| !line.contains(' ')).collect();
    assert_eq!(moves, ["+a", "-a", "+a"], "the old one goes before the new one comes");
    std::fs::remove_file(bench.dir.path().join("a.sock")).unwrap();
    bench.journal.wait_for("a.sock desired false").await;
    bench.journal.wait_for("a.sock actual false").await;
    assert_eq!(bench.journal.lines().iter().filter(|line| *line == "-a").count(), 2);
    bench.tasks.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_plugin_hears_why_it_is_not_registered() {
    let bench = bench();
    let at = |name: &str| bench.dir.path().join(format!("{name}.sock")).display().to_string();
    let prefix = "RegisterPlugin error -- ";
    let cases = [
        ("Other", "kind", format!("{prefix}no handler registered for plugin type: Other at socket {}", at("kind"))),
        ("CSIPlugin", "invalid", format!("{prefix}plugin validation failed with err: no such name")),
        ("CSIPlugin", "refused", format!("{prefix}plugin registration failed with err: not today")),
    ];
    for (kind, name, expected) in cases {
        let (plugin, _group) = bench.start(kind, name, Manner::Good);
        let status = hears(&plugin).await;
        assert_eq!((status.plugin_registered, status.error), (false, expected));
    }
    bench.tasks.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn who_hangs_is_deaf_or_dead_holds_nobody_up() {
    let bench = bench();
    // A socket that a plugin left when it died.
    drop(UnixListener::bind(bench.dir.path().join("dead.sock")).unwrap());
    let (_hanging, _one) = bench.start("CSIPlugin", "hanging", Manner::Hanging);
    let (deaf, _two) = bench.start("CSIPlugin", "deaf", Manner::Deaf);
    hears(&deaf).await;
    bench.journal.wait_for("-deaf").await;
    let below = bench.dir.path().join("below");
    std::fs::create_dir(&below).unwrap();
    let (good, _three) = bench.start("CSIPlugin", "good", Manner::Good);
    assert!(hears(&good).await.plugin_registered);
    assert!(!bench.journal.lines().contains(&"dead.sock actual true".to_owned()));
    bench.tasks.shutdown(Duration::from_secs(1)).await;
}
