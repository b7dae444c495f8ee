//! A range of numbers in the store, such as that of ports, shared by all servers: each change is one compare-and-swap of its
//! bitmap.

use std::sync::Arc;

use api_machinery::object::{self, Object};
use api_types::core_v1::RangeAllocation;
use base::SharedRng;
use parking_lot::Mutex;
use storage::{Backend, Expect, Key, KeyValue, StorageError, Txn, Write};

use super::bitmap::Bitmap;
use super::recorder::AllocationRecorder;

/// How often a change is tried against other servers' changes.
pub(super) const ATTEMPTS: u32 = 64;

/// Why a number cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RangeError {
    #[error("provided port is already allocated")]
    Taken,
    #[error("{0}")]
    Outside(String),
    #[error("range is full")]
    Full,
    #[error("the provided range does not match the current range")]
    OtherRange,
    #[error("cannot allocate resources of type {0} at this time")]
    Uninitialised(&'static str),
    #[error("{0}")]
    Unreadable(String),
    #[error("cannot list services: {0}")]
    Unlisted(String),
    #[error("too many servers allocate at once")]
    Contended,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A range in the store.
pub(crate) struct Range {
    backend: Arc<dyn Backend>,
    rng: SharedRng,
    key: Key,
    /// What is allocated, as errors name it.
    resource: &'static str,
    /// What is stored as the range's text.
    pub(crate) text: String,
    pub(crate) size: u32,
    lower_band: u32,
    pub(super) recorder: Arc<dyn AllocationRecorder>,
    /// How often each unowned number was seen; for repair.
    pub(crate) leaks: Mutex<std::collections::BTreeMap<u32, u8>>,
}

/// What the store has.
struct Current {
    bitmap: Bitmap,
    expect: Expect,
}

impl Range {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        rng: SharedRng,
        (key, resource): (String, &'static str),
        text: String,
        (size, lower_band): (u32, u32),
        recorder: Arc<dyn AllocationRecorder>,
    ) -> Self {
        let key = Key::from(key);
        Self { backend, rng, key, resource, text, size, lower_band, recorder, leaks: Mutex::default() }
    }

    pub(crate) async fn take(&self, offset: u32) -> Result<(), RangeError> {
        self.change(|bitmap| if bitmap.take(offset) { Ok(()) } else { Err(RangeError::Taken) }).await
    }

    pub(crate) async fn take_any(&self) -> Result<u32, RangeError> {
        self.change(|bitmap| bitmap.take_any(self.lower_band, &self.rng).ok_or(RangeError::Full)).await
    }

    pub(crate) async fn free(&self, offset: u32) -> Result<(), RangeError> {
        self.change(|bitmap| {
            bitmap.free(offset);
            Ok(())
        })
        .await
    }

    /// Whether a number is free now; for dry runs.
    pub(crate) async fn check_free(&self, offset: u32) -> Result<(), RangeError> {
        let kv = self.backend.get(&self.key).await?.kv;
        let current = self.read(kv.as_ref())?;
        if current.bitmap.is_taken(offset) { Err(RangeError::Taken) } else { Ok(()) }
    }

    async fn change<T>(&self, change: impl Fn(&mut Bitmap) -> Result<T, RangeError>) -> Result<T, RangeError> {
        // What Services have already is known once repair has written it.
        let mut kv = self.backend.get(&self.key).await?.kv.ok_or(RangeError::Uninitialised(self.resource))?;
        for _ in 0..ATTEMPTS {
            let current = self.read(Some(&kv))?;
            let mut bitmap = current.bitmap.clone();
            let result = change(&mut bitmap)?;
            if bitmap == current.bitmap {
                return Ok(result);
            }
            match self.write(&bitmap, current.expect).await? {
                Txn::Committed { .. } => return Ok(result),
                Txn::Conflict { current, .. } => kv = current.ok_or(RangeError::Uninitialised(self.resource))?,
            }
        }
        Err(RangeError::Contended)
    }

    fn read(&self, kv: Option<&KeyValue>) -> Result<Current, RangeError> {
        let Some(kv) = kv else { return Ok(Current { bitmap: Bitmap::new(self.size), expect: Expect::Absent }) };
        let stored = decode(&kv.value)?;
        if stored.range != self.text {
            return Err(RangeError::OtherRange);
        }
        Ok(Current { bitmap: Bitmap::decode(&stored.data.0, self.size), expect: Expect::At(kv.mod_revision) })
    }

    async fn write(&self, bitmap: &Bitmap, expect: Expect) -> Result<Txn, StorageError> {
        let allocation = RangeAllocation {
            range: self.text.clone(),
            data: api_machinery::reflect::ByteString(bitmap.encode()),
            ..RangeAllocation::default()
        };
        let value = (&allocation as &dyn Object).to_protobuf();
        let written = self.backend.txn(&self.key, expect, Write::put(value)).await?;
        if matches!(written, Txn::Committed { .. }) {
            self.tell(bitmap);
        }
        Ok(written)
    }

    fn tell(&self, bitmap: &Bitmap) {
        let taken = bitmap.count();
        self.recorder.ports(taken, self.size.saturating_sub(taken));
    }

    /// What is stored (nothing where that is of another range), to be written anew by [`Self::rebuilt`].
    pub(crate) async fn to_rebuild(&self) -> Result<ToRebuild, RangeError> {
        let kv = self.backend.get(&self.key).await?.kv;
        let expect = kv.as_ref().map_or(Expect::Absent, |kv| Expect::At(kv.mod_revision));
        match self.read(kv.as_ref()) {
            Ok(current) => Ok(ToRebuild { bitmap: current.bitmap, expect, is_of_range: kv.is_some() }),
            Err(RangeError::OtherRange) => Ok(ToRebuild { bitmap: Bitmap::new(self.size), expect, is_of_range: false }),
            Err(error) => Err(error),
        }
    }

    /// Writes the bitmap that follows from what was stored, unless that has changed since; says whether it did.
    pub(crate) async fn rebuilt(&self, old: &ToRebuild, new: &Bitmap) -> Result<bool, RangeError> {
        if old.is_of_range && *new == old.bitmap {
            self.tell(new);
            return Ok(true);
        }
        Ok(matches!(self.write(new, old.expect).await?, Txn::Committed { .. }))
    }
}

/// A bitmap as it was found.
pub(crate) struct ToRebuild {
    pub(crate) bitmap: Bitmap,
    expect: Expect,
    is_of_range: bool,
}

fn decode(value: &[u8]) -> Result<RangeAllocation, RangeError> {
    let unreadable = |text: String| RangeError::Unreadable(text);
    if api_machinery::protobuf::is_enveloped(value) {
        return object::from_protobuf(value).map(|(stored, _)| stored).map_err(|error| unreadable(error.to_string()));
    }
    object::from_json(value).map(|(stored, _)| stored).map_err(|error| unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use base::Rng;
    use storage::{Memory, MemoryOptions};

    use super::*;
    use crate::services::NoRecorder;

    /// A bitmap as upstream's server writes it: its envelope, and within it metadata without anything, whose members that
    /// are no pointers are written all the same.
    fn stored(data: &[u8]) -> Vec<u8> {
        let length = u8::try_from(data.len()).unwrap();
        [
            &b"k8s\0\x0a\x15\x0a\x02v1\x12\x0fRangeAllocation\x12"[..],
            &[0x21 + length],
            b"\x0a\x10\x0a\x00\x12\x00\x1a\x00\x22\x00\x2a\x00\x32\x00\x38\x00\x42\x00\x12\x0b30000-32767\x1a",
            &[length],
            data,
            b"\x1a\x00\x22\x00",
        ]
        .concat()
    }

    fn range(text: &str, size: u32) -> (Range, Arc<Memory>) {
        let (clock, group) = (base::TokioClock::shared(), base::TaskGroup::new("range"));
        let store = Memory::new(MemoryOptions::default(), clock, &group);
        let key = ("/registry/ranges/servicenodeports".to_owned(), "servicenodeportallocations");
        let backend = Arc::clone(&store) as Arc<dyn Backend>;
        (Range::new(backend, Rng::seeded(1), key, text.to_owned(), (size, 16), Arc::new(NoRecorder)), store)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_stored_is_upstreams_bytes() {
        let (range, store) = range("30000-32767", 2_768);
        // Ports 30000 and 30009.
        store.txn(&range.key, Expect::Absent, Write::put(stored(&[0b10, 0b1]))).await.unwrap();
        for (port, expected) in [(0, Err(RangeError::Taken)), (9, Err(RangeError::Taken)), (1, Ok(()))] {
            assert_eq!(range.take(port).await, expected, "{port}");
        }
        for (freed, left) in [(20, &[0b10, 0b11][..]), (1, &[0b10, 0b1]), (9, &[0b1])] {
            range.free(freed).await.unwrap();
            assert_eq!(store.get(&range.key).await.unwrap().kv.unwrap().value, stored(left), "without {freed}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn upstreams_golden_object_is_read_whatever_it_is_written_as() {
        let Some(golden) = test_facts::outside("api-roundtrip") else { return };
        for ending in ["pb", "json"] {
            let (range, store) = range("rangeValue", 64);
            let bytes = std::fs::read(golden.join(format!("core.v1.RangeAllocation.{ending}"))).unwrap();
            let data = decode(&bytes).unwrap().data.0;
            store.txn(&range.key, Expect::Absent, Write::put(bytes)).await.unwrap();
            let found = range.to_rebuild().await.unwrap().bitmap;
            assert_eq!((found.encode(), found.count() > 0), (data, true), "{ending}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_range_of_other_flags_waits_for_repair() {
        let (range, store) = range("31000-31999", 1_000);
        store.txn(&range.key, Expect::Absent, Write::put(stored(&[0b1]))).await.unwrap();
        assert_eq!(range.take_any().await, Err(RangeError::OtherRange));
        let (stored, mut new) = (range.to_rebuild().await.unwrap(), Bitmap::new(1_000));
        new.take(5);
        assert!(range.rebuilt(&stored, &new).await.unwrap());
        assert_eq!(range.take(5).await, Err(RangeError::Taken));
        range.take(6).await.unwrap();
        assert!(!range.rebuilt(&stored, &new).await.unwrap(), "it has changed since");
    }
}
