//! Tells commands that wait for something from commands that do something. A wait is meant to be
//! repeated, so detectors of loops count it like a poll.

use super::ScriptOrArgvOfToolCall;

/// Programs that do nothing but wait.
const WAITING: &[&str] = &["inotifywait", "sleep", "wait", "watch"];
/// Programs that wait if their first words are these.
const WAITING_SUBCOMMANDS: &[&[&str]] = &[
    &["docker", "wait"],
    &["gh", "run", "watch"],
    &["kubectl", "rollout", "status"],
    &["kubectl", "wait"],
];

/// Returns whether a part of the command waits. The script is split where a shell would begin a new
/// command, without parsing it: a wrong answer costs a word too many or too few, and no more.
pub(super) fn command_waits(command: &ScriptOrArgvOfToolCall) -> bool {
    match command {
        ScriptOrArgvOfToolCall::Argv(words) => {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            is_waiting_command(&words)
        }
        ScriptOrArgvOfToolCall::Script(script) => script
            .split([';', '&', '|', '\n', '(', ')', '{', '}'])
            .any(|part| {
                let words = part.split_ascii_whitespace().skip_while(|word| {
                    matches!(
                        *word,
                        "do" | "else" | "sudo" | "then" | "time" | "until" | "while"
                    ) || word.contains('=')
                });
                is_waiting_command(&words.take(3).collect::<Vec<_>>())
            }),
    }
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
        ] {
            assert!(waits(script), "{script}");
        }
        for script in [
            "",
            "cargo test",
            "grep sleep src/a.rs",
            "git commit -m 'wait'",
            "kubectl get pods",
        ] {
            assert!(!waits(script), "{script}");
        }
        let argv = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned());
            command_waits(&ScriptOrArgvOfToolCall::Argv(words.collect()))
        };
        assert!(argv(&["sleep", "1"]));
        assert!(!argv(&["echo", "sleep"]));
    }
}
