//! Against an independent packet library: what it builds is understood, what is made here it accepts. How a family of
//! cards says all of it in its descriptors is tested with that family.

mod frames;
mod headers;
mod segment;
mod unfinished;
