//! Programs that run a command somewhere else: in a container, on another machine, in an
//! environment.

/// How a launcher is called.
struct Launcher {
    programs: &'static [&'static str],
    /// Words that must stand first, options apart.
    commands: &'static [&'static [&'static str]],
    /// Words before the command, options apart: an image, a service, a pod.
    operands: usize,
}

const LAUNCHERS: &[Launcher] = &[
    Launcher {
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
    Launcher {
        programs: &["docker-compose", "podman-compose"],
        commands: &[&["run"], &["exec"]],
        operands: 1,
    },
    Launcher {
        programs: &["kubectl", "oc"],
        commands: &[&["exec"]],
        operands: 1,
    },
    Launcher {
        programs: &["conda", "mamba", "micromamba", "pixi", "devbox"],
        commands: &[&["run"]],
        operands: 0,
    },
    Launcher {
        programs: &["fnm", "pyenv", "rbenv"],
        commands: &[&["exec"]],
        operands: 0,
    },
    Launcher {
        programs: &["direnv", "nvm"],
        commands: &[&["exec"]],
        operands: 1,
    },
    Launcher {
        programs: &["ssh"],
        commands: &[&[]],
        operands: 1,
    },
];

/// Their options that take a word of its own as a value.
const VALUED: &[&str] = &[
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

/// How `program` is called, and where its own command ends.
fn launcher(program: &str, rest: &[&str]) -> Option<(&'static Launcher, usize)> {
    let launcher = LAUNCHERS
        .iter()
        .find(|launcher| launcher.programs.contains(&program))?;
    let mut commands = launcher.commands.iter();
    let begins = commands.find_map(|words| skip_words(rest, words))?;
    Some((launcher, begins))
}

/// Where the command begins that `program` launches; `rest` are its arguments.
pub(super) fn launched(program: &str, rest: &[&str]) -> Option<usize> {
    if program == "nix" {
        return after(rest, &["-c", "--command"]);
    }
    let (launcher, begins) = launcher(program, rest)?;
    let mut at = begins;
    for _ in 0..launcher.operands {
        at = skip_options(rest, at) + 1;
    }
    let at = skip_options(rest, at);
    (at < rest.len()).then_some(at)
}

/// The words of `rest` before the operands of a launcher: its commands and their options.
pub(super) fn options_before<'r, 'w>(program: &str, rest: &'r [&'w str]) -> Option<&'r [&'w str]> {
    let (_, begins) = launcher(program, rest)?;
    rest.get(..skip_options(rest, begins))
}

/// The script that `program` is given to run: `nix-shell --run 'pytest -q'`.
pub(super) fn launched_script(program: &str, rest: &[&str]) -> Option<usize> {
    let at = match program {
        "nix-shell" => after(rest, &["--run", "--command"]),
        "vagrant" => after(rest, &["-c", "--command"]),
        _ => None,
    }?;
    (at < rest.len()).then_some(at)
}

fn after(rest: &[&str], marks: &[&str]) -> Option<usize> {
    let at = rest.iter().position(|word| marks.contains(word))?;
    (at + 1 < rest.len()).then_some(at + 1)
}

fn skip_words(rest: &[&str], words: &[&str]) -> Option<usize> {
    let mut at = 0;
    for word in words {
        at = skip_options(rest, at);
        if rest.get(at) != Some(word) {
            return None;
        }
        at += 1;
    }
    Some(at)
}

fn skip_options(rest: &[&str], from: usize) -> usize {
    let mut at = from;
    while let Some(word) = rest.get(at).filter(|word| word.starts_with('-')) {
        at += 1;
        if *word == "--" {
            break;
        }
        if VALUED.contains(word) {
            at += 1;
        }
    }
    at
}
