//! Sees the real agent obey: a canary command that our rules deny, and a stop that our check
//! refuses. It happens in a throw-away repo, on a copy of the settings with our entries only. The
//! agent gets a dummy key, a home folder of its own, and a scripted model on loopback that is also
//! its proxy and lets nothing out. The person's login, settings and records are not touched.

mod claude_code;
mod codex;
mod settings_copy;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Result;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use checkrein_scripted::{
    ScriptedModel, ScriptedModelAction, ScriptedModelApiKind, ScriptedModelRequest,
    model_script_from_rounds,
};
use checkrein_store::{SqliteStore, Store as _, TaskRow};

use super::agents::SettingsFile;
use super::bounded_run::{self, BoundedProcessResult};
use super::finding::DoctorFinding;
use super::shell;
use crate::commands::lookup;
use crate::locate::{self, CONFIG};
use crate::ui::explanations;
use crate::{programs, signals};

/// Longest run of an agent; a usual one takes 2 s.
const CANARY_TIMEOUT: Duration = Duration::from_secs(90);
/// The command that must not run.
const CANARY_COMMAND: &str = "echo CHECKREIN_CANARY > denied.txt";
/// What the model has to read instead of the command's output.
const DENIAL: &str = "the canary of checkrein doctor is off limits";
/// The check that refuses the first stop.
const CANARY_CHECK: &str = "doctor_canary";
/// Requests that the model receives if everything works.
const EXPECTED_REQUESTS: usize = 5;

