//! `checkrein seal`: a person takes up the config that lies in the repo now. A held config is
//! dropped, and sessions under way are judged by the new one from here on.

use std::collections::BTreeSet;
use std::process::ExitCode;

use checkrein_runtime::RuntimeError;
use checkrein_runtime::config::TaskDriverKind;
use checkrein_store::{SqliteStore, Store as _, StoreError};

use crate::commands::{engine, trust};
use crate::locate::ProjectLocation;
use crate::ui::errors::CommandError;
use crate::{exit_code, locate, person, policy_sources, ui};

/// Newest tasks that are searched for sessions under way.
const LOOK_BACK: usize = 500;

pub(crate) fn run_seal_command() -> Result<ExitCode, CommandError> {
    let by = person::require_person("seal")?;
    let located = locate::locate_project(&std::env::current_dir()?, None);
    let now = policy_sources::policy_sources_on_disk(&located)?;
    // A mistake in the config is reported before anything is asked.
    let compiled = located.compile_full_policy_from_sources(&now, TaskDriverKind::Hook)?;
    for warning in &compiled.warnings {
        ui::print_wrapped_to_stderr(&format!("checkrein: {warning}"));
    }
    match located.nearest_config_held_despite_edit() {
        Ok(Some(held)) => ui::print_line_to_stdout(&format!(
            "edited while a task was open: {}",
            held.paths.join(", ")
        )),
        Ok(None) => {}
        Err(error) => {
            ui::print_wrapped_to_stderr(&format!("checkrein: held.json cannot be read: {error}"))
        }
    }
    match &now.repo {
        Some(_) => trust::print_config_for_trust(&located, &now)?,
        None => ui::print_line_to_stdout(
            "there is no checkrein.toml: the built-in defaults, nothing runs",
        ),
    }
    if !trust::ask_yes_no("Judge by this from now on?")? {
        ui::print_line_to_stdout("not sealed: everything stays as it was");
        return Ok(exit_code::to_exit_code(exit_code::NO));
    }
    // The person agreed to what was shown, so an edit in the meantime must not be sealed.
    if policy_sources::policy_sources_on_disk(&located)? != now {
        return Err(CommandError::cli_failure_error(
            "what would be sealed was edited while you looked at it: nothing is sealed",
        ));
    }
    match &now.repo {
        Some(repo) => trust::approve_config(&located, repo, by.clone())?,
        None => {
            located.drop_config_held_despite_edit()?;
        }
    }
    let renewed = reseal_sessions_with_new_policy(&located, &by.person_presence_log_line())?;
    // Workers judge by what was sealed before.
    #[cfg(unix)]
    checkrein_runtime::cancel_all_workers(&located.place.state);
    ui::print_line_to_stdout(&match renewed {
        0 => "sealed, for sessions that begin from now on".to_owned(),
        1 => "sealed; one session under way goes on with it".to_owned(),
        many => format!("sealed; {many} sessions under way go on with it"),
    });
    Ok(exit_code::to_exit_code(exit_code::YES))
}

/// Seals the sessions of this checkout that somebody may still use; returns how many. A session of
/// `run` keeps what it began with: the command line is part of it.
fn reseal_sessions_with_new_policy(
    located: &ProjectLocation,
    by: &str,
) -> Result<usize, CommandError> {
    // Opened for reading first, so that a repo without a store gets none.
    match SqliteStore::open_store_read_only(&located.place.state) {
        Ok(_) => {}
        Err(StoreError::Missing { .. }) => return Ok(0),
        Err(error) => return Err(error.into()),
    }
    let store = engine::open_store(&located.place)?;
    let root = located.place.root.display().to_string();
    let sessions: BTreeSet<_> = store
        .newest_task_summaries(None, LOOK_BACK)?
        .into_iter()
        .filter(|row| row.root == root)
        .map(|row| row.session)
        .collect();
    let runtime = engine::build_checkrein_runtime(located, store.clone(), TaskDriverKind::Hook);
    let mut renewed = 0;
    for session in sessions {
        let (state, policy) = match runtime.load_session_state_and_policy(&session) {
            Ok(Some(stands)) => stands,
            Ok(None) => continue,
            // A damaged session is not continued by anybody; the others are sealed.
            Err(RuntimeError::Log { .. } | RuntimeError::Policy { .. }) => continue,
            Err(RuntimeError::Store(StoreError::Corrupt { .. })) => continue,
            Err(error) => return Err(error.into()),
        };
        let over = state.is_session_idle_too_long(checkrein_runtime::now_millis());
        if over || policy.single_task {
            continue;
        }
        // A session keeps the profile of its agent, whatever this terminal uses.
        let sealed = runtime
            .root_and_profile_at_seal(&session)?
            .unwrap_or_default();
        let own = sealed
            .profile
            .map(|profile| located.location_with_sealed_profile(&profile));
        let own = own.as_ref().unwrap_or(located);
        let runtime = engine::build_checkrein_runtime(own, store.clone(), TaskDriverKind::Hook);
        if runtime
            .reseal_session_with_current_policy(&session, by)?
            .is_some()
        {
            renewed += 1;
        }
    }
    Ok(renewed)
}
