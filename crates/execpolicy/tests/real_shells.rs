//! The other side of reading exit statuses: real shells. Of each script that is made up here and is
//! said to hide nothing, a real shell says that it fails when its runner does.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fs::{Permissions, create_dir_all, remove_dir_all, remove_file, write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use checkrein_execpolicy::{FileFolderOrNothing, ScriptProjectView, analyze_exit_status_masking};

/// Scripts for each shell.
const SCRIPTS: u64 = 400;

/// A source of choices that is the same each time.
struct Choices(u64);

impl Choices {
    fn of(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % most
    }

    fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts.get(self.of(texts.len())).copied().unwrap_or("")
    }

    fn simple(&mut self) -> String {
        let texts = [
            "pytest",
            "pytest",
            "pytest",
            "pytest",
            "yes-program",
            "no-program",
            "echo x",
            "true",
            "false",
            "rc=$?",
            "rc=0",
            "rc=1",
            "exit",
            "exit $?",
            "exit $rc",
            "exit 1",
            "exit 0",
            "[ $? -eq 0 ]",
            "[ $? -ne 0 ]",
            "[ \"$rc\" = 0 ]",
            "[ \"${rc:-0}\" -gt 0 ]",
            "test $? -eq 1",
            "rc=$((rc + $?))",
            "set -e",
            "set +e",
            "trap 'exit 0' EXIT",
            "trap 'rc=$?; exit $rc' EXIT",
            "trap - EXIT",
            "f",
            "g",
            "h pytest",
            "h pytest -q || exit 1",
            "command pytest",
            "set -n",
            "x=$(pytest)",
            "y=$(pytest; echo)",
            "eval 'pytest'",
            "eval \"$t\"",
            "return",
            "$t",
            "(exit 3)",
            "! pytest",
            "echo \"$(pytest)\"",
            "[ -n \"$rc\" ]",
            "rc=",
        ];
        self.pick(&texts).to_owned()
    }

    fn statement(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.simple();
        }
        let inner = depth - 1;
        match self.of(14) {
            0 => format!("{} && {}", self.statement(inner), self.simple()),
            1 | 2 => format!("{} || {}", self.simple(), self.statement(0)),
            3 => format!(
                "{{ {}; {}; }}",
                self.statement(inner),
                self.statement(inner)
            ),
            4 => format!("({}; {})", self.statement(inner), self.statement(inner)),
            5 => format!(
                "if {}; then {}; else {}; fi",
                self.statement(inner),
                self.statement(inner),
                self.statement(inner)
            ),
            6 => format!("if ! {}; then {}; fi", self.simple(), self.statement(inner)),
            7 => format!("{} | {}", self.simple(), self.simple()),
            8 => format!("for i in 1 2; do {}; done", self.statement(inner)),
            9 => format!(
                "case $rc in 0|'') {} ;; *) {} ;; esac",
                self.statement(inner),
                self.statement(inner)
            ),
            10 => format!(
                "{} || {{ {}; {}; }}",
                self.simple(),
                self.simple(),
                self.simple()
            ),
            11 => format!(
                "{{ {} && {}; }} || {}",
                self.simple(),
                self.simple(),
                self.simple()
            ),
            _ => self.simple(),
        }
    }

    fn script(&mut self) -> String {
        let mut script = format!(
            "t={}\nh() {{ {}; }}\nf() {{ {}; {}; }}\ng() {{ {}; }}\n",
            self.pick(&["pytest", "true", "'pytest || true'", "'pytest || exit 1'"]),
            self.pick(&[
                "\"$@\"",
                "\"$@\"; echo",
                "echo \"$*\"; $*",
                "\"$@\" || return",
                "\"$@\" || true",
                "shift; \"$@\"",
            ]),
            self.statement(1).replace("$t", "pytest"),
            match self.simple().as_str() {
                // Functions do not call one another without end.
                "f" | "g" => "true".to_owned(),
                other => other.to_owned(),
            },
            self.statement(1)
        );
        for _ in 0..1 + self.of(4) {
            script.push_str(&self.statement(2));
            script.push('\n');
        }
        script
    }
}

fn program(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    write(&file, text).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
}

/// Whether the script is said to hide the status of the runner.
fn hides(script: &str, sh_is_bash: bool) -> bool {
    let project = ScriptProjectView {
        text: &|_| None,
        entry: &|_| Some(FileFolderOrNothing::Nothing),
        folders: &|_| Vec::new(),
        sh_is_bash,
        has_program: &|_| true,
    };
    let reading = analyze_exit_status_masking(script, &project);
    let is_runner = |text: &str| {
        ["pytest", "$t", "$@", "$*"]
            .iter()
            .any(|name| text.contains(name))
    };
    reading
        .commands
        .iter()
        .any(|command| is_runner(&command.text) && command.masked_by.is_some())
}

/// Whether the script ends with 0 although a runner ran; `None`: it did not run.
fn passes(shell: &str, script: &str, folder: &Path) -> Option<bool> {
    let ran = folder.join("ran");
    let _ = remove_file(&ran);
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let status = Command::new(shell)
        .args(["-c", script])
        .env("PATH", path)
        .env("RAN", &ran)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    ran.exists().then(|| status.success())
}

#[test]
fn what_is_said_to_hide_nothing_hides_nothing() {
    let folder: PathBuf = std::env::temp_dir().join(format!("shells-{}", std::process::id()));
    create_dir_all(&folder).unwrap();
    program(&folder, "pytest", "#!/bin/sh\n: > \"$RAN\"\nexit 2\n");
    program(&folder, "yes-program", "#!/bin/sh\nexit 0\n");
    program(&folder, "no-program", "#!/bin/sh\nexit 1\n");
    let (mut wrong, mut believed) = (Vec::new(), 0);
    for (shell, is_bash) in [("sh", false), ("bash", true)] {
        let mut choices = Choices(7);
        for _ in 0..SCRIPTS {
            let script = choices.script();
            if hides(&script, is_bash) {
                continue;
            }
            match passes(shell, &script, &folder) {
                Some(true) => wrong.push(format!("{shell}:\n{script}")),
                Some(false) => believed += 1,
                None => {}
            }
        }
    }
    remove_dir_all(&folder).unwrap();
    assert!(
        wrong.is_empty(),
        "{} of them:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(believed > 30, "{believed}");
}
