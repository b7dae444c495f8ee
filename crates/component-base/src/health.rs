//! `/healthz`, `/livez` and `/readyz`: named checks, run in the order in which they were added.
//!
//! Texts and status codes are upstream's. A check's reason is shown only when it is asked for alone; otherwise it goes
//! to the log.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use http::header::X_CONTENT_TYPE_OPTIONS;
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::metrics::{Counters, Desc, Gauges, Metrics, Stability};
use crate::serving::{Response, text};

/// Whether all is well, or why not.
pub type CheckResult = Result<(), String>;

type CheckFuture = Pin<Box<dyn Future<Output = CheckResult> + Send>>;
type CheckFn = Arc<dyn Fn() -> CheckFuture + Send + Sync>;

/// One of the three endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// The old one, for everything.
    Healthz,
    /// Whether the process must be restarted.
    Livez,
    /// Whether to send it requests.
    Readyz,
}

impl Endpoint {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Healthz, Self::Livez, Self::Readyz];
    /// Only readiness.
    pub const READY: &'static [Self] = &[Self::Readyz];

    /// Its name, which is its path without the slash.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }
}

/// A named check.
#[derive(Clone)]
pub struct Check {
    name: String,
    group: Option<String>,
    boot: bool,
    run: CheckFn,
}

impl Check {
    /// A check that may wait. It should bound its own time.
    pub fn new<F, A>(name: impl Into<String>, run: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = CheckResult> + Send + 'static,
    {
        Self { name: name.into(), group: None, boot: false, run: Arc::new(move || Box::pin(run())) }
    }

    /// A check that only looks at memory.
    pub fn instant(name: impl Into<String>, run: impl Fn() -> CheckResult + Send + Sync + 'static) -> Self {
        let run = Arc::new(run);
        Self::new(name, move || std::future::ready(run()))
    }

    /// The check that never fails.
    #[must_use]
    pub fn ping() -> Self {
        Self::instant("ping", || Ok(()))
    }

    /// Part of a group that `exclude` can name (`etcd` for all etcd checks).
    #[must_use]
    pub fn in_group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Part of the start-up: on `/livez` it passes until the grace period is over.
    #[must_use]
    pub fn of_boot(mut self) -> Self {
        self.boot = true;
        self
    }
}

/// A step of the start-up that readiness waits for: `poststarthook/<name>` fails with `not finished` until it is done.
#[derive(Debug, Clone, Default)]
pub struct Hook(Arc<AtomicBool>);

impl Hook {
    /// The step is done.
    pub fn done(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// The check of a step that goes by this name.
    #[must_use]
    pub fn check(&self, name: &str) -> Check {
        let done = Arc::clone(&self.0);
        let run = move || if done.load(Ordering::Acquire) { Ok(()) } else { Err("not finished".to_owned()) };
        Check::instant(format!("poststarthook/{name}"), run).of_boot()
    }
}

/// A check was added after the endpoint was in use.
#[derive(Debug, thiserror::Error)]
#[error("unable to add because the {} endpoint has already been created", .0.name())]
pub struct Installed(Endpoint);

const HEALTHCHECK: Desc =
    Desc::new("kubernetes_healthcheck", "The result of the last probe of a check: 1 is well.", Stability::Stable)
        .labels(&["name", "type"]);
const HEALTHCHECKS_TOTAL: Desc =
    Desc::new("kubernetes_healthchecks_total", "How often checks were probed, by result.", Stability::Stable)
        .labels(&["name", "status", "type"]);

/// The health checks of a component.
pub struct Health {
    checks: RwLock<[Vec<Check>; 3]>,
    installed: AtomicBool,
    shutting_down: AtomicBool,
    grace: Duration,
    started: Instant,
    state: Gauges,
    total: Counters,
}

impl Health {
    /// Endpoints with `ping` and, on `/readyz`, nothing else yet. The results go to `slis`, which `/metrics/slis` shows.
    /// `grace` is `--livez-grace-period`.
    #[must_use]
    pub fn new(slis: &Metrics, grace: Duration) -> Arc<Self> {
        let health = Self {
            checks: RwLock::default(),
            installed: AtomicBool::new(false),
            shutting_down: AtomicBool::new(false),
            grace,
            started: Instant::now(),
            state: slis.gauges(&HEALTHCHECK),
            total: slis.counters(&HEALTHCHECKS_TOTAL),
        };
        for list in health.checks.write().iter_mut() {
            list.push(Check::ping());
        }
        Arc::new(health)
    }

    /// Adds a check to some endpoints.
    ///
    /// # Errors
    /// Once an endpoint has been asked for the first time.
    pub fn add(&self, endpoints: &[Endpoint], check: &Check) -> Result<(), Installed> {
        if self.installed.load(Ordering::Acquire) {
            return Err(Installed(endpoints.first().copied().unwrap_or(Endpoint::Healthz)));
        }
        let mut checks = self.checks.write();
        for endpoint in endpoints {
            checks[*endpoint as usize].push(check.clone());
        }
        Ok(())
    }