/// What differs between agents.
trait CanaryAgent {
    fn agent_model_api(&self) -> ScriptedModelApiKind;
    /// Writes the copy of the settings and all else that the agent needs to start.
    fn write_canary_settings(
        &self,
        scene: &HookTrialRunEnvironment,
        settings: &[SettingsFile],
        agreed: &HooksTrustedByPerson,
    ) -> Result<()>;
    fn env_vars_for_canary_run(
        &self,
        scene: &HookTrialRunEnvironment,
    ) -> Vec<(&'static str, OsString)>;
    fn canary_agent_arguments(&self, prompt: &str) -> Vec<OsString>;
}

/// What the person has agreed to, for an agent that asks: the copy is trusted as far as the
/// settings are.
#[derive(Debug, Default)]
pub(super) struct HooksTrustedByPerson {
    /// Whether the agent looks at hooks of this repo.
    pub(super) repo: bool,
    /// Settings file and event of each reviewed hook.
    pub(super) hooks: BTreeSet<(PathBuf, String)>,
    /// Whether the agent skips every hook of ours: what it does without them is no news.
    pub(super) skips_all_hooks: bool,
}

/// The folders and the model of one canary.
struct HookTrialRunEnvironment {
    folder: tempfile::TempDir,
    repo: PathBuf,
    home: PathBuf,
    state: PathBuf,
    model: ScriptedModel,
    /// The inspected repo: nothing in it is started.
    inspected_repo: PathBuf,
}

/// One thing that has to be seen.
#[derive(Debug)]
struct CanaryExpectationOutcome {
    what: &'static str,
    seen: bool,
    /// What was seen instead.
    instead: String,
}

/// Returns what is said before an agent is started.
pub(super) fn canary_run_announcement(program: &str) -> String {
    format!("starts {program} once in a throw-away folder; no network, no login")
}

/// Returns the finding for a canary that is not played: hooks that would not be called or started
/// have to be mended first.
pub(super) fn canary_skipped_finding(agent: &'static str, why: &str) -> DoctorFinding {
    DoctorFinding::warning_finding(
        agent,
        "firing",
        format!("canary not played: {why}, see above"),
    )
}

/// Returns what was seen as findings.
pub(super) fn run_hook_canary_for_findings(
    agent: &'static str,
    program: &Path,
    settings: &[SettingsFile],
    agreed: &HooksTrustedByPerson,
    root: &Path,
) -> Result<Vec<DoctorFinding>> {
    let (seen, unseen): (Vec<CanaryExpectationOutcome>, Vec<CanaryExpectationOutcome>) =
        run_canary(agent, program, settings, agreed, root)?
            .into_iter()
            .partition(|sight| sight.seen);
    let mut findings: Vec<DoctorFinding> = seen
        .into_iter()
        .map(|sight| DoctorFinding::ok_finding(agent, "firing", format!("canary: {}", sight.what)))
        .collect();
    if !unseen.is_empty() {
        let wanted: Vec<&str> = unseen.iter().map(|sight| sight.what).collect();
        let instead: Vec<String> = unseen.into_iter().map(|sight| sight.instead).collect();
        findings.push(
            DoctorFinding::new_doctor_fault_finding(
                agent,
                "firing",
                format!("canary, not seen: {}", wanted.join("; ")),
            )
            .with_finding_consequence(format!("instead: {}", instead.join("; ")))
            .with_fix("mend the faults beside this one, then look again: checkrein doctor"),
        );
    }
    Ok(findings)
}

/// Plays the canary.
fn run_canary(
    agent: &str,
    program: &Path,
    settings: &[SettingsFile],
    agreed: &HooksTrustedByPerson,
    root: &Path,
) -> Result<Vec<CanaryExpectationOutcome>> {
    let canary: &dyn CanaryAgent = match agent {
        "codex" => &codex::CodexHookFiringCanary,
        _ => &claude_code::ClaudeCodeCanary,
    };
    let scene = HookTrialRunEnvironment::set_up_hook_canary(canary, settings, agreed, root)?;
    let mut command = Command::new(program);
    command.args(canary.canary_agent_arguments("Do the canary task."));
    scene.set_clean_environment(&mut command, canary.env_vars_for_canary_run(&scene));
    let ran = bounded_run::run_command_with_timeout(command, CANARY_TIMEOUT, scene.folder.path())?;
    if signals::is_process_cancelled() {
        // An interrupted canary proves nothing, in either direction.
        return Err(std::io::Error::other("interrupted; nothing was changed"));
    }
    Ok(collect_canary_observations(&scene, &ran))
}

impl HookTrialRunEnvironment {
    fn set_up_hook_canary(
        canary: &dyn CanaryAgent,
        settings: &[SettingsFile],
        agreed: &HooksTrustedByPerson,
        root: &Path,
    ) -> Result<Self> {
        // Not the folder for temporary files: Codex then refuses to create its PATH helpers.
        let cache = locate::cache_folder();
        std::fs::create_dir_all(&cache)?;
        let folder = tempfile::Builder::new()
            .prefix("doctor-")
            .tempdir_in(&cache)?;
        // Agents resolve links in paths, and the trust of a folder goes by its real path.
        let base = folder.path().canonicalize()?;
        let (repo, home, state) = (base.join("repo"), base.join("home"), base.join("state"));
        for made in [&repo, &home, &state, &base.join("tmp")] {
            std::fs::create_dir(made)?;
        }
        write_file_creating_folders(
            &repo.join("canary.rules"),
            &format!(
                "prefix_rule(\n    pattern = [\"echo\", \"CHECKREIN_CANARY\"],\n    decision = \"forbidden\",\n    justification = \"{DENIAL}\",\n)\n"
            ),
        )?;
        write_file_creating_folders(
            &repo.join(CONFIG),
            &format!(
                "verify_on = \"always\"\n\n[policy]\nrules = [\"canary.rules\"]\n\n[[verifier]]\nname = \"{CANARY_CHECK}\"\nrun = \"test -f canary.txt\"\ntimeout = \"20s\"\n"
            ),
        )?;
        // A login shell, which is how some versions of Codex start hooks, gets the person's own
        // PATH.
        let path = OsString::from(shell::login_shell_path_variable(root, folder.path()));
        let path = programs::search_path_outside_repo(&path, root);
        let profile = format!(
            "export PATH='{}'\n",
            path.to_string_lossy().replace('\'', "'\\''")
        );
        for name in [".profile", ".zprofile"] {
            write_file_creating_folders(&home.join(name), &profile)?;
        }
        // Five requests: a denied call, a harmless one, a stop that is refused, the repair, a
        // stop that passes.
        let script = model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response(CANARY_COMMAND),
            // A stop right after a refusal would be taken for giving up, and rightly so.
            ScriptedModelAction::scripted_shell_response("echo going on > going-on.txt"),
            ScriptedModelAction::scripted_text_response("Done."),
            ScriptedModelAction::scripted_shell_response("echo yes > canary.txt"),
            ScriptedModelAction::scripted_text_response("Done."),
        ]);
        let model = ScriptedModel::start_model_script_server(
            canary.agent_model_api(),
            repo.clone(),
            None,
            script,
        )?;
        let scene = Self {
            folder,
            repo,
            home,
            state,
            model,
            inspected_repo: root.to_owned(),
        };
        // Last: the settings refer to the folders and to the model's address.
        make_empty_git_repository(&scene.repo)?;
        canary.write_canary_settings(&scene, settings, agreed)?;
        Ok(scene)
    }

    /// Clears the environment but for what finds programs. Above all no keys get in.
    fn set_clean_environment(&self, command: &mut Command, more: Vec<(&'static str, OsString)>) {
        const KEPT: &[&str] = &[
            "LANG",
            "USER",
            "LOGNAME",
            "SYSTEMROOT",
            "COMSPEC",
            "PATHEXT",
        ];
        let kept = KEPT
            .iter()
            .filter_map(|name| Some((*name, std::env::var_os(name)?)));
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .envs(kept)
            .env(
                "PATH",
                programs::search_path_outside_repo(&path, &self.inspected_repo),
            )
            .env("SHELL", shell::login_shell(&self.inspected_repo))
            .current_dir(&self.repo)
            .env("HOME", &self.home)
            .env("TMPDIR", self.home.with_file_name("tmp"))
            .env("TERM", "dumb")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("CHECKREIN_STATE", &self.state)
            .envs(more);
    }

    /// Returns what the hooks recorded.
    fn newest_task_recorded_by_hooks(&self) -> Option<TaskRow> {
        let place = locate::locate_project(&self.repo, Some(&self.state)).place;
        let store = SqliteStore::open_store_read_only(&place.state).ok()?;
        store
            .newest_task_summaries(None, 1)
            .ok()?
            .into_iter()
            .next()
    }
}

