//! Recognises programs that start a command and end before it does, so that its exit status
//! reaches nobody: `docker run -d`, `setsid`, `systemd-run`, `tmux new -d`.

use super::launchers::launcher_option_words;

/// Short options of containers that take no value.
const CONTAINER_FLAGS: &str = "ditTPq";
/// Commands of `tmux` that start something, by their beginnings.
const TMUX_STARTS: &[&str] = &["new", "respawn", "run", "send", "split"];

/// Returns why this command leaves behind what it runs, in words for a person.
pub(super) fn why_command_detaches(program: &str, rest: &[&str]) -> Option<String> {
    let mut leading = rest.iter().take_while(|word| word.starts_with('-'));
    let told = match program {
        "docker" | "nerdctl" | "podman" | "docker-compose" | "podman-compose" => {
            let options = launcher_option_words(program, rest)?;
            let detached = options.iter().any(|word| is_detach_option(word));
            return detached.then(|| format!("{program} --detach"));
        }
        "setsid" => {
            let waits = leading.any(|word| *word == "--wait" || has_short_option(word, 'w'));
            (!waits).then_some("setsid without --wait")
        }
        // With `--scope` the command runs in the foreground.
        "systemd-run" => {
            let waits = leading.any(|word| matches!(*word, "--wait" | "--scope"));
            (!waits).then_some("systemd-run without --wait")
        }
        "screen" => leading
            .any(|word| has_short_option(word, 'm') || has_short_option(word, 'X'))
            .then_some("screen"),
        "tmux" => {
            let mut begins = TMUX_STARTS.iter();
            let starts = begins.any(|begin| rest.iter().any(|word| word.starts_with(begin)));
            starts.then_some("tmux")
        }
        "start-stop-daemon" => rest
            .iter()
            .any(|word| *word == "--background" || has_short_option(word, 'b'))
            .then_some("start-stop-daemon --background"),
        "at" | "batch" => Some("at"),
        "daemonize" => Some("daemonize"),
        _ => None,
    };
    told.map(str::to_owned)
}

fn is_detach_option(word: &str) -> bool {
    // Behind an option that takes a value, a `d` may belong to the value.
    matches!(word, "--detach" | "--detach=true" | "-d=true")
        || has_short_option(word, 'd') && word.chars().skip(1).all(|c| CONTAINER_FLAGS.contains(c))
}

/// Returns whether this is a word of short options that holds this one.
fn has_short_option(word: &str, option: char) -> bool {
    word.strip_prefix('-')
        .is_some_and(|letters| !letters.starts_with('-') && letters.contains(option))
}
