//! One line per figure, the same in every benchmark, so that a script can read them.

use std::fmt;
use std::io::{self, Write};

/// What was measured, beside the peer it is held against.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Lower case, words joined by `-`.
    pub name: String,
    pub ours: f64,
    pub peer: Option<Peer>,
    /// For example `us` or `pods/s`.
    pub unit: &'static str,
}

/// What a figure is held against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Peer {
    /// What another program reached in the same run.
    Ran(f64),
    /// What somebody said of another machine.
    Published(f64),
    /// What is promised.
    Promised(f64),
}

impl Peer {
    fn parts(self) -> (&'static str, f64) {
        match self {
            Self::Ran(number) => ("peer", number),
            Self::Published(number) => ("published", number),
            Self::Promised(number) => ("promised", number),
        }
    }
}

impl Figure {
    /// A figure beside the most that it may be.
    pub fn beside_promised(name: impl Into<String>, ours: f64, promised: f64, unit: &'static str) -> Self {
        Self { name: name.into(), ours, peer: Some(Peer::Promised(promised)), unit }
    }

    /// A figure beside one that is known from elsewhere.
    pub fn beside_published(name: impl Into<String>, ours: f64, published: f64, unit: &'static str) -> Self {
        Self { name: name.into(), ours, peer: Some(Peer::Published(published)), unit }
    }

    /// A figure beside its peer's.
    pub fn beside(name: impl Into<String>, ours: f64, peer: f64, unit: &'static str) -> Self {
        Self { name: name.into(), ours, peer: Some(Peer::Ran(peer)), unit }
    }

    /// A figure that has no peer: its line has `-` for the peer and the ratio.
    pub fn alone(name: impl Into<String>, ours: f64, unit: &'static str) -> Self {
        Self { name: name.into(), ours, peer: None, unit }
    }

    /// Writes the line to standard output.
    ///
    /// # Errors
    /// Standard output is closed.
    pub fn print(&self) -> io::Result<()> {
        writeln!(io::stdout().lock(), "{self}")
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RESULT {} ours={}", self.name, Number(self.ours))?;
        match self.peer {
            Some(peer) => {
                let (label, number) = peer.parts();
                write!(f, " {label}={} ratio={}", Number(number), Number(self.ours / number))?;
            }
            None => write!(f, " peer=- ratio=-")?,
        }
        write!(f, " unit={}", self.unit)
    }
}

/// Three or more digits that mean something, and never an exponent.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = match self.0.abs() {
            size if size >= 1000.0 => 0,
            size if size >= 10.0 => 1,
            _ => 3,
        };
        write!(f, "{:.decimals$}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Figure;

    #[test]
    fn a_line_is_read_by_scripts() {
        for (figure, line) in [
            (Figure::beside("get", 12.0, 10.0, "us"), "RESULT get ours=12.0 peer=10.0 ratio=1.200 unit=us"),
            (
                Figure::beside("rate", 2540.4, 127.0, "pods/s"),
                "RESULT rate ours=2540 peer=127.0 ratio=20.0 unit=pods/s",
            ),
            (
                Figure::beside_published("rate", 2540.4, 127.0, "pods/s"),
                "RESULT rate ours=2540 published=127.0 ratio=20.0 unit=pods/s",
            ),
            (Figure::alone("cached-pod", 0.25, "bytes"), "RESULT cached-pod ours=0.250 peer=- ratio=- unit=bytes"),
        ] {
            assert_eq!(figure.to_string(), line);
        }
    }
}
