//! Static pods from a URL, asked at intervals.

use std::time::Duration;

use tokio::sync::mpsc;

use super::manifest::{Reading, read_list};
use super::{Source, SourceSet};
use crate::probe::http::{Get, get_up_to};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Failures that are logged loudly before the log goes quiet.
const LOUD_FAILURES: u32 = 3;
const MAX_BODY_BYTES: usize = 10 * 1024 * 1024;

/// Where static pods are asked for.
pub(crate) struct HttpSource {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) node_name: String,
    pub(crate) period: Duration,
    pub(crate) refuse_references: bool,
}

impl HttpSource {
    /// Delivers sets until the receiver is gone or the caller drops the future.
    pub(crate) async fn run(self, sets: mpsc::Sender<SourceSet>) {
        let mut last = None;
        let mut failures = 0_u32;
        let mut ticks = tokio::time::interval(self.period);
        loop {
            ticks.tick().await;
            match self.look(&mut last).await {
                Ok(None) => failures = 0,
                Ok(Some(set)) => {
                    failures = 0;
                    if sets.send(set).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    match failures {
                        0..=LOUD_FAILURES => tracing::warn!(url = %self.url, %error, "Failed to read pods from URL"),
                        _ => tracing::debug!(url = %self.url, %error, "Failed to read pods from URL"),
                    }
                }
            }
        }
    }

    /// `None` where nothing changed since the last time.
    async fn look(&self, last: &mut Option<String>) -> Result<Option<SourceSet>, String> {
        let uri: http::Uri = self.url.parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
        let scheme = uri.scheme_str().unwrap_or("http");
        let port = uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let host = uri.host().ok_or("the URL has no host")?;
        let request = Get::new(scheme, host, port, path, self.headers.clone(), "kubelet/v1.36.0");
        let answer = get_up_to(&request, TIMEOUT, MAX_BODY_BYTES).await.map_err(|error| error.to_string())?;
        if answer.status != 200 {
            return Err(format!("{}: {}", self.url, answer.status));
        }
        if last.as_ref() == Some(&answer.body) {
            return Ok(None);
        }
        let reading = Reading {
            source: Source::Http,
            origin: &self.url,
            node_name: &self.node_name,
            refuse_references: self.refuse_references,
        };
        if answer.body.is_empty() {
            tracing::warn!(url = %self.url, "Zero-length data received from URL");
        }
        let pods = if answer.body.is_empty() { Vec::new() } else { read_list(&answer.body, &reading)? };
        *last = Some(answer.body);
        Ok(Some(SourceSet { source: Source::Http, pods }))
    }
}
