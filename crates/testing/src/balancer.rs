//! The way from components to one of several API servers, as a load balancer goes it.

use std::sync::Arc;

use bytes::Bytes;
use client::{Body, Transport, TransportError};
use parking_lot::RwLock;

use crate::api_server::ApiServer;

/// All servers, and which of them are in use.
pub(crate) struct Servers {
    all: Vec<Arc<ApiServer>>,
    drained: RwLock<Vec<bool>>,
}

impl Servers {
    pub(crate) fn new(all: Vec<Arc<ApiServer>>) -> Arc<Self> {
        let drained = RwLock::new(vec![false; all.len()]);
        Arc::new(Self { all, drained })
    }

    pub(crate) fn get(&self, number: u8) -> Option<&Arc<ApiServer>> {
        self.all.get(usize::from(number))
    }

    /// Takes a server out of use, or into it again, as a balancer does that looks at `/readyz`. Connections that are open
    /// stay.
    pub(crate) fn drain(&self, number: u8, is_drained: bool) {
        if let Some(own) = self.drained.write().get_mut(usize::from(number)) {
            *own = is_drained;
        }
    }

    /// The way of a component that prefers this server.
    pub(crate) fn preferring(self: &Arc<Self>, number: u8) -> Arc<dyn Transport> {
        Arc::new(Way { servers: Arc::clone(self), first: usize::from(number) })
    }
}

struct Way {
    servers: Arc<Servers>,
    first: usize,
}

#[async_trait::async_trait]
impl Transport for Way {
    /// Asks the preferred server, or else the next one that can be reached.
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let count = self.servers.all.len();
        let mut order: Vec<usize> = (0..count).map(|step| (self.first + step) % count).collect();
        {
            let drained = self.servers.drained.read();
            order.retain(|index| drained.get(*index) != Some(&true));
        }
        let mut refused = TransportError::Dial {
            address: self.server().to_owned(),
            source: std::io::ErrorKind::ConnectionRefused.into(),
        };
        for server in order.iter().filter_map(|index| self.servers.all.get(*index)) {
            match server.send(request.clone()).await {
                Err(error @ TransportError::Dial { .. }) => refused = error,
                other => return other,
            }
        }
        Err(refused)
    }

    fn server(&self) -> &str {
        self.servers.all.first().map_or("", |server| server.server())
    }
}
