//! `/debug/...`: what a running process tells those who look for a fault in it, and the log's verbosity.
//!
//! Go's profiles are stacks that its run-time gathers; there is no such run-time here. What the process can tell without
//! one is served under the same names: its threads, its tasks, its memory, its command line. Profiles that need stacks are
//! answered as ones that do not exist (`docs/compatibility.md`).

pub mod log_files;
mod profiles;
#[cfg(test)]
mod tests;
mod verbosity;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::TaskGroup;
use http::{HeaderValue, Method, StatusCode, header};
use tokio::net::UnixListener;

use crate::Lifecycle;
use crate::logging::Logging;
use crate::serving::{Body, Request, Response, Security, Server, full, handler_fn, text};

pub use verbosity::set_verbosity;

const PROFILES: &str = "/debug/pprof";
const FLAGS: &str = "/debug/flags";

/// Whether it is told where threads wait (`--contention-profiling`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Contention {
    /// No.
    #[default]
    Untold,
    /// Yes.
    Told,
}

/// The debug handlers of a process. Clones are the same.
#[derive(Debug, Clone)]
pub struct Debugging {
    tasks: TaskGroup,
    logging: Option<Logging>,
    contention: Contention,
}

impl Debugging {
    /// Of a process.
    #[must_use]
    pub fn new(lifecycle: &Lifecycle, contention: Contention) -> Self {
        Self { tasks: lifecycle.tasks().clone(), logging: lifecycle.logging().cloned(), contention }
    }

    /// Whether a path is one of the handlers'.
    #[must_use]
    pub fn serves(path: &str) -> bool {
        let below = |place: &str| path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        below(PROFILES) || below(FLAGS)
    }

    /// The answer to a request for a path of which [`Self::serves`] is true.
    pub async fn answer(&self, path: &str, method: &Method, body: Body) -> Response {
        match path {
            PROFILES => moved(),
            "/debug/flags/v" => set_verbosity(self.logging.as_ref(), method, body).await,
            "/debug/flags" | "/debug/flags/" => page("/debug/flags/", &["v"]),
            _ => match path.strip_prefix(PROFILES).and_then(|rest| rest.strip_prefix('/')) {
                Some("") => page("/debug/pprof/", &profiles::NAMES),
                Some(name) => profiles::answer(name, &self.tasks, self.contention),
                None => text(StatusCode::NOT_FOUND, "404 page not found\n"),
            },
        }
    }

    /// Serves the handlers on a Unix socket, to whoever may open it (`--debug-socket-path`). A socket that a former
    /// process left is replaced.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn listen(&self, path: &Path, tasks: &TaskGroup) -> Result<(), DebugSocketError> {
        let failed = |source| DebugSocketError { path: path.to_owned(), source };
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let own = self.clone();
        let handler = handler_fn(move |request: Request| {
            let own = own.clone();
            async move {
                let (parts, body) = request.into_parts();
                if !Self::serves(parts.uri.path()) {
                    return text(StatusCode::NOT_FOUND, "404 page not found\n");
                }
                own.answer(parts.uri.path(), &parts.method, body).await
            }
        });
        Server::new(Arc::new(handler), Security::Plain).spawn_unix(tasks, listener);
        tracing::info!(path = %path.display(), "Serving debug handlers on a Unix socket");
        Ok(())
    }
}

/// The socket of the debug handlers cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on {}: {source}", path.display())]
pub struct DebugSocketError {
    path: PathBuf,
    source: std::io::Error,
}

fn moved() -> Response {
    let mut response = text(StatusCode::FOUND, "");
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/debug/pprof/"));
    response
}

/// A page of links.
fn page(title: &str, names: &[&str]) -> Response {
    let links: Vec<String> = names.iter().map(|name| format!("<a href=\"{title}{name}\">{name}</a><br>\n")).collect();
    let content = format!(
        "<html>\n<head><title>{title}</title></head>\n<body>\n{title}<br>\n{}</body>\n</html>\n",
        links.concat()
    );
    let mut response = Response::new(full(content));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// As Go escapes text for HTML.
pub(crate) fn escaped(text: &str) -> String {
    let escape = |text: &str, letter, code| text.replace(letter, code);
    let pairs = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&#34;"), ('\'', "&#39;")];
    pairs.into_iter().fold(text.to_owned(), |text, (letter, code)| escape(&text, letter, code))
}
