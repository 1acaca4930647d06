//! Rules that no config switches off: only the person loosens Checkrein itself. They cover the
//! ordinary ways only; an agent under the same account has others, which docs/threat-model.md
//! lists.

use crate::effects::evaluation::display_path;
use crate::effects::glob::{globs_intersect, is_glob};
use crate::effects::paths::{LexicalPath, PIECE, ProjectAndHomeFolders, TREE, UNKNOWN};

/// Our own commands that change something, and those that an agent never has to type.
const PERSON_COMMANDS: &[&str] = &[
    "approve",
    "confined-exec",
    "deny",
    "gc",
    "hook",
    "init",
    "notify-a-person",
    "off",
    "on",
    "own",
    "seal",
    "trust",
];

/// The settings files that install hooks, by the agent's folder.
const SETTINGS: &[(&str, &[&str])] = &[
    (".claude", &["settings.json", "settings.local.json"]),
    (".codex", &["hooks.json", "config.toml"]),
];

/// Our usual state folder, below a home.
const STATE: &[&str] = &[".local", "state", "checkrein"];

/// Returns why a command is refused, whatever the rules say. `words` are its known words,
/// `program` its name without a folder.
pub(crate) fn unconditional_command_refusal(program: &str, words: &[&str]) -> Option<String> {
    let arguments = words.get(1..).unwrap_or_default();
    match program {
        "checkrein" => {
            let at = arguments.iter().position(|word| !word.starts_with('-'))?;
            let first = arguments.get(at)?;
            let next = arguments.get(at + 1);
            // A help option is read before anything else, except by commands that read their words
            // themselves.
            if next.is_some_and(|word| matches!(*word, "--help" | "-h"))
                && !["confined-exec", "hook", "notify-a-person", "own"].contains(first)
            {
                return None;
            }
            PERSON_COMMANDS.contains(first).then(|| {
                format!("`checkrein {first}` is for the person, at a terminal of their own; say what you need and why")
            })
        }
        "claude" => find_flag_by_predicate(arguments, is_claude_hook_bypass)
            .map(refusal_text_for_agent_without_hooks),
        "codex" => find_flag_by_predicate(arguments, is_codex_hook_bypass)
            .map(refusal_text_for_agent_without_hooks),
        _ => None,
    }
}

/// What would happen to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PredictedPathChange {
    /// It is written, or something in it.
    Written,
    /// It is removed with everything in it.
    Removed,
    /// What is put into it has names that are not known, or it becomes another folder.
    Filled,
}

/// Returns why this path must be left as it is: it decides whether anybody is judged, or holds a
/// path that does and would be removed with it. Parts that only the run knows are not guessed.
pub(crate) fn refusal_if_protected_path_changes(
    spot: &LexicalPath,
    change: PredictedPathChange,
    ground: &ProjectAndHomeFolders,
    protected: &[String],
) -> Option<String> {
    let path = spot.absolute_path_text();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if is_agent_settings_path(&parts) {
        let shown = display_path(spot);
        return Some(format!(
            "{shown} says which hooks check this work: the person edits it"
        ));
    }
    if is_state_path(&parts)
        || protected
            .iter()
            .any(|kept| is_at_or_below_protected_path(&parts, kept))
    {
        let shown = display_path(spot);
        return Some(format!(
            "{shown} is part of what judges this work: the person changes it"
        ));
    }
    // The names of what is put there are not known, so settings may be among them.
    if change == PredictedPathChange::Filled && parts.last().is_some_and(is_agent_folder) {
        let shown = display_path(spot);
        return Some(format!(
            "{shown} holds what judges this work: the person changes it"
        ));
    }
    (change == PredictedPathChange::Removed
        && removal_hits_protected_path(&parts, ground, protected))
    .then(|| {
        let shown = display_path(spot);
        format!("{shown} holds what judges this work: the person removes it")
    })
}

/// Returns whether this is the folder of an agent.
fn is_agent_folder(name: &&str) -> bool {
    SETTINGS
        .iter()
        .any(|(folder, _)| path_part_matches_name(name, folder))
}

/// Returns whether a path ends in the settings of an agent. `**` stands for any folders, also for
/// none.
fn is_agent_settings_path(parts: &[&str]) -> bool {
    parts.iter().enumerate().any(|(at, folder)| {
        let below = parts.get(at + 1..).unwrap_or(&[]);
        let named: Vec<&str> = below.iter().copied().filter(|part| *part != "**").collect();
        let [file] = named.as_slice() else {
            return false;
        };
        SETTINGS.iter().any(|(agents, files)| {
            path_part_matches_name(folder, agents)
                && files.iter().any(|own| path_part_matches_name(file, own))
        })
    })
}

fn is_state_path(parts: &[&str]) -> bool {
    parts
        .windows(STATE.len())
        .any(|window| path_parts_match_names(window, STATE))
}

