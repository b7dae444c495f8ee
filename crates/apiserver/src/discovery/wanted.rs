//! Which form of discovery a client wants, by its `Accept` header.

use crate::negotiate::{Forms, MediaType};

/// What a client wants of `/api` and `/apis`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Everything in one document.
    Aggregated(MediaType, Whose),
    /// The older documents.
    Legacy,
}

/// Of which servers of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// All of them.
    Cluster,
    /// This one (`profile=nopeer`).
    Own,
}

/// The first entry of the header that can be served.
pub(super) fn of(accept: &str, forms: Forms) -> Option<Wanted> {
    accept.split(',').find_map(|clause| entry(clause, forms))
}

fn entry(entry: &str, forms: Forms) -> Option<Wanted> {
    let mut parts = entry.split(';').map(str::trim);
    let media = match parts.next()? {
        "application/json" | "application/*" | "*/*" => MediaType::Json,
        "application/vnd.kubernetes.protobuf" => MediaType::Protobuf,
        "application/cbor" if forms == Forms::WithCbor => MediaType::Cbor,
        "application/yaml" => return parts.all(|part| part.starts_with("q=")).then_some(Wanted::Legacy),
        _ => return None,
    };
    let (mut group, mut version, mut kind, mut whose) = ("", "", "", Whose::Cluster);
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        match name {
            "g" => group = value,
            "v" => version = value,
            "as" => kind = value,
            "profile" if value == "nopeer" => whose = Whose::Own,
            _ => {}
        }
    }
    match (group, version, kind) {
        ("", "", "") => Some(Wanted::Legacy),
        ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList") => Some(Wanted::Aggregated(media, whose)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_is_served_wins() {
        let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        let cases = [
            (format!("{v2},{beta},application/json"), Some(Wanted::Aggregated(MediaType::Json, Whose::Cluster))),
            (format!("{beta},{v2}"), Some(Wanted::Aggregated(MediaType::Json, Whose::Cluster))),
            (format!("{beta}, application/json"), Some(Wanted::Legacy)),
            (format!("application/json,{v2}"), Some(Wanted::Legacy)),
            (
                v2.replace("json", "vnd.kubernetes.protobuf"),
                Some(Wanted::Aggregated(MediaType::Protobuf, Whose::Cluster)),
            ),
            (format!("{v2};profile=nopeer"), Some(Wanted::Aggregated(MediaType::Json, Whose::Own))),
            (format!("{v2};profile=other"), Some(Wanted::Aggregated(MediaType::Json, Whose::Cluster))),
            (String::new(), None),
            ("*/*".to_owned(), Some(Wanted::Legacy)),
        ];
        for (accept, expected) in cases {
            assert_eq!(of(&accept, Forms::Usual), expected, "{accept}");
        }
        let cbor = v2.replace("json", "cbor");
        assert_eq!(of(&cbor, Forms::WithCbor), Some(Wanted::Aggregated(MediaType::Cbor, Whose::Cluster)));
        assert_eq!(of(&cbor, Forms::Usual), None);
    }
}
