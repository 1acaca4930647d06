//! What was typed. The doc comments are the help.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::exit_code;
use crate::ui::errors::{CommandError, report_command_error};

/// Decides when an AI agent is really done, and stops it when it spins.
#[derive(Debug, Parser)]
#[command(
    name = "checkrein",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  checkrein demo                          see the main job on a tiny project, offline
  checkrein init                          set this repo up for your agents
  checkrein check                         run this repo's checks now
  checkrein run -- my-agent {task}        run an agent until it is really done
  checkrein sessions                      what ended how
  checkrein show --why                    why the newest task ended as it did"
)]
pub(crate) struct CliArgs {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Set this repo up: find its checks, write checkrein.toml, install hooks for your agents.
    #[command(after_help = "\
Examples:
  checkrein init                      for you, in this repo; nothing that is committed changes
  checkrein init --dry-run            show what would be written, and write nothing
  checkrein init --agent codex        for this agent only
  checkrein init --user               for you, in all repos
  checkrein init --shared             in the committed settings, for everybody who clones it
  checkrein init --undo               take it all back, to the byte

Exit status: 0 done, 2 usage, or an agent will not call the hooks (it says why).")]
    Init(InitArgs),
    /// Run the verifiers of checkrein.toml now, in parallel.
    #[command(after_help = "\
Examples:
  checkrein check                 all of them
  checkrein check tests lint      these two
  checkrein check --json          one JSON document

Exit status: 0 accepted, 1 not, 2 usage or config error, 3 inconclusive (also: nothing is required),
130 Ctrl-C.")]
    Check(CheckArgs),
    /// Run an agent until it is really done: Claude Code, Codex, a model, or any command.
    #[command(after_help = "\
Examples:
  checkrein run --agent claude-code \"fix the failing tests\"
  checkrein run --agent codex \"fix the failing tests\" -- --sandbox workspace-write
  checkrein run --model anthropic/claude-sonnet-4-5 \"fix the failing tests\"
  checkrein run --autopilot GOAL.toml
  checkrein run --resume 3f2a \"now the docs\"
  checkrein run --task \"fix the tests\" -- my-agent {task} --feedback {feedback_file}
  checkrein run -- sh -c 'cat >> prompt.md; ./agent.sh prompt.md'

An agent gets hooks for this one run, no file of yours is changed; it needs its own permission to work \
unattended (claude-code: -- --permission-mode acceptEdits, say). A command's exit 0 is a claim of done. \
A model works with a shell and a patch tool of our own, behind the gates; its key is in the environment or \
the keyring. {task}, {feedback} and {feedback_file} are filled in; without them the text comes on stdin. \
CHECKREIN_TASK, CHECKREIN_FEEDBACK, CHECKREIN_ATTEMPT and CHECKREIN_SESSION are in the environment.

Exit status: 0 task_complete, 1 error, 2 usage or config, 10 unverified, 11 gave_up, 12 hard_cap, \
13 diminishing_returns, 14 loop_detected, 15 verifier_failed_unrecoverable, 16 permission_denied, \
17 awaiting_human, 18 truncated, 130 user_interrupt.")]
    Run(RunArgs),
    /// Answer an agent's hook: its JSON on stdin, its protocol on stdout.
    #[command(after_help = "\
Examples (the agent runs these, not you):
  checkrein hook claude-code --source project --deadline 660
  checkrein hook codex
  checkrein hook generic

It always answers in the agent's protocol, also when something is wrong.")]
    Hook(HookArgs),
    /// See the main job on a tiny project with a failing test and a scripted agent.
    #[command(after_help = "\
Examples:
  checkrein demo                  a story to read, in a folder of its own
  checkrein demo --json           one JSON document

It needs no key and no network, and leaves this folder as it is.")]
    Demo(DemoArgs),
    /// List tasks, newest first: who, what, how they ended.
    #[command(after_help = "\
Examples:
  checkrein sessions              the newest of this repo
  checkrein sessions --reason gave_up --since 7d
  checkrein sessions --json       all of them, one JSON object per task")]
    Sessions(SessionsArgs),
    /// Show a task: timeline, evidence, and with --why the reasons for its ending.
    #[command(after_help = "\
Examples:
  checkrein show                  the newest task
  checkrein show 3f2a --why       a session whose id begins with 3f2a, in a few lines
  checkrein show 3f2a/2           the second task of it")]
    Show(ShowArgs),
    /// Follow the task that is open, line by line, checks included. Ctrl-C ends it.
    #[command(after_help = "\
Examples:
  checkrein watch                 the newest open task, and the next one after it
  checkrein watch 3f2a            a session whose id begins with 3f2a
  checkrein watch --line          one line about the newest task, for a status line")]
    Watch(WatchArgs),
    /// Step a recorded session again, or look for loops in trace files.
    #[command(after_help = "\
Examples:
  checkrein replay 3f2a                         must come out the same, event by event
  checkrein replay trace.jsonl --preset seed    which detectors would have fired, and where

Exit status: 0 read (findings in trace files do not change it), 1 a session's replay differs, 2 usage
or nothing readable.")]
    Replay(ReplayArgs),
    /// See what presets of loop detectors would have done to recorded runs.
    #[command(after_help = "\
Examples:
  checkrein tune runs.jsonl.gz                      balanced, default and seed, side by side
  checkrein tune runs.jsonl --preset balanced       one preset
  checkrein tune runs.jsonl --half a                one half of the tasks, to try on; `b` is for the test

A run that a preset would have halted is compared with runs of the same set-up that made as many
calls. Runs are read as docs/trace-format.md has them; what an `end` line says is the success.

Exit status: 0 read, 2 usage or nothing readable.")]
    Tune(TuneArgs),
    /// See whether the hooks are there, are read, fire and hold, and what to mend.
    #[command(after_help = "\
Examples:
  checkrein doctor                       everything, each agent found
  checkrein doctor --agent codex         this one
  checkrein doctor --audit               which tiers of this folder are empty, and the lines to add

It starts each agent whose hooks are ours once, in a throw-away folder with a scripted model on \
loopback: no network, no login.

Exit status: 0 all well or warnings only, 1 a fault, 2 usage.")]
    Doctor(DoctorArgs),
    /// Approve this repo's config, after a look at what it would run.
    #[command(after_help = "\
Examples:
  checkrein trust                 shows commands and rules, asks, remembers the answer
  checkrein trust --revoke        takes it back

Hooks installed with --require-trust (`checkrein init --user`) run nothing of a repo before. A \
change of checkrein.toml or of a rules file needs a new approval. Only a person at a terminal can \
do this.

Exit status: 0 approved, 1 not approved, 2 usage or config error, 4 not a person.")]
    Trust(TrustArgs),
    /// Take up what was edited in the config while a task was open.
    #[command(after_help = "\
Examples:
  checkrein seal                  shows what is in force from now on, asks, renews open sessions

An edit of checkrein.toml during a task changes nothing for it, nor for later sessions, until a person \
at a terminal seals.

Exit status: 0 sealed, 1 not sealed, 2 usage or config error, 4 not a person.")]
    Seal,
    /// Switch Checkrein off in this repo, for a while and for a reason.
    #[command(after_help = "\
Examples:
  checkrein off --for 1h --reason \"hotfix, the build server is down\"
  checkrein on                    back on before the time is over

Only a person at a terminal can do this. Meanwhile tools get no opinion, stops are let through as \
`unverified`, and each ending says so.

Exit status: 0 done, 2 usage, 4 not a person.")]
    Off(OffArgs),
    /// Switch Checkrein on again before `off` has run out.
    #[command(after_help = "\
Examples:
  checkrein on

Only a person at a terminal can do this. Exit status: 0 it is on, 4 not a person.")]
    On,
    /// Remove sessions that `[store]` does not keep: old ones, and the oldest of too many.
    #[command(after_help = "\
Examples:
  checkrein gc --dry-run          what would go
  checkrein gc                    once a day from cron is plenty

Whole sessions go, never a part of one. It is refused where an agent asks.")]
    Gc(GcArgs),
    /// Would a patch apply here? Apply it, all or nothing.
    #[command(after_help = "\
Examples:
  checkrein patch check fix.patch        would it apply, and what would it change
  git diff main | checkrein patch check  the same, from stdin
  checkrein patch apply fix.patch        do it: every file of it, or none

It takes `*** Begin Patch` (Codex's language) and unified diffs, plain or git's. No path leaves the \
folder, and nothing is written into .git. A refusal says what the file has instead. An `apply` that \
was killed is finished, or taken back, by the next `check` or `apply` in that folder.

Exit status: 0 it applies, or is applied; 1 it is refused or cannot be written, and nothing is changed; \
2 usage.")]
    Patch(PatchArgs),
    /// What the rules say about a command; whether their examples hold; rules from permissions.
    #[command(
        subcommand,
        after_help = "\
Examples:
  checkrein policy check -- git push --force          by this repo's rules
  checkrein policy check --script 'cd x && rm -rf *'  every command that it can run
  checkrein policy test                               the rules' own examples, and their digest
  checkrein policy import > rules/claude.rules        from Claude Code's permissions"
    )]
    Policy(PolicySubcommand),
    /// Put gates and loop detectors before the tools of an MCP server.
    #[command(after_help = "\