/// Returns whether these are the parts of a protected path, or of one below it.
fn is_at_or_below_protected_path(parts: &[&str], kept: &str) -> bool {
    let kept_parts: Vec<&str> = self::normalized_path_parts(kept);
    let top = parts.get(..kept_parts.len());
    if top.is_some_and(|top| !top.is_empty() && path_parts_match_names(top, &kept_parts)) {
        return true;
    }
    // Where the project lies is not known, so a rules file of that name is taken for the protected
    // one.
    let below = parts.strip_prefix(self::normalized_path_parts(TREE).as_slice());
    let is_rules = kept.ends_with(".rules");
    below.is_some_and(|below| is_rules && !below.is_empty() && kept_parts.ends_with(below))
}

/// Returns whether something protected is removed together with this path.
fn removal_hits_protected_path(
    parts: &[&str],
    ground: &ProjectAndHomeFolders,
    protected: &[String],
) -> bool {
    let all_below = parts.iter().position(|part| *part == "**");
    // A search that leaves nothing out empties the folder in which it begins.
    let (top, emptied) = match all_below {
        None => (parts, false),
        Some(at) if matches!(parts.get(at + 1..), Some([PIECE | "*"])) => {
            (parts.get(..at).unwrap_or(&[]), true)
        }
        Some(_) => return false,
    };
    if top.last().is_some_and(is_agent_folder) || is_state_path(top) {
        return true;
    }
    // A folder above the state folder counts only if a home may lie above it.
    let above_state = (1..STATE.len()).any(|depth| {
        let Some(at) = top.len().checked_sub(depth) else {
            return false;
        };
        let (home, below) = top.split_at(at);
        STATE
            .get(..depth)
            .is_some_and(|known| path_parts_match_names(below, known))
            && ground.may_be_home(home)
    });
    // A search through a folder that holds all of a project says little about what it finds.
    let above_kept = |kept: &String| {
        let kept = self::normalized_path_parts(kept);
        let named = kept.get(..top.len());
        named.is_some_and(|named| top.len() < kept.len() && path_parts_match_names(top, named))
            && !top.contains(&PIECE)
    };
    above_state || !emptied && protected.iter().any(above_kept)
}
/// Returns whether a part of a path is this name, or a pattern that can mean it. As in a shell,
/// only a pattern with a leading dot matches a name with one.
fn path_part_matches_name(part: &str, name: &str) -> bool {
    let hidden = name.starts_with('.') && !part.starts_with('.');
    // An unknown name is not taken for a protected one, or every unknown path would be refused.
    let readable = part != "**" && !part.contains(UNKNOWN);
    part == name || readable && is_glob(part) && !hidden && globs_intersect(part, name)
}

fn path_parts_match_names(parts: &[&str], names: &[&str]) -> bool {
    let pairs = parts.iter().zip(names);
    parts.len() == names.len()
        && pairs
            .into_iter()
            .all(|(part, name)| self::path_part_matches_name(part, name))
}

/// Returns the paths that a patch writes, as its lines name them. Tabs in them are dropped.
pub(crate) fn codex_patch_paths(text: &str) -> impl Iterator<Item = String> {
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

fn refusal_text_for_agent_without_hooks(what: String) -> String {
    format!("`{what}` starts an agent without the hooks that check it: leave it out")
}

/// Returns the first flag that `is_meant` accepts together with its value.
fn find_flag_by_predicate(arguments: &[&str], is_meant: fn(&str, &str) -> bool) -> Option<String> {
    arguments.iter().enumerate().find_map(|(at, word)| {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, value),
            _ => (*word, arguments.get(at + 1).copied().unwrap_or_default()),
        };
        is_meant(name, value).then(|| name.to_owned())
    })
}

fn is_claude_hook_bypass(flag: &str, value: &str) -> bool {
    match flag {
        "--bare" | "--safe-mode" | "--setting-sources" => true,
        "--settings" => value.contains("disableAllHooks"),
        _ => false,
    }
}

