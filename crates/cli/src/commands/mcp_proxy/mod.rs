//! `checkrein mcp-proxy -- CMD`: puts an MCP server's tools behind our gates. Messages pass as they
//! are, so what a newer protocol adds passes too. stdout carries MCP and nothing else.

mod connection;
mod declared_tools;
mod gate;
mod wire;

use std::ffi::OsStr;
use std::io::{PipeReader, pipe};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use checkrein_core::ids::SessionId;
use checkrein_runtime::config::ConfigDuration;
use checkrein_verifiers::process::{self, ProcessExit, ProcessTreeKillHandle};
use checkrein_verifiers::withheld;

use self::connection::{McpMessageForwarder, MessageOrStrayLine, StrayLineCounter, TOO_LONG_TEXT};
use self::gate::McpProxySessionGate;
use self::wire::{McpStreamReadResult, WireLineReader};
use super::engine;
use super::run::{new_unique_hex_id, start_failure_text};
use crate::args::McpProxyArgs;
use crate::locate::{self, StateAndProfileArgs};
use crate::ui::errors::CommandError;
use crate::ui::style::format_duration;
use crate::{exit_code, session_location, signals};

/// How often signals and deadlines are looked at.
const TICK: Duration = Duration::from_millis(50);
/// Grace for a server whose client has hung up.
const EXIT_GRACE: Duration = Duration::from_secs(3);

/// What the threads report.
enum McpProxyEndEvent {
    /// The client sends nothing more.
    ClientGone,
    /// The server's output has ended; with a reason if we stopped listening.
    ServerSilent(Option<String>),
    /// Its process is gone, with all that it started.
    ServerEnded(ProcessExit),
}

pub(crate) fn run_mcp_proxy_command(args: &McpProxyArgs) -> Result<ExitCode, CommandError> {
    signals::install_signal_handlers();
    let start = ConfigDuration::parse_time_span(&args.start).filter(|span| span.ms > 0);
    let start = start.ok_or_else(|| {
        CommandError::usage_error(
            format!("--start takes a span of time, not '{}'", args.start),
            "write it like 30s or 2m",
        )
    })?;
    let Some((program, words)) = args.command.split_first() else {
        return Err(CommandError::usage_error(
            "no server to start",
            "write checkrein mcp-proxy -- CMD ARGS...",
        ));
    };
    let given = StateAndProfileArgs {
        state: args.state.as_deref(),
        profile: args.profile.as_deref(),
        require_trust: false,
    };
    let located = locate::locate_project_for_hook(&std::env::current_dir()?, given)
        .map_err(CommandError::cli_failure_error)?;
    // Sealed before the server starts: a config that cannot be used is reported while nothing
    // runs.
    let session = SessionId::new(new_unique_hex_id());
    let located = session_location::project_location_for_new_session(located, &session)?;
    let store = engine::open_store(&located.place)?;
    let gate = McpProxySessionGate::open_mcp_proxy_session(located, store, session)?;

    let (stdin, down) = pipe()?;
    let (answers, stdout) = pipe()?;
    let mut command = Command::new(program);
    // The tag in the environment marks every descendant of the server, for the kill.
    let tag = new_unique_hex_id();
    command
        .args(words)
        .env(withheld::CHECK_VARIABLE, &tag)
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::inherit());
    let (wait, kill) = process::spawn_killable_process_tree(command, &tag).map_err(|error| {
        CommandError::cli_failure_error(start_failure_text(&program.to_string_lossy(), &error))
    })?;
    let shown = program_file_name(program);
    let passing = Arc::new(McpMessageForwarder::new(
        gate,
        down,
        args.name.clone(),
        shown.clone(),
    ));
    let (sender, news) = channel();
    let ended = sender.clone();
    // One thread waits for the process, one reads the server, one the client; this one
    // decides.
    std::thread::spawn(move || {
        let how = wait
            .wait_for_command_end()
            .map_or(ProcessExit::Lost, |(how, _)| how);
        // There is no receiver only if the command has ended.
        let _ = ended.send(McpProxyEndEvent::ServerEnded(how));
    });
    spawn_mcp_server_listener(&passing, answers, sender.clone());
    listen_to_client(&passing, sender);
    let over = McpServerProcessMonitor {
        passing: &passing,
        shown: &shown,
        start: Duration::from_millis(start.ms),
        kill: Some(kill),
    }
    .wait_for_connection_end(&news);
    match &over {
        McpConnectionEndReason::ClientHungUp => {
            passing.gate.end_proxied_session("the client hung up")
        }
        McpConnectionEndReason::Terminated => passing.gate.end_proxied_session("told to go"),
        McpConnectionEndReason::ServerFailed(why) => {
            // Answered before the session ends: a client would wait for these answers for ever.
            passing.answer_open_requests_with_error(why);
            passing.gate.end_proxied_session(why);
        }
    }
    match over {
        McpConnectionEndReason::ClientHungUp => Ok(exit_code::to_exit_code(exit_code::YES)),
        McpConnectionEndReason::Terminated => Ok(exit_code::to_exit_code(exit_code::INTERRUPTED)),
        McpConnectionEndReason::ServerFailed(why) => {
            Err(CommandError::cli_failure_error(format!("mcp-proxy: {why}")))
        }
    }
}

fn program_file_name(program: &OsStr) -> String {
    let name = Path::new(program).file_name().unwrap_or(program);
    name.to_string_lossy().into_owned()
}

