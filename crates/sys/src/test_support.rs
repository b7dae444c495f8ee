//! What the tests of this crate that touch the real machine share.

/// Whether the test may change the machine. Says why it is skipped if not.
pub(crate) fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        test_facts::skipped("needs root");
    }
    root
}

/// Whether a program is there. Says why the test is skipped if not.
pub(crate) fn has_program(program: &str) -> bool {
    let places = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let found = places.iter().any(|place| std::path::Path::new(place).join(program).exists());
    if !found {
        test_facts::skipped(&format!("{program} is not installed"));
    }
    found
}
