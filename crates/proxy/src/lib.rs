//! Services to packet filter rules.
