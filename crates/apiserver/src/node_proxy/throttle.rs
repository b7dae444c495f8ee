//! Sessions with containers that get so many bytes a second in each direction (`--max-connection-bytes-per-sec`).

use std::io;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use base::Connection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// What may be saved up: so much can pass at once after a pause.
const BURST: Duration = Duration::from_millis(100);

/// The connection, which from now on is no faster than this.
pub(super) fn limited(io: Connection, bytes_per_second: Option<NonZeroU64>) -> Connection {
    match bytes_per_second {
        Some(limit) => Box::new(Throttled { io, reads: Allowance::new(limit), writes: Allowance::new(limit) }),
        None => io,
    }
}

struct Throttled {
    io: Connection,
    reads: Allowance,
    writes: Allowance,
}

/// What may pass now: it is as if every byte took its time.
struct Allowance {
    /// Nanoseconds that a byte takes.
    byte_nanos: u64,
    /// When what has passed is over.
    paid_until: Instant,
    wakes: Option<Pin<Box<Sleep>>>,
}

impl Allowance {
    fn new(bytes_per_second: NonZeroU64) -> Self {
        let byte_nanos = (1_000_000_000 / bytes_per_second).max(1);
        Self { byte_nanos, paid_until: Instant::now(), wakes: None }
    }

    /// How many bytes may pass, once there are any.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        loop {
            if let Some(wakes) = &mut self.wakes {
                ready!(wakes.as_mut().poll(cx));
                self.wakes = None;
            }
            let now = Instant::now();
            if let Some(earliest) = now.checked_sub(BURST.max(self.time_of(1))) {
                self.paid_until = self.paid_until.max(earliest);
            }
            let saved = now.saturating_duration_since(self.paid_until);
            let bytes = u64::try_from(saved.as_nanos()).unwrap_or(u64::MAX) / self.byte_nanos;
            match usize::try_from(bytes) {
                Ok(0) => self.wakes = Some(Box::pin(sleep_until(self.paid_until + self.time_of(1)))),
                bytes => return Poll::Ready(bytes.unwrap_or(usize::MAX)),
            }
        }
    }

    fn pass(&mut self, bytes: usize) {
        self.paid_until += self.time_of(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    fn time_of(&self, bytes: u64) -> Duration {
        Duration::from_nanos(self.byte_nanos.saturating_mul(bytes))
    }
}

impl AsyncRead for Throttled {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let own = &mut *self;
        let bytes = ready!(own.reads.poll(cx));
        let bytes = bytes.min(buffer.remaining());
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(bytes));
        ready!(Pin::new(&mut own.io).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        buffer.advance(read);
        own.reads.pass(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Throttled {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, content: &[u8]) -> Poll<io::Result<usize>> {
        let own = &mut *self;
        let bytes = ready!(own.writes.poll(cx)).min(content.len());
        let written = ready!(Pin::new(&mut own.io).poll_write(cx, content.get(..bytes).unwrap_or(content)))?;
        own.writes.pass(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    /// How long so many bytes take in each direction.
    async fn took(bytes_per_second: u64, bytes: usize) -> [Duration; 2] {
        let (near, mut far) = duplex(1 << 20);
        let mut near = limited(Box::new(near), NonZeroU64::new(bytes_per_second));
        let begun = Instant::now();
        near.write_all(&vec![7; bytes]).await.unwrap();
        let written = begun.elapsed();
        let mut read = vec![0; bytes];
        far.read_exact(&mut read).await.unwrap();
        assert!(read.iter().all(|byte| *byte == 7));
        far.write_all(&read).await.unwrap();
        let begun = Instant::now();
        near.read_exact(&mut read).await.unwrap();
        [written, begun.elapsed()]
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_take_their_time_in_each_direction() {
        for (limit, bytes, seconds) in
            [(1_000, 5_000, 4.8..5.1), (1, 3, 2.0..3.1), (1 << 40, 100_000, 0.0..0.2), (0, 100_000, 0.0..0.01)]
        {
            for took in took(limit, bytes).await {
                assert!(seconds.contains(&took.as_secs_f64()), "{limit}: {took:?}");
            }
        }
    }
}
