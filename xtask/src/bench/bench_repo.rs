//! Sets up a synthetic repo with its config and a store in a temporary folder, and writes the hook
//! messages that Claude Code would send there.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::hook::BenchError;

/// Twelve rules, as many as a careful person's file has, with examples that the compiler checks.
const RULES: &str = r#"
prefix_rule(pattern=["rm", ["-rf", "-fr"]], decision="forbidden", justification="use trash", match=["rm -rf /x"], not_match=["rm x"])
prefix_rule(pattern=["git", "push"], decision="prompt", justification="a person pushes")
prefix_rule(pattern=["git", "reset", "--hard"], decision="forbidden", justification="work would be lost")
prefix_rule(pattern=["git", ["status", "diff", "log", "show"]])
prefix_rule(pattern=["rg"])
prefix_rule(pattern=["ls"])
prefix_rule(pattern=["cargo", ["test", "check", "clippy"]])
prefix_rule(pattern=["sudo"], decision="forbidden", justification="not here")
prefix_rule(pattern=["curl"], decision="prompt", justification="the network")
prefix_rule(pattern=["npm", "publish"], decision="forbidden", justification="releases are made by CI")
prefix_rule(pattern=["docker", ["run", "exec"]], decision="prompt", justification="leaves the sandbox")
prefix_rule(pattern=["chmod", "-R"], decision="prompt", justification="look first")
"#;

/// Config with caps that are never reached: the long session is longer than any task should be.
const CONFIG: &str = r#"
[caps]
tool_calls = 1000000
max_iterations = 1000000
token_budget = 1000000000000
[policy]
rules = ["rules/*.rules"]
[[verifier]]
name = "tests"
run = "true"
inputs = ["src/**"]
"#;

/// The temporary folder; it is removed when the bench is over.
pub(crate) struct BenchRepo {
    folder: tempfile::TempDir,
    binary: PathBuf,
}

impl BenchRepo {
    pub(crate) fn new(binary: &Path) -> Result<Self, BenchError> {
        let folder =
            tempfile::tempdir().map_err(|error| format!("cannot make a folder: {error}"))?;
        let scene = Self {
            folder,
            binary: binary.to_owned(),
        };
        for made in ["repo/rules", "repo/src", "home", "payloads"] {
            fs::create_dir_all(scene.path_in_bench_repo(made))
                .map_err(|error| format!("{made}: {error}"))?;
        }
        scene.write_file("repo/checkrein.toml", CONFIG)?;
        scene.write_file("repo/rules/bench.rules", RULES)?;
        scene.write_file("repo/src/lib.rs", "pub fn one() -> u32 { 1 }\n")?;
        scene.run_git(&["init", "-q"])?;
        Ok(scene)
    }

    pub(crate) fn path_in_bench_repo(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn bench_rules_path(&self) -> PathBuf {
        self.path_in_bench_repo("repo/rules/bench.rules")
    }

    pub(crate) fn write_file(&self, name: &str, text: &str) -> Result<(), BenchError> {
        fs::write(self.path_in_bench_repo(name), text).map_err(|error| format!("{name}: {error}"))
    }

    pub(crate) fn run_git(&self, args: &[&str]) -> Result<(), BenchError> {
        let done = Command::new("git")
            .args(args)
            .current_dir(self.path_in_bench_repo("repo"))
            .status();
        match done {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("git {}: {status}", args.join(" "))),
            Err(error) => Err(format!("git: {error}")),
        }
    }

    /// Returns the command `checkrein ARGS`, run in the repo with an empty home folder.
    pub(crate) fn checkrein_command(&self, args: &[&str]) -> Command {
        let mut command = self.build_bench_checkrein_command(&self.binary, "state");
        command.args(args);
        command
    }

    /// Returns a command for this program, run in the repo with an empty home folder and a state
    /// folder of this name.
    pub(crate) fn build_bench_checkrein_command(&self, binary: &Path, state: &str) -> Command {
        let mut command = Command::new(binary);
        command
            .current_dir(self.path_in_bench_repo("repo"))
            .env("HOME", self.path_in_bench_repo("home"))
            // The config or profile of the person who runs the bench would change what is measured.
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("CHECKREIN_PROFILE")
            .env("CHECKREIN_STATE", self.path_in_bench_repo(state));
        command
    }

