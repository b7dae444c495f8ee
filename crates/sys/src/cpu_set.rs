//! Sets of numbered things in the kernel's list form, `0-3,8`: processors, nodes of memory.
//!
//! See "List format" in <https://man7.org/linux/man-pages/man7/cpuset.7.html>.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The largest number that is understood; no kernel knows as many processors.
const MAX_NUMBER: u32 = 65_535;

/// A set of processors, or of nodes of memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuSet(BTreeSet<u32>);

/// A text is no list of processors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuSetError {
    #[error("{0:?} is no number")]
    Number(String),
    #[error("invalid range {0:?}: its end is before its begin")]
    Backwards(String),
    #[error("{0} is more than {MAX_NUMBER}")]
    TooLarge(u32),
}

impl CpuSet {
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        self.0.contains(&number)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }

    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(&self.0 | &other.0)
    }

    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self(&self.0 - &other.0)
    }

    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(&self.0 & &other.0)
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        Self(numbers.into_iter().collect())
    }
}

impl Extend<u32> for CpuSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, numbers: I) {
        self.0.extend(numbers);
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    fn from_str(text: &str) -> Result<Self, CpuSetError> {
        let number = |text: &str| {
            let number = text.trim().parse::<u32>().map_err(|_| CpuSetError::Number(text.to_owned()))?;
            if number > MAX_NUMBER { Err(CpuSetError::TooLarge(number)) } else { Ok(number) }
        };
        let mut set = BTreeSet::new();
        for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return Err(CpuSetError::Backwards(part.to_owned()));
            }
            set.extend(first..=last);
        }
        Ok(Self(set))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for number in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        for (index, (first, last)) in ranges.into_iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        for (text, written, count) in
            [("", "", 0), ("0-3,8\n", "0-3,8", 5), ("3,1,2", "1-3", 3), ("7-7", "7", 1), (" 0 - 1 ", "0-1", 2)]
        {
            let set: CpuSet = text.parse().unwrap();
            assert_eq!((set.to_string().as_str(), set.len()), (written, count), "{text:?}");
        }
        for (text, expected) in [
            ("0-", "\"\" is no number"),
            (",", "\"\" is no number"),
            ("a", "\"a\" is no number"),
            ("3-1", "invalid range \"3-1\": its end is before its begin"),
            ("0-4294967295", "4294967295 is more than 65535"),
        ] {
            assert_eq!(text.parse::<CpuSet>().unwrap_err().to_string(), expected);
        }
    }
}