Examples:
  checkrein mcp-proxy -- npx -y @modelcontextprotocol/server-filesystem .
  claude mcp add files -- checkrein mcp-proxy -- npx -y @modelcontextprotocol/server-filesystem .
  checkrein mcp-proxy --name db -- my-server     rules: prefix_rule([\"mcp\", \"db\", TOOL])

It speaks MCP on stdin and stdout, as the server does, and its own lines go to stderr. Every call is \
judged by the sealed policy of the folder it was started in; a refusal is a tool result that says why.

Exit status: 0 the client has hung up, 1 the server failed, 2 usage or config error, 130 told to go.")]
    McpProxy(McpProxyArgs),
    /// Serve an agent over MCP: run checks, show evidence, list what waits.
    #[command(after_help = "\
Examples:
  claude mcp add checkrein -- checkrein mcp
  checkrein mcp --profile ci

Tools: verify, evidence, approvals. It speaks MCP on stdin and stdout, about the folder it was started \
in. Nothing can be approved, sealed or switched off by it.

Exit status: 0 the client has hung up, 1 it failed, 2 usage.")]
    Mcp(McpArgs),
    /// List what waits for a person, and what became of what did.
    #[command(after_help = "\
Examples:
  checkrein approvals             what waits, newest first
  checkrein approvals --json      everything, as one document")]
    Approvals(ApprovalsArgs),
    /// Say yes to exactly one thing that waits, after a look at it.
    #[command(after_help = "\
Examples:
  checkrein approve ap-3f2a9c1d   shows what it is, asks why
  checkrein approve 3f2a --reason \"the migration was planned\"

A call goes through once; work that a [[verifier]] of kind human asks about is good until the answer \
runs out, or the tree is edited. Only a person at a terminal can do this.

Exit status: 0 approved, 1 not approved, 2 usage, 4 not a person.")]
    Approve(ApprovalAnswerArgs),
    /// Say no to exactly one thing that waits.
    #[command(after_help = "\
Examples:
  checkrein deny ap-3f2a9c1d --reason \"use the staging database\"

The agent is told the reason. Only a person at a terminal can do this.

Exit status: 0 denied, 1 not open any more, 2 usage, 4 not a person.")]
    Deny(ApprovalAnswerArgs),
    /// How far a judge can be believed.
    #[command(subcommand)]
    #[command(after_help = "\
Examples:
  checkrein judge calibrate labels.jsonl                    recorded replies, no model
  checkrein judge calibrate labels.jsonl --judge reviewer   asks the judge of checkrein.toml")]
    Judge(JudgeSubcommand),
}

/// See [`CliCommand::Init`].
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// claude-code or codex; several by repeating it. Default: those that are here.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Vec<String>,
    /// In your own settings for all repos. A repo's checks then run only after `checkrein trust`.
    #[arg(long, conflicts_with = "shared")]
    pub(crate) user: bool,
    /// In the repo's committed settings.
    #[arg(long)]
    pub(crate) shared: bool,
    /// Show the differences and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take back what was installed in this repo, or with --user for all repos.
    #[arg(long)]
    pub(crate) undo: bool,
}

