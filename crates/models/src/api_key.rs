//! Finds API keys: in the environment, or else in the system's keyring through the system's own
//! program. Nothing here prints a key.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::ModelError;
use crate::providers::{EnvVarMap, ModelProvider};

/// How long to wait for the keyring. An unlocked one is faster, and one that first asks a person is
/// not waited for.
const KEYRING_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than any key.
const LONGEST: u64 = 8 * 1024;
/// Shorter keys are not redacted from texts.
const SHORTEST: usize = 6;
/// The service name in the keyring.
const SERVICE: &str = "checkrein";

/// A key. It is compared with nothing and printed by nothing.
#[derive(Clone)]
pub(crate) struct ApiKey(String);

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Key")
    }
}

impl ApiKey {
    /// Returns the key for the header that carries it.
    pub(crate) fn reveal_secret(&self) -> &str {
        &self.0
    }

    /// Returns the text without the key, in case a provider repeats it. A very short key is left:
    /// it is part of ordinary words and is worth nothing.
    pub(crate) fn redact_key_in_text(&self, text: &str) -> String {
        match self.0.len() < SHORTEST {
            true => text.to_owned(),
            false => text.replace(&self.0, "[key]"),
        }
    }
}

/// The provider's key; `None` where it needs none. Blocks for as long as the keyring takes, and
/// not longer than [`KEYRING_TIMEOUT`].
pub(crate) fn find_provider_api_key(
    provider: &ModelProvider,
    environment: &EnvVarMap,
) -> Result<Option<ApiKey>, ModelError> {
    let found = provider.api_key_from_environment(environment).or_else(|| {
        // A local model seldom has a key in the keyring, and asking may open a prompt.
        if provider.local {
            return None;
        }
        read_key_from_keyring(provider.account, environment)
    });
    let how = match found {
        // A newline in a key could add a header of its own to the request.
        Some(key) if key.bytes().all(|byte| byte.is_ascii_graphic()) => {
            return Ok(Some(ApiKey(key)));
        }
        Some(_) => "the one found has characters that no key has".to_owned(),
        None if provider.local => return Ok(None),
        None => {
            let variables = provider.key_variables.join(" or ");
            match keyring_store_command(provider.account) {
                Some(command) => format!("set {variables}, or keep it in the keyring: {command}"),
                None => format!("set {variables}"),
            }
        }
    };
    Err(ModelError::NoKey {
        provider: provider.name.to_owned(),
        how,
    })
}

/// The program that reads the system's keyring, and its arguments.
fn keyring_read_command(account: &str) -> Option<(&'static str, Vec<&str>)> {
    if cfg!(target_os = "linux") {
        let arguments = vec!["lookup", "service", SERVICE, "account", account];
        Some(("secret-tool", arguments))
    } else if cfg!(target_os = "macos") {
        let arguments = vec!["find-generic-password", "-s", SERVICE, "-a", account, "-w"];
        Some(("security", arguments))
    } else {
        None
    }
}

/// Returns the command with which a person stores a key.
fn keyring_store_command(account: &str) -> Option<String> {
    if cfg!(target_os = "linux") {
        Some(format!(
            "secret-tool store --label='{SERVICE} {account}' service {SERVICE} account {account}"
        ))
    } else if cfg!(target_os = "macos") {
        Some(format!(
            "security add-generic-password -s {SERVICE} -a {account} -w"
        ))
    } else {
        None
    }
}

/// Returns `None` if there is no keyring, it is locked, or it does not have the key.
fn read_key_from_keyring(account: &str, environment: &EnvVarMap) -> Option<String> {
    let (program, arguments) = keyring_read_command(account)?;
    let mut child = Command::new(program)
        .args(arguments)
        // The program must see the caller's environment and not that of the process.
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let output = child.stdout.take();
    let (send, receive) = mpsc::channel();
    // The standard library has no wait with a timeout, so the pipe is read on a thread of its own.
    let reader = std::thread::Builder::new().spawn(move || {
        let mut text = String::new();
        // Bounded, because the program may print anything without end.
        let read = output.map(|output| output.take(LONGEST).read_to_string(&mut text));
        // The receiver may have timed out.
        let _ = send.send(matches!(read, Some(Ok(_))).then_some(text));
    });
    let found = match reader {
        Ok(_) => receive.recv_timeout(KEYRING_TIMEOUT).ok().flatten(),
        Err(_) => None,
    };
    // The program has either answered or used up its time. `wait` collects it, so that no zombie is
    // left.
    let _ = child.kill();
    let _ = child.wait();
    let found = found?;
    let key = found.trim();
    (!key.is_empty()).then(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::parse_model_name;

    #[test]
    fn a_key_is_shown_by_nothing() {
        let (provider, _) = parse_model_name("openai/m").unwrap();
        let environment = EnvVarMap::from([("OPENAI_API_KEY".into(), "sk-abcdef".into())]);
        let key = find_provider_api_key(provider, &environment)
            .unwrap()
            .unwrap();
        assert_eq!(key.reveal_secret(), "sk-abcdef");
        assert!(!format!("{key:?}").contains("abc"), "{key:?}");
        assert_eq!(
            key.redact_key_in_text("bad key 'sk-abcdef'!"),
            "bad key '[key]'!"
        );
        for short in ["x", "local"] {
            let key = ApiKey(short.to_owned());
            assert_eq!(key.redact_key_in_text("local index.x"), "local index.x");
        }
        assert_eq!(
            ApiKey("abcdef".to_owned()).redact_key_in_text("abcdef"),
            "[key]"
        );
    }

    #[test]
    fn the_keys_of_all_are_looked_for_where_they_usually_are() {
        for (name, variable) in [
            ("gemini/m", "GEMINI_API_KEY"),
            ("google/m", "GOOGLE_API_KEY"),
            ("openai-chat/m", "OPENAI_API_KEY"),
            ("openrouter/m", "OPENROUTER_API_KEY"),
        ] {
            let (provider, _) = parse_model_name(name).unwrap();
            let environment = EnvVarMap::from([(variable.into(), "k-1".into())]);
            let key = find_provider_api_key(provider, &environment).unwrap();
            assert_eq!(key.unwrap().reveal_secret(), "k-1", "{name}");
        }
    }

    #[test]
    fn a_key_with_a_line_in_it_is_none() {
        let (provider, _) = parse_model_name("xai/m").unwrap();
        let environment = EnvVarMap::from([("XAI_API_KEY".into(), "a\nx-evil: 1".into())]);
        let error = find_provider_api_key(provider, &environment)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("characters") && !error.contains("evil"),
            "{error}"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_keyring_is_asked_through_its_own_program() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("secret-tool");
        let script =
            "#!/bin/sh\n[ \"$*\" = 'lookup service checkrein account groq' ] && echo k-2\n";
        std::fs::write(&program, script).unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let environment = EnvVarMap::from([("PATH".into(), folder.path().into())]);
        let (groq, _) = parse_model_name("groq/m").unwrap();
        assert_eq!(
            find_provider_api_key(groq, &environment)
                .unwrap()
                .unwrap()
                .reveal_secret(),
            "k-2"
        );
        let (xai, _) = parse_model_name("xai/m").unwrap();
        let error = find_provider_api_key(xai, &environment)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("XAI_API_KEY") && error.contains("secret-tool store"),
            "{error}"
        );
        // And nobody is asked for a key that is not needed.
        let (ollama, _) = parse_model_name("ollama/m").unwrap();
        assert!(
            find_provider_api_key(ollama, &environment)
                .unwrap()
                .is_none()
        );
    }
}
