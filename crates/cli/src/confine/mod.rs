//! Implements `run --confine` (level L2): the agent runs in a mount namespace in which the state
//! folder, hook settings, config and rules are read-only. A hook inside is only a client
//! ([`relay_client`]): `run` judges, writes and runs checks outside ([`relay_server`]). Where no
//! namespace can be made, nothing is started. The same user's other helpers (a tmux server,
//! systemd, a container daemon) are outside, and an agent that can talk to them can ask them:
//! `docs/threat-model.md` says so.

mod guarded_paths;
mod mount_plan;
#[cfg(target_os = "linux")]
pub(crate) mod namespace_exec;
mod placeholders;
#[cfg_attr(
    not(unix),
    expect(dead_code, unused_imports, reason = "there are no confinements there")
)]
pub(crate) mod relay_client;
#[cfg_attr(
    not(unix),
    expect(dead_code, unused_imports, reason = "there are no confinements there")
)]
pub(crate) mod relay_server;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use checkrein_verifiers::private_file::{create_private_folder, write_private_file};

use self::mount_plan::MountPlan;
use self::placeholders::SandboxPlaceholderFiles;
use crate::locate::ProjectLocation;
use crate::programs;
use crate::ui;
use crate::ui::errors::CommandError;

/// The folder, below the state folder, in which a hook inside finds the relay's socket.
pub(crate) const INSIDE_FOLDER: &str = "confined";
/// The first argument by which checkrein puts itself, and then an agent, into a namespace.
pub(crate) const EXEC_ARGUMENT: &str = "confined-exec";
/// The folder of runs that are under way, below the state folder.
const RUNS_FOLDER: &str = "runs";

/// A confinement in which an agent can be started.
pub(crate) struct PreparedAgentSandbox {
    method: MountNamespaceLauncher,
    /// The folder that an agent inside sees as [`INSIDE_FOLDER`].
    relay_folder: PathBuf,
    inside_folder: PathBuf,
    /// Removes the placeholders when it is dropped.
    _placeholders: SandboxPlaceholderFiles,
}

/// The program that makes the namespace.
enum MountNamespaceLauncher {
    Bubblewrap { program: PathBuf, plan: MountPlan },
    OwnExec { program: PathBuf, plan: PathBuf },
}

impl PreparedAgentSandbox {
    /// Prepares a confinement and tries it out.
    pub(crate) fn new(located: &ProjectLocation, state: &Path) -> Result<Self, CommandError> {
        if !cfg!(target_os = "linux") {
            return Err(no_namespace_error(
                "mount namespaces are Linux's".to_owned(),
            ));
        }
        let inside = state.join(INSIDE_FOLDER);
        create_private_folder(&inside)?;
        let mut loans =
            SandboxPlaceholderFiles::create_folder_of_confined_run(&state.join(RUNS_FOLDER))?;
        let guarded = guarded_paths::collect_guarded_paths(located, state);
        for link in guarded_paths::symlinked_guarded_paths(&guarded) {
            ui::print_wrapped_to_stderr(&format!(
                "checkrein: {} is a symbolic link: what it points to is read-only for the agent, the link itself is not",
                link.display()
            ));
        }
        // The placeholders come before the plan: only what exists can be a mount point.
        let missing = guarded
            .iter()
            .filter_map(|guard| guard.sandbox_placeholder_for_missing_path());
        let made = loans.create_sandbox_placeholders(missing)?;
        let desk = loans.sandboxed_run_folder().join("inside");
        create_private_folder(&desk)?;
        // The copy names the placeholders, so it is written after they exist.
        let exclude = guarded_paths::write_git_exclude_with_placeholders(
            located,
            &made,
            loans.sandboxed_run_folder(),
        )?;
        let plan = MountPlan::new(&guarded, exclude, &desk, &inside, &state.join(RUNS_FOLDER));
        let how = MountNamespaceLauncher::find_working_sandbox_method(
            plan,
            loans.sandboxed_run_folder(),
            &located.top,
        )?;
        Ok(Self {
            method: how,
            relay_folder: desk,
            inside_folder: inside,
            _placeholders: loans,
        })
    }

    /// Returns the folder, outside, in which files for the agent are put.
    pub(crate) fn sandbox_relay_host_folder(&self) -> &Path {
        &self.relay_folder
    }

    /// Returns the same folder as the agent sees it, read-only.
    pub(crate) fn relay_folder_in_sandbox(&self) -> &Path {
        &self.inside_folder
    }