/// Makes the folder a repository without a commit, as `git init` does; git is not started.
fn make_empty_git_repository(folder: &Path) -> Result<()> {
    let git = folder.join(".git");
    for made in ["objects", "refs/heads"] {
        std::fs::create_dir_all(git.join(made))?;
    }
    write_file_creating_folders(
        &git.join("config"),
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
    )?;
    write_file_creating_folders(&git.join("HEAD"), "ref: refs/heads/main\n")
}

/// Returns the variables that lead an agent's traffic to the scripted model.
fn scripted_model_proxy_variables(base: &str) -> Vec<(&'static str, OsString)> {
    [
        ("HTTPS_PROXY", base),
        ("HTTP_PROXY", base),
        ("https_proxy", base),
        ("http_proxy", base),
        ("NO_PROXY", "127.0.0.1,localhost"),
        ("no_proxy", "127.0.0.1,localhost"),
    ]
    .map(|(name, value)| (name, OsString::from(value)))
    .into()
}

fn write_file_creating_folders(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(file, text)
}

fn collect_canary_observations(
    scene: &HookTrialRunEnvironment,
    ran: &BoundedProcessResult,
) -> Vec<CanaryExpectationOutcome> {
    // The requests tell what the model read, so they show a denial even where the agent
    // prints nothing.
    let asked: Vec<ScriptedModelRequest> = scene.model.model_request_log().requests.clone();
    let fresh = |at: usize| asked.get(at).map_or("", |asked| asked.new_text.as_str());
    let sight = |what, seen: bool, instead: String| CanaryExpectationOutcome {
        what,
        seen,
        instead,
    };
    let process = match (ran.timed_out, ran.status) {
        (true, _) => format!("it was ended after {} s", CANARY_TIMEOUT.as_secs()),
        (false, status) => {
            let stderr = String::from_utf8_lossy(&ran.stderr);
            let last = stderr.lines().rfind(|line| !line.trim().is_empty());
            let last = last.unwrap_or("nothing on stderr");
            match status {
                Some(code) => format!("status {code}: {}", clip_line(last)),
                None => format!("ended by a signal: {}", clip_line(last)),
            }
        }
    };
    let mut sights = vec![sight(
        "the agent ran to its end",
        !ran.timed_out && ran.status == Some(0),
        process,
    )];
    // Without a single request nothing else can have happened, and the rest would only repeat
    // it.
    if asked.is_empty() {
        sights.push(sight(
            "the agent asked the scripted model",
            false,
            "not one request".to_owned(),
        ));
        return sights;
    }
    sights.push(sight(
        "the denied command did not run",
        !scene.repo.join("denied.txt").exists(),
        "it ran".to_owned(),
    ));
    sights.push(sight(
        "the denial reached the model",
        fresh(1).contains(DENIAL),
        format!("the model read: {}", clip_line(fresh(1))),
    ));
    sights.push(sight(
        "the first stop was refused, and the model read why",
        // The model reads the reason of the refusal with its fourth request, after the stop that
        // followed the third.
        fresh(3).contains("checkrein:") && fresh(3).contains(CANARY_CHECK),
        match asked.get(3) {
            Some(asked) => format!("the model read: {}", clip_line(&asked.new_text)),
            None => "the agent stopped".to_owned(),
        },
    ));
    sights.push(sight(
        "the second stop was let through",
        asked.len() == EXPECTED_REQUESTS && scene.repo.join("canary.txt").exists(),
        format!("{} requests instead of {EXPECTED_REQUESTS}", asked.len()),
    ));
    // The store is the last witness: hooks that answered but recorded nothing would pass all
    // of the above.
    let row = scene.newest_task_recorded_by_hooks();
    let ending = row
        .as_ref()
        .and_then(lookup::ending_of_task_row)
        .map(|ending| explanations::transition_reason_text(&ending));
    sights.push(sight(
        "it is recorded: three calls, two stops, task_complete",
        row.as_ref()
            .is_some_and(|row| row.tool_calls == 3 && row.stops == 2)
            && ending.as_deref() == Some("task_complete"),
        match (&row, ending) {
            (None, _) => "nothing is recorded".to_owned(),
            (Some(row), ending) => format!(
                "{} calls, {} stops, {}",
                row.tool_calls,
                row.stops,
                ending.unwrap_or_else(|| "open".to_owned())
            ),
        },
    ));
    sights
}

/// Returns the text as one line that is not too long.
fn clip_line(text: &str) -> String {
    let line = text.trim().replace('\n', " ");
    let mut shown: String = line.chars().take(160).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}
