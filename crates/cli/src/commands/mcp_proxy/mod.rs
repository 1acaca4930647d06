//! `checkrein mcp-proxy -- CMD`: an MCP server's tools behind our gates. Messages pass as they are, so
//! what a newer protocol brings passes too; stdout carries MCP and nothing else.

mod declared;
mod gate;
mod passing;
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

use self::gate::Gate;
use self::passing::{Passing, Stray, Strays, TOO_LONG};
use self::wire::{Line, Lines};
use super::engine;
use super::run::{cannot_start, new_id};
use crate::args::McpProxy;
use crate::locate::{self, Given};
use crate::ui::errors::CommandError;
use crate::ui::style::duration;
use crate::{exit_code, home, signals};

/// How often signals and deadlines are looked at.
const TICK: Duration = Duration::from_millis(50);
/// A server whose client has hung up is given this long to go.
const GRACE: Duration = Duration::from_secs(3);

/// What happened.
enum News {
    /// The client sends nothing more.
    ClientGone,
    /// The server says nothing more; with a reason if we stopped listening.
    Silent(Option<String>),
    /// Its process is gone, and all that it started.
    Ended(ProcessExit),
}

pub(crate) fn run(args: &McpProxy) -> Result<ExitCode, CommandError> {
    signals::listen();
    let start = ConfigDuration::parse_time_span(&args.start).filter(|span| span.ms > 0);
    let start = start.ok_or_else(|| {
        CommandError::usage(
            format!("--start takes a span of time, not '{}'", args.start),
            "write it like 30s or 2m",
        )
    })?;
    let Some((program, words)) = args.command.split_first() else {
        return Err(CommandError::usage(
            "no server to start",
            "write checkrein mcp-proxy -- CMD ARGS...",
        ));
    };
    let given = Given {
        state: args.state.as_deref(),
        profile: args.profile.as_deref(),
        require_trust: false,
    };
    let located =
        locate::locate_given(&std::env::current_dir()?, given).map_err(CommandError::failed)?;
    let session = SessionId::new(new_id());
    let located = home::of_new(located, &session)?;
    let store = engine::store(&located.place)?;
    let gate = Gate::open(located, store, session)?;

    let (stdin, down) = pipe()?;
    let (answers, stdout) = pipe()?;
    let mut command = Command::new(program);
    let tag = new_id();
    command
        .args(words)
        .env(withheld::CHECK_VARIABLE, &tag)
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::inherit());
    let (wait, kill) = process::spawn_killable_process_tree(command, &tag)
        .map_err(|error| CommandError::failed(cannot_start(&program.to_string_lossy(), &error)))?;
    let shown = file_name(program);
    let passing = Arc::new(Passing::new(gate, down, args.name.clone(), shown.clone()));
    let (sender, news) = channel();
    let ended = sender.clone();
    std::thread::spawn(move || {
        let how = wait
            .wait_for_command_end()
            .map_or(ProcessExit::Lost, |(how, _)| how);
        // Nobody listens any more only if we are gone.
        let _ = ended.send(News::Ended(how));
    });
    listen_to_server(&passing, answers, sender.clone());
    listen_to_client(&passing, sender);
    let over = Watch {
        passing: &passing,
        shown: &shown,
        start: Duration::from_millis(start.ms),
        kill: Some(kill),
    }
    .until_over(&news);
    match &over {
        Over::HungUp => passing.gate.close("the client hung up"),
        Over::Told => passing.gate.close("told to go"),
        Over::Server(why) => {
            passing.give_up(why);
            passing.gate.close(why);
        }
    }
    match over {
        Over::HungUp => Ok(exit_code::exit(exit_code::YES)),
        Over::Told => Ok(exit_code::exit(exit_code::INTERRUPTED)),
        Over::Server(why) => Err(CommandError::failed(format!("mcp-proxy: {why}"))),
    }
}

fn file_name(program: &OsStr) -> String {
    let name = Path::new(program).file_name().unwrap_or(program);
    name.to_string_lossy().into_owned()
}

