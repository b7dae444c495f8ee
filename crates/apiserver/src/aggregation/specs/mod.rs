//! How other servers describe what they serve, as they said last: their part of the `OpenAPI` document of version 2, which
//! becomes part of this server's own, and where their documents of version 3 are, which clients get from them through
//! this server.

pub(super) mod converted;
mod merge;
pub(super) mod part;

use std::sync::Arc;

use schema::openapi::Swagger;

use super::known::Known;
use super::table::{GroupVersions, Remote};
use crate::openapi::document::Document;
use part::Part;

/// Where documents of version 3 are.
pub(super) const VERSION_3: &str = "/openapi/v3";

/// What other servers say of themselves.
#[derive(Default)]
pub(super) struct Specs {
    pub(super) parts: Known<Option<Arc<Part>>>,
    pub(super) locations: Known<Location>,
}

/// Where the document of version 3 is.
#[derive(Clone)]
pub(super) enum Location {
    Nowhere,
    /// With the server, at this address.
    There(String),
    /// Made of the one of version 2, by a server that has no other.
    Here(Document),
}

impl PartialEq for Location {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nowhere, Self::Nowhere) => true,
            (Self::There(one), Self::There(other)) => one == other,
            // When it was made does not matter.
            (Self::Here(one), Self::Here(other)) => one.hash == other.hash,
            _ => false,
        }
    }
}

impl Specs {
    pub(super) fn generation(&self) -> u64 {
        // Each only grows, so that no two states have the same sum.
        self.parts.generation() + self.locations.generation()
    }

    /// Keys and addresses of the documents of version 3.
    pub(super) fn keys(&self, table: &GroupVersions) -> Vec<(String, String)> {
        let of = |remote: &Arc<Remote>| {
            let key = key(remote);
            let url = match self.locations.of(&remote.name)? {
                Location::Nowhere => return None,
                Location::There(url) => url,
                Location::Here(document) => format!("{VERSION_3}/{key}?hash={}", document.hash),
            };
            Some((key, url))
        };
        table.remotes().filter_map(of).collect()
    }

    /// The document of version 3 of a server that has none itself.
    pub(super) fn converted(&self, remote: &Remote) -> Option<Document> {
        match self.locations.of(&remote.name)? {
            Location::Here(document) => Some(document),
            _ => None,
        }
    }

    /// Adds the parts to a document; what it says itself of their paths goes.
    pub(super) fn merge_into(&self, document: &mut Swagger, table: &GroupVersions) {
        for remote in table.remotes() {
            let Some(part) = self.parts.of(&remote.name).flatten() else { continue };
            merge::merge(document, &part, &remote.path());
        }
    }
}

/// The key of a version's document.
pub(super) fn key(remote: &Remote) -> String {
    format!("apis/{}/{}", remote.group, remote.version)
}
