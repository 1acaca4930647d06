//! Digests the environment for a content key: what a check gets, without what changes from terminal
//! to terminal and decides nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use checkrein_core::digest::Digest;
use checkrein_verifiers::withheld::is_withheld_variable;

/// Variables that describe the shell's place and screen.
const VOLATILE: &[&str] = &[
    "COLUMNS",
    "DISPLAY",
    "LINES",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "TERM",
    "TMUX",
    "TMUX_PANE",
    "WINDOWID",
    "_",
];
/// The beginnings of more such names.
const VOLATILE_PREFIXES: &[&str] = &["SSH_", "TERM_", "VSCODE_", "XDG_SESSION"];

pub(crate) fn environment_and_platform_digest(
    root: &Path,
    env: &BTreeMap<OsString, OsString>,
) -> Digest {
    let decides = |name: &str| {
        !is_withheld_variable(name)
            && !VOLATILE.contains(&name)
            && !VOLATILE_PREFIXES
                .iter()
                .any(|prefix| name.starts_with(prefix))
    };
    // Root and platform belong to it: paths and programs mean something else there.
    let mut parts: Vec<&[u8]> = vec![
        root.as_os_str().as_encoded_bytes(),
        std::env::consts::OS.as_bytes(),
        std::env::consts::ARCH.as_bytes(),
    ];
    for (name, value) in env
        // A name that is not UTF-8 is none of those that are left out.
        .iter()
        .filter(|(name, _)| name.to_str().is_none_or(decides))
    {
        parts.push(name.as_encoded_bytes());
        parts.push(value.as_encoded_bytes());
    }
    Digest::hash_parts(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Digest {
        let env = [("PATH", "/bin"), (name, value)]
            .into_iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect();
        environment_and_platform_digest(Path::new("/repo"), &env)
    }

    #[test]
    fn terminal_variables_do_not_change_the_digest() {
        assert_ne!(with("MODE", "good"), with("MODE", "bad"));
        assert_eq!(with("SHLVL", "1"), with("SHLVL", "2"));
        assert_eq!(
            with("CLAUDE_CODE_SESSION_ID", "1"),
            with("CLAUDE_CODE_SESSION_ID", "2")
        );
    }
}
