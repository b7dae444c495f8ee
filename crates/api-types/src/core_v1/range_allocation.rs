//! RangeAllocation.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::reflect::ByteString;

/// Internal record of allocated addresses, ports or IDs.
#[api(kind = "RangeAllocation")]
pub struct RangeAllocation {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The range, as text that identifies it.
    #[field(2, always, required)]
    pub range: String,
    /// Bitmap of the allocated entries.
    #[field(3, always, required)]
    pub data: ByteString,
}
