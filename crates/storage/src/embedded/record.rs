//! How one version of a key lies in the database.
//!
//! `kind` (1 byte) `create revision` `version` `lease` (8 bytes each) `key length` (4 bytes), then the key and the
//! value; numbers are big-endian. The row's key is the revision and the position within it.

use bytes::{Buf as _, BufMut as _, Bytes};

use crate::mvcc::{RowId, Version};
use crate::{Event, Key, KeyValue, LeaseId, Revision};

const PUT: u8 = 1;
const DELETE: u8 = 2;
const HEADER_BYTES: usize = 1 + 3 * 8 + 4;

/// How long the record of an event is.
pub(super) fn encoded_len(event: &Event) -> usize {
    let value = if let Event::Put { kv, .. } = event { kv.value.len() } else { 0 };
    HEADER_BYTES + event.key().as_bytes().len() + value
}

/// Writes the record of an event to a buffer of exactly [`encoded_len`] bytes.
pub(super) fn encode(event: &Event, mut out: &mut [u8]) {
    let (kind, create, version, lease, value) = match event {
        Event::Put { kv, .. } => {
            (PUT, kv.create_revision.0, kv.version, kv.lease.map_or(0, |lease| lease.0), kv.value.as_ref())
        }
        Event::Delete { .. } => (DELETE, 0, 0, 0, &[][..]),
    };
    let key = event.key().as_bytes();
    out.put_u8(kind);
    out.put_i64(create);
    out.put_i64(version);
    out.put_i64(lease);
    out.put_u32(u32::try_from(key.len()).unwrap_or(u32::MAX));
    out.put_slice(key);
    out.put_slice(value);
}

/// Reads a record; `None` where it is not one.
pub(super) fn decode((revision, position): RowId, record: &[u8]) -> Option<(Key, Version)> {
    let revision = Revision(i64::try_from(revision).ok()?);
    let mut bytes = Bytes::copy_from_slice(record);
    let kind = bytes.try_get_u8().ok()?;
    let create_revision = Revision(bytes.try_get_i64().ok()?);
    let version = bytes.try_get_i64().ok()?;
    let lease = bytes.try_get_i64().ok()?;
    let key_len = usize::try_from(bytes.try_get_u32().ok()?).ok()?;
    if key_len == 0 || key_len > bytes.len() {
        return None;
    }
    let key = Key::new(bytes.split_to(key_len));
    let kv = match kind {
        PUT if create_revision <= revision && version > 0 => Some(KeyValue {
            key: key.clone(),
            value: bytes,
            create_revision,
            mod_revision: revision,
            version,
            lease: (lease != 0).then_some(LeaseId(lease)),
            flaw: None,
        }),
        DELETE if bytes.is_empty() => None,
        _ => return None,
    };
    Some((key, Version { revision, position, kv }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_and_short_ones_are_refused() {
        let kv = KeyValue {
            key: "/pods/a".into(),
            value: Bytes::from_static(b"value"),
            create_revision: Revision(3),
            mod_revision: Revision(9),
            version: 4,
            lease: Some(LeaseId(7)),
            flaw: None,
        };
        let event = Event::Put { kv: kv.clone(), previous: None };
        let mut record = vec![0; encoded_len(&event)];
        encode(&event, &mut record);
        let (key, version) = decode((9, 0), &record).expect("a good record");
        assert_eq!((key, version.kv), (kv.key.clone(), Some(kv)));
        for length in 0..HEADER_BYTES + 7 {
            assert!(decode((9, 0), &record[..length]).is_none(), "{length} bytes");
        }
        assert!(decode((2, 0), &record).is_none(), "created after it was written");
    }
}
