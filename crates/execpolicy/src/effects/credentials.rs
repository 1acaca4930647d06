//! Recognizes files that hold secrets by the paths where programs keep them. Contents are not read.

use super::glob::globs_intersect;

/// Path suffixes of secret files, wherever the path begins.
const SECRET_FILES: &[&[&str]] = &[
    &[".ssh", "id_*"],
    &[".ssh", "*_rsa"],
    &[".ssh", "*.pem"],
    &[".ssh", "*.key"],
    &[".aws", "credentials"],
    &[".aws", "sso", "cache", "*"],
    &[".aws", "cli", "cache", "*"],
    &[".kube", "config"],
    &[".docker", "config.json"],
    &["gcloud", "credentials.db"],
    &["gcloud", "access_tokens.db"],
    &["gcloud", "application_default_credentials.json"],
    &["gcloud", "legacy_credentials", "*", "*"],
    &[".azure", "accessTokens.json"],
    &[".azure", "msal_token_cache.*"],
    &[".config", "gh", "hosts.yml"],
    &[".config", "hub"],
    &[".config", "op", "config"],
    &[".netrc"],
    &["_netrc"],
    &[".git-credentials"],
    &[".config", "git", "credentials"],
    &[".pypirc"],
    &[".pgpass"],
    &[".my.cnf"],
    &[".vault-token"],
    &[".terraform.d", "credentials.tfrc.json"],
    &[".cargo", "credentials"],
    &[".cargo", "credentials.toml"],
    &[".gem", "credentials"],
    &[".gnupg", "private-keys-v1.d", "*"],
    &[".gnupg", "secring.gpg"],
    &[".password-store", "**"],
    &["Library", "Keychains", "**"],
    &["keyrings", "*.keyring"],
    &[".claude", ".credentials.json"],
    &[".codex", "auth.json"],
    &[".gemini", "oauth_creds.json"],
    &[".bash_history"],
    &[".zsh_history"],
    &["Login Data"],
    &["Cookies"],
    &["cookies.sqlite"],
    &["logins.json"],
    &["key4.db"],
    &["id_rsa"],
    &["id_dsa"],
    &["id_ecdsa"],
    &["id_ed25519"],
    &[".env"],
    &[".env.local"],
    &[".env.production"],
    &[".env.prod"],
    &[".env.staging"],
    &[".env.*.local"],
];

/// Absolute paths of secret files.
const SYSTEM_SECRETS: &[&[&str]] = &[
    &["etc", "shadow"],
    &["etc", "shadow-"],
    &["etc", "gshadow"],
    &["etc", "sudoers"],
    &["etc", "ssh", "ssh_host_*_key"],
    &["etc", "ssl", "private", "*"],
    &["etc", "kubernetes", "admin.conf"],
    &["proc", "*", "environ"],
    &["proc", "*", "mem"],
    &["proc", "kcore"],
    &["run", "secrets", "**"],
    &["var", "run", "secrets", "**"],
];

/// Folders of a home that hold secrets, so that reading all of one reads a secret.
const SECRET_FOLDERS: &[&str] = &[
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".docker",
    ".azure",
    ".config",
    ".password-store",
    ".claude",
    ".codex",
    "Library",
];

