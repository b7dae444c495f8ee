//! How the values of a string type are declared: each by its name, and all of them as one list.

/// Declares a constant for each value, and `ALL`. Field tables (`values = protocol::ALL`) and validation refer to that
/// list, so that documents and messages name what is here and nothing else.
macro_rules! values {
    ($($name:ident = $value:literal),+ $(,)?) => {
        $(pub const $name: &str = $value;)+
        /// Every value, in the order in which validation names them where it does not sort them. Documents sort them.
        pub const ALL: &[&str] = &[$($name),+];
    };
}
