//! What a document says beside the values that it holds, and how much of it is read.

/// The deepest nesting that is read. Deeper input is refused, so that recursion never exhausts the stack.
pub const MAX_DEPTH: usize = 500;

/// What a strict read had to report; empty otherwise. At most [`MAX_PROBLEMS`] are kept.
pub type Problems = Vec<String>;

/// How many unknown and duplicate fields are reported for one document.
pub const MAX_PROBLEMS: usize = 100;

/// What decoding a whole document gave besides the object.
#[derive(Debug, Default)]
pub struct Decoded {
    /// The document's own `kind` and `apiVersion`, empty where it had none.
    pub type_meta: TypeMeta,
    /// Unknown and duplicate fields, each as upstream words it.
    pub problems: Problems,
}

/// What kind of object a document says it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeMeta {
    /// `apiVersion`; empty when absent.
    pub api_version: String,
    /// `kind`; empty when absent.
    pub kind: String,
}
