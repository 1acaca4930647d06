//! Tells a person that something waits for them, by the command in `[approvals] notify`. The
//! agent's hook starts a notifier process and goes on; that process waits for the command, up to a
//! bound, and records the result where `checkrein approvals` shows it. The question goes to stdin
//! and the environment, never into the command's own text; nor can the process that starts the
//! notifier choose the command.

mod command_environment;
mod notify_lock;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use checkrein_runtime::DeliveryOutcome;
use checkrein_store::{SqliteStore, StoredApprovalRequest};
use checkrein_verifiers::process::{self, ProcessExit};

use self::notify_lock::NotifyLock;
use crate::commands::approvals::approval_summary;
use crate::{exit_code, ui};

/// The first argument of the notifier process.
pub(crate) const NOTIFIER_ARGUMENT: &str = "notify-a-person";
/// Longest run of a notify command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts a notifier for what waits since this answer. The caller does not wait for it.
pub(crate) fn notify_person_of_parked_approval(state: &Path, decided: &DeliveryOutcome) {
    let Some(first) = decided.parked.first() else {
        return;
    };
    if decided.notify.is_none() {
        return;
    }
    if let Err(why) = spawn_own_notifier_process(state) {
        let id = &first.id;
        ui::print_wrapped_to_stderr(&format!("checkrein: {id}: nobody was told of it: {why}"));
    }
}

fn spawn_own_notifier_process(state: &Path) -> std::io::Result<()> {
    let mut beside = Command::new(std::env::current_exe()?);
    beside
        .arg(NOTIFIER_ARGUMENT)
        .arg(state)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // A group of its own: an agent that ends its hook's process group must not end the notifier.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut beside, 0);
    // Not waited for. The hook ends soon, and init reaps the child.
    beside.spawn().map(drop)
}

/// Runs the notifier process.
pub(crate) fn notifier_main(words: &[OsString]) -> ExitCode {
    let [state] = words else {
        return exit_code::to_exit_code(exit_code::USAGE);
    };
    exit_code::to_exit_code(
        match notify_person_of_pending_approvals(&PathBuf::from(state)) {
            Ok(()) => exit_code::YES,
            Err(_) => exit_code::NO,
        },
    )
}

/// Reports everything that nobody was told of. One process does so at a time, and a person who was
/// told a moment ago is told of all the rest at once: an agent can make many calls.
fn notify_person_of_pending_approvals(state: &Path) -> Result<(), String> {
    // Opened read-only first, so that no store is created where there is none.
    drop(SqliteStore::open_store_read_only(state).map_err(|error| error.to_string())?);
    let store = SqliteStore::open_store_in_folder(state).map_err(|error| error.to_string())?;
    let untold = || {
        checkrein_runtime::approvals_awaiting_notification(&store)
            .map_err(|error| error.to_string())
    };
    while !untold()?.is_empty() {
        let Some(mut turn) =
            NotifyLock::try_take_notify_lock(state).map_err(|error| error.to_string())?
        else {
            // The process that holds it looks once more after giving it back.
            return Ok(());
        };
        turn.wait_for_notify_interval();
        // Read again after the wait, for what has come meanwhile.
        let waiting = untold()?;
        let Some((_, command)) = waiting.first() else {
            continue;
        };
        // Sessions may be sealed with different commands; the others get their turn in the next
        // round of the loop.
        let rows: Vec<StoredApprovalRequest> = waiting
            .iter()
            .filter(|(_, own)| own == command)
            .map(|(row, _)| row.clone())
            .collect();
        let told = run_notify_command(state, &rows, command);
        // Failures count too: a command that fails must not be started for each call of the agent.
        turn.record_notify_time();
        match told {
            Ok(()) => checkrein_runtime::mark_approvals_notified(&store, &rows),
            Err(why) => checkrein_runtime::record_approval_notify_failure(&store, &rows, &why),
        }
        .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Runs the command with what is asked on its stdin.
fn run_notify_command(
    state: &Path,
    rows: &[StoredApprovalRequest],
    command: &str,
) -> Result<(), String> {
    let text: Vec<String> = rows.iter().map(approval_notification_text).collect();
    let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let first = rows.first().map(approval_summary).unwrap_or_default();
    let first = match rows.len() {
        0 | 1 => first,
        several => format!("{first} (and {} more)", several - 1),
    };
    let failed = |error: std::io::Error| format!("'{command}' cannot be started: {error}");
    // A file and no pipe: a command that never reads must not block the writer.
    let mut stdin = tempfile::tempfile_in(state).map_err(failed)?;
    stdin
        .write_all(text.join("\n").as_bytes())
        .map_err(failed)?;
    std::io::Seek::rewind(&mut stdin).map_err(failed)?;
    let mut shell = command_environment::notification_shell_command(state, command);
    shell
        .env("CHECKREIN_APPROVAL", ids.join(" "))
        .env("CHECKREIN_APPROVAL_WHAT", first)
        .stdin(stdin)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let nonce = ids.first().copied().unwrap_or_default();
    let (wait, kill) = process::spawn_killable_process_tree(shell, nonce).map_err(failed)?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        // A receiver that is gone has given up on the command.
        let _ = sender.send(wait.wait_for_command_end());
    });
    let ended = receiver.recv_timeout(COMMAND_TIMEOUT);
    // Also after an orderly end, since the command may have left children behind.
    kill.kill_process_tree();
    match ended {
        Ok(Ok((ProcessExit::Exited(0), _))) => Ok(()),
        Ok(Ok((ProcessExit::Exited(code), _))) => {
            Err(format!("'{command}' ended with exit status {code}"))
        }
        Ok(Ok((ProcessExit::Signalled(signal), _))) => {
            Err(format!("'{command}' was ended by signal {signal}"))
        }
        Ok(Ok((ProcessExit::Lost, _))) => Err(format!("'{command}' was lost sight of")),
        Ok(Err(error)) => Err(failed(error)),
        Err(_) => Err(format!(
            "'{command}' took longer than {} s",
            COMMAND_TIMEOUT.as_secs()
        )),
    }
}

fn approval_notification_text(row: &StoredApprovalRequest) -> String {
    format!(
        "{} waits for a person: {}\nwhy: {}\nto answer, in {}: checkrein approve {id}, or: checkrein deny {id}\n",
        row.agent,
        approval_summary(row),
        row.why,
        row.root,
        id = row.id
    )
}
