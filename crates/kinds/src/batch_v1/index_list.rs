//! Lists of indexes as jobs write them: `1,3-5,7`.

/// Reads a list of indexes below `completions` into intervals in order.
///
/// # Errors
/// Upstream's reason.
pub(super) fn parse(text: &str, completions: i32) -> Result<Vec<(i32, i32)>, String> {
    let mut intervals: Vec<(i32, i32)> = Vec::new();
    if text.is_empty() {
        return Ok(intervals);
    }
    for item in text.split(',') {
        let mut parts = item.split('-');
        let (first, second) = (parts.next().unwrap_or_default(), parts.next());
        if parts.next().is_some() {
            return Err(format!(
                "the fragment \"{item}\" violates the requirement that an index interval can have at most two parts \
                 separated by '-'"
            ));
        }
        let start = index(first, completions)?;
        if let Some((_, previous)) = intervals.last().filter(|(_, previous)| *previous >= start) {
            return Err(format!("non-increasing order, previous: {previous}, current: {start}"));
        }
        let end = second.map_or(Ok(start), |second| index(second, completions))?;
        if second.is_some() && start >= end {
            return Err(format!("non-increasing order, previous: {start}, current: {end}"));
        }
        intervals.push((start, end));
    }
    Ok(intervals)
}

/// How many indexes the intervals hold.
pub(super) fn count(intervals: &[(i32, i32)]) -> i64 {
    intervals.iter().map(|(start, end)| i64::from(*end) - i64::from(*start) + 1).sum()
}

fn index(text: &str, completions: i32) -> Result<i32, String> {
    let number: i64 = text.parse().map_err(|_| format!("cannot convert string to integer for index: \"{text}\""))?;
    match i32::try_from(number) {
        Ok(number) if number < completions => Ok(number),
        _ => Err(format!("too large index: \"{text}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_increasing_and_bounded() {
        assert_eq!(parse("", 3), Ok(vec![]));
        let intervals = parse("0,2-4,7", 8).expect("a list");
        assert_eq!((intervals.as_slice(), count(&intervals)), (&[(0, 0), (2, 4), (7, 7)][..], 5));
        for (text, reason) in [
            ("1-2-3", "the fragment \"1-2-3\" violates"),
            ("a", "cannot convert string to integer for index: \"a\""),
            ("8", "too large index: \"8\""),
            ("3000000000", "too large index: \"3000000000\""),
            ("3-3", "non-increasing order, previous: 3, current: 3"),
            ("2-4,4", "non-increasing order, previous: 4, current: 4"),
        ] {
            let error = parse(text, 8).expect_err(text);
            assert!(error.starts_with(reason), "{text}: {error}");
        }
    }
}
