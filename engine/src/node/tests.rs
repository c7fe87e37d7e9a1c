//! Tests of the node layer.
