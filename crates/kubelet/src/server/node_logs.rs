//! `/logs`: the machine's logs, as files, and by the names of services where the configuration allows that (KEP-2258).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::field_path::ErrorList;
use api_types::kubelet_config_v1beta1::KubeletConfiguration;
use base::TaskGroup;
use component_base::debugging::log_files;
use component_base::serving::{Query, Response, compressed, text};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sys::exec::{Command, Exec, ExecError, LinuxExec};
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc;

use super::log_query::{Asked, LogQuery, ServiceQuery};
use super::log_read::Sink;
use super::logs::{PIECES, streamed};
use super::route::disabled;

/// The directory of the machine's logs.
const LOGS: &str = "/var/log";
/// How long the logs of services may be read for one request.
const LIMIT: Duration = Duration::from_secs(30);
/// Bytes of a file that are read at a time.
const BLOCK: usize = 64 * 1024;

/// The machine's logs.
pub(crate) struct NodeLogs {
    directory: PathBuf,
    exec: Arc<dyn Exec>,
    tasks: TaskGroup,
    /// `enableSystemLogHandler`
    served: bool,
    /// `enableSystemLogQuery`
    queried: bool,
}

impl NodeLogs {
    pub(crate) fn new(config: &KubeletConfiguration, tasks: &TaskGroup) -> Self {
        Self {
            directory: LOGS.into(),
            exec: Arc::new(LinuxExec),
            tasks: tasks.clone(),
            served: config.enable_system_log_handler != Some(false),
            queried: config.enable_system_log_query == Some(true),
        }
    }

    /// Answers `/logs/{path}`: files as they are, directories as lists of links, and what a query asks for. Nothing outside
    /// the directory is served.
    pub(super) async fn answer(&self, path: &[&str], query: &Query, headers: &HeaderMap) -> Response {
        if !self.served {
            return disabled("logs endpoint is disabled.");
        }
        let mut relative = path.join("/");
        let parsed = if self.queried { LogQuery::parse(query) } else { Ok(None) };
        match parsed {
            Err(errors) => return refused(StatusCode::BAD_REQUEST, &errors),
            Ok(None) => {}
            Ok(Some(_)) if !relative.is_empty() => {
                return text(StatusCode::NOT_ACCEPTABLE, "path not allowed in query mode\n");
            }
            Ok(Some(asked)) => match asked.allowed(&self.directory) {
                Err(errors) => return refused(StatusCode::NOT_ACCEPTABLE, &errors),
                Ok(Asked::File(file)) => relative = file,
                Ok(Asked::Services(services)) => return self.of_services(services, headers),
            },
        }
        let range = headers.get(header::RANGE).and_then(|range| range.to_str().ok()).map(ToOwned::to_owned);
        let directory = self.directory.clone();
        let read = tokio::task::spawn_blocking(move || {
            let held = sys::fs::open_beneath(&directory, Path::new(&relative))?;
            log_files::answer(&held.path(), range.as_deref())
        });
        match read.await {
            Ok(Ok(response)) => response,
            _ => super::route::not_found(),
        }
    }

    /// The logs of services as they are read.
    fn of_services(&self, query: ServiceQuery, headers: &HeaderMap) -> Response {
        let (sink, pieces) = mpsc::channel(PIECES);
        let reading = Reading { directory: self.directory.clone(), exec: Arc::clone(&self.exec), sink };
        self.tasks.spawn_cancellable("node-log-query", async move {
            if tokio::time::timeout(LIMIT, reading.all(&query)).await.is_err() {
                tracing::info!(services = ?query.services, "Reading the logs of services took too long");
            }
        });
        let mut response = streamed(None, pieces);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain;charset=UTF-8"));
        if headers.get(header::ACCEPT_ENCODING).is_some_and(|accepted| accepted == "gzip") {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            return response.map(compressed);
        }
        response
    }
}

fn refused(status: StatusCode, errors: &ErrorList) -> Response {
    text(status, format!("{errors}\n"))
}

/// Nobody reads any more.
struct Gone;

