//! Reads shell scripts of the project that a check calls.

use checkrein_core::exit_status::{CheckScriptCommandKind, ExitStatusMask};

use super::expansion::ShellWordPieces;
use super::known_programs::IDLE;
use super::script_model::ParsedShellScript;
use super::script_reader::read_script_without_positions;
use super::status_tracer::is_short_enough_to_parse;
use super::{CommandStatusContext, ExitStatusAnalyzer};
use crate::rule_set::basename;

/// Returns `path` as seen from `folder`, relative to the root; `None` if it leads outside.
pub(super) fn join_path_within_root(folder: &str, path: &str) -> Option<String> {
    // A NUL stands for a folder that is not known.
    if path.starts_with(['/', '~', '$', '\0']) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the options in the first line of a script, if a shell reads it.
pub(super) fn shebang_options(text: &str) -> Option<String> {
    let Some(line) = text.strip_prefix("#!") else {
        // Without one, the shell that calls it reads it.
        return Some(String::new());
    };
    let line = line.lines().next().unwrap_or("");
    let mut words = line.split_whitespace().skip_while(|word| {
        matches!(basename(word), "env") || word.starts_with('-') && line.contains("env")
    });
    let shell = basename(words.next().unwrap_or(""));
    is_shell(shell).then(|| words.collect::<Vec<_>>().join(" "))
}

/// Returns the shell that the first line of a script names.
fn shebang_shell(text: &str) -> Option<&str> {
    let line = text.strip_prefix("#!")?.lines().next()?;
    line.split_whitespace()
        .map(basename)
        .find(|word| is_shell(word))
}

pub(super) fn is_shell(name: &str) -> bool {
    matches!(
        name,
        "sh" | "bash" | "zsh" | "dash" | "ash" | "ksh" | "mksh" | "rbash"
    )
}

/// Options with which a shell runs nothing.
const RUNS_NOTHING: &[&str] = &[
    "--dump-po-strings",
    "--dump-strings",
    "--help",
    "--pretty-print",
    "--rpm-requires",
    "--version",
];

/// Prepends the settings that options of a shell switch on before it reads anything.
pub(super) fn prepend_shell_options(options: &[&str], text: &str) -> String {
    let mut prelude = String::new();
    let mut words = options.iter();
    while let Some(word) = words.next() {
        if RUNS_NOTHING.contains(word) {
            prelude.push_str("set -n; ");
        }
        let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
            continue;
        };
        if letters.contains('e') {
            prelude.push_str("set -e; ");
        }
        if letters.contains(['n', 'D']) {
            prelude.push_str("set -n; ");
        }
        for _ in letters.matches('o') {
            match words.next() {
                Some(&"pipefail") => prelude.push_str("set -o pipefail; "),
                Some(&"errexit") => prelude.push_str("set -e; "),
                Some(&"noexec") => prelude.push_str("set -n; "),
                _ => {}
            }
        }
    }
    match prelude.is_empty() {
        true => text.to_owned(),
        false => format!("{prelude}\n{text}"),
    }
}

/// Returns the program that the first line of a script names, if it runs no scripts: `true`.
fn noop_shebang_program(text: &str) -> Option<&str> {
    let line = text.strip_prefix("#!")?.lines().next()?;
    let mut words = line.split_whitespace();
    let name = words.find(|word| basename(word) != "env" && !word.starts_with('-'))?;
    // These run programs of their own, so they are no idle interpreters.
    let runs = matches!(basename(name), "awk" | "sed" | "xargs");
    (IDLE.contains(&basename(name)) && !runs).then_some(name)
}

/// Files that a script takes functions from.
const MAX_SOURCED: usize = 20;

impl ExitStatusAnalyzer<'_> {
    /// Adds the functions of the files that a script reads in: `. ./lib.sh`.
    pub(super) fn add_sourced_functions(&self, script: &mut ParsedShellScript, folder: &str) {
        // Only files with a literal name can be followed.
        let sourced = script
            .all_script_commands()
            .into_iter()
            .filter_map(|command| {
                let mut words = command.words.iter().map(ShellWordPieces::literal_text);
                let reads = matches!(words.next()??.as_str(), "." | "source");
                words.next().flatten().filter(|_| reads)
            });
        let files: Vec<String> = sourced.take(MAX_SOURCED).collect();
        for text in files
            .iter()
            .filter_map(|file| self.project_file_text(folder, file))
        {
            let tree = is_short_enough_to_parse(&text)
                .then(|| self.scripts.shell_syntax_tree(&text))
                .flatten();
            let Some(tree) = tree else {
                continue;
            };
            let sourced = read_script_without_positions(tree.root_node(), &text);
            script.reads.extend(sourced.reads);
            for (name, function) in sourced.functions {
                // A function of the script itself takes precedence.
                script.functions.entry(name).or_insert(function);
            }
        }
    }

    /// Returns whether this shell supports bash syntax.
    pub(super) fn supports_bash_syntax(&self, shell: &str) -> bool {
        match basename(shell) {
            "sh" => self.project.sh_is_bash,
            name => !matches!(name, "dash" | "ash"),
        }
    }

    /// Analyses a shell script of the project, read by `shell` or by the one that it names.
    /// Returns whether it could be read as such.
    pub(super) fn analyze_script_file_exit_statuses(
        &mut self,
        path: &str,
        options: &[&str],
        shell: Option<&str>,
        position: &CommandStatusContext,
    ) -> bool {
        // A script that is too large is a program like any other: `./configure`.
        let text = self.project_file_text(&position.folder, path);
        let Some(text) = text.filter(|text| is_short_enough_to_parse(text)) else {
            return false;
        };
        if let Some(name) = noop_shebang_program(&text).filter(|_| shell.is_none()) {
            let hider = ExitStatusMask::unreadable_exit_status_mask(format!(
                "its first line names `{name}`"
            ));
            self.record_check_script_command(
                path,
                path,
                CheckScriptCommandKind::Tests(None),
                &position.with_status_hidden_by(hider),
            );
            return true;
        }
        let Some(shebang) = shebang_options(&text) else {
            return false;
        };
        let named = shebang_shell(&text).map(str::to_owned);
        let shell = shell.or(named.as_deref());
        let own: Vec<&str> = shebang.split_whitespace().collect();
        let text = prepend_shell_options(options, &prepend_shell_options(&own, &text));
        let name = join_path_within_root(&position.folder, path).unwrap_or_else(|| path.to_owned());
        let within = CommandStatusContext {
            place: Some(name.clone()),
            bash: shell.map_or(position.bash, |shell| self.supports_bash_syntax(shell)),
            ..position.child_process_exit_status_context(false)
        };
        self.read_script_unless_recursive(name, |reader| {
            reader.analyze_script_exit_statuses(&text, &within)
        });
        true
    }
}
