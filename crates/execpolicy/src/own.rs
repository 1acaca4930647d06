//! Rules that no config switches off: what loosens Checkrein itself is for the person. By the
//! ordinary ways only: an agent under the same account has others, and docs/threat-model.md
//! lists them.

/// Commands of ours that change something, and what an agent never has to type.
const CHANGES: &[&str] = &[
    "approve",
    "confined-exec",
    "deny",
    "gc",
    "hook",
    "init",
    "notify-a-person",
    "off",
    "on",
    "seal",
    "trust",
];

/// Programs that write, move or remove what their arguments name.
const WRITERS: &[&str] = &[
    "chattr", "chmod", "chown", "dd", "ln", "mv", "patch", "rm", "rmdir", "rsync", "shred",
    "sqlite3", "tee", "touch", "truncate", "unlink",
];

/// Programs that write only what their last argument names.
const COPIERS: &[&str] = &["cp", "install"];

/// Settings in which hooks are installed, and our usual state folder, as the ends or middles of
/// paths.
const SETTINGS: &[&[&str]] = &[
    &[".claude", "settings.json"],
    &[".claude", "settings.local.json"],
    &[".codex", "hooks.json"],
    &[".codex", "config.toml"],
];
const STATE: &[&str] = &[".local", "state", "checkrein"];

/// Why a command is refused whatever the rules say. `words` are those of it that are known,
/// `program` its name without a folder.
pub(crate) fn command(program: &str, words: &[&str], protected: &[String]) -> Option<String> {
    let arguments = words.get(1..).unwrap_or_default();
    match program {
        "checkrein" => {
            let first = arguments.iter().find(|word| !word.starts_with('-'))?;
            CHANGES.contains(first).then(|| {
                format!("`checkrein {first}` is for the person, at a terminal of their own; say what you need and why")
            })
        }
        "claude" => flag(arguments, claude).map(hooks_off),
        "codex" => flag(arguments, codex).map(hooks_off),
        "sed" if !arguments.iter().any(|word| in_place(word)) => None,
        _ if program == "sed" || WRITERS.contains(&program) => arguments
            .iter()
            .find_map(|word| written(word.strip_prefix("of=").unwrap_or(word), protected))
            .or_else(|| match program {
                "rm" | "rmdir" | "shred" | "unlink" => taken(arguments, protected),
                "mv" => taken(arguments.split_last()?.1, protected)
                    .or_else(|| put_into(arguments, protected)),
                "ln" | "rsync" => put_into(arguments, protected),
                _ => None,
            }),
        _ if COPIERS.contains(&program) => arguments
            .last()
            .and_then(|word| written(word, protected))
            .or_else(|| put_into(arguments, protected)),
        _ => None,
    }
}

/// Why these are not removed: something that is not written lies in one of them.
fn taken(paths: &[&str], protected: &[String]) -> Option<String> {
    let holds = |path: &&&str| {
        let parts = parts(path);
        let agents = parts
            .last()
            .is_some_and(|last| SETTINGS.iter().any(|tail| tail.first() == Some(last)));
        // From here on it is known where a path begins.
        let at_home = path.starts_with(['/', '~']) || path.starts_with("$HOME");
        let mut above_state = (1..STATE.len()).filter_map(|end| STATE.get(..end));
        let state = at_home && above_state.any(|above| parts.ends_with(above));
        let above = |kept: &String| self::parts(kept).starts_with(&parts);
        agents || state || path.starts_with('/') && protected.iter().any(above)
    };
    let path = paths
        .iter()
        .filter(|word| !word.starts_with('-'))
        .find(holds)?;
    Some(format!(
        "{path} holds what judges this work: the person removes it"
    ))
}

/// Why these are not put into the folder that the last of them, or `-t`, names.
fn put_into(arguments: &[&str], protected: &[String]) -> Option<String> {
    let named = arguments.iter().enumerate().find_map(|(at, word)| {
        match word.strip_prefix("--target-directory") {
            Some("") => arguments.get(at + 1).copied(),
            Some(rest) => rest.strip_prefix('='),
            None => match word.strip_prefix("-t") {
                Some("") => arguments.get(at + 1).copied(),
                other => other,
            },
        }
    });
    let (last, before) = arguments.split_last()?;
    let (folder, files) = match named {
        Some(folder) => (folder, arguments),
        None => (*last, before),
    };
    files.iter().find_map(|file| {
        let name = parts(file).last().copied()?;
        written(&format!("{folder}/{name}"), protected)
    })
}

