//! The real binary, seen from outside: each file is a subject, each test a transcript.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod agent;
mod approvals;
mod autopilot;
mod bad_input;
mod broken_config;
mod calibrate;
mod cli;
mod clock;
mod coder;
mod coder_again;
mod coder_ends;
mod columns;
mod confine;
mod crash;
mod detectors;
mod doctor;
mod doctor_audit;
mod equipped;
mod file_tools;
mod freshness;
mod git_tracked;
mod git_traps;
mod golden;
mod history;
mod hook;
mod hostile;
mod in_flight;
mod init;
mod injections;
mod judge;
mod keeping;
mod lost_failures;
mod many;
mod masked;
mod mcp;
mod mcp_client;
mod mcp_proxy;
mod middleware;
mod modes;
mod neighbours;
mod openclaw;
#[cfg(target_os = "linux")]
mod owner;
mod patch;
mod person;
mod places;
mod policy;
mod reasons;
mod report;
mod required;
mod reruns;
mod review;
mod risk_set;
mod run;
mod screen;
mod sealed;
mod secrets;
mod seeing;
mod shipped_policy;
mod skew;
mod slots;
mod start_folder;
mod terminal;
mod token_budget;
mod tree;
mod trust;
mod tune;
mod unending;
mod watching;
mod world;
