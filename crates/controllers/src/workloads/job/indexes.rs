//! Sets of completion indexes, as runs: a job may have a hundred thousand of them.

use std::fmt;

use api_types::batch_v1::constants::JOB_COMPLETION_INDEX_ANNOTATION;
use api_types::core_v1::Pod;

/// A set of indexes. Prints as `1,3-5`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Indexes {
    /// First and last of each run; ascending, with gaps between them.
    runs: Vec<(i32, i32)>,
}

/// The completion index of a pod, if it has a valid one.
pub(super) fn index_of(pod: &Pod) -> Option<i32> {
    let text = pod.metadata.annotations.get(JOB_COMPLETION_INDEX_ANNOTATION)?;
    text.parse().ok().filter(|index| *index >= 0)
}

impl Indexes {
    /// Reads the printed form. What cannot be read is left out, and so is what is not below `completions`.
    pub(super) fn parse(text: &str, completions: i32) -> Self {
        let mut set = Self::default();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) else { continue };
            let last = last.min(completions.saturating_sub(1));
            if first >= 0 && first <= last {
                set.runs.push((first, last));
            }
        }
        set.tidy();
        set
    }

    /// Joins runs that overlap or touch.
    fn tidy(&mut self) {
        self.runs.sort_unstable();
        let mut tidy: Vec<(i32, i32)> = Vec::with_capacity(self.runs.len());
        for (first, last) in self.runs.drain(..) {
            match tidy.last_mut() {
                Some(run) if first <= run.1.saturating_add(1) => run.1 = run.1.max(last),
                _ => tidy.push((first, last)),
            }
        }
        self.runs = tidy;
    }

    /// Adds indexes.
    pub(super) fn extend(&mut self, indexes: impl IntoIterator<Item = i32>) {
        self.runs.extend(indexes.into_iter().map(|index| (index, index)));
        self.tidy();
    }

    /// Adds all of another set.
    pub(super) fn join(&mut self, other: &Self) {
        self.runs.extend_from_slice(&other.runs);
        self.tidy();
    }

    /// Whether the index is in the set.
    pub(super) fn contains(&self, index: i32) -> bool {
        let after = self.runs.partition_point(|(first, _)| *first <= index);
        after.checked_sub(1).and_then(|run| self.runs.get(run)).is_some_and(|(_, last)| index <= *last)
    }

    /// How many indexes there are.
    pub(super) fn len(&self) -> i32 {
        self.runs.iter().map(|(first, last)| last - first + 1).fold(0, i32::saturating_add)
    }

    /// How many indexes are in both sets.
    pub(super) fn shared_with(&self, other: &Self) -> i32 {
        let both = |(first, last): &(i32, i32)| {
            let overlap = |(from, to): &(i32, i32)| (last.min(to) - first.max(from) + 1).max(0);
            other.runs.iter().map(overlap).sum::<i32>()
        };
        self.runs.iter().map(both).sum()
    }

    /// The lowest indexes below `completions` that are not in the set, at most so many.
    pub(super) fn gaps(&self, completions: i32, most: usize) -> Vec<i32> {
        let mut gaps = Vec::new();
        let mut next = 0;
        for (first, last) in self.runs.iter().copied().chain([(completions, completions)]) {
            let room = most - gaps.len();
            gaps.extend((next..first.min(completions)).take(room));
            next = last.saturating_add(1);
        }
        gaps
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (first, last)) in self.runs.iter().enumerate() {
            if place > 0 {
                out.write_str(",")?;
            }
            match last - first {
                0 => write!(out, "{first}")?,
                1 => write!(out, "{first},{last}")?,
                _ => write!(out, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_print_and_parse() {
        for (text, expected, len) in [
            ("", "", 0),
            ("0", "0", 1),
            ("0,1", "0,1", 2),
            ("0,1,2", "0-2", 3),
            ("3-5,1,x,-4,7-,9-8", "1,3-5", 4),
            ("0-4,2-6,20-30", "0-6", 7),
            ("8-12", "8,9", 2),
        ] {
            let set = Indexes::parse(text, 10);
            assert_eq!((set.to_string().as_str(), set.len()), (expected, len), "{text}");
        }
    }

    #[test]
    fn sets_grow_and_have_gaps() {
        let mut set = Indexes::parse("1,3-5", 10);
        assert!(set.contains(1) && set.contains(4) && !set.contains(2) && !set.contains(0) && !set.contains(6));
        assert_eq!(set.gaps(10, 100), [0, 2, 6, 7, 8, 9]);
        assert_eq!(set.gaps(10, 3), [0, 2, 6]);
        assert_eq!(set.gaps(4, 100), [0, 2]);
        assert_eq!(set.shared_with(&Indexes::parse("0-3", 10)), 2);
        set.extend([2, 9]);
        assert_eq!(set.to_string(), "1-5,9");
        set.join(&Indexes::parse("6-8", 10));
        assert_eq!(set.to_string(), "1-9");
    }
}
