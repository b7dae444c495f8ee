//! Nodes: their addresses, their health and what becomes of the pods of dead ones.
