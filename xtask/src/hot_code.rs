//! Where a program's code lies in its file: what runs while nothing happens together, so that it is on a few pages of memory
//! and not on one of each dozen.
//!
//! Which functions these are was seen by running the program (`make hot-code`) and stands beside its `main` as fingerprints
//! of their names. A build has the linker put them first (`make build`). Names are compared without what changes from one
//! build to another, so that a list serves until the functions themselves are others; those that it does not know any more
//! lie where they would have lain anyway.

use std::collections::BTreeSet;
use std::io::Read as _;

use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: valgrind's record | cargo xtask hot-code record
       nm --format=posix PROGRAM | cargo xtask hot-code order LIST
       nm --format=posix PROGRAM | cargo xtask hot-code laid ORDER";
/// A list of which less than this part is found is to be made anew.
const WORN_OUT: usize = 2;
/// How much longer the stretch may be on which functions lie than they are: they begin at multiples of some bytes.
const SPREAD: u64 = 2;

/// Prints the list for a record of `valgrind --tool=callgrind --demangle=no`, or what of a list a program has, by the names
/// that its linker knows; or sees to it that the linker has laid them together. Either is read from standard input.
pub(crate) fn run(mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).context("reading standard input")?;
    let input = String::from_utf8_lossy(&input);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("record"), None) => print(&list(&input)),
        (Some("order"), Some(path)) => {
            let list = std::fs::read_to_string(&path).with_context(|| path.clone())?;
            let wanted = parse(&list).with_context(|| path.clone())?;
            let found = order(&input, &wanted);
            if found.len() < wanted.len() / WORN_OUT {
                crate::report(&format!(
                    "{path}: {} of {} functions are there, make hot-code",
                    found.len(),
                    wanted.len()
                ));
            }
            print(&found.join("\n"))
        }
        (Some("laid"), Some(path)) => {
            let order = std::fs::read_to_string(&path).with_context(|| path.clone())?;
            check_laid(&input, &order).with_context(|| path.clone())
        }
        _ => bail!("{USAGE}"),
    }
}

#[expect(clippy::print_stdout, reason = "the output is the linker's input")]
fn print(text: &str) -> Result<()> {
    println!("{text}");
    Ok(())
}

/// The fingerprints of all functions of a record, a line each.
fn list(record: &str) -> String {
    let fingerprints = record.lines().filter_map(executed).map(fingerprint).collect::<BTreeSet<_>>();
    fingerprints.iter().map(|fingerprint| format!("{fingerprint:08x}")).collect::<Vec<_>>().join("\n")
}

/// The function that a line of a record names first: `fn=(12) name` for one that ran, `cfn=(12) name` for one that was called.
fn executed(line: &str) -> Option<&str> {
    let (_, name) = line.strip_prefix("fn=(").or_else(|| line.strip_prefix("cfn=("))?.split_once(") ")?;
    // Calls of itself are told with a number, and what has no name with its address.
    Some(name.split('\'').next().unwrap_or(name)).filter(|name| !name.starts_with("0x"))
}

fn parse(list: &str) -> Result<BTreeSet<u32>> {
    let lines = list.lines().enumerate();
    lines.map(|(number, line)| u32::from_str_radix(line, 16).with_context(|| format!("line {}", number + 1))).collect()
}

/// The names of those functions of a program, told by `nm --format=posix`, that are wanted.
fn order<'a>(symbols: &'a str, wanted: &BTreeSet<u32>) -> Vec<&'a str> {
    let functions = symbols.lines().filter_map(function).map(|(name, ..)| name);
    functions.filter(|name| wanted.contains(&fingerprint(name))).collect()
}

/// Fails unless all functions of an order lie together in a program.
fn check_laid(symbols: &str, order: &str) -> Result<()> {
    let wanted = order.lines().filter(|line| !line.is_empty()).collect::<BTreeSet<_>>();
    let (mut found, mut length, mut first, mut end) = (BTreeSet::new(), 0, u64::MAX, 0);
    for (name, address, size) in symbols.lines().filter_map(function) {
        if wanted.contains(name) {
            found.insert(name);
            length += size;
            (first, end) = (first.min(address), end.max(address + size));
        }
    }
    if found.len() < wanted.len() {
        let (found, wanted) = (found.len(), wanted.len());
        bail!("{found} of {wanted} functions are in the program: it was built in another way since");
    }
    let stretch = end.saturating_sub(first);
    if stretch > SPREAD * length {
        bail!("{length} bytes of functions lie on a stretch of {stretch}: the linker did not lay them together");
    }
    Ok(())
}