fn listen_to_client(passing: &Arc<McpMessageForwarder>, news: Sender<McpProxyEndEvent>) {
    let passing = Arc::clone(passing);
    std::thread::spawn(move || {
        // Judging has a thread of its own, so that a slow judgement holds up no other message.
        let (calls, called) = channel();
        let judge = Arc::clone(&passing);
        let judge = std::thread::spawn(move || {
            called
                .iter()
                .for_each(|call| judge.forward_call_if_allowed(call))
        });
        let mut lines = WireLineReader::new(std::io::stdin());
        loop {
            match lines.read_next_mcp_line() {
                McpStreamReadResult::End => break,
                line => passing.handle_line_from_mcp_client(line, &calls),
            }
        }
        // A client that hangs up behind a call has made the call: it is judged before the end is
        // reported.
        drop(calls);
        let _ = judge.join();
        let _ = news.send(McpProxyEndEvent::ClientGone);
    });
}

fn spawn_mcp_server_listener(
    passing: &Arc<McpMessageForwarder>,
    answers: PipeReader,
    news: Sender<McpProxyEndEvent>,
) {
    let passing = Arc::clone(passing);
    std::thread::spawn(move || {
        let mut lines = WireLineReader::new(answers);
        let mut strays = StrayLineCounter::default();
        let why = loop {
            let line = match lines.read_next_mcp_line() {
                McpStreamReadResult::End => break None,
                McpStreamReadResult::TooLong => {
                    break Some(format!(
                        "sent a message that cannot be passed on: {TOO_LONG_TEXT}"
                    ));
                }
                McpStreamReadResult::Text(line) if line.trim().is_empty() => continue,
                McpStreamReadResult::Text(line) => line,
                // Such a line is no JSON either, and is counted as a stray one.
                McpStreamReadResult::NotUtf8 => "bytes that are no UTF-8".to_owned(),
            };
            match passing.handle_line_from_mcp_server(&line) {
                MessageOrStrayLine::Message => strays.reset_stray_line_count(),
                MessageOrStrayLine::Stray if strays.count_stray_mcp_line(&line) => {
                    break Some("floods its stdout with what is no MCP message".to_owned());
                }
                MessageOrStrayLine::Stray => {}
            }
        };
        passing.mark_server_output_ended();
        let _ = news.send(McpProxyEndEvent::ServerSilent(why));
    });
}

/// How a connection ended.
enum McpConnectionEndReason {
    /// The client needs nothing more.
    ClientHungUp,
    /// A signal told us to end.
    Terminated,
    /// The server is at fault.
    ServerFailed(String),
}

/// Watches the server's process.
struct McpServerProcessMonitor<'a> {
    passing: &'a McpMessageForwarder,
    shown: &'a str,
    start: Duration,
    kill: Option<ProcessTreeKillHandle>,
}

impl McpServerProcessMonitor<'_> {
    fn wait_for_connection_end(
        mut self,
        news: &Receiver<McpProxyEndEvent>,
    ) -> McpConnectionEndReason {
        let mut over: Option<McpConnectionEndReason> = None;
        let (mut silent, mut ended) = (false, None);
        let mut due: Option<Instant> = None;
        loop {
            match news.recv_timeout(TICK) {
                Ok(McpProxyEndEvent::ClientGone) => {
                    // The first cause is the one that is reported.
                    over = over.or(Some(McpConnectionEndReason::ClientHungUp));
                    self.passing.close_server_stdin();
                    due = due.or(Instant::now().checked_add(EXIT_GRACE));
                }
                Ok(McpProxyEndEvent::ServerSilent(why)) => {
                    silent = true;
                    if let Some(why) = why {
                        over = Some(McpConnectionEndReason::ServerFailed(
                            self.mcp_server_failure_text(&why),
                        ));
                        self.kill_mcp_server();
                    }
                    // A server that closes its stdout is about to exit.
                    due = due.or(Instant::now().checked_add(EXIT_GRACE));
                }
                Ok(McpProxyEndEvent::ServerEnded(how)) => ended = Some(how),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => ended = ended.or(Some(ProcessExit::Lost)),
            }
            // Both are awaited: a process may be gone while its last answer is still in the pipe.
            if let (true, Some(how)) = (silent, ended) {
                return over.unwrap_or_else(|| {
                    McpConnectionEndReason::ServerFailed(
                        self.mcp_server_failure_text(&process_exit_text(how)),
                    )
                });
            }
            if signals::is_process_cancelled() && over.is_none() {
                over = Some(McpConnectionEndReason::Terminated);
                self.passing.close_server_stdin();
                due = due.or(Instant::now().checked_add(EXIT_GRACE));
            }
            // A server that has answered once does not hang: later calls may take as long as they
            // need.
            let hangs = self.passing.answered.get().is_none()
                && self
                    .passing
                    .first_request_at
                    .get()
                    .is_some_and(|asked| asked.elapsed() >= self.start);
            if hangs && over.is_none() {
                let span =
                    format_duration(u64::try_from(self.start.as_millis()).unwrap_or(u64::MAX));
                over = Some(McpConnectionEndReason::ServerFailed(
                    self.mcp_server_failure_text(&format!(
                        "has not answered within {span} (--start SPAN gives it longer)"
                    )),
                ));
                self.kill_mcp_server();
            }
            if due.is_some_and(|due| Instant::now() >= due) {
                self.kill_mcp_server();
            }
        }
    }

    fn mcp_server_failure_text(&self, why: &str) -> String {
        format!("the server '{}' {why}", self.shown)
    }

    fn kill_mcp_server(&mut self) {
        if let Some(kill) = self.kill.take() {
            kill.kill_process_tree();
        }
    }
}

fn process_exit_text(how: ProcessExit) -> String {
    match how {
        ProcessExit::Exited(code) => format!("ended with exit status {code}"),
        ProcessExit::Signalled(signal) => format!("was ended by signal {signal}"),
        ProcessExit::Lost => "was lost sight of".to_owned(),
    }
}
