//! SPDY/3.1 frames as bytes: pure parsing and writing, no I/O. See the public SPDY/3 draft, section 2.2 and 2.6.

use super::SpdyError;

/// Bytes of every frame's head.
pub(super) const HEAD_BYTES: usize = 8;
/// The most bytes of a control frame's payload that are read; header blocks here are a few dozen bytes.
pub(super) const MAX_CONTROL_BYTES: usize = 64 * 1024;

const VERSION: u16 = 3;
const CONTROL_BIT: u8 = 0x80;
const FLAG_FIN: u8 = 1;
const STREAM_MASK: u32 = 0x7fff_ffff;

/// Stream error: the peer broke the protocol.
pub(super) const PROTOCOL_ERROR: u32 = 1;
/// Stream error: refused before any of it was handled.
pub(super) const REFUSED_STREAM: u32 = 3;
/// Stream error: no longer wanted.
pub(super) const CANCEL: u32 = 5;

/// The first eight bytes of a frame, understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// `length` bytes of a stream's data follow.
    Data { stream: u32, fin: bool, length: usize },
    /// A control frame's payload of `length` bytes follows.
    Control { kind: u16, flags: u8, length: usize },
}

/// A control frame's payload, understood; header blocks are still compressed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Control<'a> {
    SynStream {
        stream: u32,
        fin: bool,
        block: &'a [u8],
    },
    SynReply {
        stream: u32,
        fin: bool,
        block: &'a [u8],
    },
    Headers {
        stream: u32,
        fin: bool,
        block: &'a [u8],
    },
    Reset {
        stream: u32,
    },
    Ping {
        id: u32,
    },
    GoAway,
    /// Settings, window updates, credentials and unknown kinds: nobody here acts on them.
    Ignored,
}

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;

impl Head {
    /// Reads a frame's head. Fails on another SPDY version or an oversized control frame.
    pub(super) fn parse(head: [u8; HEAD_BYTES]) -> Result<Self, SpdyError> {
        let [b0, b1, b2, b3, flags, l0, l1, l2] = head;
        let length = u32::from_be_bytes([0, l0, l1, l2]) as usize;
        if b0 & CONTROL_BIT == 0 {
            let stream = u32::from_be_bytes([b0, b1, b2, b3]);
            return Ok(Self::Data { stream, fin: flags & FLAG_FIN != 0, length });
        }
        let version = u16::from_be_bytes([b0 & !CONTROL_BIT, b1]);
        if version != VERSION {
            return Err(SpdyError::Version(version));
        }
        if length > MAX_CONTROL_BYTES {
            return Err(SpdyError::TooLarge("control frame"));
        }
        Ok(Self::Control { kind: u16::from_be_bytes([b2, b3]), flags, length })
    }
}

impl<'a> Control<'a> {
    /// Reads a control frame's payload. Fails when it is shorter than its kind needs.
    pub(super) fn parse(kind: u16, flags: u8, payload: &'a [u8]) -> Result<Self, SpdyError> {
        let fin = flags & FLAG_FIN != 0;
        Ok(match kind {
            SYN_STREAM => {
                let (stream, rest) = take_u32(payload)?;
                let (_associated, rest) = take_u32(rest)?;
                let block = rest.get(2..).ok_or(SpdyError::Truncated)?;
                Self::SynStream { stream: stream & STREAM_MASK, fin, block }
            }
            SYN_REPLY | HEADERS => {
                let (stream, block) = take_u32(payload)?;
                let stream = stream & STREAM_MASK;
                if kind == SYN_REPLY {
                    Self::SynReply { stream, fin, block }
                } else {
                    Self::Headers { stream, fin, block }
                }
            }
            RST_STREAM => Self::Reset { stream: take_u32(payload)?.0 & STREAM_MASK },
            PING => Self::Ping { id: take_u32(payload)?.0 },
            GOAWAY => Self::GoAway,
            _ => Self::Ignored,
        })
    }
}

/// Splits a big-endian number off the front.
pub(super) fn take_u32(bytes: &[u8]) -> Result<(u32, &[u8]), SpdyError> {
    let (number, rest) = bytes.split_first_chunk::<4>().ok_or(SpdyError::Truncated)?;
    Ok((u32::from_be_bytes(*number), rest))
}

