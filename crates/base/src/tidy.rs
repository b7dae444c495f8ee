//! Letting go of memory.

/// How a program lets go of memory that is not in use.
#[derive(Debug, Clone, Copy)]
pub struct Tidy {
    /// What only the calling thread can let go of.
    pub thread: fn(),
    /// What any thread can.
    pub process: fn(),
}
