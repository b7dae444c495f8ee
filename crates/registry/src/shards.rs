//! Which objects are in a client's shard (KEP-5866): those whose uid or namespace has a hash within a range.

use api_machinery::meta::ObjectMeta;
use component_helpers::fnv::fnv64;

const RANGE: &str = "shardRange(";
const UID: &str = "object.metadata.uid";

/// Some shards of a collection.
#[derive(Debug, PartialEq, Eq)]
pub struct Shards {
    is_by_uid: bool,
    /// Half open; the end may be one more than the largest hash.
    ranges: Vec<(u128, u128)>,
}

impl Shards {
    /// Reads what the server has brought into its one form; nothing where it is none of that.
    #[must_use]
    pub fn parse(selector: &str) -> Option<Self> {
        let mut shards = Self { is_by_uid: selector.starts_with(&format!("{RANGE}{UID},")), ranges: Vec::new() };
        for range in selector.split(" || ") {
            let mut parts = range.strip_prefix(RANGE)?.strip_suffix(')')?.split(", ").skip(1).map(bound);
            shards.ranges.push((parts.next()??, parts.next()??));
        }
        Some(shards)
    }

    /// Whether an object is in one of them.
    #[must_use]
    pub fn have(&self, meta: &ObjectMeta) -> bool {
        let text = if self.is_by_uid { &meta.uid } else { &meta.namespace };
        let hash = u128::from(fnv64(text.as_bytes()));
        self.ranges.iter().any(|(start, end)| (*start..*end).contains(&hash))
    }
}

fn bound(text: &str) -> Option<u128> {
    u128::from_str_radix(text.strip_prefix("'0x")?.strip_suffix('\'')?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_is_in_one_of_two_halves() {
        let range = |field: &str, start: &str, end: &str| format!("shardRange({field}, '0x{start}', '0x{end}')");
        let halves = |field: &str| {
            let (low, middle, high) = ("0000000000000000", "8000000000000000", "10000000000000000");
            [range(field, low, middle), range(field, middle, high)].map(|text| Shards::parse(&text).expect("a range"))
        };
        let meta = |uid: &str| ObjectMeta { uid: uid.into(), namespace: "n".into(), ..ObjectMeta::default() };
        let [low, high] = halves(UID);
        // FNV-1a of "a" is af63dc4c8601ec8c, of "foobar" 85944171f73967e8, of nothing cbf29ce484222325.
        for uid in ["a", "foobar", ""] {
            assert_eq!((low.have(&meta(uid)), high.have(&meta(uid))), (false, true), "{uid}");
        }
        let some = (0..100).filter(|number| low.have(&meta(&format!("{number}-1234-4000-8000-000000000000")))).count();
        assert!((20..80).contains(&some), "{some}");
        let [low, high] = halves("object.metadata.namespace");
        assert_eq!(low.have(&meta("a")), low.have(&meta("b")), "all of a namespace are together");
        assert_ne!(low.have(&meta("a")), high.have(&meta("a")));
        let text = format!(
            "{} || {}",
            range(UID, "af63dc4c8601ec8c", "af63dc4c8601ec8d"),
            range(UID, "0000000000000000", "0000000000000001")
        );
        let exact = Shards::parse(&text).expect("two ranges");
        assert_eq!((exact.have(&meta("a")), exact.have(&meta("foobar"))), (true, false));
        assert_eq!(Shards::parse("something"), None);
    }
}
