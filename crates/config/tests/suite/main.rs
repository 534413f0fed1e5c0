//! The configuration: what is read, what is refused and how, the schema and the reference.

#[path = "../support/mod.rs"]
mod support;

mod balance;
mod diagnostics;
mod documents;
mod format;
mod included;
mod layer;
mod model;
mod robust;
mod schema;
mod vocabulary;
