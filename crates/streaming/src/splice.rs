//! Two connections joined byte by byte.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::activity::Activity;

/// Bytes copied at a time.
const COPY_BYTES: usize = 32 * 1024;
/// How long a side may take to get its last bytes.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);
/// How long nothing may come from the other side once one has ended.
const LINGER: Duration = Duration::from_secs(2);

/// Copies both ways until one side ends or nothing moved for `idle`; then both are closed. A side that takes no more may
/// have sent its last words before it closed, so whichever way stops first, the other goes on to its own end.
///
/// # Errors
/// When a side fails; `TimedOut` when idle.
pub(crate) async fn splice<A, B>(left: A, right: B, idle: Option<Duration>) -> io::Result<()>
where
    A: AsyncRead + AsyncWrite,
    B: AsyncRead + AsyncWrite,
{
    let (mut left_read, mut left_write) = tokio::io::split(left);
    let (mut right_read, mut right_write) = tokio::io::split(right);
    let activity = Activity::new();
    let outcome = {
        let mut there = std::pin::pin!(pass(&mut left_read, &mut right_write, &activity));
        let mut back = std::pin::pin!(pass(&mut right_read, &mut left_write, &activity));
        tokio::select! {
            outcome = &mut there => { linger(back, &activity).await; outcome }
            outcome = &mut back => { linger(there, &activity).await; outcome }
            () = activity.idle_for(idle) => Err(io::ErrorKind::TimedOut.into()),
        }
    };
    // Whoever has been told of the end already is not told again by this.
    tokio::join!(close(&mut left_write), close(&mut right_write));
    outcome
}

/// The way that is still open, for as long as something comes.
async fn linger(rest: impl Future<Output = io::Result<()>>, activity: &Activity) {
    activity.saw_data();
    tokio::select! {
        // The first way's end is the outcome, whatever becomes of this one.
        _ = rest => {}
        () = activity.idle_for(Some(LINGER)) => {}
    }
}

/// One way to its end, of which the target is told.
async fn pass<R, W>(from: &mut R, to: &mut W, activity: &Activity) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let outcome = copy(from, to, activity).await;
    close(to).await;
    outcome
}

async fn copy<R, W>(from: &mut R, to: &mut W, activity: &Activity) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        activity.saw_data();
        to.write_all(buffer.get(..read).unwrap_or_default()).await?;
        to.flush().await?;
    }
}

/// A side that is gone cannot be closed in good order.
async fn close<W: AsyncWrite + Unpin>(side: &mut W) {
    let _ = timeout(FLUSH_TIMEOUT, side.shutdown()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ends_when_nothing_moves() {
        let ((_left_end, left), (_right_end, right)) = (tokio::io::duplex(64), tokio::io::duplex(64));
        let error = splice(left, right, Some(Duration::from_secs(60))).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    /// A server that has said all closes, while its client still talks: what it said gets through.
    #[tokio::test(start_paused = true)]
    async fn the_last_words_of_a_side_that_takes_no_more_are_passed_on() {
        let (mut client, left) = tokio::io::duplex(64);
        let (gone, writer) = tokio::io::duplex(64);
        drop(gone);
        let (reader, mut words) = tokio::io::duplex(64);
        let right = tokio::io::join(reader, writer);
        let server = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            words.write_all(b"exit code 137").await.unwrap();
            drop(words);
        };
        let talk = async {
            client.write_all(b"ping").await.unwrap();
            let mut heard = String::new();
            client.read_to_string(&mut heard).await.unwrap();
            drop(client);
            heard
        };
        let (outcome, (), heard) = tokio::join!(splice(left, right, None), server, talk);
        assert_eq!(heard, "exit code 137");
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    /// Nobody holds a connection open by only ending the half of it.
    #[tokio::test(start_paused = true)]
    async fn a_silent_side_is_not_waited_for_long() {
        let (client, left) = tokio::io::duplex(64);
        let (mut server, right) = tokio::io::duplex(64);
        drop(client);
        let begin = tokio::time::Instant::now();
        splice(left, right, None).await.unwrap();
        assert_eq!(begin.elapsed(), LINGER);
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    }
}
