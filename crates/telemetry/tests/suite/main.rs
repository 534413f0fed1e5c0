//! What the documents and the packaged files say of the metrics.

mod documents;
mod packaging;