/// Reads for one request.
struct Reading {
    directory: PathBuf,
    exec: Arc<dyn Exec>,
    sink: Sink,
}

impl Reading {
    /// What the journal has of the services that it knows, then the files of the others. What goes wrong is told in between.
    async fn all(&self, query: &ServiceQuery) {
        let known = self.units().await;
        let in_journal =
            |service: &String| known.lines().any(|unit| unit.strip_suffix(".service") == Some(service.as_str()));
        let (of_journal, of_files): (Vec<String>, Vec<String>) = query.services.iter().cloned().partition(in_journal);
        // Who asked may be gone at any time.
        let _ = self.both(query, &of_journal, &of_files).await;
    }

    async fn both(&self, query: &ServiceQuery, of_journal: &[String], of_files: &[String]) -> Result<(), Gone> {
        if !of_journal.is_empty() {
            self.journal(query.journal(of_journal).deadline(LIMIT)).await?;
        }
        if !of_files.is_empty() && query.has_options() {
            let services = of_files.join(" ");
            let why = "\noptions present and query resolved to log files for";
            return self.put(format!("{why} [{services}]\ntry without specifying options\n")).await;
        }
        for service in of_files {
            self.files(service).await?;
        }
        Ok(())
    }

    /// The services that the journal has something of; none where there is no journal.
    async fn units(&self) -> String {
        let command = Command::with("journalctl", &["--field", "_SYSTEMD_UNIT"]).deadline(LIMIT);
        match self.exec.run_ok(&command).await {
            Ok(output) => output.text(),
            Err(error) => {
                tracing::debug!(%error, "The journal does not tell its units");
                String::new()
            }
        }
    }

    /// What the journal's program writes, to either of its streams.
    async fn journal(&self, command: Command) -> Result<(), Gone> {
        let (written, mut pieces) = mpsc::channel(1);
        let pass_on = async move {
            while let Some(piece) = pieces.recv().await {
                self.put(piece).await?;
            }
            Ok::<(), Gone>(())
        };
        let (ended, passed) = tokio::join!(self.exec.pipe(&command, written), pass_on);
        match ended {
            Ok(_) | Err(ExecError::Deadline { .. }) => passed,
            Err(error) => {
                tracing::info!(%error, "Reading the journal failed");
                self.put("\nerror: journal output not available\n").await
            }
        }
    }

    /// The first file that a service's log may be.
    async fn files(&self, service: &str) -> Result<(), Gone> {
        for name in [service.to_owned(), format!("{service}.log"), format!("{service}/{service}.log")] {
            match self.file(&name).await {
                Ok(passed) => return passed,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return self.put(format!("\nerror getting log for {service}: {error}\n")).await,
            }
        }
        self.put(format!("\nlog not found for {service}\n")).await
    }