/// See [`CliCommand::Check`].
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Verifiers to run; all if none is named.
    pub(crate) verifiers: Vec<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Run everything, whatever was found before on the same tree.
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Profile of checkrein.toml.
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
}

/// See [`CliCommand::Run`].
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What the agent is to do; without it, stdin says.
    #[arg(value_name = "TASK")]
    pub(crate) text: Option<String>,
    /// The same, as an option.
    #[arg(long, value_name = "TEXT", conflicts_with = "text")]
    pub(crate) task: Option<String>,
    /// Start this agent, with hooks for this run only: claude-code or codex.
    #[arg(long, value_name = "NAME", conflicts_with = "any_exit")]
    pub(crate) agent: Option<String>,
    /// Have this model work with our own tools: anthropic/..., openai/..., gemini/..., ollama/...
    #[arg(long, value_name = "PROVIDER/MODEL", conflicts_with_all = ["agent", "any_exit"])]
    pub(crate) model: Option<String>,
    /// Work for this goal until its criteria are met or its budget is spent; the same command goes
    /// on with a run that was killed.
    #[arg(long, value_name = "GOAL.toml", conflicts_with_all = ["agent", "any_exit", "text", "task", "resume"])]
    pub(crate) autopilot: Option<PathBuf>,
    /// Take up the session of an earlier run, by its id or the beginning of it.
    #[arg(long, value_name = "ID", conflicts_with = "any_exit")]
    pub(crate) resume: Option<String>,
    /// Stops at which the same failures may be met, instead of the config's.
    #[arg(long, value_name = "N")]
    pub(crate) attempts: Option<u32>,
    /// Keep the agent away from config, rules, hook settings and the store (Linux).
    #[arg(long)]
    pub(crate) confine: bool,
    /// Take any exit status of the command for a claim of done.
    #[arg(long)]
    pub(crate) any_exit: bool,
    /// Print one JSON document when it is over.
    #[arg(long)]
    pub(crate) json: bool,
    /// Profile of checkrein.toml.
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// The command, after `--`; with --agent, more arguments for it.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// See [`CliCommand::Hook`].
#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// claude-code, codex or generic.
    pub(crate) agent: String,
    /// Which installed entry this is, so that several count each event once.
    #[arg(long, value_name = "user|project|run")]
    pub(crate) source: Option<String>,
    /// Seconds until the agent stops waiting for this hook.
    #[arg(long, value_name = "SECS")]
    pub(crate) deadline: Option<u64>,
    /// State folder, instead of the user's.
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Under `run`: its --attempts.
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) attempts: Option<u32>,
    /// Nothing of a repo runs until a person has approved its config (`checkrein trust`), and
    /// state folder and profile come from these arguments only, not from the environment.
    #[arg(long)]
    pub(crate) require_trust: bool,
    /// Profile of checkrein.toml.
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Not read: for whoever sees this line when the agent could not start it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}

