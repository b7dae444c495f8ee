//! The rules for `metadata.name` that kinds choose from.

/// A DNS subdomain, as most kinds ask for.
#[must_use]
pub fn dns_subdomain(name: &str, prefix: bool) -> Vec<String> {
    let name = masked(name, prefix);
    api_machinery::names::dns1123_subdomain(&name)
}

/// A DNS label.
#[must_use]
pub fn dns_label(name: &str, prefix: bool) -> Vec<String> {
    let name = masked(name, prefix);
    api_machinery::names::dns1123_label(&name)
}

/// Anything that can stand between slashes in a path, as roles and bindings allow.
#[must_use]
pub fn path_segment(name: &str, prefix: bool) -> Vec<String> {
    let mut problems = Vec::new();
    if !prefix && (name == "." || name == "..") {
        problems.push(format!("may not be '{name}'"));
    }
    for symbol in ["/", "%"] {
        if name.contains(symbol) {
            problems.push(format!("may not contain '{symbol}'"));
        }
    }
    problems
}

/// What a generated name would look like: a prefix may end in a dash, as more follows.
fn masked(name: &str, prefix: bool) -> String {
    match name.strip_suffix('-') {
        Some(stem) if prefix && !stem.is_empty() => format!("{stem}a"),
        _ => name.to_owned(),
    }
}
