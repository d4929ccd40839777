//! The command as people and scripts meet it: the real binary, its exit status, what it prints, what it leaves.
//!
//! Left out: what guests do with their VFs.

mod access;
mod apply;
mod bench;
mod config;
mod demo;
mod drive;
mod guide;
mod keeper;
mod kept;
mod operations;
mod output;
mod port;
mod process;
mod serve;
mod survival;
mod systemd;
mod tap;
mod vf;
