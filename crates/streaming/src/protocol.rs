//! The names of the streaming protocols, which streams a command has, and how one protocol is chosen.

use crate::websocket::Encoding;

/// The `Upgrade` token of SPDY.
pub const SPDY: &str = "SPDY/3.1";
/// The header in which SPDY clients and servers agree on a stream protocol.
pub const STREAM_PROTOCOL_VERSION: &str = "X-Stream-Protocol-Version";
/// The only port-forward protocol over SPDY.
pub const PORT_FORWARD: &str = "portforward.k8s.io";
/// The prefix of WebSocket subprotocols that carry SPDY.
pub const TUNNEL_PREFIX: &str = "SPDY/3.1+";

/// A generation of the remote command protocol; later ones can do more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// The first one.
    V1,
    /// Clean half close.
    V2,
    /// Terminal resizing.
    V3,
    /// A JSON status with exit codes on the error stream.
    V4,
    /// WebSocket only: close signals.
    V5,
}

impl Protocol {
    /// What clients ask for over SPDY, newest first.
    pub const ALL: [Self; 5] = [Self::V5, Self::V4, Self::V3, Self::V2, Self::V1];
    /// What servers accept over SPDY.
    pub const SPDY_SERVER: [Self; 4] = [Self::V4, Self::V3, Self::V2, Self::V1];

    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "channel.k8s.io",
            Self::V2 => "v2.channel.k8s.io",
            Self::V3 => "v3.channel.k8s.io",
            Self::V4 => "v4.channel.k8s.io",
            Self::V5 => "v5.channel.k8s.io",
        }
    }

    /// The protocol of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name)
    }

    /// Whether the error stream carries a JSON status.
    #[must_use]
    pub fn has_status(self) -> bool {
        self >= Self::V4
    }

    /// Whether terminals can be resized.
    #[must_use]
    pub fn has_resize(self) -> bool {
        self >= Self::V3
    }
}

/// A WebSocket subprotocol of remote commands and of the old port-forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subprotocol {
    /// The name in `Sec-WebSocket-Protocol`; empty when the client asked for none.
    pub name: &'static str,
    /// How messages look.
    pub encoding: Encoding,
    /// The rules they follow.
    pub protocol: Protocol,
}

impl Subprotocol {
    /// What the runtime and the node agent serve themselves.
    pub const SERVED: [Self; 5] = [
        Self { name: "", encoding: Encoding::Binary, protocol: Protocol::V1 },
        Self { name: "channel.k8s.io", encoding: Encoding::Binary, protocol: Protocol::V1 },
        Self { name: "base64.channel.k8s.io", encoding: Encoding::Base64, protocol: Protocol::V1 },
        Self { name: "v4.channel.k8s.io", encoding: Encoding::Binary, protocol: Protocol::V4 },
        Self { name: "v4.base64.channel.k8s.io", encoding: Encoding::Base64, protocol: Protocol::V4 },
    ];
    /// What a translator towards SPDY serves.
    pub const TRANSLATED: [Self; 1] =
        [Self { name: "v5.channel.k8s.io", encoding: Encoding::Binary, protocol: Protocol::V5 }];
    /// What the old WebSocket port-forward serves.
    pub const PORT_FORWARD: [Self; 3] = [
        Self { name: "", encoding: Encoding::Binary, protocol: Protocol::V4 },
        Self { name: "v4.channel.k8s.io", encoding: Encoding::Binary, protocol: Protocol::V4 },
        Self { name: "v4.base64.channel.k8s.io", encoding: Encoding::Base64, protocol: Protocol::V4 },
    ];
}

/// Which streams a command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamSet {
    /// The client sends input.
    pub stdin: bool,
    /// The client wants output.
    pub stdout: bool,
    /// The client wants error output; never with a terminal.
    pub stderr: bool,
    /// The command has a terminal.
    pub tty: bool,
}

impl StreamSet {
    /// The set as it is used: a terminal has no stderr of its own.
    ///
    /// # Errors
    /// The user's text when no stream is asked for.
    pub fn checked(mut self) -> Result<Self, &'static str> {
        if !self.stdin && !self.stdout && !self.stderr {
            return Err("you must specify at least 1 of stdin, stdout, stderr");
        }
        if self.tty && self.stderr {
            tracing::debug!("stderr is not supported with a terminal and is left out");
            self.stderr = false;
        }
        Ok(self)
    }

    /// Whether a resize stream belongs to it.
    pub(crate) fn resize(self, protocol: Protocol) -> bool {
        self.tty && protocol.has_resize()
    }
}

/// The first of the client's names that the server has.
pub(crate) fn choose<'a, T: Copy>(wanted: &[&str], offered: &'a [T], name: impl Fn(&'a T) -> &'a str) -> Option<T> {
    wanted.iter().find_map(|wanted| offered.iter().find(|candidate| name(candidate) == *wanted)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_order_decides() {
        let names = ["v5.channel.k8s.io", "v3.channel.k8s.io", "v4.channel.k8s.io"];
        let chosen = choose(&names, &Protocol::SPDY_SERVER, |protocol| protocol.name());
        assert_eq!(chosen, Some(Protocol::V3));
        assert_eq!(choose(&["x"], &Protocol::SPDY_SERVER, |protocol| protocol.name()), None);
        assert_eq!(choose(&[""], &Subprotocol::SERVED, |served| served.name).unwrap().protocol, Protocol::V1);
    }

    #[test]
    fn a_terminal_has_no_stderr_and_something_must_be_asked_for() {
        let set = StreamSet { stdout: true, stderr: true, tty: true, ..StreamSet::default() };
        assert!(!set.checked().unwrap().stderr);
        assert!(StreamSet { tty: true, ..StreamSet::default() }.checked().is_err());
    }
}
