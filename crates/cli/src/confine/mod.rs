//! `run --confine` (level L2): the agent in a mount namespace in which the state folder, hook
//! settings, config and rules are read-only. A hook inside is only a client ([`post`]): `run`
//! judges, writes and runs checks outside ([`desk`]). Where no namespace can be made nothing is
//! started. The same user's other helpers (a tmux server, systemd, a container daemon) are
//! outside, and an agent that can talk to them can ask them: `docs/threat-model.md` says so.

#[cfg_attr(
    not(unix),
    expect(dead_code, unused_imports, reason = "there are no confinements there")
)]
pub(crate) mod desk;
#[cfg(target_os = "linux")]
pub(crate) mod enter;
mod guard;
mod loans;
mod plan;
#[cfg_attr(
    not(unix),
    expect(dead_code, unused_imports, reason = "there are no confinements there")
)]
pub(crate) mod post;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use checkrein_verifiers::private_file::{create_private_folder, write_private_file};

use self::loans::Loans;
use self::plan::Plan;
use crate::locate::Located;
use crate::programs;
use crate::ui;
use crate::ui::errors::CommandError;

/// Where a hook inside finds the way out, below the state folder.
pub(crate) const INSIDE: &str = "confined";
/// The command by which we put ourselves, and then an agent, into a namespace.
pub(crate) const ENTER: &str = "confined-exec";
/// Runs that are under way, below the state folder.
const RUNS: &str = "runs";

/// A confinement that can be started in.
pub(crate) struct Confinement {
    how: How,
    /// What an agent inside sees as [`INSIDE`].
    desk: PathBuf,
    inside: PathBuf,
    /// Gives back what was put into the way of agents.
    _loans: Loans,
}

/// What makes the namespace.
enum How {
    Bubblewrap { program: PathBuf, plan: Plan },
    Ourselves { program: PathBuf, plan: PathBuf },
}

impl Confinement {
    /// Makes everything ready and tries it out.
    pub(crate) fn new(located: &Located, state: &Path) -> Result<Self, CommandError> {
        if !cfg!(target_os = "linux") {
            return Err(refused("mount namespaces are Linux's".to_owned()));
        }
        let inside = state.join(INSIDE);
        create_private_folder(&inside)?;
        let mut loans = Loans::begin(&state.join(RUNS))?;
        let guarded = guard::guarded(located, state);
        for link in guard::links(&guarded) {
            ui::say(&format!(
                "checkrein: {} is a symbolic link: what it points to is read-only for the agent, the link itself is not",
                link.display()
            ));
        }
        let missing = guarded.iter().filter_map(|guard| guard.placeholder());
        let made = loans.make(missing)?;
        let desk = loans.folder().join("inside");
        create_private_folder(&desk)?;
        let exclude = guard::exclude(located, &made, loans.folder())?;
        let plan = Plan::new(&guarded, exclude, &desk, &inside, &state.join(RUNS));
        let how = How::find(plan, loans.folder(), &located.top)?;
        Ok(Self {
            how,
            desk,
            inside,
            _loans: loans,
        })
    }

    /// The folder in which what is for the agent is put, outside.
    pub(crate) fn desk(&self) -> &Path {
        &self.desk
    }

    /// The same folder as the agent sees it, read-only.
    pub(crate) fn inside(&self) -> &Path {
        &self.inside
    }

    /// A command that runs `program` inside. Arguments and environment are added as usual.
    pub(crate) fn command(&self, program: &OsStr) -> Command {
        self.how.command(program)
    }
}

/// A command that runs `program`, inside a confinement if there is one.
pub(crate) fn command(confinement: Option<&Confinement>, program: &OsStr) -> Command {
    match confinement {
        Some(confinement) => confinement.command(program),
        None => Command::new(program),
    }
}

/// Whether a confinement can be made here, and by what; tried out on nothing, in this folder.
/// `top` is the checkout, whose programs are not trusted with it.
pub(crate) fn possible(scratch: &Path, top: &Path) -> Result<&'static str, CommandError> {
    if !cfg!(target_os = "linux") {
        return Err(refused("mount namespaces are Linux's".to_owned()));
    }
    let [desk, inside, runs] = ["desk", "inside", "runs"].map(|name| scratch.join(name));
    for folder in [&desk, &inside, &runs] {
        create_private_folder(folder)?;
    }
    let plan = Plan::new(&[], None, &desk, &inside, &runs);
    Ok(match How::find(plan, scratch, top)? {
        How::Bubblewrap { .. } => "by bubblewrap",
        How::Ourselves { .. } => "by checkrein itself",
    })
}

/// Gives back what a run that was killed has left behind.
pub(crate) fn mend(state: &Path) {
    let runs = state.join(RUNS);
    if runs.is_dir() {
        // What cannot be mended now is tried again by the next run.
        let _ = loans::sweep(&runs);
    }
}

impl How {
    /// The first that works, bubblewrap before our own: some systems let only it make one.
    fn find(plan: Plan, folder: &Path, top: &Path) -> Result<Self, CommandError> {
        let file = folder.join("plan.json");
        write_private_file(&file, &serde_json::to_vec(&plan).unwrap_or_default())?;
        let mut reasons = Vec::new();
        if let Some(program) = programs::outside("bwrap", top) {
            let how = How::Bubblewrap { program, plan };
            match how.try_out() {
                Ok(()) => return Ok(how),
                Err(why) => reasons.push(format!("bubblewrap: {why}")),
            }
        } else {
            reasons.push("bubblewrap (bwrap) is not on PATH".to_owned());
        }
        let how = How::Ourselves {
            program: std::env::current_exe()?,
            plan: file,
        };
        match how.try_out() {
            Ok(()) => Ok(how),
            Err(why) => {
                reasons.push(format!("on our own: {why}"));
                Err(refused(reasons.join("; ")))
            }
        }
    }

    fn try_out(&self) -> Result<(), String> {
        let tried = self
            .command(OsStr::new("/bin/sh"))
            .args(["-c", "exit 0"])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        if tried.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&tried.stderr);
        let line = said.lines().next_back().unwrap_or("it failed");
        Err(line.trim().to_owned())
    }

    fn command(&self, inner: &OsStr) -> Command {
        let (program, arguments) = match self {
            How::Bubblewrap { program, plan } => (program, plan.bubblewrap()),
            How::Ourselves { program, plan } => (
                program,
                vec![OsString::from(ENTER), plan.clone().into_os_string()],
            ),
        };
        let mut command = Command::new(program);
        command.args(arguments).arg(inner);
        command
    }
}

fn refused(why: String) -> CommandError {
    CommandError::usage(
        format!("--confine: no namespace can be made here, so nothing was started ({why})"),
        "install bubblewrap and allow unprivileged user namespaces, or run without --confine",
    )
}
