//! Domain maths that several sides share.
