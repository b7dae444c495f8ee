//! Field paths, and validation errors in the exact words of upstream.
//!
//! Upstream's texts are part of the wire behaviour: `kubectl` prints them, scripts match them. A rule builds a
//! [`Path`] as it descends and reports through the path's constructors: `path.child("image").required("")`.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

mod error;

pub use error::{BadValue, Cause, ErrorKind, ErrorList, FieldError};

/// Where a value stands in an object; cheap to clone and to extend.
#[derive(Clone, Debug, Default)]
pub struct Path(Option<Arc<Node>>);

#[derive(Debug)]
struct Node {
    parent: Path,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Name(Cow<'static, str>),
    Index(usize),
    Key(String),
}

impl Path {
    /// A path of one name.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self::default().child(name)
    }

    /// No path: prints as `<nil>`, and children of it are roots.
    pub const fn nil() -> Self {
        Self(None)
    }

    /// The field `name` below this one.
    #[must_use]
    pub fn child(&self, name: impl Into<Cow<'static, str>>) -> Self {
        self.step(Step::Name(name.into()))
    }

    /// An item of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    /// An entry of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.step(Step::Key(key.to_owned()))
    }

    fn step(&self, step: Step) -> Self {
        Self(Some(Arc::new(Node { parent: self.clone(), step })))
    }
}

impl From<&'static str> for Path {
    fn from(name: &'static str) -> Self {
        Self::new(name)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut next = self.0.as_ref();
        if next.is_none() {
            return f.write_str("<nil>");
        }
        let mut nodes = Vec::new();
        while let Some(node) = next {
            nodes.push(node);
            next = node.parent.0.as_ref();
        }
        for (depth, node) in nodes.iter().rev().enumerate() {
            match &node.step {
                // Upstream prints a nameless step as an index without a number.
                Step::Name(name) if name.is_empty() => f.write_str("[]")?,
                Step::Name(name) if depth == 0 => f.write_str(name)?,
                Step::Name(name) => write!(f, ".{name}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => write!(f, "[{key}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_like_upstream() {
        let containers = Path::new("spec").child("containers").index(2);
        let cases = [
            (Path::nil(), "<nil>"),
            (Path::new(""), "[]"),
            (Path::nil().child("values").index(0).key("a/b"), "values[0][a/b]"),
            (Path::nil().index(3), "[3]"),
            (containers.child("resources").child("limits").key("cpu"), "spec.containers[2].resources.limits[cpu]"),
            (containers, "spec.containers[2]"),
            (Path::new("spec").child(String::from("x")), "spec.x"),
        ];
        for (path, expected) in cases {
            assert_eq!(path.to_string(), expected);
        }
    }
}