fn is_codex_hook_bypass(flag: &str, value: &str) -> bool {
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
fn normalized_path_parts(path: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            // A `..` at the beginning is kept, since it is not known where it leads.
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
    use crate::{RuleSet, evaluate_argv, evaluate_file_writes, evaluate_script};
    use checkrein_core::input::RuleDecision;

    fn rules() -> RuleSet {
        RuleSet::default().with_protected_paths(vec![
            "/var/lib/rein".to_owned(),
            "/repo/rules/own.rules".to_owned(),
            "/repo/.codex/config.toml".to_owned(),
        ])
    }

    #[track_caller]
    fn check(script: &str, expected: Option<RuleDecision>) {
        let facts = evaluate_script(&rules(), script);
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
            "checkrein off --reason --help",
            "checkrein hook --help",
            "[ \"$1\" = -- ] && checkrein off",
        ] {
            check(script, no);
        }
        for script in [
            "checkrein check",
            "checkrein off --help",
            "checkrein seal -h",
            "checkrein --help",
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
        assert_eq!(evaluate_argv(&rules(), &argv).rule, no);
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
            "[ -d ~ ] && rm -r .claude",
            "ln -sfn x .claude",
            "ln -s x/.claude .",
            "cp -r x/.claude .",
            "rsync -a x/.claude/ .claude/",
            "cp -rT x .claude",
            "cp -a x/. .claude",
            "python3 -c 'import shutil; shutil.copytree(\"x\", \".claude\")'",
            "python3 -c 'import os; os.symlink(\"x\", \".claude\")'",
            "git checkout -- .claude",
            "git restore .claude",
            "git stash -- .claude",
            "git stash push .claude/settings.json",
            "git clean -fdx .claude",
            "tar -C .claude -x",
            "tar xf x.tar -C ~/.claude",
            "unzip x.zip -d .claude",
            "ex -sc wq .claude/settings.json",
            "ed .claude/settings.json",
            "node -e 'fs.writeFileSync(\".claude/settings.json\", \"{}\")'",
            "node -e 'fs.cpSync(\"x\", \".claude\")'",
            "ruby -e 'File.write(\".claude/settings.json\", \"{}\")'",
            "python3 -c 'from pathlib import Path; Path(\".claude/settings.json\").write_text(\"{}\")'",
            "python3 -c 'p = \".claude/settings.json\"; f = open(p, \"w\"); f.write(\"{}\")'",
            "python3 - <<'EOF'\nimport json, os\np = os.path.expanduser('~/.claude/settings.json')\njson.dump({}, open(p, 'w'))\nEOF",
            "python3 -c 'import os; open(f\"{os.environ[chr(72)]}/.claude/settings.json\", \"w\")'",
            "node -e 'const p = \".claude/settings.json\"; require(\"fs\").writeFileSync(p, \"{}\")'",
            "node -e 'const {writeFile} = require(\"fs/promises\"); const p = \".claude/settings.json\"; writeFile(p, \"{}\")'",
            "perl -e 'open(F, \">.claude/settings.json\"); print F 1'",
            "perl -e 'open(my $f, \">\", \".codex/hooks.json\"); print $f 1'",
            "php -r '$p = \".claude/settings.json\"; file_put_contents($p, 1);'",
            "[ -d ~ ] > .claude/settings.json",
            "rm /var/lib/rein/repo/store.db",
            "cp x /var/lib/rein/repo/off.json",
            ": > rules/own.rules",
            "echo x >| /repo/rules/own.rules",
            "dd if=x of=/var/lib/rein/y",
            "rm -rf .claude",
            "echo .claude/settings.json | xargs rm -f",
            "rm -rf \"$D/.claude\"",
            "ls -d .* | xargs rm -rf",
            "echo .claude | xargs rm -rf",
            "command cd .claude && rm settings.json",
            "builtin cd -P .claude; rm settings.json",
            "eval \"cd .claude\"; rm settings.json",
            "eval cd ~/.local/state && rm -rf checkrein",
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
            "cp -r .claude /tmp/backup/.claude",
            "mkdir -p .claude/commands",
            "cp x.md .claude/commands/",
            "ln -s ../skills/x .claude/skills/x",
            "tar -cf x.tar .claude",
            "git diff .claude",
            "git add .claude",
            "git log -- .claude",
            "git stash list",
            "git checkout -- .",
            "node -e 'fs.writeFileSync(\"x.json\", \"{}\")'",
            "python3 -c 'import json; print(json.load(open(\".claude/settings.json\")))'",
            "python3 -c 'p = \".claude/settings.json\"; print(exec(open(p).read()))'",
            "python3 - <<'EOF'\ns = open('doc.md').read()\nopen('doc.md', 'w').write(s.replace('a', 'Hooks stand in .claude/settings.json of a project'))\nEOF",
            "node -e 'const p = \".claude/settings.json\"; console.log(require(\"fs\").readFileSync(p, \"utf8\"))'",
            "grep -r hooks ~/.local/state/checkrein 2>/dev/null",
            "rm -rf checkrein rules/other.rules",
            "command -v cd .claude && rm settings.json",
            "eval \"echo .claude\"; rm settings.json",
            "eval \"cd .claude; cd ..\"; rm settings.json",
            "echo x > settings.json",
            "echo x > config.toml",
            "touch .claude/commands/x.md",
            "rm -rf .claude/worktrees/x build/.local",
            "cat files.txt | xargs rm -f",
            "find . -name '*.o' | xargs rm -f",
            "git ls-files -o | xargs rm",
            "xargs git rm < files.txt",
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
            let facts = evaluate_file_writes(&rules(), &[path.to_owned()]);
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