    /// Returns a command that runs `program` inside. Arguments and environment are added as usual.
    pub(crate) fn new_confined_command(&self, program: &OsStr) -> Command {
        self.method.new_command_in_namespace(program)
    }
}

/// Returns a command that runs `program`, inside a confinement if there is one.
pub(crate) fn confined_command(
    confinement: Option<&PreparedAgentSandbox>,
    program: &OsStr,
) -> Command {
    match confinement {
        Some(confinement) => confinement.new_confined_command(program),
        None => Command::new(program),
    }
}

/// Returns by what a confinement can be made here; it is tried out on nothing, in this folder.
/// `top` is the checkout, whose programs are not trusted with it.
pub(crate) fn detect_confinement_method(
    scratch: &Path,
    top: &Path,
) -> Result<&'static str, CommandError> {
    if !cfg!(target_os = "linux") {
        return Err(no_namespace_error(
            "mount namespaces are Linux's".to_owned(),
        ));
    }
    let [desk, inside, runs] = ["desk", "inside", "runs"].map(|name| scratch.join(name));
    for folder in [&desk, &inside, &runs] {
        create_private_folder(folder)?;
    }
    let plan = MountPlan::new(&[], None, &desk, &inside, &runs);
    Ok(
        match MountNamespaceLauncher::find_working_sandbox_method(plan, scratch, top)? {
            MountNamespaceLauncher::Bubblewrap { .. } => "by bubblewrap",
            MountNamespaceLauncher::OwnExec { .. } => "by checkrein itself",
        },
    )
}

/// Removes the placeholders that killed runs have left behind.
pub(crate) fn clean_up_killed_sandbox_runs(state: &Path) {
    let runs = state.join(RUNS_FOLDER);
    if runs.is_dir() {
        // What cannot be removed now is tried again by the next run.
        let _ = placeholders::remove_dead_runs_mount_placeholders(&runs);
    }
}

impl MountNamespaceLauncher {
    /// Returns the first method that works. bubblewrap comes before our own: some systems let only
    /// it make a namespace.
    fn find_working_sandbox_method(
        plan: MountPlan,
        folder: &Path,
        top: &Path,
    ) -> Result<Self, CommandError> {
        let file = folder.join("plan.json");
        // The plan is written even if bubblewrap is used, since that may turn out not to work.
        write_private_file(&file, &serde_json::to_vec(&plan).unwrap_or_default())?;
        let mut reasons = Vec::new();
        if let Some(program) = programs::find_program_outside_repo("bwrap", top) {
            let how = MountNamespaceLauncher::Bubblewrap { program, plan };
            match how.check_namespace_sandbox_works() {
                Ok(()) => return Ok(how),
                Err(why) => reasons.push(format!("bubblewrap: {why}")),
            }
        } else {
            reasons.push("bubblewrap (bwrap) is not on PATH".to_owned());
        }
        let how = MountNamespaceLauncher::OwnExec {
            program: std::env::current_exe()?,
            plan: file,
        };
        match how.check_namespace_sandbox_works() {
            Ok(()) => Ok(how),
            Err(why) => {
                reasons.push(format!("on our own: {why}"));
                Err(no_namespace_error(reasons.join("; ")))
            }
        }
    }

    fn check_namespace_sandbox_works(&self) -> Result<(), String> {
        let tried = self
            .new_command_in_namespace(OsStr::new("/bin/sh"))
            // A trial with every mount of the plan: a namespace that exists but cannot mount would
            // fail only when the agent starts.
            .args(["-c", "exit 0"])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        if tried.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&tried.stderr);
        // The last line of stderr is the error itself; warnings stand before it.
        let line = said.lines().next_back().unwrap_or("it failed");
        Err(line.trim().to_owned())
    }

    fn new_command_in_namespace(&self, inner: &OsStr) -> Command {
        let (program, arguments) = match self {
            MountNamespaceLauncher::Bubblewrap { program, plan } => {
                (program, plan.bubblewrap_arguments())
            }
            MountNamespaceLauncher::OwnExec { program, plan } => (
                program,
                vec![OsString::from(EXEC_ARGUMENT), plan.clone().into_os_string()],
            ),
        };
        let mut command = Command::new(program);
        command.args(arguments).arg(inner);
        command
    }
}

fn no_namespace_error(why: String) -> CommandError {
    CommandError::usage_error(
        format!("--confine: no namespace can be made here, so nothing was started ({why})"),
        "install bubblewrap and allow unprivileged user namespaces, or run without --confine",
    )
}