    /// Makes `/readyz` fail with the check `shutdown` from now on; the other endpoints stay.
    pub fn begin_shutdown(&self) {
        self.shutting_down.store(true, Ordering::Release);
    }

    /// Whether a path belongs to one of the endpoints.
    #[must_use]
    pub fn serves(path: &str) -> bool {
        split(path).is_some()
    }

    /// The path of each check.
    #[must_use]
    pub fn check_paths(&self) -> Vec<String> {
        let checks = self.checks.read();
        let of = |endpoint: &Endpoint| {
            let name = endpoint.name();
            checks[*endpoint as usize].iter().map(move |check| format!("/{name}/{}", check.name))
        };
        Endpoint::ALL.iter().flat_map(of).collect()
    }

    /// Answers a path of one of the endpoints; nothing for other paths and unknown checks. The method does not matter.
    pub async fn answer(&self, path: &str, query: Option<&str>) -> Option<Response> {
        let (endpoint, name) = split(path)?;
        self.installed.store(true, Ordering::Release);
        let checks = self.checks_of(endpoint);
        match name {
            None => Some(self.answer_all(endpoint, &checks, query.unwrap_or_default()).await),
            Some(name) => {
                let check = checks.iter().find(|check| check.name == name)?;
                Some(match self.probe(endpoint, check).await {
                    Ok(()) => {
                        let mut well = text(StatusCode::OK, "ok");
                        // Upstream writes this one, unlike the others, without a thought about its type.
                        well.headers_mut().remove(X_CONTENT_TYPE_OPTIONS);
                        well
                    }
                    Err(reason) => {
                        text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n"))
                    }
                })
            }
        }
    }

    fn checks_of(&self, endpoint: Endpoint) -> Vec<Check> {
        let mut checks = self.checks.read()[endpoint as usize].clone();
        if endpoint == Endpoint::Readyz {
            let down = self.shutting_down.load(Ordering::Acquire);
            checks.push(Check::instant("shutdown", move || {
                if down { Err("process is shutting down".to_owned()) } else { Ok(()) }
            }));
        }
        checks
    }

    async fn answer_all(&self, endpoint: Endpoint, checks: &[Check], query: &str) -> Response {
        let query = Query::parse(query);
        let mut unmatched = query.exclude.clone();
        let (mut body, mut failures) = (String::new(), Vec::new());
        for check in checks {
            if unmatched.remove(&check.name) || query.exclude.contains(&check.name) {
                let _ = writeln!(body, "[+]{} excluded: ok", check.name);
                continue;
            }
            if let Some(group) = check.group.as_ref().filter(|group| query.exclude.contains(*group)) {
                unmatched.remove(group);
                let _ = writeln!(body, "[+]{} excluded with {group}: ok", check.name);
                continue;
            }
            match self.probe(endpoint, check).await {
                Ok(()) => {
                    let _ = writeln!(body, "[+]{} ok", check.name);
                }
                Err(reason) => {
                    let _ = writeln!(body, "[-]{} failed: reason withheld", check.name);
                    failures.push((check.name.clone(), reason));
                }
            }
        }
        if !unmatched.is_empty() {
            let names: Vec<String> = unmatched.iter().map(|name| format!("{name:?}")).collect();
            let _ = writeln!(body, "warn: some health checks cannot be excluded: no matches for {}", names.join(","));
        }
        finish(endpoint, body, &failures, query.verbose)
    }

    async fn probe(&self, endpoint: Endpoint, check: &Check) -> CheckResult {
        let in_grace = endpoint == Endpoint::Livez && check.boot && self.started.elapsed() < self.grace;
        let result = if in_grace { Ok(()) } else { (check.run)().await };
        let (value, status) = if result.is_ok() { (1.0, "success") } else { (0.0, "error") };
        self.state.with(&[&check.name, endpoint.name()]).set(value);
        self.total.with(&[&check.name, status, endpoint.name()]).inc();
        result
    }
}

fn finish(endpoint: Endpoint, mut body: String, failures: &[(String, String)], verbose: bool) -> Response {
    let endpoint = endpoint.name();
    if failures.is_empty() {
        if !verbose {
            return text(StatusCode::OK, "ok");
        }
        let _ = writeln!(body, "{endpoint} check passed");
        return text(StatusCode::OK, body);
    }
    let names: Vec<&str> = failures.iter().map(|(name, _)| name.as_str()).collect();
    let details: Vec<String> = failures.iter().map(|(name, reason)| format!("[-]{name} failed: {reason}")).collect();
    tracing::info!(v = 2, endpoint, checks = %names.join(","), details = %details.join("\n"), "health check failed");
    let _ = writeln!(body, "{endpoint} check failed");
    text(StatusCode::INTERNAL_SERVER_ERROR, body)
}

/// The endpoint and the single check of a path.
fn split(path: &str) -> Option<(Endpoint, Option<&str>)> {
    Endpoint::ALL.iter().find_map(|endpoint| {
        let rest = path.strip_prefix('/')?.strip_prefix(endpoint.name())?;
        match rest.strip_prefix('/') {
            Some(check) if !check.is_empty() => Some((*endpoint, Some(check))),
            Some(_) => Some((*endpoint, None)),
            None => rest.is_empty().then_some((*endpoint, None)),
        }
    })
}

/// What a probe's query asks for.
#[derive(Debug, Default)]
struct Query {
    verbose: bool,
    exclude: BTreeSet<String>,
}

/// Names that one probe may exclude; there are not that many checks.
const EXCLUDES: usize = 256;

impl Query {
    fn parse(query: &str) -> Self {
        let mut parsed = Self::default();
        for pair in query.split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "verbose" => parsed.verbose = true,
                "exclude" if parsed.exclude.len() < EXCLUDES => {
                    parsed.exclude.insert(decode(value));
                }
                _ => {}
            }
        }
        parsed
    }
}

