//! Parts of the replay: the values that operations write.

pub mod values;
