//! Pressure stall information: how long tasks had to wait because something was short.
//!
//! See <https://docs.kernel.org/accounting/psi.html>.

/// How long tasks waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stall {
    /// The share of the last 10, 60 and 300 seconds, in hundredths of a percent.
    pub shares: [u32; 3],
    pub total_us: u64,
}

/// What it was for one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    /// Some task waited.
    pub some: Stall,
    /// All tasks that were not idle waited.
    pub full: Stall,
}

/// The pressures of a group; none where the kernel does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressures {
    pub cpu: Option<Pressure>,
    pub memory: Option<Pressure>,
    pub io: Option<Pressure>,
}

/// Reads a file of the kernel's: `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and the same for `full`. A kernel that
/// knows no `full` for processors leaves it out.
pub(super) fn parse(text: &str) -> Option<Pressure> {
    let line = |kind: &str| text.lines().find_map(|line| stall(line.strip_prefix(kind)?.strip_prefix(' ')?));
    Some(Pressure { some: line("some")?, full: line("full").unwrap_or_default() })
}

fn stall(rest: &str) -> Option<Stall> {
    let value = |name: &str| rest.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    Some(Stall {
        shares: [share(value("avg10")?)?, share(value("avg60")?)?, share(value("avg300")?)?],
        total_us: value("total")?.parse().ok()?,
    })
}

/// `12.34` is 1234.
fn share(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.')?;
    let part = part.get(..2).filter(|_| part.len() == 2)?;
    whole.parse::<u32>().ok()?.checked_mul(100)?.checked_add(part.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_read() {
        let text =
            "some avg10=1.50 avg60=0.07 avg300=100.00 total=12345\nfull avg10=0.00 avg60=0.00 avg300=0.01 total=6\n";
        let read = parse(text).unwrap();
        assert_eq!(read.some, Stall { shares: [150, 7, 10_000], total_us: 12_345 });
        assert_eq!(read.full, Stall { shares: [0, 0, 1], total_us: 6 });
        let some = "some avg10=0.00 avg60=0.00 avg300=0.00 total=9";
        assert_eq!(parse(some).unwrap().full, Stall::default());
        for text in ["", "full avg10=0.00", "some avg10=x avg60=0.00 avg300=0.00 total=9", "some avg10=1 total=9"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
