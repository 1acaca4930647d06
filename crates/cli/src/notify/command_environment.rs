//! Builds the environment in which the notify command runs. The process that starts the notifier
//! may be an agent, or have its environment from one: no variable, search path, folder or shell of
//! it may choose what runs in a person's name.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::locate;

/// Folders with programs of the system.
#[cfg(unix)]
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin";

/// Returns the shell that runs `command`, in the person's own folder or, if that is not known, in
/// the state folder.
pub(super) fn notification_shell_command(state: &Path, command: &str) -> Command {
    let home = person_home();
    let mut shell = shell_with_clean_environment(command);
    shell.current_dir(home.as_deref().unwrap_or(state));
    if let Some(home) = home {
        shell.env("HOME", home);
    }
    shell
}

#[cfg(unix)]
fn shell_with_clean_environment(command: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", command])
        // Cleared as a whole: a list of dangerous variables (`LD_PRELOAD`, `BASH_ENV`) would never
        // be complete.
        .env_clear()
        .env("PATH", SYSTEM_PATH);
    for (name, is_fine) in PASSED_VARIABLES {
        let value = std::env::var(name).ok();
        if let Some(value) = value.filter(|value| is_fine(value)) {
            shell.env(name, value);
        }
    }
    if let Some(folder) = account_runtime_folder() {
        // The address is built and not passed on: `unixexec:` in it would start a program.
        let bus = folder.join("bus");
        if bus.exists() {
            let mut address = std::ffi::OsString::from("unix:path=");
            address.push(bus);
            shell.env("DBUS_SESSION_BUS_ADDRESS", address);
        }
        shell.env("XDG_RUNTIME_DIR", folder);
    }
    shell
}

/// Returns the system's shell: there an agent's hook finds no other one by a search path.
#[cfg(not(unix))]
fn shell_with_clean_environment(command: &str) -> Command {
    let mut shell = Command::new("cmd");
    shell.args(["/C", command]);
    shell
}

#[cfg(unix)]
type EnvValuePredicateFn = fn(&str) -> bool;

/// Variables that say who and where a person is, and what such a value looks like: none of these
/// can name a program or a library.
#[cfg(unix)]
const PASSED_VARIABLES: &[(&str, EnvValuePredicateFn)] = &[
    ("USER", has_only_name_characters),
    ("LOGNAME", has_only_name_characters),
    ("LANG", has_only_name_characters),
    ("LC_ALL", has_only_name_characters),
    ("DISPLAY", is_local_display),
    ("WAYLAND_DISPLAY", has_only_name_characters),
];

#[cfg(unix)]
fn has_only_name_characters(value: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    // Locale names become paths in the C library, so `..` and `/` are refused.
    !value.is_empty() && !value.contains("..") && value.bytes().all(plain)
}

/// Returns whether a display is one of this machine.
#[cfg(unix)]
fn is_local_display(value: &str) -> bool {
    let number = value.strip_prefix(':');
    number.is_some_and(|number| {
        let plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
        !number.is_empty() && number.bytes().all(plain)
    })
}

/// Returns the folder of the person's session, by their account.
#[cfg(target_os = "linux")]
fn account_runtime_folder() -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    let me = std::fs::metadata("/proc/self").ok()?.uid();
    Some(PathBuf::from(format!("/run/user/{me}"))).filter(|folder| folder.is_dir())
}

#[cfg(all(unix, not(target_os = "linux")))]
fn xdg_runtime_folder() -> Option<PathBuf> {
    None
}

/// Returns the person's folder, by their account where that can be told.
fn person_home() -> Option<PathBuf> {
    let home = match cfg!(target_os = "linux") {
        true => locate::person_home_by_account(),
        false => locate::home_folder(),
    };
    home.filter(|home| home.is_dir())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn test_notifier_env_names_no_program() {
        for (value, name, display) in [
            ("ada", true, false),
            ("en_US.UTF-8", true, false),
            ("wayland-0", true, false),
            (":0", false, true),
            (":10.0", false, true),
            ("evil.example:0", false, false),
            ("unixexec:path=/tmp/x", false, false),
            ("/tmp/x", false, false),
            ("..", false, false),
            ("a b", false, false),
            ("", false, false),
        ] {
            assert_eq!(has_only_name_characters(value), name, "{value}");
            assert_eq!(is_local_display(value), display, "{value}");
        }
    }
}
