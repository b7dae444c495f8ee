//! How many seats a request is expected to need, and for how long its consequences need some.

use std::time::Duration;

use crate::queue::Work;
use crate::seat_seconds::SeatSeconds;

/// What a seat can carry of a list, in bytes.
const BYTES_PER_SEAT: u64 = 100_000;
/// What lists of unknown objects are taken to weigh, each: the largest that the store takes.
const LARGEST_OBJECT_BYTES: u64 = 1_500_000;
/// The most that a list from memory counts for, however long: it is copied, and not decoded.
const CACHED_LIST_BYTES: u64 = 1_000_000;
/// The seats that a list takes at most.
const MAX_LIST_SEATS: u32 = 100;
/// Objects that a seat can process where only their number counts.
const OBJECTS_PER_SEAT: u64 = 100;
/// The seats that a list takes at most where only the number of objects counts.
const MAX_COUNTED_LIST_SEATS: u32 = 10;
/// The seats that the consequences of a write take at most.
const MAX_WRITE_SEATS: u32 = 10;
/// Watches that one more seat can serve.
const WATCHES_PER_SEAT: u32 = 10;
/// For how long a seat serves its watches.
const EVENT_TIME: Duration = Duration::from_millis(5);

/// What is known of the objects of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListSize {
    /// How many there are.
    pub objects: u64,
    /// What one weighs on average; nothing where nobody has looked.
    pub average_bytes: Option<u64>,
}

/// Where a list is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// One object by its name.
    Single,
    /// Memory.
    Cache,
    /// The store.
    Store {
        /// Whether a selector leaves some out after they were read.
        selects: bool,
    },
}

/// The seats of a list with a limit (0 for none) on a level whose requests take at most `widest`.
#[must_use]
pub fn list_seats(size: ListSize, source: Source, limit: u64, widest: u32) -> u32 {
    let page = if limit == 0 { size.objects } else { limit.min(size.objects) };
    let loaded = match source {
        Source::Single => 1,
        Source::Cache | Source::Store { selects: false } => page,
        Source::Store { selects: true } => page.max(size.objects / 2),
    };
    let bytes = loaded.saturating_mul(size.average_bytes.unwrap_or(LARGEST_OBJECT_BYTES));
    let bytes = if source == Source::Cache { bytes.min(CACHED_LIST_BYTES) } else { bytes };
    let seats = u32::try_from(bytes.div_ceil(BYTES_PER_SEAT)).unwrap_or(u32::MAX);
    seats.clamp(1, MAX_LIST_SEATS.min(widest.max(1)))
}

/// The same where what objects weigh does not count, but how many are processed (gate `SizeBasedListCostEstimate` off).
#[must_use]
pub fn list_seats_by_count(objects: u64, source: Source, limit: u64, widest: u32) -> u32 {
    let page = if limit == 0 { objects } else { limit.min(objects) };
    let processed = match source {
        Source::Single => 1,
        Source::Cache => objects,
        Source::Store { selects: true } => objects.saturating_add(page),
        Source::Store { selects: false } => page.saturating_mul(2),
    };
    let seats = u32::try_from(processed.div_ceil(OBJECTS_PER_SEAT)).unwrap_or(u32::MAX);
    seats.clamp(1, MAX_COUNTED_LIST_SEATS.min(widest.max(1)))
}

/// The work of a write that `watches` may hear of, on a level whose requests take at most `widest`.
#[must_use]
pub fn write_work(watches: u32, widest: u32) -> Work {
    if watches < WATCHES_PER_SEAT {
        return Work::default();
    }
    let seats = watches.div_ceil(WATCHES_PER_SEAT);
    let work = SeatSeconds::of(f64::from(seats), EVENT_TIME);
    let final_seats = seats.min(MAX_WRITE_SEATS).min(widest.max(1));
    Work { final_seats, extra: work.spread_over(final_seats), ..Work::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_take_seats_by_what_they_weigh() {
        let size = |objects, average_bytes| ListSize { objects, average_bytes: Some(average_bytes) };
        let store = |selects| Source::Store { selects };
        for (what, size, source, limit, expected) in [
            ("few small ones", size(10, 1000), Source::Cache, 0, 1),
            ("many from memory", size(10_000, 1000), Source::Cache, 0, 10),
            ("many from the store", size(10_000, 1000), store(false), 0, 100),
            ("a page", size(10_000, 1000), store(false), 500, 5),
            ("a page of a few, selected", size(1000, 1000), store(true), 100, 5),
            ("one by its name", size(10_000, 250_000), Source::Single, 0, 3),
            ("none", ListSize { objects: 0, average_bytes: None }, store(false), 0, 1),
            ("nobody has looked", ListSize { objects: 2, average_bytes: None }, store(false), 0, 30),
        ] {
            assert_eq!(list_seats(size, source, limit, 1000), expected, "{what}");
        }
        assert_eq!(list_seats(size(10_000, 1000), store(false), 0, 7), 7);
    }

    #[test]
    fn lists_take_seats_by_their_count_where_weight_is_unknown() {
        let store = |selects| Source::Store { selects };
        for (what, objects, source, limit, expected) in [
            ("few", 10, Source::Cache, 0, 1),
            ("a page from memory looks at all", 850, Source::Cache, 100, 9),
            ("many", 10_000, Source::Cache, 0, 10),
            ("a page", 10_000, store(false), 150, 3),
            ("a page, selected", 450, store(true), 150, 6),
            ("one by its name", 10_000, Source::Single, 0, 1),
            ("none", 0, store(false), 0, 1),
        ] {
            assert_eq!(list_seats_by_count(objects, source, limit, 1000), expected, "{what}");
        }
        assert_eq!(list_seats_by_count(10_000, Source::Cache, 0, 7), 7);
    }

    #[test]
    fn writes_work_for_those_who_watch() {
        let work = |watches, widest| {
            let work = write_work(watches, widest);
            (work.initial_seats, work.final_seats, work.extra)
        };
        let ms = Duration::from_millis;
        assert_eq!(work(9, 100), (1, 0, ms(0)));
        assert_eq!(work(10, 100), (1, 1, ms(5)));
        assert_eq!(work(41, 100), (1, 5, ms(5)));
        // Twenty seats for 5 ms are ten for 10 ms, and four for 25 ms.
        assert_eq!(work(200, 100), (1, 10, ms(10)));
        assert_eq!(work(200, 4), (1, 4, ms(25)));
    }
}
