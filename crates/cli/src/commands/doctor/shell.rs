//! Checks the shells that agents start hooks with. A profile that prints puts its text before our
//! JSON, and both agents then take the answer for plain text: the tool runs, the stop goes through.
//! Claude Code 2.1.330 starts `/bin/sh -c`, Codex 0.169.0 the person's shell with `-c` (both seen);
//! other versions of Codex are known to start it with `-lc`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use checkrein_runtime::durable_file;

use super::agents::InspectableAgent;
use super::bounded_run::{self, BoundedProcessResult};
use super::finding::{DoctorFinding, DoctorFindingSeverity};
use super::hooks::InstalledHook;
use crate::programs;

const SHELL_TIMEOUT: Duration = Duration::from_secs(15);
/// The shell that both agents use if none is named.
const DEFAULT_SHELL: &str = "/bin/sh";

pub(super) fn check_hook_shells(
    agent: &InspectableAgent,
    installed: &[InstalledHook<'_>],
    top: &Path,
    scratch: &Path,
) -> Vec<DoctorFinding> {
    // Entries with `args` are started without a shell.
    if !installed.iter().any(|one| one.entry.by_shell) {
        return Vec::new();
    }
    if agent.name != "codex" {
        return vec![diagnose_hook_shell(
            agent,
            Path::new(DEFAULT_SHELL),
            "-c",
            scratch,
        )];
    }
    let shell = login_shell(top);
    let plain = diagnose_hook_shell(agent, &shell, "-c", scratch);
    if plain.status != DoctorFindingSeverity::Ok {
        return vec![plain];
    }
    let login = diagnose_hook_shell(agent, &shell, "-lc", scratch);
    match login.status {
        DoctorFindingSeverity::Ok => vec![plain],
        // The tested version of Codex does not start hooks in a login shell.
        DoctorFindingSeverity::Warning | DoctorFindingSeverity::Fault => vec![
            plain,
            DoctorFinding {
                status: DoctorFindingSeverity::Warning,
                consequence: Some(
                    "harmless to Codex 0.169.0; a version that starts hooks in a login shell takes it for our answer: the command runs, the stop goes through".to_owned(),
                ),
                ..login
            },
        ],
    }
}

fn diagnose_hook_shell(
    agent: &InspectableAgent,
    shell: &Path,
    flag: &str,
    scratch: &Path,
) -> DoctorFinding {
    let name = format!("{} {flag}", shell.display());
    let Ok(ran) = run_shell(shell, flag, "true", scratch) else {
        return DoctorFinding::new_doctor_fault_finding(
            agent.name,
            "shell",
            format!("`{name} true` cannot be started"),
        )
        .with_finding_consequence(format!(
            "{} starts hooks with it: none will run",
            agent.label
        ))
        .with_fix("set SHELL to a shell that is there");
    };
    if ran.timed_out {
        return DoctorFinding::new_doctor_fault_finding(
            agent.name,
            "shell",
            format!(
                "`{name} true` did not end within {} s",
                SHELL_TIMEOUT.as_secs()
            ),
        )
        .with_finding_consequence("every hook waits for it and runs into its timeout")
        .with_fix("make the profile of that shell ask nothing and wait for nothing");
    }
    // `true` prints nothing, so all output comes from the profile.
    if ran.stdout.is_empty() {
        return DoctorFinding::ok_finding(
            agent.name,
            "shell",
            format!("`{name}` prints nothing of its own"),
        );
    }
    let said = bounded_run::short_first_line(&ran.stdout_text());
    let mend = match find_noisy_shell_profile(&said) {
        Some(place) => format!("in {place}: send that to stderr (>&2), or print only if [ -t 1 ]"),
        None => "in your shell's profile: send what it prints to stderr (>&2)".to_owned(),
    };
    DoctorFinding::new_doctor_fault_finding(
        agent.name,
        "profile_prints",
        format!("`{name} true` prints: {said}"),
    )
    .with_finding_consequence("it stands before our answer, which is then no JSON: the command runs, the stop goes through")
    .with_fix(mend)
}

/// Returns the PATH of a login shell; our own if that fails.
pub(super) fn login_shell_path_variable(top: &Path, scratch: &Path) -> String {
    run_shell(
        &login_shell(top),
        "-lc",
        // The newline sets the answer apart from what a profile prints before it.
        "printf '\\n%s\\n' \"$PATH\"",
        scratch,
    )
    .ok()
    .filter(|ran| ran.status == Some(0))
    .and_then(|ran| Some(ran.stdout_text().lines().last()?.to_owned()))
    .filter(|path| !path.is_empty())
    .unwrap_or_else(|| std::env::var("PATH").unwrap_or_default())
}

/// Returns the person's shell, unless it lies in the checkout: what a clone's settings put into an
/// agent's environment is no person's choice.
pub(super) fn login_shell(top: &Path) -> PathBuf {
    std::env::var_os("SHELL")
        .map(PathBuf::from)
        .filter(|shell| shell.is_absolute() && !programs::is_file_in_repo(shell, top))
        .unwrap_or_else(|| PathBuf::from(DEFAULT_SHELL))
}

fn run_shell(
    shell: &Path,
    flag: &str,
    script: &str,
    scratch: &Path,
) -> std::io::Result<BoundedProcessResult> {
    let mut command = Command::new(shell);
    command.arg(flag).arg(script);
    bounded_run::run_command_with_timeout(command, SHELL_TIMEOUT, scratch)
}

/// Returns the profile that holds the printed text literally, if there is one.
fn find_noisy_shell_profile(said: &str) -> Option<String> {
    const PROFILES: &[&str] = &[
        ".bash_profile",
        ".bash_login",
        ".profile",
        ".bashrc",
        ".zshenv",
        ".zprofile",
        ".zshrc",
        ".zlogin",
    ];
    let home = std::env::home_dir()?;
    let said = said.trim();
    let usual = PROFILES.iter().map(|name| home.join(name));
    // Shells also read the files that these variables name.
    let named = ["BASH_ENV", "ENV"].iter().filter_map(std::env::var_os);
    usual
        .chain(named.map(PathBuf::from))
        .filter(|_| !said.is_empty())
        .find_map(|file| {
            let text = durable_file::read_limited_text_file(&file, durable_file::MAX_CONFIG_BYTES)
                .ok()??;
            let line = text.lines().position(|line| line.contains(said))?;
            Some(format!("{}:{}", file.display(), line + 1))
        })
}