/// See [`CliCommand::Demo`].
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// See [`CliCommand::Sessions`].
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    /// Only this agent's.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only those that ended so: gave_up, unverified, ... or open.
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: Option<String>,
    /// Only those in which something happened within this time: 2h, 7d.
    #[arg(long, value_name = "SPAN")]
    pub(crate) since: Option<String>,
    /// Print one JSON object per task.
    #[arg(long)]
    pub(crate) json: bool,
}

/// See [`CliCommand::Show`].
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// SESSION or SESSION/TASK; the beginning of an id is enough. Default: the newest task.
    pub(crate) id: Option<String>,
    /// Only why it ended as it did, and why each check was run or was not.
    #[arg(long)]
    pub(crate) why: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// See [`CliCommand::Gc`].
#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Say what would go, and leave everything as it is.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// See [`CliCommand::Mcp`].
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Profile of checkrein.toml.
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
}

/// See [`CliCommand::McpProxy`].
#[derive(Debug, Args)]
pub(crate) struct McpProxyArgs {
    /// What rules call the server, instead of the name that it gives itself.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// How long it may take until its first answer.
    #[arg(long, value_name = "SPAN", default_value = "60s")]
    pub(crate) start: String,
    /// State folder, instead of the user's.
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Profile of checkrein.toml.
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// The server, after `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// See [`CliCommand::Approvals`].
#[derive(Debug, Args)]
pub(crate) struct ApprovalsArgs {
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// See [`CliCommand::Approve`] and [`CliCommand::Deny`].
#[derive(Debug, Args)]
pub(crate) struct ApprovalAnswerArgs {
    /// Which, as `checkrein approvals` lists it; the beginning is enough.
    pub(crate) id: String,
    /// Why, for the log; the agent is told why not.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// See [`CliCommand::Patch`].
#[derive(Debug, Args)]
pub(crate) struct PatchArgs {
    #[command(subcommand)]
    pub(crate) what: PatchSubcommand,
}

/// What is done with a patch.
#[derive(Debug, Subcommand)]
pub(crate) enum PatchSubcommand {
    /// Say whether it applies and what it would change; the tree stays as it is.
    Check(PatchInputArgs),
    /// Apply it, all or nothing.
    Apply(PatchInputArgs),
}

/// Which patch, and where.
#[derive(Debug, Args)]
pub(crate) struct PatchInputArgs {
    /// The file that holds the patch; `-`, or nothing, for stdin.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The folder that the patch is for. Default: this one.
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// See [`CliCommand::Judge`].
#[derive(Debug, Subcommand)]
pub(crate) enum JudgeSubcommand {
    /// Lay what a judge says of labelled answers beside the labels: agreement, kappa, order.
    #[command(after_help = "\
Examples:
  checkrein judge calibrate labels.jsonl --model openai/gpt-4.1 --record replies.jsonl
  checkrein judge calibrate labels.jsonl --judge reviewer     as checkrein.toml has it
  checkrein judge calibrate judged.jsonl --json               replies are in it: nobody is asked

A line of the file, in three kinds (docs/calibration.md has all keys):
  {\"request\": T, \"answer\": T, \"label\": \"pass\"|\"fail\", \"category\": \"incomplete\"}
  {\"request\": T, \"answer\": T, \"label\": \"pass\"|\"fail\", \"reply\": {\"verdict\": \"fail\"}}
  {\"request\": T, \"answer_a\": T, \"answer_b\": T, \"label\": \"a\"|\"b\"}
Files of LLMBar (dataset.json, result.json) are read as they are.

Exit status: 0 enough evidence, 1 not: it may agree below 70 % or no better than chance, 2 usage or a bad \
file, 3 fewer than 100 labels with a verdict, or the model cannot be asked, 130 Ctrl-C.")]
    Calibrate(JudgeCalibrateArgs),
}

/// See [`JudgeSubcommand::Calibrate`].
#[derive(Debug, Args)]
pub(crate) struct JudgeCalibrateArgs {
    /// Answers with labels, and with what a judge said of them if it is known.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The judge of checkrein.toml that is asked. Default: its only one.
    #[arg(long, value_name = "NAME")]
    pub(crate) judge: Option<String>,
    /// Ask this model, provider/model, instead of the judge's own.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Keep each answer in this file as it comes, and ask nothing whose answer is in it.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Profile of checkrein.toml.
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
}

/// See [`CliCommand::Watch`].
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// A session; the beginning of its id is enough. Default: the newest open one.
    pub(crate) id: Option<String>,
    /// Print one short line and end: for Claude Code's `statusLine`, whose JSON it takes on stdin.
    #[arg(long)]
    pub(crate) line: bool,
}

/// See [`CliCommand::Replay`].
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Sessions by id, or trace files (`.jsonl`, `.jsonl.gz`).
    #[arg(required = true, value_name = "ID|FILE")]
    pub(crate) what: Vec<String>,
    /// Judge trace files by this config.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Judge trace files by this preset of detectors: default, balanced, seed, off.
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// Print JSON Lines: one object per finding, a summary last.
    #[arg(long)]
    pub(crate) json: bool,
}

/// See [`CliCommand::Tune`].
#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    /// Trace files, transcripts of Claude Code, rollouts of Codex (`.jsonl`, `.jsonl.gz`). All are one set.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Presets to compare: balanced, default, openclaw, seed, off.
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Vec<String>,
    /// Only one half of the tasks. All runs of a task are in the same half.
    #[arg(long)]
    pub(crate) half: Option<HalfOfTaskSet>,
    /// Try token budgets instead of presets: this many output tokens a task.
    #[arg(long, value_name = "TOKENS", conflicts_with = "preset", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) token_budget: Option<u64>,
    /// Print one JSON object for each preset, or for each rule of token budgets.
    #[arg(long)]
    pub(crate) json: bool,
}

/// One half of the tasks, by a digest of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HalfOfTaskSet {
    /// One half, to try on.
    A,
    /// The other half, for the test.
    B,
}

/// See [`CliCommand::Doctor`].
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Only this agent: claude-code or codex.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Which tiers are filled in this folder, which are empty, and what to add.
    #[arg(long, conflicts_with = "agent")]
    pub(crate) audit: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// See [`CliCommand::Trust`].
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Take the approval back.
    #[arg(long)]
    pub(crate) revoke: bool,
}

/// See [`CliCommand::Off`].
#[derive(Debug, Args)]
pub(crate) struct OffArgs {
    /// For how long: 30m, 1h, 2h 30m; at most 30d.
    #[arg(long = "for", value_name = "SPAN")]
    pub(crate) span: String,
    /// Why; it is shown at every ending meanwhile.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
}

/// See [`CliCommand::Policy`].
#[derive(Debug, Subcommand)]
pub(crate) enum PolicySubcommand {
    /// Judge a command, with every command that it can run in turn.
    #[command(after_help = "\
Examples:
  checkrein policy check -- git push --force
  checkrein policy check --script 'cd x && rm -rf *'
  checkrein policy check --rules strict.rules --json -- npm install
  checkrein policy check --codex-exit --rules default.rules -- git status

With --codex-exit the answer is that of `codex execpolicy check`, byte by byte: the words as they are, \
nothing split, nothing stricter.

Exit status: 0 allowed or nothing said, 2 usage or bad rules, 3 prompt, 4 forbidden. With --codex-exit \
that of Codex: 0 whatever the rules say, 1 bad rules, 2 usage.")]
    Check(PolicyCheckArgs),
    /// Try the rules' own examples; show what each file says, and the digest of it all.
    #[command(after_help = "\
Examples:
  checkrein policy test                       the rules of this repo
  checkrein policy test --rules new.rules     this file, before it is one of them

Exit status: 0 all examples hold, 1 one does not, 2 usage or bad rules.")]
    Test(PolicyTestArgs),
    /// Print rules that say what Claude Code's permission rules say, as far as that goes.
    #[command(after_help = "\
Examples:
  checkrein policy import                     this repo's settings and yours
  checkrein policy import .claude/settings.json > rules/claude.rules

What cannot be said in rules is a comment that tells why; nothing that would allow more is left in.

Exit status: 0 done, 2 usage, or a file that is no settings.")]
    Import(PolicyImportArgs),
}

/// See [`PolicySubcommand::Check`].
#[derive(Debug, Args)]
pub(crate) struct PolicyCheckArgs {
    /// A rules file; several by repeating it. Default: [policy] rules of checkrein.toml.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Answer as `codex execpolicy check` does, document and exit status.
    #[arg(long, requires = "rules", conflicts_with = "script")]
    pub(crate) codex_exit: bool,
    /// With --codex-exit: rules on a bare name hold for paths that end in it, as far as
    /// host_executable() lends it to them.
    #[arg(long, requires = "codex_exit")]
    pub(crate) resolve_host_executables: bool,
    /// Profile of checkrein.toml.
    #[arg(long, value_name = "NAME", conflicts_with = "rules")]
    pub(crate) profile: Option<String>,
    /// A script for a shell, instead of words.
    #[arg(long, value_name = "TEXT", conflicts_with = "command")]
    pub(crate) script: Option<String>,
    /// The command, after `--`.
    #[arg(last = true, value_name = "CMD", required_unless_present = "script")]
    pub(crate) command: Vec<String>,
}

/// See [`PolicySubcommand::Test`].
#[derive(Debug, Args)]
pub(crate) struct PolicyTestArgs {
    /// A rules file; several by repeating it. Default: [policy] rules of checkrein.toml.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Profile of checkrein.toml.
    #[arg(long, value_name = "NAME", conflicts_with = "rules")]
    pub(crate) profile: Option<String>,
}

/// See [`PolicySubcommand::Import`].
#[derive(Debug, Args)]
pub(crate) struct PolicyImportArgs {
    /// Settings of Claude Code. Default: this repo's, shared and local, and yours.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

/// The words behind `run`, where only the `--` before a command was forgotten.
fn run_command_missing_double_dash(error: &clap::Error) -> Option<String> {
    let mut typed = std::env::args_os().skip(1);
    let run = typed.next().is_some_and(|word| word == "run");
    let words: Vec<String> = typed
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    // Only a line that begins with a plain word and then fails on a flag that `run` does not know
    // looks like a command. With `--agent` the words are a task.
    let begins = words.first().is_some_and(|word| !word.starts_with('-'));
    let agent = |word: &String| word == "--" || word.starts_with("--agent");
    if !run || !begins || error.kind() != ErrorKind::UnknownArgument || words.iter().any(agent) {
        return None;
    }
    let quoted = words.iter().map(|word| {
        let plain =
            |character: char| character.is_alphanumeric() || "-_./={}:,".contains(character);
        match !word.is_empty() && word.chars().all(plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    });
    Some(quoted.collect::<Vec<_>>().join(" "))
}

/// Reads the command line; help, version and mistakes are printed here.
pub(crate) fn parse_cli() -> Result<CliCommand, ExitCode> {
    match CliArgs::try_parse() {
        Ok(cli) => Ok(cli.command),
        Err(error) => {
            // clap would complain of the command's own flag, which does not lead to the missing
            // `--`.
            if let Some(words) = run_command_missing_double_dash(&error) {
                return Err(report_command_error(&CommandError::usage_error(
                    "this looks like a command, and it was taken for the task",
                    format!("to run a command: checkrein run -- {words}"),
                )));
            }
            // A broken pipe while printing help is nobody's mistake.
            let _ = error.print();
            // Help and version are errors to clap, but they go to stdout and are what was asked
            // for.
            let code = if error.use_stderr() {
                exit_code::USAGE
            } else {
                exit_code::YES
            };
            Err(exit_code::to_exit_code(code))
        }
    }
}