/// Percent-decoding of a query value; what is not valid stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (*first, after.split_at_checked(2)) {
            (b'+', _) => bytes.push(b' '),
            (b'%', Some((digits, next))) => {
                let value = std::str::from_utf8(digits).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok());
                bytes.push(value.unwrap_or(b'%'));
                rest = if value.is_some() { next } else { after };
            }
            (plain, _) => bytes.push(plain),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::metrics::MetricsOptions;

    fn health(grace: Duration) -> (Arc<Health>, Arc<Metrics>) {
        let metrics = Metrics::new(MetricsOptions::default());
        (Health::new(&metrics, grace), metrics)
    }

    async fn ask(health: &Health, target: &str) -> Option<(u16, String)> {
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let response = health.answer(path, query).await?;
        assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Some((status, String::from_utf8(body.to_vec()).unwrap()))
    }

    #[tokio::test]
    async fn answers_have_upstreams_texts() {
        let (health, metrics) = health(Duration::ZERO);
        let broken = Check::instant("etcd", || Err("no leader".to_owned()));
        health.add(Endpoint::READY, &broken).unwrap();
        health.add(Endpoint::READY, &Check::instant("etcd-override-0", || Ok(())).in_group("etcd")).unwrap();
        let listing = "[+]ping ok\n[-]etcd failed: reason withheld\n[+]etcd-override-0 ok\n[+]shutdown ok\n";
        let cases = [
            ("/healthz", 200, "ok".to_owned()),
            ("/livez?verbose", 200, "[+]ping ok\nlivez check passed\n".to_owned()),
            ("/livez?verbose=false", 200, "[+]ping ok\nlivez check passed\n".to_owned()),
            ("/readyz", 500, format!("{listing}readyz check failed\n")),
            ("/readyz/etcd", 500, "internal server error: no leader\n".to_owned()),
            ("/readyz/ping", 200, "ok".to_owned()),
            ("/readyz?exclude=etcd", 200, "ok".to_owned()),
            (
                "/readyz?exclude=etcd&verbose",
                200,
                "[+]ping ok\n[+]etcd excluded: ok\n[+]etcd-override-0 excluded with etcd: ok\n[+]shutdown ok\n\
                 readyz check passed\n"
                    .to_owned(),
            ),
            (
                "/livez?verbose&exclude=b&exclude=%61",
                200,
                "[+]ping ok\nwarn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nlivez check passed\n"
                    .to_owned(),
            ),
        ];
        for (target, status, body) in cases {
            assert_eq!(ask(&health, target).await, Some((status, body)), "{target}");
        }
        for target in ["/readyz/nope", "/livez/etcd", "/healthy", "/"] {
            assert_eq!(ask(&health, target).await, None, "{target}");
        }
        let text = metrics.text();
        assert!(text.contains("kubernetes_healthcheck{name=\"etcd\",type=\"readyz\"} 0\n"), "{text}");
        assert!(text.contains("kubernetes_healthchecks_total{name=\"etcd\",status=\"error\",type=\"readyz\"} 2\n"));
    }

    #[tokio::test]
    async fn shutdown_shows_only_in_readiness() {
        let (health, _) = health(Duration::ZERO);
        health.begin_shutdown();
        assert_eq!(ask(&health, "/livez").await.unwrap().0, 200);
        let body = "[+]ping ok\n[-]shutdown failed: reason withheld\nreadyz check failed\n".to_owned();
        assert_eq!(ask(&health, "/readyz").await, Some((500, body)));
    }

    #[tokio::test(start_paused = true)]
    async fn hooks_have_a_grace_period_on_livez_only() {
        let (health, _) = health(Duration::from_secs(10));
        let hook = Hook::default();
        health.add(Endpoint::ALL, &hook.check("start")).unwrap();
        assert_eq!(ask(&health, "/livez").await.unwrap().0, 200);
        let body = "internal server error: not finished\n".to_owned();
        assert_eq!(ask(&health, "/readyz/poststarthook/start").await, Some((500, body)));
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert_eq!(ask(&health, "/livez").await.unwrap().0, 500);
        hook.done();
        assert_eq!(ask(&health, "/livez").await.unwrap().0, 200);
        assert!(health.add(Endpoint::ALL, &Check::ping()).is_err(), "added after the first probe");
    }
}
