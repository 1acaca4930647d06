//! Sets up the world of one scenario: a repo, a home folder that holds only what is put there, the
//! scripted model, and the agent with Checkrein's hooks installed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use checkrein_scripted::{ScriptedModel, ScriptedModelFn};
use serde_json::Value;

use super::agent::{self, ProbeHookInstallKind, TestedAgent};
use super::programs::ProbePrograms;

/// Longest run of a program in a world; it is killed after that.
const RUN_LIMIT: Duration = Duration::from_secs(180);

/// What a scenario starts from.
pub(super) struct ProbeCaseSetup<'a> {
    /// Distinguishes several worlds of one scenario.
    pub(super) name: &'a str,
    /// Files of the repo: path, text.
    pub(super) files: &'a [(&'a str, &'a str)],
    /// `checkrein.toml`; empty = none.
    pub(super) config: String,
    pub(super) hooks: &'a [ProbeHookInstallKind],
    pub(super) script: ScriptedModelFn,
}

/// What all worlds of one scenario share.
pub(super) struct ProbeCaseEnvironment<'a> {
    pub(super) agent: &'a dyn TestedAgent,
    pub(super) program: PathBuf,
    pub(super) programs: &'a ProbePrograms,
    pub(super) folder: PathBuf,
}

/// One world, set up from a [`ProbeCaseSetup`].
pub(super) struct ProbeCaseFixture<'a> {
    pub(super) stage: &'a ProbeCaseEnvironment<'a>,
    pub(super) folder: PathBuf,
    pub(super) repo: PathBuf,
    pub(super) home: PathBuf,
    pub(super) model: ScriptedModel,
    /// PATH of agents, hooks and checks.
    path: OsString,
    /// Further variables of that environment.
    pub(super) env: Vec<(&'static str, String)>,
}

/// How a program ended.
#[derive(Debug)]
pub(super) struct ProgramResult {
    /// `None`: ended by a signal, ours included.
    pub(super) status: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl ProbeCaseEnvironment<'_> {
    /// Returns the path of a file beside a world's repo, so that a config can name it before the
    /// world is set up.
    pub(super) fn path_beside_probe_repo(&self, name: &str, file: &str) -> PathBuf {
        self.folder.join(name).join(file)
    }

    pub(super) fn create_probe_fixture(
        &self,
        setup: ProbeCaseSetup<'_>,
    ) -> Result<ProbeCaseFixture<'_>> {
        let folder = self.folder.join(setup.name);
        let (repo, home) = (folder.join("repo"), folder.join("home"));
        for made in [&repo, &home, &folder.join("tmp")] {
            fs::create_dir_all(made)?;
        }
        for (path, text) in setup.files {
            write_file(&repo.join(path), text)?;
        }
        if !setup.config.is_empty() {
            write_file(&repo.join("checkrein.toml"), &setup.config)?;
        }
        write_login_shell_profile(&home, &self.programs.path)?;
        let model = ScriptedModel::start_model_script_server(
            self.agent.agent_model_api(),
            repo.clone(),
            Some(&folder.join("requests.jsonl")),
            setup.script,
        )?;
        let world = ProbeCaseFixture {
            stage: self,
            folder,
            repo,
            home,
            model,
            path: self.programs.path.clone(),
            env: Vec::new(),
        };
        // Hooks before the commit: a project's hook settings are part of it, and the tree is clean
        // when the agent starts.
        agent::install_hooks_in_probed_agent(&world, setup.hooks)?;
        for arguments in [
            &["init", "--quiet"][..],
            &["add", "--all"],
            // The home folder is empty, so git knows no identity to commit with.
            &[
                "-c",
                "user.name=probe",
                "-c",
                "user.email=probe@localhost",
                "commit",
                "--quiet",
                "--message",
                "start",
            ],
        ] {
            let done = world.run_command_in_probe_fixture(Command::new("git").args(arguments))?;
            if done.status != Some(0) {
                return Err(Error::other(format!("git {arguments:?}: {}", done.stderr)));
            }
        }
        Ok(world)
    }
}

/// Writes a `.profile` that sets `PATH`. Some versions of Codex start hooks in a login shell
/// (docs/codex.md), which may set `PATH` anew.
fn write_login_shell_profile(home: &Path, path: &OsStr) -> Result<()> {
    let path = path.to_string_lossy().replace('\'', "'\\''");
    write_file(&home.join(".profile"), &format!("export PATH='{path}'\n"))
}

/// Writes a file and the folders above it.
pub(super) fn write_file(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, text)
}

