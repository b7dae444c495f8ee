//! How long a lease renewal takes while others list everything, compressed, as Go clients ask for it: a component that
//! cannot renew in time gives up its work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use base::TaskGroup;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};

use super::load::microseconds_each;
use super::options::Options;
use super::pods;
use super::site::Site;
use crate::api_server::Storage;
use crate::figure::Figure;
use crate::https::{Connection, JSON};
use crate::identity::Identity;
use crate::sample::{Samples, Stopwatch};

const MERGE_PATCH: &str = "application/merge-patch+json";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/bench/leases";
/// A pause between renewals, so that they meet a list in all its stages.
const PAUSE: Duration = Duration::from_millis(5);

/// Creates the pods, and renews a lease so many times: first alone, then beside lists that follow one another.
///
/// # Errors
/// A process does not start, or an answer is not what it should be.
pub async fn beside_lists(options: &Options, renewals: usize) -> Result<()> {
    let home = tempfile::tempdir()?;
    let identity = Identity::create(&home.path().join("pki"))?;
    let site = Site::open(options, home.path(), &identity, Storage::Embedded).await?;
    microseconds_each(0..options.pods, options.parallel, |number| site.create_pod(number)).await?;
    let lease = r#"{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"holder"}}"#;
    site.call(Method::POST, LEASES, lease.into()).await?.ok().context("making the lease")?;
    let alone = renew(&site, renewals).await?;

    let tasks = TaskGroup::new("lists");
    let lister = Connection::open(site.server.port(), &site.tls, &tasks).await?;
    let goes_on = AtomicBool::new(true);
    let (beside, lists) = tokio::join!(
        async {
            let renewed = renew(&site, renewals).await;
            goes_on.store(false, Ordering::Relaxed);
            renewed
        },
        list_until(&lister, &goes_on)
    );
    let (beside, lists) = (beside?, lists?);
    Figure::beside("lease-beside-lists", beside.median(), alone.median(), "ms").print()?;
    Figure::beside("lease-beside-lists-p99", beside.part(0.99), alone.part(0.99), "ms").print()?;
    Figure::beside("lease-beside-lists-most", beside.part(1.0), alone.part(1.0), "ms").print()?;
    Figure::alone("list-gzip", lists.median(), "ms").print()?;
    Ok(())
}

async fn renew(site: &Site, renewals: usize) -> Result<Samples> {
    let mut times = Samples::default();
    for number in 1..=renewals {
        let watch = Stopwatch::start();
        let (path, body) = (format!("{LEASES}/holder"), renewal(number));
        site.connection.call(Method::PATCH, &path, MERGE_PATCH, body).await?.ok().context("renewing")?;
        times.push(watch.elapsed_ms());
        tokio::time::sleep(PAUSE).await;
    }
    Ok(times)
}

fn renewal(number: usize) -> Bytes {
    let (minute, second) = (number / 60 % 60, number % 60);
    format!(r#"{{"spec":{{"holderIdentity":"one","renewTime":"2026-03-14T09:{minute:02}:{second:02}.{number:06}Z"}}}}"#)
        .into()
}

/// Lists all pods again and again and reads the answers, which stay packed.
async fn list_until(connection: &Connection, goes_on: &AtomicBool) -> Result<Samples> {
    let mut times = Samples::default();
    while goes_on.load(Ordering::Relaxed) {
        let watch = Stopwatch::start();
        let request = Request::get(format!("https://127.0.0.1{}", pods::COLLECTION))
            .header("accept", JSON)
            .header("accept-encoding", "gzip")
            .body(Full::new(Bytes::new()))?;
        let answer = connection.send(request).await?;
        let packed = answer.headers().get("content-encoding").is_some_and(|encoding| encoding == "gzip");
        anyhow::ensure!(answer.status().is_success() && packed, "{}, packed: {packed}", answer.status());
        let mut body = answer.into_body();
        while let Some(frame) = body.frame().await {
            frame.context("reading the list")?;
        }
        times.push(watch.elapsed_ms());
    }
    Ok(times)
}
