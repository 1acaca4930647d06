//! One command, one file.

mod answer;
pub(crate) mod approvals;
mod check;
mod demo;
mod doctor;
pub(crate) mod engine;
mod gc;
pub(crate) mod hook;
mod init;
mod judge;
mod layers;
pub(crate) mod lookup;
mod mcp;
mod mcp_proxy;
mod off;
mod patch;
mod policy;
mod replay;
mod run;
mod runs;
mod seal;
mod sessions;
mod show;
mod trust;
mod watch;

use std::process::ExitCode;

use crate::args::Command;
use crate::ui::errors::CommandError;

pub(crate) fn run(command: Command) -> Result<ExitCode, CommandError> {
    match command {
        Command::Init(args) => init::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Hook(args) => Ok(hook::parsed(args)),
        Command::Demo(args) => demo::run(&args),
        Command::Sessions(args) => sessions::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Trust(args) => trust::run(&args),
        Command::Seal => seal::run(),
        Command::Off(args) => off::off(&args),
        Command::On => off::on(),
        Command::Gc(args) => gc::run(&args),
        Command::Patch(args) => patch::run(&args),
        Command::Policy(args) => policy::run(&args),
        Command::Mcp(args) => mcp::run(&args),
        Command::McpProxy(args) => mcp_proxy::run(&args),
        Command::Approvals(args) => approvals::run(&args),
        Command::Approve(args) => answer::approve(&args),
        Command::Deny(args) => answer::deny(&args),
        Command::Judge(args) => judge::run(&args),
    }
}
