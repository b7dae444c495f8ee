//! One change, many watchers, beside a server that sends the same bytes to as many streams.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use base::TaskGroup;
use bytes::{Bytes, BytesMut};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use rustls::ClientConfig;
use tokio::sync::mpsc;

use super::options::Options;
use super::pods;
use super::site::Site;
use crate::figure::Figure;
use crate::https::{Connection, JSON};
use crate::sample::{Samples, Stopwatch};
use crate::usage::CpuMeter;

/// Streams of one connection, below the server's limit of 100.
const STREAMS_PER_CONNECTION: usize = 90;
/// What the watchers had to tell that the round has not read yet; one word of each fits.
const REPORTS: usize = 4096;

/// Streams that count the lines they get.
pub(super) struct Watchers {
    reports: mpsc::Receiver<Bytes>,
    count: usize,
    /// Ends the tasks with the value.
    tasks: TaskGroup,
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

impl Watchers {
    pub(super) async fn open(port: u16, path: &str, options: &Options, tls: &Arc<ClientConfig>) -> Result<Self> {
        let tasks = TaskGroup::new("watchers");
        let (send, reports) = mpsc::channel(REPORTS);
        let mut left = options.watchers;
        while left > 0 {
            let connection = Connection::open(port, tls, &tasks).await?;
            for _ in 0..left.min(STREAMS_PER_CONNECTION) {
                let uri = format!("https://127.0.0.1{path}");
                let request = Request::get(uri).header("accept", JSON).body(Full::new(Bytes::new()))?;
                let response = connection.send(request).await?;
                ensure!(response.status().is_success(), "the watch was answered with {}", response.status());
                tasks.spawn_cancellable("watcher", watch(response.into_body(), options.events, send.clone()));
            }
            left = left.saturating_sub(STREAMS_PER_CONNECTION);
        }
        Ok(Self { reports, count: options.watchers, tasks })
    }

    /// Waits until every watcher has had its events of the round; returns what the first of them got.
    async fn round(&mut self) -> Result<Bytes> {
        let mut first = None;
        for _ in 0..self.count {
            let got = self.reports.recv().await.context("a watch ended")?;
            first.get_or_insert(got);
        }
        first.context("there are no watchers")
    }
}

/// Reports the bytes of a round whenever `events` lines have come.
async fn watch(mut body: Incoming, events: usize, reports: mpsc::Sender<Bytes>) {
    let (mut lines, mut first) = (0, BytesMut::new());
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        let found = data.iter().filter(|byte| **byte == b'\n').count();
        if lines == 0 {
            first.extend_from_slice(&data);
        }
        lines += found;
        if lines >= events {
            lines -= events;
            if reports.send(std::mem::take(&mut first).freeze()).await.is_err() {
                return;
            }
        }
    }
}

/// Changes a pod some times and waits until everybody has seen it, in turns with the peer.
pub(super) async fn measure(options: &Options, site: &Site) -> Result<()> {
    let list = site.call(Method::GET, &format!("{}?limit=1", pods::COLLECTION), Bytes::new()).await?.ok()?;
    let revision = resource_version(&list).context("the list has no resource version")?;
    let path = format!("{}?watch=1&resourceVersion={revision}", pods::COLLECTION);
    let mut ours = Watchers::open(site.server.port(), &path, options, &site.tls).await?;
    let mut peers = Watchers::open(site.peer.port(), "/watch", options, &site.tls).await?;

    // The first round warms both sides up, and tells what one event looks like.
    change(options, site, 0).await?;
    let event = ours.round().await?;
    let end = event.iter().position(|byte| *byte == b'\n').context("no event came whole")? + 1;
    site.peer.serve("event", &event.slice(..end)).await?;
    send(options, site).await?;
    peers.round().await?;

    let (mut our_time, mut peer_time) = (Samples::default(), Samples::default());
    let (mut our_cpu, mut peer_cpu) = (0.0, 0.0);
    for round in 1..=options.rounds {
        let meters = (CpuMeter::start(site.server.pid())?, CpuMeter::start(site.peer.pid())?);
        let watch = Stopwatch::start();
        let (changed, seen) = tokio::join!(change(options, site, round), ours.round());
        changed?;
        seen?;
        our_time.push(watch.elapsed_ms());
        our_cpu += meters.0.seconds()?;
        let watch = Stopwatch::start();
        let (sent, seen) = tokio::join!(send(options, site), peers.round());
        sent?;
        seen?;
        peer_time.push(watch.elapsed_ms());
        peer_cpu += meters.1.seconds()?;
    }
    Figure::beside("watch-fan-out", our_time.median(), peer_time.median(), "ms").print()?;
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let scale = 1e6 / (options.rounds * options.events * options.watchers) as f64;
    Figure::beside("cpu-watch-event", our_cpu * scale, peer_cpu * scale, "ms/1000").print()?;
    Ok(())
}

async fn change(options: &Options, site: &Site, round: usize) -> Result<()> {
    for event in 0..options.events {
        site.patch_status(0, round * options.events + event + 1).await?;
    }
    Ok(())
}

async fn send(options: &Options, site: &Site) -> Result<()> {
    for _ in 0..options.events {
        site.peer.connection.call(Method::POST, "/event", JSON, Bytes::new()).await?.ok()?;
    }
    Ok(())
}

/// The first resource version of a list is the list's own.
fn resource_version(list: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(list);
    let (_, rest) = text.split_once("\"resourceVersion\":\"")?;
    rest.split('"').next().map(str::to_owned)
}