/// Why this path is not written, if it is one that decides whether anybody is judged.
pub(crate) fn written(path: &str, protected: &[String]) -> Option<String> {
    let parts = parts(path);
    let settings = SETTINGS.iter().any(|tail| parts.ends_with(tail));
    if settings {
        return Some(format!(
            "{path} says which hooks check this work: the person edits it"
        ));
    }
    let state = parts.windows(STATE.len()).any(|window| window == STATE);
    let named = protected.iter().any(|kept| {
        let kept = self::parts(kept);
        // Where a relative path begins is not known: a rules file is taken for the one meant.
        let is_rules = kept.last().is_some_and(|name| name.ends_with(".rules"));
        let below = path.starts_with('/') && parts.starts_with(&kept);
        let relative = !path.starts_with('/') && is_rules && kept.ends_with(&parts);
        below || (relative && !parts.is_empty())
    });
    (state || named)
        .then(|| format!("{path} is part of what judges this work: the person changes it"))
}

/// The paths that a patch writes, as its lines name them; tabs in them say nothing.
pub(crate) fn patched(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(|line| {
        [
            "*** Add File: ",
            "*** Update File: ",
            "*** Delete File: ",
            "*** Move to: ",
        ]
        .iter()
        .find_map(|head| line.trim_start().strip_prefix(head))
        .map(|path| path.trim().replace('\t', ""))
    })
}

fn hooks_off(what: String) -> String {
    format!("`{what}` starts an agent without the hooks that check it: leave it out")
}

/// The first flag that `is_meant`, with the word after it.
fn flag(arguments: &[&str], is_meant: fn(&str, &str) -> bool) -> Option<String> {
    arguments.iter().enumerate().find_map(|(at, word)| {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, value),
            _ => (*word, arguments.get(at + 1).copied().unwrap_or_default()),
        };
        is_meant(name, value).then(|| name.to_owned())
    })
}

fn in_place(word: &str) -> bool {
    let short = word.starts_with('-') && !word.starts_with("--") && word.contains('i');
    short || word.starts_with("--in-place")
}

fn claude(flag: &str, value: &str) -> bool {
    match flag {
        "--bare" | "--safe-mode" | "--setting-sources" => true,
        "--settings" => value.contains("disableAllHooks"),
        _ => false,
    }
}

fn codex(flag: &str, value: &str) -> bool {
    match flag {
        "--dangerously-bypass-hook-trust" => true,
        "--disable" => matches!(value, "hooks" | "codex_hooks"),
        "-c" | "--config" => {
            let value: String = value.split_whitespace().collect();
            value.starts_with("hooks.state")
                || value == "features.hooks=false"
                || value == "features.codex_hooks=false"
        }
        _ => false,
    }
}

