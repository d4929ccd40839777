//! The rules of the processors, each by name, and a small world that keeps the conversation going.

mod conservation;
mod rules;
mod world;
