//! Recognises programs that run a command somewhere else: in a container, on another machine, in
//! an environment.

/// How a launcher is called.
struct LauncherCallSyntax {
    programs: &'static [&'static str],
    /// Words that must stand first, options apart.
    commands: &'static [&'static [&'static str]],
    /// Words before the command, options apart: an image, a service, a pod.
    operands: usize,
}

const LAUNCHERS: &[LauncherCallSyntax] = &[
    LauncherCallSyntax {
        programs: &["docker", "nerdctl", "podman"],
        commands: &[
            &["compose", "run"],
            &["compose", "exec"],
            &["container", "run"],
            &["container", "exec"],
            &["run"],
            &["exec"],
        ],
        operands: 1,
    },
    LauncherCallSyntax {
        programs: &["docker-compose", "podman-compose"],
        commands: &[&["run"], &["exec"]],
        operands: 1,
    },
    LauncherCallSyntax {
        programs: &["kubectl", "oc"],
        commands: &[&["exec"]],
        operands: 1,
    },
    LauncherCallSyntax {
        programs: &["conda", "mamba", "micromamba", "pixi", "devbox"],
        commands: &[&["run"]],
        operands: 0,
    },
    LauncherCallSyntax {
        programs: &["fnm", "pyenv", "rbenv"],
        commands: &[&["exec"]],
        operands: 0,
    },
    LauncherCallSyntax {
        programs: &["direnv", "nvm"],
        commands: &[&["exec"]],
        operands: 1,
    },
    LauncherCallSyntax {
        programs: &["ssh"],
        commands: &[&[]],
        operands: 1,
    },
];

/// Options of launchers that take the next word as a value.
const OPTIONS_WITH_VALUE: &[&str] = &[
    "--add-host",
    "--container",
    "--context",
    "--cpus",
    "--cwd",
    "--entrypoint",
    "--env",
    "--env-file",
    "--environment",
    "--file",
    "--host",
    "--label",
    "--manifest-path",
    "--memory",
    "--mount",
    "--name",
    "--namespace",
    "--net",
    "--network",
    "--platform",
    "--prefix",
    "--profile",
    "--project-directory",
    "--project-name",
    "--publish",
    "--user",
    "--volume",
    "--workdir",
    "-H",
    "-c",
    "-e",
    "-f",
    "-l",
    "-m",
    "-n",
    "-o",
    "-p",
    "-u",
    "-v",
    "-w",
];

/// Returns how `program` is called, and where its own subcommand ends.
fn launcher_call_syntax(
    program: &str,
    rest: &[&str],
) -> Option<(&'static LauncherCallSyntax, usize)> {
    let launcher = LAUNCHERS
        .iter()
        .find(|launcher| launcher.programs.contains(&program))?;
    let mut commands = launcher.commands.iter();
    let begins = commands.find_map(|words| index_after_subcommand_words(rest, words))?;
    Some((launcher, begins))
}

/// Returns where the command begins that `program` launches; `rest` are its arguments.
pub(super) fn launched_command_index(program: &str, rest: &[&str]) -> Option<usize> {
    if program == "nix" {
        return index_of_option_value(rest, &["-c", "--command"]);
    }
    let (launcher, begins) = launcher_call_syntax(program, rest)?;
    let mut at = begins;
    // Options may stand before each operand.
    for _ in 0..launcher.operands {
        at = index_after_launcher_options(rest, at) + 1;
    }
    let at = index_after_launcher_options(rest, at);
    (at < rest.len()).then_some(at)
}

/// Returns the words of `rest` before the operands of a launcher: its subcommands and their
/// options.
pub(super) fn launcher_option_words<'r, 'w>(
    program: &str,
    rest: &'r [&'w str],
) -> Option<&'r [&'w str]> {
    let (_, begins) = launcher_call_syntax(program, rest)?;
    rest.get(..index_after_launcher_options(rest, begins))
}

/// Returns where the script stands that `program` is given to run: `nix-shell --run 'pytest -q'`.
pub(super) fn launched_script_index(program: &str, rest: &[&str]) -> Option<usize> {
    let at = match program {
        "nix-shell" => index_of_option_value(rest, &["--run", "--command"]),
        "vagrant" => index_of_option_value(rest, &["-c", "--command"]),
        _ => None,
    }?;
    (at < rest.len()).then_some(at)
}

fn index_of_option_value(rest: &[&str], marks: &[&str]) -> Option<usize> {
    let at = rest.iter().position(|word| marks.contains(word))?;
    (at + 1 < rest.len()).then_some(at + 1)
}

fn index_after_subcommand_words(rest: &[&str], words: &[&str]) -> Option<usize> {
    let mut at = 0;
    for word in words {
        at = index_after_launcher_options(rest, at);
        if rest.get(at) != Some(word) {
            return None;
        }
        at += 1;
    }
    Some(at)
}

fn index_after_launcher_options(rest: &[&str], from: usize) -> usize {
    let mut at = from;
    while let Some(word) = rest.get(at).filter(|word| word.starts_with('-')) {
        at += 1;
        if *word == "--" {
            break;
        }
        // If an option is not listed, its separate value would be taken for an operand.
        if OPTIONS_WITH_VALUE.contains(word) {
            at += 1;
        }
    }
    at
}