/// The head of a data frame with `length` bytes.
pub(super) fn data_head(stream: u32, fin: bool, length: usize) -> [u8; HEAD_BYTES] {
    let [b0, b1, b2, b3] = (stream & STREAM_MASK).to_be_bytes();
    let [l0, l1, l2] = length_bytes(length);
    [b0, b1, b2, b3, u8::from(fin), l0, l1, l2]
}

/// A SYN_STREAM frame; every stream has the same priority.
pub(super) fn syn_stream(stream: u32, block: &[u8]) -> Vec<u8> {
    let mut frame = control_head(SYN_STREAM, 10 + block.len());
    frame.extend(stream.to_be_bytes());
    frame.extend([0; 6]);
    frame.extend(block);
    frame
}

/// A SYN_REPLY frame.
pub(super) fn syn_reply(stream: u32, block: &[u8]) -> Vec<u8> {
    let mut frame = control_head(SYN_REPLY, 4 + block.len());
    frame.extend(stream.to_be_bytes());
    frame.extend(block);
    frame
}

/// A RST_STREAM frame.
pub(super) fn reset(stream: u32, status: u32) -> Vec<u8> {
    two_numbers(RST_STREAM, stream, status)
}

/// A GOAWAY frame.
pub(super) fn go_away(last_stream: u32, status: u32) -> Vec<u8> {
    two_numbers(GOAWAY, last_stream, status)
}

/// A PING frame.
pub(super) fn ping(id: u32) -> Vec<u8> {
    let mut frame = control_head(PING, 4);
    frame.extend(id.to_be_bytes());
    frame
}

fn two_numbers(kind: u16, first: u32, second: u32) -> Vec<u8> {
    let mut frame = control_head(kind, 8);
    frame.extend(first.to_be_bytes());
    frame.extend(second.to_be_bytes());
    frame
}

fn control_head(kind: u16, length: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEAD_BYTES + length);
    frame.extend((VERSION | 0x8000).to_be_bytes());
    frame.extend(kind.to_be_bytes());
    frame.push(0);
    frame.extend(length_bytes(length));
    frame
}

/// A length in three bytes. Callers never pass more than 64 KiB.
fn length_bytes(length: usize) -> [u8; 3] {
    let [_, l0, l1, l2] = u32::try_from(length).unwrap_or(0).to_be_bytes();
    [l0, l1, l2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reparse(frame: &[u8]) -> Control<'_> {
        let (head, payload) = frame.split_first_chunk::<HEAD_BYTES>().unwrap();
        let Head::Control { kind, flags, length } = Head::parse(*head).unwrap() else { panic!("a data frame") };
        assert_eq!(length, payload.len());
        Control::parse(kind, flags, payload).unwrap()
    }

    #[test]
    fn control_frames_read_back() {
        assert_eq!(reparse(&syn_stream(3, b"xy")), Control::SynStream { stream: 3, fin: false, block: b"xy" });
        assert_eq!(reparse(&syn_reply(3, b"")), Control::SynReply { stream: 3, fin: false, block: b"" });
        assert_eq!(reparse(&reset(5, CANCEL)), Control::Reset { stream: 5 });
        assert_eq!(reparse(&ping(9)), Control::Ping { id: 9 });
        assert_eq!(reparse(&go_away(1, 0)), Control::GoAway);
    }

    #[test]
    fn data_heads_read_back() {
        let head = Head::parse(data_head(7, true, 70_000)).unwrap();
        assert_eq!(head, Head::Data { stream: 7, fin: true, length: 70_000 });
    }

    #[test]
    fn foreign_and_oversized_frames_are_refused() {
        assert!(matches!(Head::parse([0x80, 2, 0, 1, 0, 0, 0, 8]), Err(SpdyError::Version(2))));
        assert!(matches!(Head::parse([0x80, 3, 0, 1, 0, 0xff, 0, 0]), Err(SpdyError::TooLarge(_))));
        assert!(matches!(Control::parse(SYN_STREAM, 0, &[0; 9]), Err(SpdyError::Truncated)));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(head: [u8; 8], payload: Vec<u8>, kind in 0_u16..12, flags: u8) {
            let _ = Head::parse(head);
            let _ = Control::parse(kind, flags, &payload);
        }
    }
}