/// The parts of a path, `.` and `..` worked out as far as they can be.
fn parts(path: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use crate::{RuleSet, judge_argv, judge_script, judge_writes};
    use checkrein_core::input::RuleDecision;

    fn rules() -> RuleSet {
        RuleSet::default().protecting(vec![
            "/var/lib/rein".to_owned(),
            "/repo/rules/own.rules".to_owned(),
            "/repo/.codex/config.toml".to_owned(),
        ])
    }

    #[track_caller]
    fn check(script: &str, expected: Option<RuleDecision>) {
        let facts = judge_script(&rules(), script);
        assert_eq!(facts.rule, expected, "{script}: {facts:?}");
        assert_eq!(facts.reason.is_some(), expected.is_some(), "{script}");
    }

    #[test]
    fn commands_that_change_something_however_they_are_spelt() {
        let no = Some(RuleDecision::Forbidden);
        for script in [
            "checkrein off --for 1h --reason x",
            "/usr/local/bin/checkrein trust",
            "cd /tmp && env -u CLAUDECODE checkrein seal",
            "env -u CLAUDECODE script -qc 'checkrein off --for 9h --reason x'",
            "bash -c 'check\"rein\" on'",
            "echo y | checkrein trust",
            "nohup checkrein gc &",
            "sudo -u me ./checkrein init --undo",
            "echo '{}' | checkrein hook claude-code",
            "$(which checkrein; echo) ; checkrein approve 1",
            "timeout 5 checkrein deny 1",
        ] {
            check(script, no);
        }
        for script in [
            "checkrein check",
            "checkrein show --why",
            "checkrein sessions --json",
            "echo checkrein off",
            "grep -rn 'checkrein trust' docs",
            "git commit -m 'checkrein off is documented'",
            "cat $FILE; $RUN",
        ] {
            check(script, None);
        }
        check("checkrein $WHAT", Some(RuleDecision::Prompt));
        let argv = ["bash", "-lc", "checkrein on"];
        assert_eq!(judge_argv(&rules(), &argv).rule, no);
    }

    #[test]
    fn agents_without_their_hooks() {
        let no = Some(RuleDecision::Forbidden);
        for script in [
            "claude --bare -p 'do it'",
            "claude -p x --safe-mode",
            "claude --setting-sources user",
            "claude --settings '{\"disableAllHooks\": true}' -p x",
            "claude --settings='{\"disableAllHooks\":true}'",
            "codex exec --disable hooks x",
            "codex --disable=codex_hooks exec x",
            "codex -c features.hooks=false exec x",
            "codex exec --dangerously-bypass-hook-trust x",
        ] {
            check(script, no);
        }
        for script in [
            "claude -p x",
            "claude --settings '{\"model\": \"x\"}'",
            "codex exec --disable web_search x",
            "codex -c model=x exec 'turn the hooks off'",
        ] {
            check(script, None);
        }
    }

    #[test]
    fn what_judges_the_work_is_not_written() {
        let no = Some(RuleDecision::Forbidden);
        for script in [
            "echo '{}' > .claude/settings.json",
            "echo '{}' >> ~/.claude/settings.json",
            "cat x > \"$HOME/.claude/settings.local.json\"",
            "jq . x | tee .codex/hooks.json",
            "sed -i s/a/b/ ../x/./.codex/config.toml",
            "rm -rf ~/.local/state/checkrein",
            "rm /var/lib/rein/repo/store.db",
            "cp x /var/lib/rein/repo/off.json",
            ": > rules/own.rules",
            "echo x >| /repo/rules/own.rules",
            "dd if=x of=/var/lib/rein/y",
            "rm -rf .claude",
            "mv .codex/ /tmp/x",
            "rm -rf ~/.local/state",
            "rm -rf \"$HOME/.local\"",
            "rm -r /var/lib",
            "cp /tmp/settings.json .claude/",
            "mv /tmp/settings.json ~/.claude",
            "cp -t .codex /tmp/hooks.json",
            "install --target-directory=.claude x/settings.local.json",
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: .claude/settings.json\n@@\n-a\n+b\n*** End Patch\nEOF",
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: \t.claude/sett\tings.json\n@@\n-a\n+b\n*** End Patch\nEOF",
        ] {
            check(script, no);
        }
        for script in [
            "cat .claude/settings.json",
            "sed -n 1,5p .claude/settings.json",
            "cp .claude/settings.json /tmp/backup",
            "grep -r hooks ~/.local/state/checkrein 2>/dev/null",
            "rm -rf checkrein rules/other.rules",
            "echo x > settings.json",
            "echo x > config.toml",
            "touch .claude/commands/x.md",
            "rm -rf .claude/worktrees/x build/.local",
            "mv x.rs /repo",
            "cp settings.json /tmp",
            "cd src && echo x > settings.json && rm -rf state",
            "cd .claude && cat settings.json > /tmp/settings.json",
        ] {
            check(script, None);
        }
    }

    #[test]
    fn tools_that_write_are_asked_the_same() {
        let check = |path: &str, expected: bool| {
            let facts = judge_writes(&rules(), &[path.to_owned()]);
            let denied = facts.rule == Some(RuleDecision::Forbidden);
            assert_eq!(denied, expected, "{path}");
        };
        check("/home/dev/repo/.claude/settings.json", true);
        check("/home/dev/.local/state/checkrein/x/off.json", true);
        check("/var/lib/rein/../rein/x", true);
        check("rules/own.rules", true);
        check("/repo/checkrein.toml", false);
        check("/var/lib/reins", false);
        check("src/main.rs", false);
    }
}
