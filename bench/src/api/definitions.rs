//! Many definitions of custom resources at once: what each takes of memory and processor time, until the last one is in
//! discovery and when nobody has asked for them for some minutes, and what documents of all of them take to make.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::load::microseconds_each;
use super::options::Options;
use super::site::Site;
use crate::api_server::Storage;
use crate::etcd::Etcd;
use crate::figure::Figure;
use crate::identity::Identity;
use crate::sample::Stopwatch;
use crate::usage::{CpuMeter, most_resident_bytes, resident_bytes};

/// How many groups the definitions are spread over, as large sets of them are.
const GROUPS: usize = 40;
/// Objects within objects of each schema: with this many the schema has some hundred nodes.
const BRANCHES: usize = 12;
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// A tenth of what upstream is known to take.
const PROMISED_KIB: f64 = 100.0;
/// The same while there is most to do.
const MOST_KIB: f64 = 2.0 * PROMISED_KIB;
/// The server closes a connection that is silent for longer.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);
/// How often discovery is asked whether all are there, at most; each answer takes as long as the machine needs.
const MOST_QUESTIONS: usize = 10_000;

/// Installs so many definitions, with the embedded store, which keeps what was stored of them before in memory, and over
/// etcd.
///
/// # Errors
/// A process does not start, or an answer is not what it should be.
pub async fn definitions(options: &Options, count: usize) -> Result<()> {
    over(options, count, Storage::Embedded, "").await?;
    let Some(binary) = &options.etcd else { return Ok(()) };
    let home = tempfile::tempdir()?;
    let etcd = Etcd::start(binary, home.path())?;
    over(options, count, Storage::Etcd(&etcd), "-etcd").await
}

async fn over(options: &Options, count: usize, storage: Storage<'_>, suffix: &str) -> Result<()> {
    let home = tempfile::tempdir()?;
    let identity = Identity::create(&home.path().join("pki"))?;
    let site = Site::open(options, home.path(), &identity, storage).await?;
    let before = resident_bytes(site.server.pid())?;
    let (cpu, watch) = (CpuMeter::start(site.server.pid())?, Stopwatch::start());
    microseconds_each(0..count, options.parallel, |number| create(&site, number)).await?;
    until_served(&site, count).await?;
    let (seconds, used) = (watch.elapsed_ms() / 1e3, cpu.seconds()?);
    let after = resident_bytes(site.server.pid())?;
    Figure::alone(format!("definitions-seconds{suffix}"), seconds, "s").print()?;
    Figure::alone(format!("definition-cpu{suffix}"), used * 1e3 / as_float(count), "ms").print()?;
    let each = |resident: u64| as_float(resident.saturating_sub(before)) / 1024.0 / as_float(count);
    Figure::beside_promised(format!("definition-memory{suffix}"), each(after), PROMISED_KIB, "KiB").print()?;
    leave_alone(options, &site).await?;
    let at_rest = each(resident_bytes(site.server.pid())?);
    Figure::beside_promised(format!("definition-memory-at-rest{suffix}"), at_rest, PROMISED_KIB, "KiB").print()?;
    for (name, path) in [("openapi-v3-index", "/openapi/v3"), ("openapi-v2", "/openapi/v2"), ("discovery", "/apis")] {
        let cpu = CpuMeter::start(site.server.pid())?;
        site.call(Method::GET, path, Bytes::new()).await?.ok().with_context(|| path.to_owned())?;
        Figure::alone(format!("definitions-{name}-cpu{suffix}"), cpu.seconds()? * 1e3, "ms").print()?;
    }
    let documents = each(resident_bytes(site.server.pid())?);
    Figure::alone(format!("definition-memory-with-documents{suffix}"), documents, "KiB").print()?;
    let most = each(most_resident_bytes(site.server.pid())?);
    Figure::beside_promised(format!("definition-memory-at-most{suffix}"), most, MOST_KIB, "KiB").print()?;
    Ok(())
}

/// Caches put to rest what nobody asks for.
async fn leave_alone(options: &Options, site: &Site) -> Result<()> {
    let mut left = options.idle;
    while !left.is_zero() {
        let pause = left.min(LONGEST_SILENCE);
        tokio::time::sleep(pause).await;
        left -= pause;
        site.call(Method::GET, "/version", Bytes::new()).await?.ok()?;
    }
    Ok(())
}

async fn create(site: &Site, number: usize) -> Result<()> {
    let body = definition(number).to_string();
    site.call(Method::POST, DEFINITIONS, body.into()).await?.ok().map(drop)
}

async fn until_served(site: &Site, count: usize) -> Result<()> {
    for _ in 0..MOST_QUESTIONS {
        let mut served = 0;
        for group in 0..GROUPS.min(count) {
            let answer = site.call(Method::GET, &format!("/apis/{}/v1", group_name(group)), Bytes::new()).await?;
            let Ok(body) = answer.ok() else { break };
            let list: Value = serde_json::from_slice(&body)?;
            let names = list["resources"].as_array().into_iter().flatten().filter_map(|own| own["name"].as_str());
            served += names.filter(|name| !name.contains('/')).count();
        }
        if served == count {
            return Ok(());
        }
    }
    anyhow::bail!("not all definitions came into service")
}

fn group_name(number: usize) -> String {
    format!("g{}.example.com", number % GROUPS)
}

/// A definition as operators have them: a spec of some depth, limits, a rule, a status with conditions, columns.
fn definition(number: usize) -> Value {
    let (group, plural) = (group_name(number), format!("things{number}s"));
    let text = json!({"type": "string", "description": "A text that says what the field is for.", "maxLength": 253});
    let branch = json!({"type": "object", "description": "A part of what is wanted.", "required": ["name"], "properties": {
        "name": {"type": "string", "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63},
        "size": {"type": "integer", "minimum": 0, "default": 1},
        "labels": {"type": "object", "additionalProperties": text},
        "list": {"type": "array", "maxItems": 16, "items": {"type": "object", "properties": {"key": text, "value": text}}},
    }});
    let branches: serde_json::Map<String, Value> =
        (0..BRANCHES).map(|own| (format!("part{own}"), branch.clone())).collect();
    let condition = json!({"type": "object", "required": ["type", "status"], "properties": {
        "type": text, "status": {"type": "string", "enum": ["True", "False", "Unknown"]}, "reason": text, "message": text,
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": format!("thing{number}"), "kind": format!("Thing{number}")},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Ready", "type": "string", "jsonPath": ".status.ready"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": branches,
                        "x-kubernetes-validations": [{"rule": "!has(self.part0) || self.part0.size < 100"}]},
                    "status": {"type": "object", "properties": {"ready": text, "conditions": {"type": "array",
                        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": condition}}},
                }}},
            }],
        },
    })
}

#[expect(clippy::cast_precision_loss, reason = "figures are small")]
fn as_float(count: impl TryInto<u64>) -> f64 {
    count.try_into().unwrap_or(u64::MAX) as f64
}
