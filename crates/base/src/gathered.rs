//! Writes that are gathered while more of them are about to come.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is gathered at most; what is more needs no company.
const GATHERED_BYTES: usize = 32 << 10;

/// A stream on which a flush lets the tasks that can run now run first, where it is told that others will write too.
///
/// Many requests share a connection, and each that is done wakes the connection, which would write for it alone: a
/// system call, a record of TLS, and a peer that wakes up for every one. What flushes must be one task, polled again
/// when it asked for it, as HTTP/2 connections are.
#[derive(Debug)]
pub struct Gathered<S, F> {
    stream: S,
    /// Whether others are about to write as well.
    company: F,
    held: Vec<u8>,
    /// How much of `held` is written.
    written: usize,
    /// How often a flush lets others run while they add something.
    most_turns: u32,
    /// How often the flush that is going on has let others run, and what was held then.
    turns: u32,
    seen: usize,
}

impl<S: AsyncWrite + Unpin, F: Fn() -> bool> Gathered<S, F> {
    /// Gathers what is written to `stream` while `company` says that others are about to write.
    pub fn new(stream: S, company: F) -> Self {
        Self { stream, company, held: Vec::new(), written: 0, most_turns: 1, turns: 0, seen: 0 }
    }

    /// The same where others need turns of the stream's own task to add what they have: they get so many, while they do.
    #[must_use]
    pub fn with_turns(self, most_turns: u32) -> Self {
        Self { most_turns, ..self }
    }

    /// Whether others may add something yet.
    fn is_worth_waiting(&self) -> bool {
        let some_is_new = self.turns == 0 || self.held.len() > self.seen;
        !self.held.is_empty() && some_is_new && self.turns < self.most_turns && (self.company)()
    }

    /// Keeps what is to be written, if it is little and will have company.
    fn hold<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]> + Clone) -> Option<usize> {
        let length: usize = parts.clone().map(<[u8]>::len).sum();
        let fits = length <= GATHERED_BYTES.saturating_sub(self.held.len());
        (fits && (!self.held.is_empty() || (self.company)())).then(|| {
            parts.for_each(|part| self.held.extend_from_slice(part));
            length
        })
    }

    /// Writes what is held.
    fn poll_release(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.held.get(self.written..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
        }
        self.held.clear();
        self.written = 0;
        self.turns = 0;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin, F: Fn() -> bool + Unpin> AsyncWrite for Gathered<S, F> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(held) = self.hold(std::iter::once(bytes)) {
            return Poll::Ready(Ok(held));
        }
        ready!(self.poll_release(cx))?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(held) = self.hold(parts.iter().map(|part| &**part)) {
            return Poll::Ready(Ok(held));
        }
        ready!(self.poll_release(cx))?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_worth_waiting() {
            self.turns += 1;
            self.seen = self.held.len();
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(self.poll_release(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_release(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin, F: Unpin> AsyncRead for Gathered<S, F> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Counts the writes that reach it, and takes at most `most` bytes of each.
    #[derive(Default)]
    struct Sink {
        writes: Vec<Vec<u8>>,
        most: Option<usize>,
    }

    impl AsyncWrite for Sink {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let taken = bytes.len().min(self.most.unwrap_or(usize::MAX));
            self.writes.push(bytes[..taken].to_vec());
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn gathered(company: bool) -> Gathered<Sink, impl Fn() -> bool + Unpin> {
        Gathered::new(Sink::default(), move || company)
    }

    #[tokio::test]
    async fn alone_every_write_goes_out_at_once() {
        let mut stream = gathered(false);
        stream.write_all(b"one").await.unwrap();
        stream.write_all(b"two").await.unwrap();
        assert_eq!(stream.stream.writes, [b"one", b"two"]);
    }

    #[tokio::test]
    async fn in_company_writes_wait_for_the_flush_and_the_flush_for_others() {
        let mut stream = gathered(true);
        let other = Arc::new(AtomicBool::new(false));
        stream.write_all(b"one").await.unwrap();
        stream.write_all(b"two").await.unwrap();
        assert!(stream.stream.writes.is_empty());
        let ran = Arc::clone(&other);
        let task = async { ran.store(true, Ordering::Relaxed) };
        let (flushed, ()) = tokio::join!(stream.flush(), task);
        flushed.unwrap();
        assert!(other.load(Ordering::Relaxed));
        assert_eq!(stream.stream.writes, [b"onetwo"]);
    }

    #[tokio::test]
    async fn a_flush_yields_once_and_the_next_one_again() {
        let mut stream = gathered(true);
        for _ in 0..2 {
            stream.write_all(b"x").await.unwrap();
            let mut polls = 0;
            let flush = std::future::poll_fn(|cx| {
                polls += 1;
                Pin::new(&mut stream).poll_flush(cx)
            });
            flush.await.unwrap();
            assert_eq!(polls, 2);
        }
    }

    #[tokio::test]
    async fn a_patient_flush_yields_while_there_is_more() {
        let mut stream = gathered(true).with_turns(4);
        for (more, expected) in [(0, 2), (1, 3), (9, 5)] {
            stream.write_all(b"x").await.unwrap();
            let (mut polls, mut left) = (0, more);
            let flush = std::future::poll_fn(|cx| {
                polls += 1;
                if polls > 1 && left > 0 {
                    left -= 1;
                    assert!(Pin::new(&mut stream).poll_write(cx, b"y").is_ready());
                }
                Pin::new(&mut stream).poll_flush(cx)
            });
            flush.await.unwrap();
            assert_eq!(polls, expected, "{more} more");
        }
        assert_eq!(stream.stream.writes, [&b"x"[..], b"xy", b"xyyyy"]);
    }

    #[tokio::test]
    async fn nothing_is_lost_or_out_of_order_whatever_the_sizes() {
        for most in [None, Some(1), Some(1000)] {
            let mut stream = gathered(true);
            stream.stream.most = most;
            let mut expected = Vec::new();
            for (step, length) in [10, GATHERED_BYTES, 3, GATHERED_BYTES + 1, 0, 7].into_iter().enumerate() {
                let part = vec![u8::try_from(step).unwrap(); length];
                stream.write_all(&part).await.unwrap();
                expected.extend(part);
                assert!(stream.held.len() <= GATHERED_BYTES);
            }
            stream.shutdown().await.unwrap();
            assert!(stream.stream.writes.concat() == expected, "{most:?}");
        }
    }

    #[tokio::test]
    async fn reads_pass_through() {
        let mut stream = Gathered::new(io::Cursor::new(b"abc".to_vec()), || true);
        let mut read = String::new();
        stream.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "abc");
    }
}
