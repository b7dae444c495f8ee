//! Reads frames and hands them to their streams.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

use super::SpdyError;
use super::connection::{Role, Shared, Waiting};
use super::frame::{self, Control, HEAD_BYTES, Head};
use super::headers::Inflater;
use super::writer::Urgent;
use crate::pipe::PIECE_BYTES;

/// Reads until the peer closes (`Ok`) or breaks the protocol.
pub(super) async fn read_loop<R: AsyncRead + Unpin>(
    from: R,
    shared: &Shared,
    urgent: &mpsc::Sender<Urgent>,
    accept: mpsc::Sender<Waiting>,
) -> Result<(), SpdyError> {
    let mut from = BufReader::with_capacity(PIECE_BYTES, from);
    let mut inflater = Inflater::new();
    let mut payload = Vec::new();
    while let Some(head) = read_head(&mut from).await? {
        match Head::parse(head)? {
            Head::Data { stream, fin, length } => {
                shared.activity.saw_data();
                read_data(&mut from, shared, stream, length).await?;
                if fin {
                    shared.remote_done(stream);
                }
            }
            Head::Control { kind, flags, length } => {
                payload.resize(length, 0);
                from.read_exact(&mut payload).await?;
                let control = Control::parse(kind, flags, &payload)?;
                handle(control, &mut inflater, shared, urgent, &accept)?;
            }
        }
    }
    Ok(())
}

/// The next frame's head; `None` when the peer closed between two frames.
async fn read_head<R: AsyncRead + Unpin>(from: &mut R) -> Result<Option<[u8; HEAD_BYTES]>, SpdyError> {
    let mut head = [0; HEAD_BYTES];
    let (first, rest) = head.split_at_mut(1);
    if from.read(first).await? == 0 {
        return Ok(None);
    }
    from.read_exact(rest).await?;
    Ok(Some(head))
}

/// Moves a data frame into its stream piece by piece; nothing larger than a piece is held here.
async fn read_data<R: AsyncRead + Unpin>(
    from: &mut R,
    shared: &Shared,
    stream: u32,
    length: usize,
) -> Result<(), SpdyError> {
    let mut input = shared.take_input(stream);
    let mut rest = length;
    let mut piece = vec![0; PIECE_BYTES.min(length)];
    while rest > 0 {
        let want = rest.min(piece.len());
        let part = piece.get_mut(..want).unwrap_or_default();
        let read = from.read(part).await?;
        if read == 0 {
            return Err(SpdyError::Truncated);
        }
        rest -= read;
        if let (Some(open), Some(data)) = (&mut input, piece.get(..read))
            && open.write_all(data).await.is_err()
        {
            // Nobody reads this stream any more; its data is thrown away.
            input = None;
        }
    }
    if let Some(input) = input {
        shared.put_input(stream, input);
    }
    Ok(())
}

fn handle(
    control: Control<'_>,
    inflater: &mut Inflater,
    shared: &Shared,
    urgent: &mpsc::Sender<Urgent>,
    accept: &mpsc::Sender<Waiting>,
) -> Result<(), SpdyError> {
    match control {
        Control::SynStream { stream, fin, block } => {
            // Always inflated, also to be refused: the compression state must follow the peer's.
            let headers = inflater.headers(block)?;
            let waiting = shared.insert_remote(stream, headers)?;
            let refused = match waiting {
                Some(waiting) => accept.try_send(waiting).is_err(),
                None => true,
            };
            if refused {
                shared.remove(stream);
                let _ = urgent.try_send(Urgent::Reset { stream, status: frame::REFUSED_STREAM });
            } else if fin {
                shared.remote_done(stream);
            }
        }
        Control::SynReply { stream, fin, block } => {
            inflater.headers(block)?;
            shared.replied(stream);
            if fin {
                shared.remote_done(stream);
            }
        }
        Control::Headers { stream, fin, block } => {
            inflater.headers(block)?;
            if fin {
                shared.remote_done(stream);
            }
        }
        Control::Reset { stream } => shared.remote_reset(stream),
        Control::Ping { id } => {
            let ours = (id % 2 == 1) == (shared.role == Role::Client);
            if !ours {
                // A peer that floods pings loses the answers, nothing else.
                let _ = urgent.try_send(Urgent::Pong(id));
            }
        }
        // The peer opens no more streams; those that are open go on, and it closes the transport when done.
        Control::GoAway | Control::Ignored => {}
    }
    Ok(())
}
