//! What one commit does, as bytes.
//!
//! Effects one after the other, each a kind (1 byte) and its numbers, big-endian: 1 a change (`revision` 8, `events`
//! 4, then each event's `length` 4 and record), 2 a lease granted (`lease` 8, `seconds` 8), 3 a lease ended (`lease`
//! 8), 4 a compaction (`revision` 8).

use std::time::Duration;

use bytes::{Buf as _, BufMut as _, TryGetError};

use super::record;
use crate::mvcc::{Effect, State};
use crate::{Event, EventBatch, LeaseId, Revision};

const CHANGED: u8 = 1;
const LEASE_GRANTED: u8 = 2;
const LEASE_ENDED: u8 = 3;
const COMPACTED: u8 = 4;

/// The bytes of a commit.
pub(super) fn encode(effects: &[Effect]) -> Vec<u8> {
    let mut out = Vec::new();
    for effect in effects {
        match effect {
            Effect::Changed(batch) => put_batch(&mut out, batch),
            Effect::LeaseGranted { lease, ttl } => {
                out.put_u8(LEASE_GRANTED);
                out.put_i64(lease.0);
                out.put_u64(ttl.as_secs());
            }
            Effect::LeaseEnded(lease) => {
                out.put_u8(LEASE_ENDED);
                out.put_i64(lease.0);
            }
            Effect::Compacted(at) => {
                out.put_u8(COMPACTED);
                out.put_i64(at.0);
            }
        }
    }
    out
}

fn put_batch(out: &mut Vec<u8>, batch: &EventBatch) {
    out.put_u8(CHANGED);
    out.put_i64(batch.revision.0);
    out.put_u32(u32::try_from(batch.events.len()).unwrap_or(u32::MAX));
    for event in batch.events.iter() {
        let length = record::encoded_len(event);
        out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
        let start = out.len();
        out.resize(start + length, 0);
        record::encode(event, out.get_mut(start..).unwrap_or_default());
    }
}

/// Why bytes are not the next effect.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryError {
    #[error(transparent)]
    Short(#[from] TryGetError),
    #[error(transparent)]
    Length(#[from] std::num::TryFromIntError),
    #[error("there is no effect {0}")]
    Kind(u8),
    #[error("revision {revision} follows on {state}")]
    Order { revision: Revision, state: Revision },
    #[error("a record is cut off")]
    CutOff,
    #[error("change {position} of revision {revision} is not readable")]
    Record { position: u32, revision: Revision },
}

/// Takes the next effect off the bytes of a commit, as it follows on `state`.
///
/// # Errors
/// A description where the bytes are not an effect, or not the next one.
pub(super) fn take(bytes: &mut &[u8], state: &State) -> Result<Effect, EntryError> {
    match bytes.try_get_u8()? {
        CHANGED => take_batch(bytes, state).map(Effect::Changed),
        LEASE_GRANTED => {
            let lease = LeaseId(bytes.try_get_i64()?);
            Ok(Effect::LeaseGranted { lease, ttl: Duration::from_secs(bytes.try_get_u64()?) })
        }
        LEASE_ENDED => Ok(Effect::LeaseEnded(LeaseId(bytes.try_get_i64()?))),
        COMPACTED => Ok(Effect::Compacted(Revision(bytes.try_get_i64()?))),
        kind => Err(EntryError::Kind(kind)),
    }
}

fn take_batch(bytes: &mut &[u8], state: &State) -> Result<EventBatch, EntryError> {
    let revision = Revision(bytes.try_get_i64()?);
    if revision.0 != state.revision().0 + 1 {
        return Err(EntryError::Order { revision, state: state.revision() });
    }
    let mut events = Vec::new();
    for position in 0..bytes.try_get_u32()? {
        let length = usize::try_from(bytes.try_get_u32()?)?;
        let (record, rest) = bytes.split_at_checked(length).ok_or(EntryError::CutOff)?;
        *bytes = rest;
        let read = record::decode((revision.0.unsigned_abs(), position), record);
        let (key, version) = read.ok_or(EntryError::Record { position, revision })?;
        let previous = state.current(&key).cloned();
        events.push(match version.kv {
            Some(kv) => Event::Put { kv, previous },
            None => Event::Delete { key, revision, previous },
        });
    }
    Ok(EventBatch { revision, events: events.into() })
}
