//! Implements `checkrein own BATCH`: the owner of a check that takes longer than its hook. The hook
//! starts it and sends the batch through the socket that is its standard input. It is not for
//! people.

/// The first argument of an owner process.
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
    use checkrein_runtime::{HookWorkerLinkEnd, RealSystem, Runtime, TreeAndStateFolder};
    use checkrein_verifiers::process::detached;

    use crate::commands::engine;
    use crate::{exit_code, off, ui};

    /// Starts an owner; see [`checkrein_runtime::StartOwner`].
    pub(crate) fn start_worker_process(id: &str) -> io::Result<HookWorkerLinkEnd> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut own = Command::new(std::env::current_exe()?);
        own.args([super::OWNER_ARGUMENT, id])
            // Away from the repo: a process that works in a folder keeps it from being unmounted.
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        detached::spawn_detached(own)?;
        HookWorkerLinkEnd::new(ours)
    }

    pub(crate) fn check_worker_main() -> ExitCode {
        match run_worker_process() {
            Ok(()) => exit_code::to_exit_code(exit_code::YES),
            // Usually nobody reads it: a hook starts its owner with stderr on the null device.
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
        let mut link =
            HookWorkerLinkEnd::new(UnixStream::from(stdin)).map_err(|_| by_hand.to_owned())?;
        let batch = link.receive_check_batch_from_hook().ok_or(by_hand)?;
        let place = TreeAndStateFolder {
            root: batch.root.clone(),
            state: batch.state.clone(),
            env: Arc::new(std::env::vars_os().collect::<BTreeMap<_, _>>()),
            trusts_addresses: batch.addresses,
            system: Arc::new(RealSystem),
        };
        let store = engine::open_store(&place).map_err(|error| error.to_string())?;
        // The sessions of a batch are sealed already, so an owner never seals.
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
pub(crate) use linux::{check_worker_main, start_worker_process};

/// Returns an error: owners exist on Linux only.
#[cfg(not(target_os = "linux"))]
pub(crate) fn check_worker_main() -> std::process::ExitCode {
    crate::exit_code::to_exit_code(crate::exit_code::USAGE)
}
