//! Joining what several servers have written: certificate bundles and lists of header names, without duplicates.

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// The certificates of both bundles, the stored ones first.
pub(super) fn bundles(stored: &str, own: &str) -> String {
    let mut blocks: Vec<&str> = Vec::new();
    for block in certificates(stored).chain(certificates(own)) {
        if !blocks.contains(&block) {
            blocks.push(block);
        }
    }
    blocks.iter().map(|block| format!("{block}\n")).collect()
}

fn certificates(pem: &str) -> impl Iterator<Item = &str> {
    let starts = pem.match_indices(BEGIN).map(|(start, _)| start);
    starts.filter_map(move |start| {
        let rest = pem.get(start..)?;
        rest.get(..rest.find(END)? + END.len())
    })
}

/// The names of both lists as a JSON array, the stored ones first.
///
/// # Errors
/// When what is stored is no array of texts.
pub(super) fn names(stored: &str, own: &[String]) -> Result<String, serde_json::Error> {
    let mut names: Vec<String> = if stored.is_empty() { Vec::new() } else { serde_json::from_str(stored)? };
    names.extend(own.iter().cloned());
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    serde_json::to_string(&names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unions_keep_order_and_drop_duplicates() {
        let cert = |body: &str| format!("{BEGIN}\n{body}\n{END}\n");
        let stored = format!("# note\n{}{}", cert("a"), cert("b"));
        assert_eq!(bundles(&stored, &format!("{}{}", cert("b"), cert("c"))), cert("a") + &cert("b") + &cert("c"));
        assert_eq!(names("[\"x\"]", &["y".into(), "x".into()]).unwrap(), "[\"x\",\"y\"]");
        assert!(names("{", &[]).is_err());
    }
}