fn listen_to_client(passing: &Arc<Passing>, news: Sender<News>) {
    let passing = Arc::clone(passing);
    std::thread::spawn(move || {
        let (calls, called) = channel();
        let judge = Arc::clone(&passing);
        let judge = std::thread::spawn(move || called.iter().for_each(|call| judge.call(call)));
        let mut lines = Lines::new(std::io::stdin());
        loop {
            match lines.next() {
                Line::End => break,
                line => passing.client_says(line, &calls),
            }
        }
        // Who hangs up behind a call has made it all the same.
        drop(calls);
        let _ = judge.join();
        let _ = news.send(News::ClientGone);
    });
}

fn listen_to_server(passing: &Arc<Passing>, answers: PipeReader, news: Sender<News>) {
    let passing = Arc::clone(passing);
    std::thread::spawn(move || {
        let mut lines = Lines::new(answers);
        let mut strays = Strays::default();
        let why = loop {
            let line = match lines.next() {
                Line::End => break None,
                Line::TooLong => {
                    break Some(format!(
                        "sent a message that cannot be passed on: {TOO_LONG}"
                    ));
                }
                Line::Whole(line) if line.trim().is_empty() => continue,
                Line::Whole(line) => line,
                Line::Bytes => "bytes that are no UTF-8".to_owned(),
            };
            match passing.server_says(&line) {
                Stray::No => strays.none(),
                Stray::Yes if strays.one(&line) => {
                    break Some("floods its stdout with what is no MCP message".to_owned());
                }
                Stray::Yes => {}
            }
        };
        passing.silent();
        let _ = news.send(News::Silent(why));
    });
}

/// How a connection came to its end.
enum Over {
    /// The client wants nothing more.
    HungUp,
    /// We are told to go.
    Told,
    /// The server's fault.
    Server(String),
}

/// Looks after the server's process.
struct Watch<'a> {
    passing: &'a Passing,
    shown: &'a str,
    start: Duration,
    kill: Option<ProcessTreeKillHandle>,
}

impl Watch<'_> {
    fn until_over(mut self, news: &Receiver<News>) -> Over {
        let mut over: Option<Over> = None;
        let (mut silent, mut ended) = (false, None);
        let mut due: Option<Instant> = None;
        loop {
            match news.recv_timeout(TICK) {
                Ok(News::ClientGone) => {
                    over = over.or(Some(Over::HungUp));
                    self.passing.hang_up();
                    due = due.or(Instant::now().checked_add(GRACE));
                }
                Ok(News::Silent(why)) => {
                    silent = true;
                    if let Some(why) = why {
                        over = Some(Over::Server(self.of_server(&why)));
                        self.end();
                    }
                    // Who closes its stdout is on its way out.
                    due = due.or(Instant::now().checked_add(GRACE));
                }
                Ok(News::Ended(how)) => ended = Some(how),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => ended = ended.or(Some(ProcessExit::Lost)),
            }
            if let (true, Some(how)) = (silent, ended) {
                return over.unwrap_or_else(|| Over::Server(self.of_server(&words(how))));
            }
            if signals::cancelled() && over.is_none() {
                over = Some(Over::Told);
                self.passing.hang_up();
                due = due.or(Instant::now().checked_add(GRACE));
            }
            let hangs = self.passing.answered.get().is_none()
                && self
                    .passing
                    .asked
                    .get()
                    .is_some_and(|asked| asked.elapsed() >= self.start);
            if hangs && over.is_none() {
                let span = duration(u64::try_from(self.start.as_millis()).unwrap_or(u64::MAX));
                over = Some(Over::Server(self.of_server(&format!(
                    "has not answered within {span} (--start SPAN gives it longer)"
                ))));
                self.end();
            }
            if due.is_some_and(|due| Instant::now() >= due) {
                self.end();
            }
        }
    }

    fn of_server(&self, why: &str) -> String {
        format!("the server '{}' {why}", self.shown)
    }

    fn end(&mut self) {
        if let Some(kill) = self.kill.take() {
            kill.kill_process_tree();
        }
    }
}

fn words(how: ProcessExit) -> String {
    match how {
        ProcessExit::Exited(code) => format!("ended with exit status {code}"),
        ProcessExit::Signalled(signal) => format!("was ended by signal {signal}"),
        ProcessExit::Lost => "was lost sight of".to_owned(),
    }
}
