//! What the tests of this crate that touch the real machine share.

/// Whether the test may change the machine. Prints why not, so that a skipped test is seen.
pub(crate) fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped {test}: needs root");
    }
    root
}

/// Whether a program is there. Prints why the test is skipped if not.
pub(crate) fn has_program(test: &str, program: &str) -> bool {
    let places = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let found = places.iter().any(|place| std::path::Path::new(place).join(program).exists());
    if !found {
        println!("skipped {test}: {program} is not installed");
    }
    found
}
