//! The connections of one transport: a few HTTP/2 ones that all requests share, or idle HTTP/1.1 ones.

use base::{CancellationToken, TaskGroup};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::TransportError;
use super::connection::{self, Sender, Shared};
use super::dial::{Dialer, SharedDialer};

/// Idle HTTP/1.1 connections that are kept, as upstream's per-host limit.
const MAX_IDLE: usize = 25;

/// The open connections.
pub(crate) struct Pool {
    tasks: TaskGroup,
    connections: Mutex<Connections>,
    /// One dial at a time, so that requests which start together share what the first one opened.
    dialing: Semaphore,
}

struct Connections {
    dialer: SharedDialer,
    shared: Vec<Shared>,
    idle: Vec<http1::SendRequest<Full<Bytes>>>,
    /// Cancelled when these connections must not be used any more.
    closed: CancellationToken,
}

impl Pool {
    pub(crate) fn new(dialer: Dialer, tasks: TaskGroup) -> Self {
        let connections = Connections {
            dialer: dialer.into(),
            shared: Vec::new(),
            idle: Vec::new(),
            closed: CancellationToken::new(),
        };
        Self { tasks, connections: Mutex::new(connections), dialing: Semaphore::new(1) }
    }

    /// A connection for one request: an open one if possible.
    pub(crate) async fn take(&self) -> Result<Sender, TransportError> {
        if let Some(sender) = self.take_open() {
            return Ok(sender);
        }
        let _turn = self.dialing.acquire().await.map_err(|_| TransportError::NotSent)?;
        if let Some(sender) = self.take_open() {
            return Ok(sender);
        }
        let (dialer, closed) = {
            let connections = self.connections.lock();
            (SharedDialer::clone(&connections.dialer), connections.closed.clone())
        };
        let sender = connection::open(dialer.dial().await?, &self.tasks, closed).await?;
        if let Sender::Many(shared) = &sender {
            self.connections.lock().shared.push(shared.clone());
        }
        Ok(sender)
    }

    fn take_open(&self) -> Option<Sender> {
        let mut connections = self.connections.lock();
        connections.shared.retain(|shared| !shared.is_closed());
        if let Some(shared) = connections.shared.iter().find(|shared| shared.is_usable()) {
            return Some(Sender::Many(shared.clone()));
        }
        while let Some(sender) = connections.idle.pop() {
            if !sender.is_closed() {
                return Some(Sender::One(sender));
            }
        }
        None
    }

    /// Keeps an HTTP/1.1 connection for the next request.
    pub(crate) fn give_back(&self, sender: http1::SendRequest<Full<Bytes>>) {
        let mut connections = self.connections.lock();
        if connections.idle.len() < MAX_IDLE && !sender.is_closed() {
            connections.idle.push(sender);
        }
    }

    /// Ends all connections, requests on them included: the credentials that they were opened with have changed.
    pub(crate) fn reset(&self) {
        let mut connections = self.connections.lock();
        connections.shared.clear();
        connections.idle.clear();
        std::mem::replace(&mut connections.closed, CancellationToken::new()).cancel();
    }
}
