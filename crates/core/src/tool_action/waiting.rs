//! Tells commands that wait for something, or ask for the state of something that runs, from commands
//! that do something. Both are meant to be repeated, so detectors of loops count them like polls.

use super::ScriptOrArgvOfToolCall;

/// Programs that wait, or that show what runs or what it has written.
const WAITING: &[&str] = &[
    "inotifywait",
    "jobs",
    "pgrep",
    "ps",
    "qstat",
    "sleep",
    "squeue",
    "tail",
    "wait",
    "watch",
];
/// Programs that do so if their first words are these.
const WAITING_SUBCOMMANDS: &[&[&str]] = &[
    &["docker", "logs"],
    &["docker", "ps"],
    &["docker", "wait"],
    &["gh", "pr", "checks"],
    &["gh", "run", "list"],
    &["gh", "run", "view"],
    &["gh", "run", "watch"],
    &["kubectl", "get"],
    &["kubectl", "logs"],
    &["kubectl", "rollout", "status"],
    &["kubectl", "wait"],
    &["systemctl", "status"],
];

/// Words before a program's name that do not say what it does.
const BEFORE_PROGRAM: &[&str] = &[
    "!", "bash", "command", "do", "else", "env", "exec", "if", "nohup", "sh", "sudo", "then",
    "time", "timeout", "until", "while", "zsh",
];

/// Returns whether a part of the command waits. The script is split where a shell would begin a new
/// command, without parsing it. A wait that is not seen is counted like any other call.
pub(super) fn command_waits(command: &ScriptOrArgvOfToolCall) -> bool {
    match command {
        ScriptOrArgvOfToolCall::Argv(words) => script_waits_or_polls(&words.join(" ")),
        ScriptOrArgvOfToolCall::Script(script) => script_waits_or_polls(script),
    }
}

fn script_waits_or_polls(script: &str) -> bool {
    script
        .split([';', '&', '|', '\n', '(', ')', '{', '}'])
        .any(|part| {
            let words = part
                .split_ascii_whitespace()
                .map(|word| word.trim_matches(['\'', '"']))
                .skip_while(|word| {
                    let is_option_or_number =
                        word.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
                    BEFORE_PROGRAM.contains(word) || is_option_or_number || word.contains('=')
                });
            is_waiting_command(&words.take(3).collect::<Vec<_>>())
        })
}

fn is_waiting_command(words: &[&str]) -> bool {
    let Some(program) = words.first() else {
        return false;
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    WAITING.contains(&name)
        || WAITING_SUBCOMMANDS
            .iter()
            .any(|known| words.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_told_from_work() {
        let waits =
            |script: &str| command_waits(&ScriptOrArgvOfToolCall::Script(script.to_owned()));
        for script in [
            "sleep 30",
            "sleep 5 && tail -n 3 build.log",
            "tail -n 3 build.log; sleep 5",
            "while ! curl -s localhost; do sleep 1; done",
            "/bin/sleep 1",
            "T=3 sleep 1",
            "gh run watch 123",
            "kubectl rollout status deploy/x",
            "gh pr checks 7",
            "bash -lc \"sleep 30; gh run view 7\"",
            "timeout 60 sleep 30",
            "if ! pgrep cargo; then echo done; fi",
            "kubectl get pods",
            "tail -n 3 build.log",
            "ps aux | grep cargo",
        ] {
            assert!(waits(script), "{script}");
        }
        for script in [
            "",
            "cargo test",
            "grep sleep src/a.rs",
            "git commit -m 'wait'",
            "kubectl apply -f x.yml",
            "gh pr create",
        ] {
            assert!(!waits(script), "{script}");
        }
        let argv = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned());
            command_waits(&ScriptOrArgvOfToolCall::Argv(words.collect()))
        };
        assert!(argv(&["sleep", "1"]));
        assert!(argv(&["bash", "-lc", "sleep 30; gh run view 7"]));
        assert!(!argv(&["echo", "sleep"]));
    }
}
