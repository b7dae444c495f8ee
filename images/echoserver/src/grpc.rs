//! As much of HTTP/2 as a gRPC health check needs: every call on the connection is answered with a
//! `grpc.health.v1.HealthCheckResponse`. What the call is and whom it asks about does not matter, so requests' headers
//! are never unpacked. See RFC 9113 and <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.

use std::io::{self, Read, Write};

/// How every client's connection begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The first bytes tell it from HTTP/1: no method is called so.
pub const MARK: &[u8] = b"PRI";
/// The largest frame that peers may send without being asked.
const FRAME_MAX: usize = 16 * 1024;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
/// On SETTINGS and PING it says "acknowledged", on HEADERS and DATA "the last of its stream".
const END_OR_ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 200` and `content-type: application/grpc`, the name by its number in HPACK's table.
const RESPONSE: &[u8] = b"\x88\x0f\x10\x10application/grpc";
/// `grpc-status: 0`.
const TRAILERS: &[u8] = b"\x00\x0bgrpc-status\x010";

/// Answers calls until the client is gone.
pub fn serve(stream: &mut (impl Read + Write), is_serving: impl Fn() -> bool) -> io::Result<()> {
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface)?;
    if preface != PREFACE {
        return Ok(());
    }
    write_frame(stream, SETTINGS, 0, 0, &[])?;
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).is_err() {
            return Ok(());
        }
        let [a, b, c, kind, flags, s0, s1, s2, s3] = head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        let id = u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]);
        if length > FRAME_MAX {
            return Ok(());
        }
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload)?;
        match kind {
            SETTINGS | PING if flags & END_OR_ACK == 0 => write_frame(
                stream,
                kind,
                END_OR_ACK,
                0,
                match kind {
                    PING => &payload,
                    _ => &[],
                },
            )?,
            HEADERS | DATA if flags & END_OR_ACK != 0 => answer(stream, id, is_serving())?,
            GO_AWAY => return Ok(()),
            _ => {}
        }
    }
}

fn answer(stream: &mut impl Write, id: u32, serving: bool) -> io::Result<()> {
    // An uncompressed message of two bytes: the first field, SERVING or NOT_SERVING.
    let message = [0, 0, 0, 0, 2, 8, if serving { 1 } else { 2 }];
    write_frame(stream, HEADERS, END_HEADERS, id, RESPONSE)?;
    write_frame(stream, DATA, 0, id, &message)?;
    write_frame(stream, HEADERS, END_HEADERS | END_OR_ACK, id, TRAILERS)
}

fn write_frame(stream: &mut impl Write, kind: u8, flags: u8, id: u32, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
    let mut frame = length.get(1..).unwrap_or_default().to_vec();
    frame.extend([kind, flags]);
    frame.extend(id.to_be_bytes());
    frame.extend(payload);
    stream.write_all(&frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client sends, and what it got.
    struct Peer {
        sent: io::Cursor<Vec<u8>>,
        got: Vec<u8>,
    }

    impl Read for Peer {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.sent.read(buffer)
        }
    }

    impl Write for Peer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.got.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_call_is_answered_on_its_stream() {
        let mut sent = PREFACE.to_vec();
        let frames: [(u8, u8, u32, &[u8]); 4] =
            [(SETTINGS, 0, 0, &[]), (HEADERS, END_HEADERS, 1, b"?"), (DATA, END_OR_ACK, 1, b"?"), (GO_AWAY, 0, 0, &[])];
        for (kind, flags, id, payload) in frames {
            let _ = write_frame(&mut sent, kind, flags, id, payload);
        }
        let mut peer = Peer { sent: io::Cursor::new(sent), got: Vec::new() };
        assert!(serve(&mut peer, || true).is_ok());
        let mut expected = Vec::new();
        let _ = write_frame(&mut expected, SETTINGS, 0, 0, &[]);
        let _ = write_frame(&mut expected, SETTINGS, END_OR_ACK, 0, &[]);
        let _ = answer(&mut expected, 1, true);
        assert_eq!(peer.got, expected);
        assert_eq!(peer.got.last(), Some(&b'0'));
    }
}
