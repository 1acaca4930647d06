//! One command, one module.

mod answer_approval;
pub(crate) mod approvals;
mod check;
mod check_runs;
mod demo;
mod doctor;
pub(crate) mod engine;
mod gc;
pub(crate) mod hook;
mod init;
mod judge;
pub(crate) mod lookup;
mod mcp;
mod mcp_proxy;
mod middleware_layers;
mod off;
mod patch;
mod policy;
mod replay;
mod run;
mod seal;
mod sessions;
mod show;
mod trace_file;
mod trust;
mod tune;
mod watch;

use std::process::ExitCode;

use crate::args::CliCommand;
use crate::ui::errors::CommandError;

pub(crate) fn run_cli_command(command: CliCommand) -> Result<ExitCode, CommandError> {
    match command {
        CliCommand::Init(args) => init::run_init_command(&args),
        CliCommand::Check(args) => check::run_check_command(&args),
        CliCommand::Run(args) => run::run_run_command(&args),
        CliCommand::Hook(args) => Ok(hook::run_hook_command(args)),
        CliCommand::Demo(args) => demo::run_demo_command(&args),
        CliCommand::Sessions(args) => sessions::run_sessions_command(&args),
        CliCommand::Show(args) => show::run_show_command(&args),
        CliCommand::Watch(args) => watch::run_watch_command(&args),
        CliCommand::Replay(args) => replay::run_replay_command(&args),
        CliCommand::Tune(args) => tune::run_tune_command(&args),
        CliCommand::Doctor(args) => doctor::run_doctor_command(&args),
        CliCommand::Trust(args) => trust::run_trust_command(&args),
        CliCommand::Seal => seal::run_seal_command(),
        CliCommand::Off(args) => off::run_off_command(&args),
        CliCommand::On => off::run_switch_on_command(),
        CliCommand::Gc(args) => gc::run_gc_command(&args),
        CliCommand::Patch(args) => patch::run_patch_command(&args),
        CliCommand::Policy(args) => policy::run_policy_command(&args),
        CliCommand::Mcp(args) => mcp::run_mcp_server_command(&args),
        CliCommand::McpProxy(args) => mcp_proxy::run_mcp_proxy_command(&args),
        CliCommand::Approvals(args) => approvals::run_approvals_command(&args),
        CliCommand::Approve(args) => answer_approval::run_approve_command(&args),
        CliCommand::Deny(args) => answer_approval::run_deny_command(&args),
        CliCommand::Judge(args) => judge::run_judge_command(&args),
    }
}
