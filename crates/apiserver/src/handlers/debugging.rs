//! What the server tells those who look for a fault in it: `/flagz`, `/statusz`, `/debug/...`, `/logs`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use api_machinery::status::ApiError;
use async_trait::async_trait;
use component_base::debugging::{Debugging, log_files};
use component_base::lifecycle::Lifecycle;
use component_base::serving::{Response, text};
use component_base::zpages::Zpages;
use http::StatusCode;
use http::header::RANGE;

use crate::chain::{Authorized, Request};
use crate::config::DebuggingConfig;
use crate::cx::ApiCx;
use crate::request::percent;
use crate::routes::{Endpoint, Routes};

/// What the server calls itself on these pages, as upstream's.
const COMPONENT: &str = "apiserver";
/// The directory of the machine's logs.
const LOGS: &str = "/var/log";
/// Folders that the page of the server's status does not name, as upstream.
const UNNAMED: [&str; 5] = ["/api", "/apis", "/openapi", "/openid", "/.well-known"];

/// Adds the places. They come after the others, whose paths one of the pages names.
pub(crate) fn install(routes: &mut Routes, config: &DebuggingConfig, lifecycle: &Lifecycle) {
    if config.profiling {
        let debugging: Arc<dyn Endpoint> = Arc::new(Debug(Debugging::new(lifecycle, config.contention)));
        for path in ["/debug/pprof", "/debug/flags", "/debug/flags/", "/debug/flags/v"] {
            routes.exact(path, Arc::clone(&debugging));
        }
        routes.prefix("/debug/pprof/", debugging);
    }
    if config.logs {
        let logs: Arc<dyn Endpoint> = Arc::new(Logs(PathBuf::from(LOGS)));
        routes.exact("/logs", Arc::clone(&logs));
        routes.prefix("/logs/", logs);
    }
    let pages = Zpages::new(COMPONENT, lifecycle, &folders(routes));
    let pages: Arc<dyn Endpoint> = Arc::new(Pages(pages));
    for path in Zpages::served(lifecycle.gates()) {
        routes.exact(path, Arc::clone(&pages));
    }
}

/// The uppermost folders of what is served.
fn folders(routes: &Routes) -> Vec<&'static str> {
    let top = |path: &'static str| {
        let below = path.get(1..)?;
        path.get(..=below.find('/').unwrap_or(below.len()))
    };
    routes.paths().filter_map(top).filter(|folder| folder.len() > 1 && !UNNAMED.contains(folder)).collect()
}

struct Pages(Zpages);

#[async_trait]
impl Endpoint for Pages {
    async fn serve(&self, _: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        Ok(self.0.answer(&request.info().path, request.headers()).unwrap_or_else(not_found))
    }
}

struct Debug(Debugging);

#[async_trait]
impl Endpoint for Debug {
    async fn serve(&self, _: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        let (parts, body) = request.into_parts();
        Ok(self.0.answer(parts.uri.path(), &parts.method, body).await)
    }
}

/// The files below a directory.
struct Logs(PathBuf);

#[async_trait]
impl Endpoint for Logs {
    async fn serve(&self, _: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        let path = percent::decode(request.uri().path());
        let path = PathBuf::from(path.strip_prefix("/logs").unwrap_or_default().trim_start_matches('/'));
        let range = request.headers().get(RANGE).and_then(|range| range.to_str().ok()).map(str::to_owned);
        let root = self.0.clone();
        let read = tokio::task::spawn_blocking(move || below(&root, &path, range.as_deref()));
        Ok(match read.await {
            Ok(Ok(response)) => response,
            _ => text(StatusCode::NOT_FOUND, "file not found"),
        })
    }
}

/// What lies below a directory, wherever links lead.
fn below(root: &Path, path: &Path, range: Option<&str>) -> std::io::Result<Response> {
    let root = root.canonicalize()?;
    let found = root.join(path).canonicalize()?;
    if !found.starts_with(&root) {
        return Err(std::io::ErrorKind::NotFound.into());
    }
    log_files::answer(&found, range)
}

fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_the_directory_is_shown() {
        let directory = tempfile::tempdir().unwrap();
        let logs = directory.path().join("logs");
        std::fs::create_dir_all(logs.join("pods")).unwrap();
        std::fs::write(directory.path().join("secret"), "s").unwrap();
        std::fs::write(logs.join("a.log"), "0123456789").unwrap();
        std::os::unix::fs::symlink(directory.path().join("secret"), logs.join("link")).unwrap();
        let ask = |path: &str, range| below(&logs, Path::new(path), range).map(|answer| answer.status().as_u16()).ok();
        assert_eq!(ask("", None), Some(200));
        assert_eq!(ask("pods", None), Some(200));
        assert_eq!(ask("a.log", None), Some(200));
        assert_eq!(ask("a.log", Some("bytes=2-4")), Some(206));
        let long = "x".repeat(5_000);
        for path in ["link", "../secret", "/etc/passwd", "pods/../../secret", "nothing", &long] {
            assert_eq!(ask(path, None), None, "{path}");
        }
    }
}
