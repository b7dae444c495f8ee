//! From a query's bytes to an answer's, without the network.

use std::net::SocketAddr;

use base::Rng;
use hickory_proto::op::{Edns, Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RecordType};

use crate::balance::balance;
use crate::data::ClusterData;
use crate::zone::{Reply, Resolution, Zone};

/// The longest answer that a client takes over UDP unless it says more.
const PLAIN_UDP_BYTES: u16 = 512;
/// The most that a packet can hold.
const MAX_UDP_BYTES: u16 = 65_507;
/// The largest query over UDP that is read, which is what answers tell.
pub const MAX_QUERY_BYTES: u16 = 4096;
/// The longest message over TCP.
pub const MAX_TCP_BYTES: usize = 65_535;

/// How the query came, which bounds the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// In one packet.
    Udp,
    /// Over a connection.
    Tcp,
}

/// Where a query came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// How it came.
    pub transport: Transport,
    /// Who sent it.
    pub client: SocketAddr,
}

/// What to do with a query.
pub enum Step {
    /// Send this.
    Answer(Vec<u8>),
    /// Another server knows: hand the query on as it came.
    Forward,
    /// Another server knows where the alias ends: ask it, and append what it says.
    Follow(Box<Message>, Name, RecordType),
    /// It cannot be answered at all.
    Drop,
}

/// Decides about a query. `rng` draws the order of what is equal in an answer.
#[must_use]
pub fn decide(zone: &Zone, data: &dyn ClusterData, bytes: &[u8], transport: Transport, rng: &Rng) -> Step {
    let Ok(query) = Message::from_vec(bytes) else { return malformed(bytes) };
    if query.metadata.message_type != MessageType::Query {
        return Step::Drop;
    }
    let code = match (query.metadata.op_code, query.queries.as_slice()) {
        (OpCode::Query, [question]) if question.query_class() == DNSClass::IN => None,
        (OpCode::Query, [_]) => Some(ResponseCode::Refused),
        (OpCode::Query, _) => Some(ResponseCode::FormErr),
        _ => Some(ResponseCode::NotImp),
    };
    let code = code.or_else(|| query.edns.as_ref().filter(|edns| edns.version() != 0).map(|_| ResponseCode::BADVERS));
    if let Some(code) = code {
        return Step::Answer(encode(response(&query, code), &query, transport));
    }
    let Some(question) = query.queries.first() else { return Step::Drop };
    let (name, kind) = (question.name().clone(), question.query_type());
    let mut reply = zone.reply(data, &name, kind);
    if reply.outcome == Resolution::Foreign {
        return Step::Forward;
    }
    let follow = reply.follow.take();
    let mut message = filled(&query, reply);
    balance(&mut message, rng);
    match follow {
        Some(target) => Step::Follow(Box::new(message), target, kind),
        None => Step::Answer(encode(message, &query, transport)),
    }
}

/// An answer that says only that and how it failed.
#[must_use]
pub fn failure(bytes: &[u8], code: ResponseCode, transport: Transport) -> Option<Vec<u8>> {
    let query = Message::from_vec(bytes).ok()?;
    Some(encode(response(&query, code), &query, transport))
}

/// Encodes an answer within what the client takes. The least needed goes first; a client that wants all of it asks again
/// over TCP.
#[must_use]
pub fn encode(mut message: Message, query: &Message, transport: Transport) -> Vec<u8> {
    let limit = match transport {
        Transport::Tcp => MAX_TCP_BYTES,
        Transport::Udp => usize::from(query.max_payload().clamp(PLAIN_UDP_BYTES, MAX_UDP_BYTES)),
    };
    let bytes = message.to_vec().unwrap_or_default();
    if bytes.len() <= limit {
        return bytes;
    }
    let mut additionals = std::mem::take(&mut message.additionals);
    let fits = |message: &Message| message.to_vec().is_ok_and(|bytes| bytes.len() <= limit);
    if fits(&message) {
        let kept = largest(additionals.len(), |count| {
            message.additionals = additionals.get(..count).unwrap_or_default().to_vec();
            fits(&message)
        });
        additionals.truncate(kept);
        message.additionals = additionals;
    } else {
        message.metadata.truncation = true;
        let mut answers = std::mem::take(&mut message.answers);
        let kept = largest(answers.len(), |count| {
            message.answers = answers.get(..count).unwrap_or_default().to_vec();
            fits(&message)
        });
        answers.truncate(kept);
        message.answers = answers;
    }
    message.to_vec().unwrap_or_default()
}

/// The largest number below `count` that fits, 0 if none does, in a few tries: a Service may have thousands of
/// endpoints.
fn largest(count: usize, mut fits: impl FnMut(usize) -> bool) -> usize {
    let (mut fitting, mut too_many) = (0, count);
    while fitting + 1 < too_many {
        let middle = fitting.midpoint(too_many);
        if fits(middle) {
            fitting = middle;
        } else {
            too_many = middle;
        }
    }
    fitting
}

/// The question's id with a format error, where there is that much of it.
fn malformed(bytes: &[u8]) -> Step {
    let Some([high, low]) = bytes.first_chunk::<2>() else { return Step::Drop };
    let id = u16::from_be_bytes([*high, *low]);
    let message = Message::error_msg(id, OpCode::Query, ResponseCode::FormErr);
    message.to_vec().map_or(Step::Drop, Step::Answer)
}

fn response(query: &Message, code: ResponseCode) -> Message {
    let mut message = Message::response(query.metadata.id, query.metadata.op_code);
    message.metadata.recursion_desired = query.metadata.recursion_desired;
    message.metadata.recursion_available = true;
    message.metadata.response_code = code;
    message.queries.clone_from(&query.queries);
    with_edns(message, query)
}

/// An answer with what belongs to this one exchange: extensions are answered where they were asked for.
#[must_use]
pub fn with_edns(mut message: Message, query: &Message) -> Message {
    if let Some(asked) = &query.edns {
        let mut edns = Edns::new();
        edns.set_max_payload(MAX_QUERY_BYTES).set_dnssec_ok(asked.flags().dnssec_ok);
        message.edns = Some(edns);
    }
    message
}

fn filled(query: &Message, reply: Reply) -> Message {
    let code = match reply.outcome {
        Resolution::Found | Resolution::Foreign => ResponseCode::NoError,
        Resolution::NoSuchName => ResponseCode::NXDomain,
        Resolution::NotReady => ResponseCode::ServFail,
    };
    let mut message = response(query, code);
    message.metadata.authoritative = reply.outcome != Resolution::NotReady;
    message.answers = reply.answers;
    message.authorities = reply.authorities;
    message.additionals = reply.additionals;
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_found_in_a_few_tries() {
        for (count, limit) in [(1, 0), (2, 1), (5000, 0), (5000, 70), (5000, 4999), (0, 0)] {
            let mut tries = 0;
            let found = largest(count, |number| {
                tries += 1;
                number <= limit
            });
            assert_eq!(found, limit, "{count}");
            assert!(tries <= 13, "{tries}");
        }
    }
}
