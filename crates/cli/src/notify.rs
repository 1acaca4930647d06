//! Tells a person that something waits for them, by the command in `[approvals] notify`. The
//! agent's hook starts a process of ours beside it and goes; that one waits for the command,
//! bounded, and notes a failure where `checkrein approvals` shows it. What is asked comes on
//! stdin and in the environment, never in the command's own text.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use checkrein_runtime::Decided;
use checkrein_store::{Approval, SqliteStore, Store as _};
use checkrein_verifiers::process::{self, Ended};

use crate::commands::approvals::what;
use crate::{exit_code, ui};

/// The first argument of the process beside.
pub(crate) const BESIDE: &str = "notify-a-person";
/// Longer a command that tells somebody need not take.
const LIMIT: Duration = Duration::from_secs(30);

/// Has a person told of what waits since this answer. Nobody waits for that.
pub(crate) fn parked(state: &Path, decided: &Decided) {
    let Some(command) = &decided.notify else {
        return;
    };
    for row in &decided.parked {
        if let Err(why) = beside(state, row, command) {
            ui::say(&format!(
                "checkrein: {}: nobody was told of it: {why}",
                row.id
            ));
        }
    }
}

fn beside(state: &Path, row: &Approval, command: &str) -> std::io::Result<()> {
    let mut beside = Command::new(std::env::current_exe()?);
    beside
        .arg(BESIDE)
        .arg(state)
        .arg(&row.id)
        .arg(command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut beside, 0);
    beside.spawn().map(drop)
}

/// The process beside.
pub(crate) fn main(words: &[OsString]) -> ExitCode {
    let [state, id, command] = words else {
        return exit_code::exit(exit_code::USAGE);
    };
    let state = PathBuf::from(state);
    let told = SqliteStore::open(&state)
        .map_err(|error| error.to_string())
        .and_then(|store| {
            let rows = store.approvals().map_err(|error| error.to_string())?;
            let row = rows
                .into_iter()
                .find(|row| id.to_str() == Some(row.id.as_str()));
            let row = row.ok_or("it is gone")?;
            if let Err(why) = tell(&row, &command.to_string_lossy()) {
                checkrein_runtime::not_told(&store, &row, &why)
                    .map_err(|error| error.to_string())?;
            }
            Ok(())
        });
    exit_code::exit(match told {
        Ok(()) => exit_code::YES,
        Err(_) => exit_code::NO,
    })
}

/// Runs the command with what is asked on its stdin.
fn tell(row: &Approval, command: &str) -> Result<(), String> {
    let text = format!(
        "{} waits for a person: {}\nwhy: {}\nto answer, in {}: checkrein approve {id}, or: checkrein deny {id}\n",
        row.agent,
        what(row),
        row.why,
        row.root,
        id = row.id
    );
    let failed = |error: std::io::Error| format!("'{command}' cannot be started: {error}");
    let mut stdin = tempfile::tempfile().map_err(failed)?;
    stdin.write_all(text.as_bytes()).map_err(failed)?;
    std::io::Seek::rewind(&mut stdin).map_err(failed)?;
    let [shell, flag] = if cfg!(windows) {
        ["cmd", "/C"]
    } else {
        ["sh", "-c"]
    };
    let mut shell = Command::new(shell);
    shell
        .arg(flag)
        .arg(command)
        .current_dir(&row.root)
        .env("CHECKREIN_APPROVAL", &row.id)
        .env("CHECKREIN_APPROVAL_WHAT", what(row))
        .stdin(stdin)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let (wait, kill) = process::spawn(shell, &row.id).map_err(failed)?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        // Whoever does not listen any more has given up on it.
        let _ = sender.send(wait.wait());
    });
    let ended = receiver.recv_timeout(LIMIT);
    kill.kill();
    match ended {
        Ok(Ok((Ended::Exited(0), _))) => Ok(()),
        Ok(Ok((Ended::Exited(code), _))) => {
            Err(format!("'{command}' ended with exit status {code}"))
        }
        Ok(Ok((Ended::Signalled(signal), _))) => {
            Err(format!("'{command}' was ended by signal {signal}"))
        }
        Ok(Ok((Ended::Lost, _))) => Err(format!("'{command}' was lost sight of")),
        Ok(Err(error)) => Err(failed(error)),
        Err(_) => Err(format!(
            "'{command}' took longer than {} s",
            LIMIT.as_secs()
        )),
    }
}
