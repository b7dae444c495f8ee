//! How large volumes are.

use node_api::csi::v1::CapacityRange;
use tonic::Status;

const MIB: i64 = 1024 * 1024;
/// The smallest volume.
pub(crate) const SMALLEST_BYTES: i64 = MIB;
/// Where nobody says how large.
const DEFAULT_BYTES: i64 = 1024 * MIB;
/// Sizes are whole blocks.
const BLOCK_BYTES: i64 = 4096;

/// The size of a volume that is at least `floor` bytes.
///
/// # Errors
/// `INVALID_ARGUMENT` for a negative number, `OUT_OF_RANGE` where no size is in the range.
pub(crate) fn choose(range: Option<&CapacityRange>, floor: Option<i64>) -> Result<i64, Status> {
    let (required, limit) = bounds(range)?;
    let least = required.max(floor.unwrap_or(0)).max(SMALLEST_BYTES);
    let wanted = match (required, floor) {
        // Nobody asked for more than the limit.
        (0, None) => limit.map_or(DEFAULT_BYTES, |limit| limit.min(DEFAULT_BYTES) / BLOCK_BYTES * BLOCK_BYTES),
        _ => least,
    };
    let size = whole_blocks(wanted.max(least)).filter(|size| limit.is_none_or(|limit| *size <= limit));
    size.ok_or_else(|| {
        Status::out_of_range(format!(
            "no volume of at least {least} bytes has at most {} bytes",
            limit.unwrap_or(i64::MAX)
        ))
    })
}

/// Whether a volume of this size is what the range asks for.
pub(crate) fn is_within(range: Option<&CapacityRange>, size: i64) -> Result<bool, Status> {
    let (required, limit) = bounds(range)?;
    Ok(size >= required && limit.is_none_or(|limit| size <= limit))
}

fn bounds(range: Option<&CapacityRange>) -> Result<(i64, Option<i64>), Status> {
    let (required, limit) = range.map_or((0, 0), |range| (range.required_bytes, range.limit_bytes));
    if required < 0 || limit < 0 {
        return Err(Status::invalid_argument("capacity_range must not be negative"));
    }
    if limit != 0 && limit < required {
        return Err(Status::out_of_range(format!("limit_bytes {limit} is less than required_bytes {required}")));
    }
    Ok((required, (limit != 0).then_some(limit)))
}

/// Rounds up to whole blocks; `None` where that is no number any more.
fn whole_blocks(size: i64) -> Option<i64> {
    match size % BLOCK_BYTES {
        0 => Some(size),
        rest => size.checked_add(BLOCK_BYTES - rest),
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[test]
    fn sizes_are_within_their_range() {
        let gib = DEFAULT_BYTES;
        let cases = [
            (None, None, Ok(gib)),
            (Some((0, 0)), None, Ok(gib)),
            (Some((0, 2 * MIB + 1)), None, Ok(2 * MIB)),
            (Some((1, 0)), None, Ok(MIB)),
            (Some((MIB + 1, 0)), None, Ok(MIB + BLOCK_BYTES)),
            (Some((MIB + 1, MIB + 2)), None, Err(Code::OutOfRange)),
            (Some((0, MIB - 1)), None, Err(Code::OutOfRange)),
            (Some((2, 1)), None, Err(Code::OutOfRange)),
            (Some((-1, 0)), None, Err(Code::InvalidArgument)),
            (Some((0, -1)), None, Err(Code::InvalidArgument)),
            (Some((i64::MAX, 0)), None, Err(Code::OutOfRange)),
            (None, Some(3 * MIB), Ok(3 * MIB)),
            (Some((5 * MIB, 0)), Some(3 * MIB), Ok(5 * MIB)),
            (Some((MIB, 2 * MIB)), Some(3 * MIB), Err(Code::OutOfRange)),
        ];
        for (range, floor, expected) in cases {
            let range = range.map(|(required_bytes, limit_bytes)| CapacityRange { required_bytes, limit_bytes });
            let size = choose(range.as_ref(), floor).map_err(|status| status.code());
            assert_eq!(size, expected, "{range:?} {floor:?}");
            if let Ok(size) = size {
                assert!(is_within(range.as_ref(), size).unwrap(), "{range:?}");
            }
        }
    }
}
