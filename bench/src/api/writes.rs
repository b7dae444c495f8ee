//! Processor time of the other writes, and the memory that pods take.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::Method;
use tokio::time::Instant;

use super::load::microseconds_each;
use super::options::Options;
use super::pods;
use super::site::Site;
use crate::figure::Figure;
use crate::usage::{CpuMeter, resident_bytes};

/// What a cached pod may take, in bytes.
const PROMISED_AT_REST: f64 = 5_000.0;

/// Between two signs of life on a connection that nothing else happens on.
const BETWEEN_SIGNS: Duration = Duration::from_secs(30);

/// Lets every pod run, as a kubelet would say.
pub(super) async fn patch_all(options: &Options, site: &Site, label: &str) -> Result<()> {
    let meter = CpuMeter::start(site.server.pid())?;
    let time = microseconds_each(0..options.pods, options.parallel, |number| site.patch_status(number, number)).await?;
    Figure::alone(format!("patch-status-{label}-parallel"), time, "us").print()?;
    print_cpu(&format!("patch-status-{label}"), meter.seconds()?, options.pods)
}

/// Replaces a part of the pods by what a get answered.
pub(super) async fn update_some(options: &Options, site: &Site, label: &str) -> Result<()> {
    let count = options.pods / 10;
    let mut bodies = Vec::with_capacity(count);
    for number in 0..count {
        bodies.push(site.call(Method::GET, &pods::path(number), Bytes::new()).await?.ok()?);
    }
    let meter = CpuMeter::start(site.server.pid())?;
    let update = |number: usize| {
        let body = bodies.get(number).cloned().unwrap_or_default();
        async move {
            // Another label each time, so that there is something to write.
            let text = String::from_utf8_lossy(&body).replacen("\"app\":\"my-app\"", "\"app\":\"my-app-2\"", 1);
            site.call(Method::PUT, &pods::path(number), text.into()).await?.ok().map(drop)
        }
    };
    let time = microseconds_each(0..count, options.parallel, update).await?;
    Figure::alone(format!("update-{label}-parallel"), time, "us").print()?;
    print_cpu(&format!("update-{label}"), meter.seconds()?, count)
}

/// Deletes a part of the pods, from the end.
pub(super) async fn delete_some(options: &Options, site: &Site, label: &str) -> Result<()> {
    let count = options.pods / 10;
    let meter = CpuMeter::start(site.server.pid())?;
    let last = options.pods - count..options.pods;
    let time = microseconds_each(last, options.parallel, |number| site.delete_pod(number)).await?;
    Figure::alone(format!("delete-{label}-parallel"), time, "us").print()?;
    print_cpu(&format!("delete-{label}"), meter.seconds()?, count)
}

/// What one pod adds to the server's memory, of which `before` was there without them: just written, and when nobody has
/// asked for it in a while.
pub(super) async fn print_memory(options: &Options, site: &Site, before: u64, label: &str) -> Result<()> {
    let each = || -> Result<f64> {
        let added = resident_bytes(site.server.pid())?.saturating_sub(before);
        #[expect(clippy::cast_precision_loss, reason = "sizes are small")]
        Ok(added as f64 / options.pods as f64)
    };
    Figure::alone(format!("memory-per-cached-pod-{label}"), each()?, "bytes").print()?;
    let meter = CpuMeter::start(site.server.pid())?;
    stay_connected(site, options.idle).await?;
    print_cpu(&format!("come-to-rest-{label}"), meter.seconds()?, options.pods)?;
    Figure::beside_promised(format!("memory-per-pod-at-rest-{label}"), each()?, PROMISED_AT_REST, "bytes").print()?;
    Ok(())
}

/// Waits. A connection on which nothing happens for 90 s is closed by the server, so that it is used now and then.
async fn stay_connected(site: &Site, time: Duration) -> Result<()> {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        tokio::time::sleep(left.min(BETWEEN_SIGNS)).await;
        site.call(Method::GET, "/livez", Bytes::new()).await?.ok()?;
    }
    Ok(())
}

/// Milliseconds of processor time of the server for 1,000 requests.
pub(super) fn print_cpu(verb: &str, seconds: f64, requests: usize) -> Result<()> {
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let each = seconds * 1e6 / requests.max(1) as f64;
    Figure::alone(format!("cpu-{verb}"), each, "ms/1000").print()?;
    Ok(())
}