/// Name, address and size of a function, of a line of `nm --format=posix`.
fn function(line: &str) -> Option<(&str, u64, u64)> {
    let mut words = line.split(' ');
    let (name, kind) = (words.next()?, words.next()?);
    let mut number = || words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
    let (address, size) = (number()?, number().unwrap_or_default());
    matches!(kind, "t" | "T" | "w" | "W").then_some((name, address, size))
}

/// FNV-1a of a name without the parts that another build of the same function has otherwise. Not `component_helpers::fnv`,
/// behind which all kinds of the API would be built for every task here.
fn fingerprint(name: &str) -> u32 {
    stable(name).bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A name as Rust writes it since version 0 of mangling, without the crates' disambiguators, and without the places that
/// refer back to earlier parts, which move with them; a C library's without its version; any without what the compiler adds
/// after a point.
fn stable(name: &str) -> String {
    let name = name.split('.').next().unwrap_or(name);
    let Some(mut rest) = name.strip_prefix("_R") else { return unversioned(name) };
    let mut kept = String::with_capacity(rest.len());
    while let Some(first) = rest.chars().next() {
        let number = match first {
            'C' => rest.strip_prefix("Cs"),
            'B' => rest.strip_prefix('B'),
            _ => None,
        };
        kept.push(first);
        let after =
            number.and_then(|number| number.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).strip_prefix('_'));
        rest = after.unwrap_or(rest.get(first.len_utf8()..).unwrap_or_default());
    }
    kept
}

/// `library_1_2_3_function` without the numbers.
fn unversioned(name: &str) -> String {
    name.split('_')
        .filter(|part| part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()))
        .collect::<Vec<_>>()
        .join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_in_every_build() {
        for (one, other, same) in [
            ("_RNvCs1aB2_3foo3bar", "_RNvCsZz9yX_3foo3bar", true),
            ("_RNvCs1aB2_3foo3bar", "_RNvCs1aB2_3foo3baz", false),
            ("_RNvMNtCs1a_3foo1sNtB2_1TB4_3new", "_RNvMNtCs1a23_3foo1sNtB4_1TB6_3new", true),
            ("_RNvCs1aB2_3foo3bar", "_RNvCs1aB2_3foo3bar.llvm.123", true),
            ("aws_lc_0_47_0_SHA256_Final", "aws_lc_1_2_0_SHA256_Final", true),
            ("SHA256_Final", "SHA512_Final", false),
            ("memcpy", "memmove", false),
        ] {
            assert_eq!(fingerprint(one) == fingerprint(other), same, "{one} and {other}");
        }
    }

    #[test]
    fn a_list_finds_what_ran_in_another_build() {
        let record = "fl=(1)\nfn=(1) _RNvCsA_3foo3run\n1 2\ncfn=(2) _RNvCsA_3foo6called'2\nfn=(1)\nfn=(3) 0x4a3\ncfn=(4) memcpy\n";
        let list = list(record);
        assert_eq!(list.lines().count(), 3, "{list}");
        let symbols = "_RNvCsBbb_3foo3run t 10 20\n_RNvCsBbb_3foo6called T 30 8\n_RNvCsBbb_3foo4idle t 40 8\n\
                       _RNvCsBbb_3foo3run d 50 8\nmemcpy U\n";
        let found = order(symbols, &parse(&list).unwrap());
        assert_eq!(found, ["_RNvCsBbb_3foo3run", "_RNvCsBbb_3foo6called"]);
    }

    #[test]
    fn functions_have_to_lie_together() {
        for (symbols, order, complaint) in [
            ("a t 100 40\nb T 150 20\nc t 9000 10\n", "a\nb\n", None),
            ("a t 100 40\nc t 9000 10\n", "a\nb\n", Some("1 of 2 functions are in the program")),
            ("a t 100 40\nb d 150 20\n", "a\nb\n", Some("1 of 2 functions are in the program")),
            ("a t 100 40\na t 140 40\n", "a\nb\n", Some("1 of 2 functions are in the program")),
            ("a t 100 40\nb T 9000 20\n", "a\nb\n", Some("96 bytes of functions lie on a stretch of 36640")),
            ("a t 100 40\n", "", None),
        ] {
            let told = check_laid(symbols, order).err().map(|error| error.to_string());
            let is_so =
                told.as_deref().zip(complaint).map_or(told.as_deref() == complaint, |(told, it)| told.starts_with(it));
            assert!(is_so, "{symbols}: {told:?}");
        }
    }

    #[test]
    fn a_list_that_is_none_is_refused_with_its_line() {
        let error = parse("0000abcd\nxyz\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2");
    }
}
