//! `checkrein own BATCH`: the owner of a check that is longer than its hook. The hook starts it and hands
//! the batch over by the socket that is its standard input; not for people.

/// The first argument.
pub(crate) const OWNER_ARGUMENT: &str = "own";

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::io;
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::os::unix::net::UnixStream;
    use std::process::{Command, ExitCode, Stdio};
    use std::sync::Arc;

    use checkrein_runtime::config::ConfigError;
    use checkrein_runtime::{RealSystem, Runtime, TreeAndStateFolder, WorkerLink};
    use checkrein_verifiers::process::detached;

    use crate::commands::engine;
    use crate::{exit_code, off, ui};

    /// Starts an owner; see [`checkrein_runtime::StartOwner`].
    pub(crate) fn start_worker_process(id: &str) -> io::Result<WorkerLink> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut own = Command::new(std::env::current_exe()?);
        own.args([super::OWNER_ARGUMENT, id])
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        detached::spawn_detached(own)?;
        WorkerLink::new(ours)
    }

    pub(crate) fn main() -> ExitCode {
        match run_worker_process() {
            Ok(()) => exit_code::to_exit_code(exit_code::YES),
            // Mostly nobody reads it.
            Err(why) => {
                ui::print_wrapped_to_stderr(&format!("checkrein own: {why}"));
                exit_code::to_exit_code(exit_code::NO)
            }
        }
    }

    fn run_worker_process() -> Result<(), String> {
        let stdin = io::stdin().as_fd().try_clone_to_owned();
        let stdin = stdin.map_err(|error| error.to_string())?;
        let by_hand = "is started by a hook, not by hand";
        let mut link = WorkerLink::new(UnixStream::from(stdin)).map_err(|_| by_hand.to_owned())?;
        let batch = link.receive_batch_from_hook().ok_or(by_hand)?;
        let place = TreeAndStateFolder {
            root: batch.root.clone(),
            state: batch.state.clone(),
            env: Arc::new(std::env::vars_os().collect::<BTreeMap<_, _>>()),
            trusts_addresses: batch.addresses,
            system: Arc::new(RealSystem),
        };
        let store = engine::open_store(&place).map_err(|error| error.to_string())?;
        // Its sessions are sealed already.
        let seal = || {
            Err(ConfigError::StateFile {
                name: "an owner seals nothing".into(),
                source: io::ErrorKind::Unsupported.into(),
            })
        };
        let runtime = Runtime::new(store, place, Box::new(seal));
        let owned = runtime.run_worker_batch(&batch, link, &|| {
            off::active_off_period(&batch.state).is_some()
        });
        owned.map_err(|error| error.to_string())
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{main, start_worker_process};

/// Elsewhere no owner is started.
#[cfg(not(target_os = "linux"))]
pub(crate) fn main() -> ExitCode {
    crate::exit_code::to_exit_code(crate::exit_code::USAGE)
}
