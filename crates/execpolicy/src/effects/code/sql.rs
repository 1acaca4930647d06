//! Judges SQL text. Statements that only query are harmless; any other may change data. Statements
//! are told apart by their first word and by words anywhere in them, without a grammar.

use super::tokens::identifiers_in_code;
use crate::effects::program_spec::NonFileEffectKind;
use crate::effects::{CommandEffect, FileAccess};
use crate::shell::{CommandWord, WordKnowledge};

/// First words of statements that change no data.
const ASKS: &[&str] = &[
    "select", "show", "describe", "desc", "explain", "with", "table", "values", "pragma", "begin",
    "commit", "rollback", "end", "set", "use", "analyze",
];
/// Words that make a query change something, read files or run code, wherever they stand.
const CHANGES: &[&str] = &[
    "insert",
    "update",
    "delete",
    "drop",
    "truncate",
    "alter",
    "create",
    "grant",
    "revoke",
    "merge",
    "call",
    "do",
    "copy",
    "into",
    "outfile",
    "dumpfile",
    "load_file",
    "infile",
    "program",
    "execute",
    "exec",
    "xp_cmdshell",
    "pg_read_file",
    "pg_read_binary_file",
    "pg_ls_dir",
    "pg_terminate_backend",
    "pg_cancel_backend",
    "lo_export",
    "lo_import",
    "dblink",
    "dblink_exec",
    "setval",
    "pg_reload_conf",
    "sys_exec",
    "sys_eval",
    "nextval",
    "system",
    "source",
    "tee",
    "pager",
    "edit",
    "load",
    "attach",
    "detach",
    "vacuum",
    "reindex",
    "shutdown",
    "kill",
    "rename",
    "lock",
    "load_extension",
    "writefile",
    "readfile",
    "fts3_tokenizer",
    "set_config",
    "query_to_xml",
    "flush",
    "purge",
    "reset",
    "password",
];

/// Adds the effect of statements that are sent to a database server.
pub(in crate::effects) fn sql_effects(text: &CommandWord, out: &mut Vec<CommandEffect>) {
    let asks = text.knowledge == WordKnowledge::Literal
        && text
            .text
            .split([';', '\n'])
            .all(|line| is_harmless_sql_client_line(line.trim()))
        && is_query_only_sql(&without_psql_backslash_lines(&text.text));
    // The data of a server lies outside of the project, so a change there may not be undone.
    if !asks {
        out.push(CommandEffect::Kind(NonFileEffectKind::DestroysData));
    }
}

fn is_harmless_sql_client_line(line: &str) -> bool {
    match line.strip_prefix('\\') {
        // psql: `\d`, `\dt` and `\l` list objects; `\!` runs a command, `\o` and `\copy` write
        // files.
        Some(command) => {
            let name: String = command
                .chars()
                .take_while(|c| c.is_ascii_alphabetic() || *c == '!')
                .collect();
            (name.starts_with('d')
                || matches!(
                    name.as_str(),
                    "l" | "z"
                        | "q"
                        | "x"
                        | "timing"
                        | "conninfo"
                        | "encoding"
                        | "sf"
                        | "sv"
                        | "pset"
                        | "a"
                        | "t"
                        | "G"
                        | "u"
                        | "s"
                        | "h"
                        | "echo"
                ))
                && !line.contains(['|', '`', '!'])
        }
        // Such a command can also follow a statement on its line: `select 1 \g FILE`.
        None => !line.contains("\\!") && !line.contains("\\g") && !line.contains("\\o"),
    }
}

/// Removes the lines that are backslash commands.
fn without_psql_backslash_lines(text: &str) -> String {
    text.split('\n')
        .filter(|line| !line.trim_start().starts_with('\\'))
        .collect::<Vec<_>>()
        .join("\n")
}

fn is_query_only_sql(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower
        .split(';')
        .map(str::trim)
        .filter(|statement| !statement.is_empty())
        .all(|statement| {
            identifiers_in_code(statement)
                .next()
                .is_none_or(|first| ASKS.contains(&first))
        })
        && !identifiers_in_code(&lower).any(|name| CHANGES.contains(&name))
}

/// Dot commands of `sqlite3` that only show something or change how it is shown.
const DOTS: &[&str] = &[
    "tables",
    "table",
    "schema",
    "headers",
    "header",
    "mode",
    "databases",
    "indexes",
    "indices",
    "help",
    "quit",
    "exit",
    "dump",
    "show",
    "stats",
    "width",
    "nullvalue",
    "print",
    "timer",
    "fullschema",
    "version",
    "separator",
    "echo",
    "bail",
    "changes",
    "eqp",
    "dbinfo",
    "lint",
    "timeout",
];

/// Adds the effects of text for the `sqlite3` shell. Returns whether the database file is written.
pub(in crate::effects) fn sqlite_text_effects(
    text: &CommandWord,
    out: &mut Vec<CommandEffect>,
) -> bool {
    if text.knowledge != WordKnowledge::Literal {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
        return true;
    }
    // Phase 1: dot commands, which stand on lines of their own. `.shell` and `.system` run a
    // command.
    let mut rest = String::new();
    for line in text.text.lines() {
        let Some(dot) = line.trim_start().strip_prefix('.') else {
            rest.push_str(line);
            rest.push('\n');
            continue;
        };
        let mut words = dot.split_whitespace();
        match (words.next(), words.next()) {
            (Some(name), next)
                if DOTS.contains(&name) && !next.is_some_and(|word| word.starts_with('|')) => {}
            (Some("output" | "once" | "backup" | "save" | "excel"), Some(path))
                // `.output |cmd` pipes to a command; `-e` and `-x` open an editor or a spreadsheet.
                if !path.starts_with('|') && path != "-e" && path != "-x" =>
            {
                out.push(CommandEffect::File(
                    FileAccess::Write,
                    CommandWord::new_literal_word(path),
                ));
            }
            _ => out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode)),
        }
    }
    // Phase 2: SQL functions and statements that reach out of the database, and then those that
    // delete.
    let lower = rest.to_ascii_lowercase();
    const RUNS: &[&str] = &[
        "load_extension",
        "writefile",
        "readfile",
        "edit",
        "attach",
        "fts3_tokenizer",
        "install",
        "copy",
        "export",
    ];
    if identifiers_in_code(&lower).any(|name| RUNS.contains(&name)) {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
    const HARD: &[&str] = &["drop", "delete", "truncate"];
    if identifiers_in_code(&lower).any(|name| HARD.contains(&name)) {
        out.push(CommandEffect::Kind(NonFileEffectKind::DiscardsWork));
    }
    !is_query_only_sql(&rest)
}
