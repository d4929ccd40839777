//! Tests against an independent packet library: this crate understands the frames that it builds, and it accepts
//! the frames of this crate. The descriptors of a family of cards are tested with that family.

mod coalesce;
mod frames;
mod headers;
mod inserted;
mod segment;
mod unfinished;
