//! The command as people and scripts meet it: the real binary, its exit status, what it prints, what it leaves.
//!
//! Left out: what guests do with their VFs.

mod access;
mod api;
mod apparmor;
mod apply;
mod bench;
mod beyond;
mod calls;
mod capture;
mod config;
mod counters;
mod dashboard;
mod demo;
mod devlink;
mod doctor;
mod drive;
mod events;
mod fleet;
mod flight;
mod formats;
mod guide;
mod http;
mod ip;
mod keeper;
mod kept;
mod operations;
mod output;
#[path = "../process/page.rs"]
mod page;
mod pieces;
mod port;
mod process;
mod serve;
mod survival;
mod systemd;
mod tap;
mod tools;
mod uplinks;
mod vf;
