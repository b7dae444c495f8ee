//! Writes frames in the order in which they were queued; answers to the peer's own frames go first.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt as _, BufWriter};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::connection::{Role, Shared};
use super::headers::Deflater;
use super::{Headers, SpdyError, frame};

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 64 * 1024;

/// A frame that keeps its place in the queue.
#[derive(Debug)]
pub(super) enum Outgoing {
    Open { stream: u32, headers: Headers },
    Reply { stream: u32 },
    Data { stream: u32, data: Bytes },
    Fin { stream: u32 },
    Reset { stream: u32, status: u32 },
    Close,
}

/// A frame that the reader asks for.
#[derive(Debug)]
pub(super) enum Urgent {
    Pong(u32),
    Reset {
        stream: u32,
        status: u32,
    },
    /// End the connection with this GOAWAY status.
    Close(u32),
}

/// Writes until the connection is closed from this side (`Ok`) or the transport fails.
pub(super) async fn write_loop<W: AsyncWrite + Unpin>(
    to: W,
    shared: &Shared,
    mut urgent: mpsc::Receiver<Urgent>,
    mut queue: mpsc::Receiver<Outgoing>,
    ping_interval: Option<Duration>,
) -> Result<(), SpdyError> {
    let mut to = BufWriter::with_capacity(BUFFER_BYTES, to);
    let mut deflater = Deflater::new()?;
    let mut pings = Pings::new(ping_interval, shared.role);
    let status = loop {
        tokio::select! {
            biased;
            Some(frame) = urgent.recv() => match frame {
                Urgent::Pong(id) => to.write_all(&frame::ping(id)).await?,
                Urgent::Reset { stream, status } => to.write_all(&frame::reset(stream, status)).await?,
                Urgent::Close(status) => break status,
            },
            id = pings.next() => to.write_all(&frame::ping(id)).await?,
            item = queue.recv() => match item {
                None | Some(Outgoing::Close) => break 0,
                Some(item) => write_item(&mut to, &mut deflater, shared, item).await?,
            },
        }
        if urgent.is_empty() && queue.is_empty() {
            to.flush().await?;
        }
    };
    if status == 0 {
        // A close in good order also ends what its users still hold, or let go of since the close was queued.
        for stream in shared.unfinished() {
            to.write_all(&frame::data_head(stream, true, 0)).await?;
        }
        while let Ok(item) = queue.try_recv() {
            if matches!(item, Outgoing::Fin { .. } | Outgoing::Reset { .. }) {
                write_item(&mut to, &mut deflater, shared, item).await?;
            }
        }
    }
    to.write_all(&frame::go_away(shared.last_remote(), status)).await?;
    to.shutdown().await?;
    Ok(())
}

async fn write_item<W: AsyncWrite + Unpin>(
    to: &mut W,
    deflater: &mut Deflater,
    shared: &Shared,
    item: Outgoing,
) -> Result<(), SpdyError> {
    match item {
        Outgoing::Open { stream, headers } => {
            to.write_all(&frame::syn_stream(stream, &deflater.block(&headers)?)).await?;
        }
        Outgoing::Reply { stream } => {
            to.write_all(&frame::syn_reply(stream, &deflater.block(&Headers::default())?)).await?;
        }
        Outgoing::Data { stream, data } => {
            shared.activity.saw_data();
            to.write_all(&frame::data_head(stream, false, data.len())).await?;
            to.write_all(&data).await?;
        }
        Outgoing::Fin { stream } => to.write_all(&frame::data_head(stream, true, 0)).await?,
        Outgoing::Reset { stream, status } => to.write_all(&frame::reset(stream, status)).await?,
        // The loop ends at a Close before it gets here.
        Outgoing::Close => {}
    }
    Ok(())
}

/// Keep-alive pings: ids of our own parity, so that answers are not answered again.
struct Pings {
    ticks: Option<tokio::time::Interval>,
    id: u32,
}

impl Pings {
    fn new(interval: Option<Duration>, role: Role) -> Self {
        let ticks = interval.map(|period| {
            let mut ticks = interval_at(Instant::now() + period, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        Self { ticks, id: if role == Role::Client { 1 } else { 2 } }
    }

    async fn next(&mut self) -> u32 {
        let Some(ticks) = &mut self.ticks else { return std::future::pending().await };
        ticks.tick().await;
        let id = self.id;
        self.id = self.id.wrapping_add(2);
        id
    }
}
