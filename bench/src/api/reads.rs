//! Gets and lists, beside a server that only sends the same bytes.

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::Method;

use super::load::microseconds_each;
use super::options::Options;
use super::pods;
use super::site::Site;
use crate::figure::Figure;
use crate::https::{Connection, JSON, PROTOBUF};
use crate::sample::{Samples, Stopwatch};
use crate::usage::CpuMeter;

/// Requests of one round of gets.
const GETS: usize = 2_000;

/// Single pods.
pub(super) async fn gets(options: &Options, site: &Site) -> Result<()> {
    let body = site.call(Method::GET, &pods::path(0), Bytes::new()).await?.ok()?;
    site.peer.serve("get", &body).await?;
    let count = GETS.min(options.pods * 4);
    let (mut ours, mut peer) = (Samples::default(), Samples::default());
    let (mut our_cpu, mut peer_cpu) = (0.0, 0.0);
    for _ in 0..options.rounds {
        let meters = (CpuMeter::start(site.server.pid())?, CpuMeter::start(site.peer.pid())?);
        let get = |number: usize| async move {
            let path = pods::path(number % (options.pods / 2));
            site.call(Method::GET, &path, Bytes::new()).await?.ok().map(drop)
        };
        ours.push(microseconds_each(0..count, options.parallel, get).await?);
        our_cpu += meters.0.seconds()?;
        let get =
            |_| async { site.peer.connection.call(Method::GET, "/get", JSON, Bytes::new()).await?.ok().map(drop) };
        peer.push(microseconds_each(0..count, options.parallel, get).await?);
        peer_cpu += meters.1.seconds()?;
    }
    Figure::beside("get", ours.median(), peer.median(), "us").print()?;
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let scale = 1e6 / (count * options.rounds) as f64;
    Figure::beside("cpu-get", our_cpu * scale, peer_cpu * scale, "ms/1000").print()?;
    Ok(())
}

/// All pods at once, in both media types.
pub(super) async fn lists(options: &Options, site: &Site) -> Result<()> {
    for (media, name) in [(JSON, "json"), (PROTOBUF, "protobuf")] {
        let body = site.connection.call(Method::GET, pods::COLLECTION, media, Bytes::new()).await?.ok()?;
        ensure!(body.len() > options.pods * 500, "a list of {} pods has only {} bytes", options.pods, body.len());
        site.peer.serve(name, &body).await?;
        let (mut ours, mut peer) = (Samples::default(), Samples::default());
        let (mut our_cpu, mut peer_cpu) = (0.0, 0.0);
        for _ in 0..options.rounds {
            let meters = (CpuMeter::start(site.server.pid())?, CpuMeter::start(site.peer.pid())?);
            ours.push(milliseconds(&site.connection, pods::COLLECTION, media, body.len()).await?);
            our_cpu += meters.0.seconds()?;
            peer.push(milliseconds(&site.peer.connection, &format!("/{name}"), media, body.len()).await?);
            peer_cpu += meters.1.seconds()?;
        }
        Figure::beside(format!("list-{name}"), ours.median(), peer.median(), "ms").print()?;
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let scale = 1e6 / options.rounds as f64;
        Figure::beside(format!("cpu-list-{name}"), our_cpu * scale, peer_cpu * scale, "ms/1000").print()?;
        #[expect(clippy::cast_precision_loss, reason = "sizes are small")]
        Figure::alone(format!("bytes-list-{name}"), body.len() as f64, "bytes").print()?;
    }
    Ok(())
}

async fn milliseconds(connection: &Connection, path: &str, media: &str, expected_bytes: usize) -> Result<f64> {
    let watch = Stopwatch::start();
    let body = connection.call(Method::GET, path, media, Bytes::new()).await?.ok()?;
    let time = watch.elapsed_ms();
    ensure!(body.len() == expected_bytes, "{} bytes instead of {expected_bytes}", body.len());
    Ok(time)
}
