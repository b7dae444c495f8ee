//! Field paths, and validation errors in the exact words of upstream.
//!
//! Upstream's texts are part of the wire behaviour: `kubectl` prints them, scripts match them. A rule builds a
//! [`Path`] as it descends and reports through the path's constructors: `path.child("image").required("")`.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

mod error;

pub use error::{BadValue, Cause, ErrorKind, ErrorList, FieldError};

/// How many steps a path holds itself: as many as paths into a pod's template mostly have.
const AT_HAND: usize = 7;

/// Where a value stands in an object; cheap to clone and to extend. Rules make far more paths than errors, so the last steps
/// stand in the path itself, and only a long one, or one with a text of the object's own, has others to share.
#[derive(Clone, Debug, Default)]
pub struct Path {
    above: Option<Arc<Node>>,
    steps: [Step; AT_HAND],
    len: usize,
}

/// The first part of a path, shared by all that go on from it.
#[derive(Debug)]
struct Node {
    above: Path,
    /// A step whose text is the object's own.
    last: Option<OwnStep>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Name(&'static str),
    Index(usize),
}

impl Default for Step {
    fn default() -> Self {
        Self::Index(0)
    }
}

#[derive(Debug)]
enum OwnStep {
    Name(String),
    Key(String),
}

impl Path {
    /// A path of one name.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self::default().child(name)
    }

    /// No path: prints as `<nil>`, and children of it are roots.
    pub const fn nil() -> Self {
        Self { above: None, steps: [Step::Index(0); AT_HAND], len: 0 }
    }

    /// The field `name` below this one.
    #[must_use]
    pub fn child(&self, name: impl Into<Cow<'static, str>>) -> Self {
        match name.into() {
            Cow::Borrowed(name) => self.step(Step::Name(name)),
            Cow::Owned(name) => self.own_step(OwnStep::Name(name)),
        }
    }

    /// An item of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    /// An entry of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.own_step(OwnStep::Key(key.to_owned()))
    }

    fn step(&self, step: Step) -> Self {
        let mut path = self.clone();
        if path.steps.get(path.len).is_none() {
            path = Self { above: Some(Arc::new(Node { above: path, last: None })), ..Self::nil() };
        }
        if let Some(free) = path.steps.get_mut(path.len) {
            *free = step;
            path.len += 1;
        }
        path
    }

    fn own_step(&self, step: OwnStep) -> Self {
        Self { above: Some(Arc::new(Node { above: self.clone(), last: Some(step) })), ..Self::nil() }
    }

    fn is_nil(&self) -> bool {
        self.above.is_none() && self.len == 0
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(node) = &self.above {
            node.above.write(f)?;
            match &node.last {
                Some(OwnStep::Name(name)) => write_name(name, node.above.is_nil(), f)?,
                Some(OwnStep::Key(key)) => write!(f, "[{key}]")?,
                None => {}
            }
        }
        for (at, step) in self.steps.iter().take(self.len).enumerate() {
            match step {
                Step::Name(name) => write_name(name, at == 0 && self.above.is_none(), f)?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

fn write_name(name: &str, is_root: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match name {
        // Upstream prints a nameless step as an index without a number.
        "" => f.write_str("[]"),
        _ if is_root => f.write_str(name),
        _ => write!(f, ".{name}"),
    }
}

impl From<&'static str> for Path {
    fn from(name: &'static str) -> Self {
        Self::new(name)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nil() { f.write_str("<nil>") } else { self.write(f) }
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
            (Path::new(String::from("x")).child("y").child(String::from("")), "x.y[]"),
            (
                (0..20).fold(Path::new("deep"), |path, at| match at % 3 {
                    0 => path.child("a"),
                    1 => path.index(at),
                    _ => path.child(format!("b{at}")),
                }),
                "deep.a[1].b2.a[4].b5.a[7].b8.a[10].b11.a[13].b14.a[16].b17.a[19]",
            ),
            (
                (0..16).fold(Path::nil(), |path, at| path.index(at)).child("x"),
                "[0][1][2][3][4][5][6][7][8][9][10][11][12][13][14][15].x",
            ),
        ];
        for (path, expected) in cases {
            assert_eq!(path.to_string(), expected);
        }
    }
}