    /// Returns the command `checkrein hook claude-code` with this file as its stdin.
    pub(crate) fn hook_command_for_bench(&self, payload: &Path) -> Result<Command, BenchError> {
        // A file instead of a pipe, so that no writer takes part in what is timed.
        let stdin =
            File::open(payload).map_err(|error| format!("{}: {error}", payload.display()))?;
        let mut command = self.checkrein_command(&["hook", "claude-code", "--source", "project"]);
        command.stdin(stdin);
        Ok(command)
    }

    /// Runs a hook that is not timed.
    pub(crate) fn run_untimed_bench_hook(&self, payload: &Path) -> Result<(), BenchError> {
        let done = self
            .hook_command_for_bench(payload)?
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(|error| format!("checkrein hook: {error}"))?;
        if done.success() {
            Ok(())
        } else {
            Err(format!("checkrein hook: {done}"))
        }
    }

    /// Writes the agent's message before its `n`-th tool call, and appends a line to its
    /// transcript.
    pub(crate) fn write_tool_request_hook_payload(
        &self,
        session: &str,
        n: usize,
    ) -> Result<PathBuf, BenchError> {
        // The transcript grows with each call, as a real one does: a hook reads what is new in it
        // to count tokens.
        let transcript = self.path_in_bench_repo(&format!("{session}.jsonl"));
        let line = serde_json::json!({
            "isSidechain": false, "type": "assistant", "sessionId": session, "uuid": format!("row-{n}"),
            "message": {
                "id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": "claude",
                "content": [{ "type": "tool_use", "id": format!("toolu_{n}"), "name": "Bash", "input": shell_command_input_for_bench(n) }],
                "usage": { "input_tokens": 1000, "cache_read_input_tokens": 100, "output_tokens": 40 },
            },
        });
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&transcript)
            .map_err(|error| format!("{}: {error}", transcript.display()))?;
        writeln!(file, "{line}").map_err(|error| format!("{}: {error}", transcript.display()))?;
        self.write_hook_payload_file(session, n, "PreToolUse", None)
    }

    /// Writes the agent's message after that call.
    pub(crate) fn write_tool_result_hook_payload(
        &self,
        session: &str,
        n: usize,
    ) -> Result<PathBuf, BenchError> {
        let response = serde_json::json!({
            "stdout": format!("src/lib.rs:{n}:pub fn name_{n}()"), "stderr": "", "interrupted": false, "isImage": false,
        });
        self.write_hook_payload_file(session, n, "PostToolUse", Some(response))
    }

    fn write_hook_payload_file(
        &self,
        session: &str,
        n: usize,
        event: &str,
        response: Option<serde_json::Value>,
    ) -> Result<PathBuf, BenchError> {
        let mut message = serde_json::json!({
            "session_id": session,
            "transcript_path": self.path_in_bench_repo(&format!("{session}.jsonl")),
            "cwd": self.path_in_bench_repo("repo"),
            "prompt_id": "prompt-1",
            "permission_mode": "default",
            "hook_event_name": event,
            "tool_name": "Bash",
            // Each call has a command of its own, and an id under which its result is paired with
            // it.
            "tool_input": shell_command_input_for_bench(n),
            "tool_use_id": format!("toolu_{n}"),
        });
        if let (Some(response), Some(map)) = (response, message.as_object_mut()) {
            map.insert("tool_response".to_owned(), response);
        }
        let file = self.path_in_bench_repo(&format!("payloads/{session}-{n}-{event}.json"));
        fs::write(&file, message.to_string())
            .map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(file)
    }

    /// Returns how many inputs and events the session's log has. Replaying them also shows that
    /// none is missing and none was made up.
    pub(crate) fn recorded_input_and_event_counts(
        &self,
        session: &str,
    ) -> Result<(u64, u64), BenchError> {
        let output = self
            .checkrein_command(&["replay", session, "--json"])
            .output()
            .map_err(|error| format!("checkrein replay: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().next().unwrap_or_default();
        let counts: Option<(u64, u64)> = serde_json::from_str::<serde_json::Value>(line)
            .ok()
            .and_then(|line| Some((line.get("inputs")?.as_u64()?, line.get("events")?.as_u64()?)));
        match counts {
            // The counts are believed only if the replay found no difference.
            Some(counts) if output.status.success() => Ok(counts),
            _ => Err(format!(
                "checkrein replay {session}: {text}{}",
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }
}

/// Returns a command with a pipe and an argument of its own, so that the shell grammar has work to
/// do.
fn shell_command_input_for_bench(n: usize) -> serde_json::Value {
    serde_json::json!({
        "command": format!("rg -n \"name_{n}\" src | head -n 20 && git status --short"),
        "description": "Look for a name",
    })
}