/// Whether a secret is read at this absolute path. `inside` the project a pattern of file names is
/// none, because `cat *` is ordinary there. `deep` includes what lies below the path.
pub(super) fn is_secret_path(path: &[&str], home: &[&str], inside: bool, deep: bool) -> bool {
    // Public keys and templates such as `.env.example` are meant to be shared.
    let public = path
        .last()
        .is_some_and(|name| name.ends_with(".pub") || name.ends_with(".example"));
    if public {
        return false;
    }
    let system = SYSTEM_SECRETS
        .iter()
        .any(|kept| path_matches_credential_pattern(kept, path));
    let kept = SECRET_FILES.iter().any(|kept| {
        // A folder of secrets may stand anywhere in the path, so each window of parts is compared.
        if let [parts @ .., "**"] = kept {
            let named = |window: &[&str]| window.iter().all(|part| !is_wildcard_only(part));
            let mut windows = path.windows(parts.len());
            return windows
                .any(|window| named(window) && path_matches_credential_pattern(parts, window));
        }
        let Some(end) = path
            .len()
            .checked_sub(kept.len())
            .and_then(|at| path.get(at..))
        else {
            return false;
        };
        // Inside of the project only the exact name counts: `.env`, but not `*`.
        if inside && kept.len() == 1 {
            return end.first() == kept.first();
        }
        // A part of wildcards only matches any folder of secrets and proves nothing, so the folders
        // must be named: not `/var/*`, not `src/**/*.key`. In the home `~/*/*` does reach them.
        let folders = end.len() - 1;
        let named = match folders {
            0 => !is_wildcard_only(end.first().unwrap_or(&"")),
            _ => end.iter().take(folders).all(|part| !is_wildcard_only(part)),
        };
        path_matches_credential_pattern(kept, end) && (named || path.starts_with(home))
    });
    // A recursive read of a home, of a folder above it, or of a secret folder in one.
    let below_home = path.strip_prefix(home);
    let folder = deep
        && match (path, below_home) {
            ([] | ["home" | "root" | "Users"] | ["home" | "Users", _], _) => !inside,
            (_, Some([])) => true,
            (_, Some([first, ..])) => !inside && SECRET_FOLDERS.contains(first),
            (["home" | "Users", _, first], None) | (["root", first], None) => {
                SECRET_FOLDERS.contains(first)
            }
            _ => false,
        };
    system || kept || folder
}

/// Whether the part consists of wildcards only.
fn is_wildcard_only(part: &str) -> bool {
    part.chars().all(|c| c == '*' || c == '?')
}

fn path_matches_credential_pattern(kept: &[&str], path: &[&str]) -> bool {
    if let [parts @ .., "**"] = kept {
        return path.len() > parts.len()
            && parts
                .iter()
                .zip(path)
                .all(|(kept, part)| globs_intersect(kept, part));
    }
    kept.len() == path.len()
        && kept
            .iter()
            .zip(path)
            .all(|(kept, part)| globs_intersect(kept, part))
}

#[cfg(test)]
mod tests {
    use crate::effects::paths::ProjectAndHomeFolders;

    #[test]
    fn what_is_a_secret() {
        let ground = ProjectAndHomeFolders::new(&["/home/dev/repo".to_owned()]);
        let check = |text: &str, deep: bool, expected: bool| {
            let spot = ground.resolve_path_named_in_command(&ground.initial_working_dir(), text);
            assert_eq!(
                ground.is_secret_path(&spot, deep),
                expected,
                "{text} {deep}"
            );
        };
        for text in [
            "~/.ssh/id_rsa",
            "~/.ssh/id_*",
            "~/.ssh/*",
            "~/.s*h/id_rsa",
            "/home/user/.aws/credentials",
            ".env",
            ".env.production",
            "/etc/shadow",
            "/proc/1/environ",
            "~/.config/gh/hosts.yml",
            "keys/id_ed25519",
            "~/.password-store/a/b.gpg",
        ] {
            check(text, false, true);
        }
        for text in [
            "src/main.rs",
            "*",
            "src/*.rs",
            ".env.example",
            "~/.ssh/id_rsa.pub",
            "~/.ssh/known_hosts",
            "/etc/hosts",
            "/usr/include/*",
            "/proc/cpuinfo",
            "~/notes.txt",
        ] {
            check(text, false, false);
        }
        for text in ["~", "/", "/home", "~/.ssh", "~/.aws"] {
            check(text, true, true);
            check(text, false, false);
        }
        check(".", true, false);
        check("src", true, false);
        check("/usr/share", true, false);
    }
}
