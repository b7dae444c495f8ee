//! What a run measures: the server, the peer, and connections to both.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use base::TaskGroup;
use bytes::Bytes;
use http::Method;
use rustls::ClientConfig;

use super::options::Options;
use super::peer::Peer;
use super::pods;
use crate::api_server::{ApiServer, Storage};
use crate::https::{Answer, Connection, JSON};
use crate::identity::Identity;

/// A server with a client's connection to it.
pub(super) struct Site {
    pub(super) server: ApiServer,
    pub(super) peer: Peer,
    pub(super) connection: Connection,
    pub(super) tls: Arc<ClientConfig>,
}

impl Site {
    /// Starts the server and the peer, and makes the namespace with its service account.
    pub(super) async fn open(
        options: &Options,
        directory: &Path,
        identity: &Identity,
        storage: Storage<'_>,
    ) -> Result<Self> {
        Self::open_with(options, directory, identity, storage, &[]).await
    }

    /// As [`Self::open`], with further flags of the server.
    pub(super) async fn open_with(
        options: &Options,
        directory: &Path,
        identity: &Identity,
        storage: Storage<'_>,
        flags: &[&str],
    ) -> Result<Self> {
        let server = ApiServer::start(&options.bin_dir, directory, identity, storage, flags).await?;
        let tasks = TaskGroup::new("client");
        let tls = identity.client_tls()?;
        let peer = Peer::start(directory, identity, &tls, &tasks).await?;
        let connection = Connection::open(server.port(), &tls, &tasks).await?;
        let site = Self { server, peer, connection, tls };
        let namespace =
            format!(r#"{{"kind":"Namespace","apiVersion":"v1","metadata":{{"name":"{}"}}}}"#, pods::NAMESPACE);
        site.call(Method::POST, "/api/v1/namespaces", namespace.into()).await?.ok().context("making the namespace")?;
        let account = r#"{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"default"}}"#;
        let path = format!("/api/v1/namespaces/{}/serviceaccounts", pods::NAMESPACE);
        site.call(Method::POST, &path, account.into()).await?.ok().context("making the service account")?;
        Ok(site)
    }

    /// A request in JSON.
    pub(super) async fn call(&self, method: Method, path: &str, body: Bytes) -> Result<Answer> {
        self.connection.call(method, path, JSON, body).await
    }

    /// Creates the pod with this number.
    pub(super) async fn create_pod(&self, number: usize) -> Result<()> {
        self.call(Method::POST, pods::COLLECTION, pods::manifest(number)).await?.ok().map(drop)
    }

    /// Deletes the pod with this number at once.
    pub(super) async fn delete_pod(&self, number: usize) -> Result<()> {
        let path = format!("{}?gracePeriodSeconds=0", pods::path(number));
        self.call(Method::DELETE, &path, Bytes::new()).await?.ok().map(drop)
    }

    /// Tells that the pod with this number runs, since a time that differs with `start`.
    pub(super) async fn patch_status(&self, number: usize, start: usize) -> Result<()> {
        let (path, body) = (format!("{}/status", pods::path(number)), pods::status_patch(number, start));
        let media = "application/merge-patch+json";
        self.connection.call(Method::PATCH, &path, media, body).await?.ok().map(drop)
    }
}
