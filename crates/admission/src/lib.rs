//! Admission plugins, one ordered list.
