//! Lists, page by page.

use std::collections::BTreeMap;
use std::ops::Bound;

use tonic::Status;

/// The most that one answer has.
const LARGEST_PAGE: usize = 1000;

/// Some of what is listed, and the token of what comes after it; empty at the end.
pub(crate) struct Page<T> {
    pub(crate) entries: Vec<T>,
    pub(crate) next_token: String,
}

/// A page of those for which `wanted` has something. A token is the id of the last that was told, so that it means the
/// same whatever came and went meanwhile.
///
/// # Errors
/// `INVALID_ARGUMENT` for a negative number, `ABORTED` for a token that was never given.
pub(crate) fn page<V, T>(
    all: &BTreeMap<String, V>,
    (max_entries, starting_token): (i32, &str),
    is_id: fn(&str) -> bool,
    wanted: impl Fn(&V) -> Option<T>,
) -> Result<Page<T>, Status> {
    let limit =
        usize::try_from(max_entries).map_err(|_| Status::invalid_argument("max_entries must not be negative"))?;
    let limit = if limit == 0 { LARGEST_PAGE } else { limit.min(LARGEST_PAGE) };
    if !starting_token.is_empty() && !is_id(starting_token) {
        return Err(Status::aborted(format!("starting_token {starting_token:?} is not one of this driver's")));
    }
    let start = if starting_token.is_empty() { Bound::Unbounded } else { Bound::Excluded(starting_token) };
    let rest = all.range::<str, _>((start, Bound::Unbounded));
    let mut rest = rest.filter_map(|(id, value)| Some((id, wanted(value)?))).peekable();
    let (mut entries, mut last) = (Vec::new(), None);
    while entries.len() < limit
        && let Some((id, entry)) = rest.next()
    {
        entries.push(entry);
        last = Some(id);
    }
    let next_token = rest.peek().and(last).cloned().unwrap_or_default();
    Ok(Page { entries, next_token })
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[test]
    fn pages_follow_each_other_whatever_goes_meanwhile() {
        let mut all: BTreeMap<String, u8> = ["a", "b", "c", "d", "e"].into_iter().map(str::to_owned).zip(0..).collect();
        let is_id = |text: &str| text.len() == 1;
        let odd_out = |value: &u8| (*value != 1).then_some(*value);
        let first = page(&all, (2, ""), is_id, odd_out).unwrap();
        assert_eq!((first.entries, first.next_token.as_str()), (vec![0, 2], "c"));
        all.remove("c");
        let second = page(&all, (2, "c"), is_id, odd_out).unwrap();
        assert_eq!((second.entries, second.next_token.as_str()), (vec![3, 4], ""), "the last page has no token");
        let code = |arguments| page(&all, arguments, is_id, odd_out).err().map(|status| status.code());
        assert_eq!(code((-1, "")), Some(Code::InvalidArgument));
        assert_eq!(code((0, "what")), Some(Code::Aborted));
        assert_eq!(code((0, "z")), None);
    }
}