impl ProbeCaseFixture<'_> {
    /// Replaces the environment of a command. Nothing of the caller's gets in, above all no
    /// credentials.
    pub(super) fn isolate_environment(&self, command: &mut Command) {
        command
            .env_clear()
            .current_dir(&self.repo)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .env("PATH", &self.path)
            .env("HOME", &self.home)
            .env("TMPDIR", self.folder.join("tmp"))
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            // The new `HOME` hides the person's git config; this hides the machine's.
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            // Last, so that the agent's own variables win.
            .envs(self.stage.agent.agent_process_env(self));
    }

    /// Turns the world into that of another person, who has the agent and no Checkrein: another
    /// home folder, and a `PATH` without it.
    pub(super) fn switch_fixture_to_user_without_checkrein(&mut self) -> Result<()> {
        self.home = self.folder.join("colleague");
        let ours = self.stage.programs.checkrein.parent();
        let folders = std::env::split_paths(&self.stage.programs.path);
        let others = folders.filter(|folder| Some(folder.as_path()) != ours);
        self.path = std::env::join_paths(others).map_err(Error::other)?;
        write_login_shell_profile(&self.home, &self.path)?;
        self.stage.agent.create_agent_settings_without_hooks(self)
    }

    /// Runs the agent without a person, to its end, and keeps its output in the world's folder.
    pub(super) fn run_agent_headless(&self, prompt: &str) -> Result<ProgramResult> {
        let mut command = Command::new(&self.stage.program);
        command.args(self.stage.agent.headless_arguments(prompt));
        let ran = self.run_command_in_probe_fixture(&mut command)?;
        // The next command overwrites `stdout` and `stderr`; these copies stay to be read
        // (`--keep`).
        fs::write(self.folder.join("agent.stdout"), &ran.stdout)?;
        fs::write(self.folder.join("agent.stderr"), &ran.stderr)?;
        Ok(ran)
    }

    /// Runs the agent under `checkrein run --agent`. Arguments before `--` go to Checkrein, those
    /// after it to the agent.
    pub(super) fn run_under_checkrein(&self, arguments: &[&str]) -> Result<ProgramResult> {
        let agent = self.stage.agent;
        let mut command = Command::new(&self.stage.programs.checkrein);
        command.args(["run", "--agent", agent.agent_name()]);
        let (ours, theirs) = match arguments.iter().position(|word| *word == "--") {
            Some(at) => arguments.split_at(at),
            None => (arguments, &[][..]),
        };
        command
            .args(ours)
            .arg("--")
            .args(agent.unattended_arguments());
        // The first of them is the `--` itself.
        command.args(theirs.iter().skip(1));
        // `run --agent` finds the agent's program on `PATH`, so the folder of the one under test
        // comes first. `PATH` is changed after the environment is isolated, which would set it
        // back.
        let folder = self.stage.program.parent().unwrap_or(Path::new("/"));
        let mut path = folder.as_os_str().to_owned();
        path.push(":");
        path.push(&self.stage.programs.path);
        self.run_adjusted_probe_command(&mut command, |command| {
            command.env("PATH", path);
        })
    }

    pub(super) fn run_checkrein(&self, arguments: &[&str]) -> Result<ProgramResult> {
        self.run_command_in_probe_fixture(
            Command::new(&self.stage.programs.checkrein).args(arguments),
        )
    }

    /// Returns what `sessions --json` lists, oldest task first.
    pub(super) fn tasks_listed_by_sessions_command(&self) -> Result<Vec<Value>> {
        let listed = self.run_checkrein(&["sessions", "--json"])?;
        let mut tasks: Vec<Value> = listed
            .stdout
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        // `sessions` lists the newest task first.
        tasks.reverse();
        Ok(tasks)
    }

    /// Counts the lines of a file beside the repo; 0 if it was never written.
    pub(super) fn line_count_of_file_beside_repo(&self, file: &str) -> usize {
        fs::read_to_string(self.folder.join(file)).map_or(0, |text| text.lines().count())
    }

    pub(super) fn has_repo_file(&self, path: &str) -> bool {
        self.repo.join(path).exists()
    }

    pub(super) fn run_command_in_probe_fixture(
        &self,
        command: &mut Command,
    ) -> Result<ProgramResult> {
        self.run_adjusted_probe_command(command, |_| {})
    }

    fn run_adjusted_probe_command(
        &self,
        command: &mut Command,
        change: impl FnOnce(&mut Command),
    ) -> Result<ProgramResult> {
        self.isolate_environment(command);
        change(command);
        // Files instead of pipes: a grandchild that keeps a pipe open would make us wait for its
        // end.
        let (out, err) = (self.folder.join("stdout"), self.folder.join("stderr"));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(fs::File::create(&out)?)
            .stderr(fs::File::create(&err)?)
            .spawn()?;
        let until = Instant::now() + RUN_LIMIT;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status.code();
            }
            if Instant::now() > until {
                child.kill()?;
                child.wait()?;
                break None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let read =
            |file: &Path| fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(ProgramResult {
            status,
            stdout: read(&out)?,
            stderr: read(&err)?,
        })
    }
}

/// Returns how a task ended as `reason detail`, or `open` if it has no transition yet.
pub(super) fn ending_text_from_task_json(task: &Value) -> String {
    let word = |name: &str| {
        task.pointer(&format!("/transition/{name}"))
            .and_then(Value::as_str)
    };
    match (word("reason"), word("detail")) {
        (None, _) => "open".to_owned(),
        (Some(reason), None) => reason.to_owned(),
        (Some(reason), Some(detail)) => format!("{reason} {detail}"),
    }
}

/// Returns a number of a task; `None` if it is unknown.
pub(super) fn numeric_field_of_task(task: &Value, name: &str) -> Option<u64> {
    task.get(name).and_then(Value::as_u64)
}