    /// Passes a file on. A directory is none: its log may lie in it.
    async fn file(&self, name: &str) -> std::io::Result<Result<(), Gone>> {
        let held = sys::fs::open_beneath(&self.directory, Path::new(name))?;
        let meta = std::fs::metadata(held.path())?;
        if meta.is_dir() {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        if !meta.is_file() {
            return Err(std::io::Error::other("not a regular file"));
        }
        // What is written meanwhile is the next request's.
        let mut file = tokio::fs::File::open(held.path()).await?.take(meta.len());
        loop {
            let mut block = Vec::with_capacity(BLOCK);
            if file.read_buf(&mut block).await? == 0 {
                return Ok(Ok(()));
            }
            if let Err(gone) = self.put(block).await {
                return Ok(Err(gone));
            }
        }
    }

    async fn put(&self, piece: impl Into<bytes::Bytes>) -> Result<(), Gone> {
        self.sink.send(Ok(piece.into())).await.map_err(|_| Gone)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use http_body_util::BodyExt as _;
    use sys::exec::{FakeExec, Output};

    use super::*;

    struct Bench {
        logs: NodeLogs,
        exec: Arc<FakeExec>,
        directory: tempfile::TempDir,
    }

    impl Bench {
        fn new(exec: FakeExec) -> Self {
            let (directory, exec) = (tempfile::tempdir().unwrap(), Arc::new(exec));
            let config = KubeletConfiguration { enable_system_log_query: Some(true), ..Default::default() };
            let own = NodeLogs::new(&config, &TaskGroup::new("test"));
            let logs = NodeLogs { directory: directory.path().to_owned(), exec: exec.clone(), ..own };
            Self { logs, exec, directory }
        }

        fn write(&self, name: &str, content: &str) {
            let path = self.directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }

        async fn ask(&self, path: &[&str], query: &str) -> (u16, String) {
            let response = self.logs.answer(path, &Query::parse(query).unwrap(), &HeaderMap::new()).await;
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            (status, String::from_utf8_lossy(&body).into_owned())
        }
    }

    /// A journal that knows the kubelet.
    fn journal() -> FakeExec {
        let units = "init.scope\nkubelet.service\nuser@0.service\n";
        FakeExec::new().answer("_SYSTEMD_UNIT", Output::ok(units)).answer("--unit=kubelet", Output::ok("a line\n"))
    }

    #[tokio::test]
    async fn services_are_looked_for_in_the_journal_and_in_files() {
        let bench = Bench::new(journal());
        assert_eq!(bench.ask(&[""], "query=kubelet").await, (200, "a line\n".into()));
        let show = "journalctl --utc --no-pager --output=short-precise";
        assert_eq!(bench.exec.lines()[1..], [format!("{show} --unit=kubelet")]);
        bench.write("plain", "1");
        bench.write("dotted.log", "2");
        bench.write("deep/deep.log", "3");
        for (query, expected) in [
            ("query=plain", "1"),
            ("query=dotted", "2"),
            ("query=deep", "3"),
            ("query=let", "\nlog not found for let\n"),
            ("query=dotted&query=kubelet&query=none", "a line\n2\nlog not found for none\n"),
            (
                "query=dotted&query=kubelet&tailLines=1",
                "a line\n\noptions present and query resolved to log files for [dotted]\ntry without specifying options\n",
            ),
        ] {
            assert_eq!(bench.ask(&[""], query).await, (200, expected.into()), "{query}");
        }
        assert!(bench.exec.lines().contains(&format!("{show} --lines=1 --unit=kubelet")));
    }

    #[tokio::test]
    async fn files_are_served_as_without_a_query() {
        let bench = Bench::new(journal());
        bench.write("pods/one.log", "content");
        assert_eq!(bench.ask(&[""], "query=/pods/one.log").await, (200, "content".into()));
        assert_eq!(bench.ask(&["pods", "one.log"], "").await, (200, "content".into()));
        assert_eq!(bench.ask(&["pods"], "query=kubelet").await, (406, "path not allowed in query mode\n".into()));
        assert_eq!(bench.ask(&[""], "query=/pods&boot=0").await.0, 406);
        assert_eq!(bench.ask(&[""], "query=").await.0, 400);
        assert!(bench.exec.lines().is_empty(), "no program is started for a file");
    }

    #[tokio::test]
    async fn what_is_not_enabled_is_not_looked_at() {
        let mut bench = Bench::new(journal());
        bench.logs.queried = false;
        bench.write("one.log", "content");
        assert!(bench.ask(&[""], "query=kubelet").await.1.contains("one.log"), "the list of files");
        bench.logs.served = false;
        assert_eq!(bench.ask(&["one.log"], "").await, (405, "logs endpoint is disabled.\n".into()));
    }

    #[tokio::test]
    async fn logs_are_compressed_for_who_takes_that() {
        let bench = Bench::new(journal());
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let response = bench.logs.answer(&[""], &Query::parse("query=kubelet").unwrap(), &headers).await;
        assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/plain;charset=UTF-8");
        let packed = response.into_body().collect().await.unwrap().to_bytes();
        let mut plain = String::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut plain).unwrap();
        assert_eq!(plain, "a line\n");
    }
}
