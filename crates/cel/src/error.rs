//! Why an evaluation has no value. Texts are upstream's: they end up in answers to clients.

/// Why an evaluation has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The arguments fit no overload of the function.
    #[error("no such overload")]
    NoSuchOverload,
    /// The map has no such key, or the object no such field.
    #[error("no such key: {0}")]
    NoSuchKey(String),
    /// The object's type has no such field.
    #[error("no such field '{0}'")]
    NoSuchField(String),
    /// The variable has no value.
    #[error("no such attribute(s): {0}")]
    NoSuchAttribute(String),
    #[error("index out of bounds: {0}")]
    IndexOutOfBounds(i64),
    #[error("integer overflow")]
    Overflow,
    #[error("unsigned integer overflow")]
    UnsignedOverflow,
    #[error("division by zero")]
    DivisionByZero,
    #[error("modulus by zero")]
    ModulusByZero,
    /// A list or map literal cannot have it.
    #[error("Failed with repeated key: {0}")]
    RepeatedKey(String),
    /// What no other variant says.
    #[error("{0}")]
    Failed(String),
    /// The evaluation costs more than it may; what follows must not be evaluated.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
    /// Whoever asked does not wait any more.
    #[error("operation interrupted")]
    Interrupted,
}

impl EvalError {
    /// Whether the evaluation ends at once, whatever operators would make of other errors.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::CostLimit | Self::Interrupted)
    }

    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }
}

/// What functions return.
pub type Out<T> = Result<T, EvalError>;
