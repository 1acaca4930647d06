//! One scenario's world: a repo, a home folder that holds nothing but what is put there, the
//! scripted model, and the agent with checkrein's hooks installed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use checkrein_scripted::{ModelScript, ScriptedModel};
use serde_json::Value;

use super::agent::{self, HooksToInstall, TestedAgent};
use super::programs::ProbePrograms;

/// Longest run of an agent.
const RUN_LIMIT: Duration = Duration::from_secs(180);

/// What a scenario starts from.
pub(super) struct ProbeCaseSetup<'a> {
    /// Distinguishes several worlds of one scenario.
    pub(super) name: &'a str,
    /// Files of the repo: path, text.
    pub(super) files: &'a [(&'a str, &'a str)],
    /// `checkrein.toml`; empty = none.
    pub(super) config: String,
    pub(super) hooks: &'a [HooksToInstall],
    pub(super) script: ModelScript,
}

/// Where scenarios happen.
pub(super) struct ProbeCaseEnvironment<'a> {
    pub(super) agent: &'a dyn TestedAgent,
    pub(super) program: PathBuf,
    pub(super) programs: &'a ProbePrograms,
    pub(super) folder: PathBuf,
}

/// See above.
pub(super) struct ProbeCaseFixture<'a> {
    pub(super) stage: &'a ProbeCaseEnvironment<'a>,
    pub(super) folder: PathBuf,
    pub(super) repo: PathBuf,
    pub(super) home: PathBuf,
    pub(super) model: ScriptedModel,
    /// PATH of agents, hooks and checks.
    path: OsString,
    /// More of their environment.
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
    /// A file beside a world's repo; known before the world is.
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
        agent::install_hooks_in_probed_agent(&world, setup.hooks)?;
        for arguments in [
            &["init", "--quiet"][..],
            &["add", "--all"],
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
            let done = world.run_probe_command(Command::new("git").args(arguments))?;
            if done.status != Some(0) {
                return Err(Error::other(format!("git {arguments:?}: {}", done.stderr)));
            }
        }
        Ok(world)
    }
}

/// A login shell, which is how Codex starts its hooks, may set PATH anew.
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
    /// Nothing of the caller's environment gets in, above all no credentials.
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
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .envs(self.stage.agent.agent_environment_variables(self));
    }

    /// From now on: another person, who has the agent and no checkrein.
    pub(super) fn become_user_without_checkrein(&mut self) -> Result<()> {
        self.home = self.folder.join("colleague");
        let ours = self.stage.programs.checkrein.parent();
        let folders = std::env::split_paths(&self.stage.programs.path);
        let others = folders.filter(|folder| Some(folder.as_path()) != ours);
        self.path = std::env::join_paths(others).map_err(Error::other)?;
        write_login_shell_profile(&self.home, &self.path)?;
        self.stage.agent.write_agent_settings(self)
    }

    /// The agent without a person, to its end.
    pub(super) fn run_agent_headless(&self, prompt: &str) -> Result<ProgramResult> {
        let mut command = Command::new(&self.stage.program);
        command.args(self.stage.agent.headless_arguments(prompt));
        let ran = self.run_probe_command(&mut command)?;
        fs::write(self.folder.join("agent.stdout"), &ran.stdout)?;
        fs::write(self.folder.join("agent.stderr"), &ran.stderr)?;
        Ok(ran)
    }

    /// The agent as `checkrein run --agent` starts it.
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
        command.args(theirs.iter().skip(1));
        let folder = self.stage.program.parent().unwrap_or(Path::new("/"));
        let mut path = folder.as_os_str().to_owned();
        path.push(":");
        path.push(&self.stage.programs.path);
        self.run_adjusted_probe_command(&mut command, |command| {
            command.env("PATH", path);
        })
    }

    pub(super) fn run_checkrein(&self, arguments: &[&str]) -> Result<ProgramResult> {
        self.run_probe_command(Command::new(&self.stage.programs.checkrein).args(arguments))
    }

    /// What `sessions --json` says, oldest task first.
    pub(super) fn list_recorded_probe_tasks(&self) -> Result<Vec<Value>> {
        let listed = self.run_checkrein(&["sessions", "--json"])?;
        let mut tasks: Vec<Value> = listed
            .stdout
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        tasks.reverse();
        Ok(tasks)
    }

    /// Lines of a file beside the repo; none if it was never written.
    pub(super) fn file_line_count(&self, file: &str) -> usize {
        fs::read_to_string(self.folder.join(file)).map_or(0, |text| text.lines().count())
    }

    pub(super) fn has_repo_file(&self, path: &str) -> bool {
        self.repo.join(path).exists()
    }

    pub(super) fn run_probe_command(&self, command: &mut Command) -> Result<ProgramResult> {
        self.run_adjusted_probe_command(command, |_| {})
    }

    fn run_adjusted_probe_command(
        &self,
        command: &mut Command,
        change: impl FnOnce(&mut Command),
    ) -> Result<ProgramResult> {
        self.isolate_environment(command);
        change(command);
        // Files, not pipes: a grandchild that keeps a pipe open must not keep us.
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

/// A field of a task, as text; `reason (detail)` for its transition.
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

/// A number of a task; `None` is unknown.
pub(super) fn task_number_field(task: &Value, name: &str) -> Option<u64> {
    task.get(name).and_then(Value::as_u64)
}
