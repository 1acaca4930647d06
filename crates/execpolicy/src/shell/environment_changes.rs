//! Recognises commands that change what checks find outside the tree: they install or remove
//! packages, or start or stop services. After one of them a check may give another result although
//! no file has changed.

/// Programs, with the first words that install, remove, start or stop something. An empty list
/// means any call.
const ENVIRONMENT_CHANGERS: &[(&[&str], &[&str])] = &[
    (
        &["npm", "pnpm", "yarn", "bun"],
        &[
            "install",
            "i",
            "ci",
            "add",
            "update",
            "up",
            "upgrade",
            "rebuild",
            "link",
            "uninstall",
            "remove",
            "rm",
            "un",
            "unlink",
            "prune",
        ],
    ),
    (&["pip", "pip3"], &["install", "uninstall"]),
    (&["uv"], &["sync", "add", "pip", "venv", "python"]),
    (
        &["poetry", "pipenv", "bundle", "composer"],
        &[
            "install",
            "update",
            "add",
            "sync",
            "require",
            "uninstall",
            "remove",
        ],
    ),
    (
        &["conda", "mamba"],
        &["install", "create", "update", "env", "remove", "uninstall"],
    ),
    (
        &[
            "apt", "apt-get", "dnf", "yum", "apk", "brew", "zypper", "gem",
        ],
        &[
            "install",
            "add",
            "upgrade",
            "reinstall",
            "remove",
            "purge",
            "autoremove",
            "erase",
            "del",
            "uninstall",
        ],
    ),
    (&["pacman"], &[]),
    (&["cargo"], &["install", "uninstall", "fetch"]),
    (&["rustup", "nvm", "corepack", "asdf", "mise"], &[]),
    (&["go"], &["install", "get", "mod"]),
    (&["dotnet"], &["restore", "tool", "workload"]),
    (
        &["docker", "podman"],
        &["compose", "run", "start", "restart", "stop", "kill", "rm"],
    ),
    (
        &["docker-compose"],
        &["up", "start", "restart", "down", "stop", "kill", "rm"],
    ),
    (&["systemctl", "service", "pg_ctl", "pg_ctlcluster"], &[]),
];

/// Returns whether this command does so, judged by its words as far as they are literal.
pub(super) fn changes_packages_or_services(program: &str, words: &[&str]) -> bool {
    if program.starts_with("python") {
        // python -m pip install ...
        return match words {
            ["-m", module, rest @ ..] => changes_packages_or_services(module, rest),
            _ => false,
        };
    }
    let Some((_, verbs)) = ENVIRONMENT_CHANGERS
        .iter()
        .find(|(names, _)| names.contains(&program))
    else {
        return false;
    };
    // Options may stand before the verb (`apt-get -y install`), so the verb is the first word
    // without a dash.
    let verb = words.iter().find(|word| !word.starts_with('-'));
    match verb {
        _ if verbs.is_empty() => true,
        Some(verb) => verbs.contains(verb),
        // `yarn` without a verb installs.
        None => program == "yarn",
    }
}

#[cfg(test)]
mod tests {
    use super::changes_packages_or_services;

    #[test]
    fn what_installs_and_what_does_not() {
        let check = |line: &str, expected: bool| {
            let words: Vec<&str> = line.split(' ').collect();
            let (program, rest) = words.split_first().unwrap_or((&"", &[]));
            assert_eq!(
                changes_packages_or_services(program, rest),
                expected,
                "{line}"
            );
        };
        for line in [
            "npm install",
            "npm --silent ci",
            "yarn",
            "pip install -r requirements.txt",
            "python3 -m pip install pytest",
            "uv sync",
            "apt-get -y install jq",
            "go mod download",
            "docker compose up -d",
            "docker stop db",
            "npm uninstall left-pad",
            "systemctl start postgresql",
        ] {
            check(line, true);
        }
        for line in [
            "npm test",
            "npm run build",
            "pip list",
            "python3 -m pytest",
            "cargo test",
            "go test ./...",
            "docker ps",
            "ls",
        ] {
            check(line, false);
        }
    }
}
