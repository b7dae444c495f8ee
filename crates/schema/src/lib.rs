//! Structural schema, OpenAPI, patches, server-side apply.
