//! `policy import`: Claude Code's permission rules as `.rules` text. What rules cannot say is a
//! comment; what they could only say by allowing more is one too.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use checkrein_adapters::claude_permissions::{self, PermissionList, PermissionRule};
use checkrein_execpolicy::compile_execpolicy_rules_files;

use crate::args::PolicyImport;
use crate::ui::errors::CommandError;
use crate::ui::style::counted;
use crate::{exit_code, locate, ui};

pub(super) fn run(args: &PolicyImport) -> Result<ExitCode, CommandError> {
    let named = !args.files.is_empty();
    let places = match named {
        true => args.files.clone(),
        false => usual_places()?,
    };
    let mut made = Made::default();
    for path in places.iter().filter(|path| named || path.is_file()) {
        made.file(path)?;
    }
    if made.text.is_empty() {
        let looked: Vec<String> = places
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        return Err(CommandError::usage(
            "no settings of Claude Code were found",
            format!("looked at {}", looked.join(", ")),
        ));
    }
    if let Err(error) = compile_execpolicy_rules_files(&[("import", &made.text)]) {
        // Ours to mend: what cannot be said is to become a comment.
        return Err(CommandError::failed(format!(
            "what was made is no rules file: {error}"
        )));
    }
    // The text of a file, to the byte.
    ui::answer_bytes(made.text.as_bytes());
    ui::say(&format!(
        "{}; {} cannot be said in rules, see the comments",
        counted(made.rules.len() as u64, "rule"),
        made.unsaid
    ));
    Ok(exit_code::exit(exit_code::YES))
}

/// This repo's settings, for all and for one person, and that person's for all repos.
fn usual_places() -> Result<Vec<PathBuf>, CommandError> {
    let located = locate::locate(&std::env::current_dir()?, None);
    let folder = located.top.join(".claude");
    let mut places = vec![
        folder.join("settings.json"),
        folder.join("settings.local.json"),
    ];
    let named = std::env::var_os("CLAUDE_CONFIG_DIR").filter(|value| !value.is_empty());
    let home = named
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(".claude")));
    places.extend(home.map(|home| home.join("settings.json")));
    Ok(places)
}

/// The text so far.
#[derive(Default)]
struct Made {
    text: String,
    /// Rules that are in it.
    rules: HashSet<String>,
    unsaid: usize,
}

/// What becomes of a permission.
enum Becomes {
    /// A rule, and what differs.
    Rule {
        rule: String,
        note: Option<&'static str>,
    },
    /// A rule that would allow more: only for a person to take in.
    TooMuch { rule: String, note: &'static str },
    /// Nothing that rules can say.
    Comment(String),
}

impl Made {
    fn file(&mut self, path: &Path) -> Result<(), CommandError> {
        let name = path.display().to_string();
        let hint = "policy import reads settings.json of Claude Code";
        let text = super::read(path).map_err(|error| {
            CommandError::usage(format!("{name}: cannot be read: {error}"), hint)
        })?;
        let permissions = claude_permissions::read_permission_rules(text.as_bytes())
            .map_err(|error| CommandError::usage(format!("{name}: no settings: {error}"), hint))?;
        self.line(&format!("# From {}", comment(&name)));
        if permissions.is_empty() {
            self.line("# (no permission rules)");
        }
        for permission in &permissions {
            self.permission(permission);
        }
        self.line("");
        Ok(())
    }

    fn permission(&mut self, permission: &PermissionRule) {
        let said = format!(
            "{} {}",
            permission.list.json_key(),
            comment(&permission.text)
        );
        match becomes(permission) {
            Becomes::Rule { rule, .. } if self.rules.contains(&rule) => {}
            Becomes::Rule { rule, note } => {
                if let Some(note) = note {
                    self.line(&format!("# {said}: {note}"));
                }
                self.line(&rule);
                self.rules.insert(rule);
            }
            Becomes::TooMuch { rule, note } => {
                self.unsaid += 1;
                self.line(&format!("# {said}: {note}"));
                self.line(&format!("# {rule}"));
            }
            Becomes::Comment(why) => {
                self.unsaid += 1;
                self.line(&format!("# {said}: {why}"));
            }
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

fn becomes(permission: &PermissionRule) -> Becomes {
    let specifier = permission.specifier.as_deref().map(str::trim);
    match (permission.tool.as_str(), specifier) {
        ("Bash", specifier) => command(permission, specifier.unwrap_or("*")),
        ("WebFetch", Some(specifier)) => host(permission, specifier),
        ("Edit" | "Write" | "MultiEdit" | "NotebookEdit", Some(path))
            if permission.list == PermissionList::Deny =>
        {
            let path = comment(path);
            let key =
                format!("write it into checkrein.toml instead: [policy] protect = [\"{path}\"]");
            Becomes::Comment(key)
        }
        (tool, None) => match server_tool(tool) {
            // And a program named `mcp` would be allowed.
            Some(_) if permission.list == PermissionList::Allow => {
                Becomes::Comment("rules restrict tools of MCP servers, and allow none".to_owned())
            }
            Some(words) => Becomes::Rule {
                rule: prefix_rule(permission, &words),
                note: None,
            },
            None => Becomes::Comment(NOT_THIS.to_owned()),
        },
        _ => Becomes::Comment(NOT_THIS.to_owned()),
    }
}

const NOT_THIS: &str = "rules judge commands and tools of MCP servers, not this tool";

/// The words by which rules know a tool of an MCP server, or all of its tools.
fn server_tool(name: &str) -> Option<Vec<String>> {
    let (server, tool) = match name.strip_prefix("mcp__")?.split_once("__") {
        Some((server, "*")) => (server, None),
        Some((server, tool)) => (server, Some(tool)),
        None => (name.strip_prefix("mcp__")?, None),
    };
    let words = ["mcp", server].into_iter().chain(tool);
    let words: Vec<String> = words.map(str::to_owned).collect();
    let one = |word: &String| !word.is_empty() && !word.contains('*');
    words.iter().all(one).then_some(words)
}

/// A rule on a command's first words.
fn command(permission: &PermissionRule, specifier: &str) -> Becomes {
    let allows = permission.list == PermissionList::Allow;
    let (text, end) = if let Some(text) = specifier.strip_suffix(":*") {
        (text, End::Anything)
    } else if let Some(text) = specifier.strip_suffix(" *") {
        (text, End::Anything)
    } else if let Some(text) = specifier.strip_suffix('*') {
        (text, End::AnyLetters)
    } else {
        (specifier, End::Nothing)
    };
    if text.trim().is_empty() {
        return Becomes::Comment("rules name commands; none is about all of them".to_owned());
    }
    if text.contains('*') {
        return Becomes::Comment("rules compare whole words; a * inside cannot be said".to_owned());
    }
    // A rule is about the words that a shell makes of a text.
    if text.contains([
        '$', '`', ';', '|', '&', '<', '>', '(', ')', '\n', '?', '[', '{',
    ]) {
        return Becomes::Comment(
            "rules are on one command each, without the shell's signs".to_owned(),
        );
    }
    let words = shlex::split(text).filter(|words| !words.is_empty());
    let Some(words) = words.filter(|words| words.first().is_some_and(|first| !first.contains('=')))
    else {
        return Becomes::Comment("its words cannot be told".to_owned());
    };
    let rule = prefix_rule(permission, &words);
    match (end, allows) {
        (End::Anything, _) => Becomes::Rule { rule, note: None },
        (End::AnyLetters, true) => Becomes::Rule {
            rule,
            note: Some("here it ends at a whole word"),
        },
        (End::AnyLetters, false) => Becomes::Rule {
            rule,
            note: Some("here it ends at a whole word; words that only begin so are NOT caught"),
        },
        (End::Nothing, true) => Becomes::TooMuch {
            rule,
            note: "this very command only, and a rule allows more words after it",
        },
        (End::Nothing, false) => Becomes::Rule {
            rule,
            note: Some("here with any words after it, too"),
        },
    }
}

/// How a permission on a command ends.
enum End {
    /// More words may follow.
    Anything,
    /// The last word may go on.
    AnyLetters,
    /// Not one word more.
    Nothing,
}

fn prefix_rule(permission: &PermissionRule, words: &[String]) -> String {
    let list: Vec<String> = words.iter().map(|word| literal(word)).collect();
    let list = list.join(", ");
    let (decision, why) = match permission.list {
        PermissionList::Allow => ("allow", None),
        PermissionList::Ask => ("prompt", Some("ask about")),
        PermissionList::Deny => ("forbidden", Some("deny")),
    };
    let why = why.map_or_else(String::new, |verb| {
        let why = format!("Claude Code's settings {verb} {}", permission.text);
        format!(", justification={}", literal(&why))
    });
    format!("prefix_rule(pattern=[{list}], decision=\"{decision}\", match=[[{list}]]{why})")
}

fn host(permission: &PermissionRule, specifier: &str) -> Becomes {
    let Some(host) = specifier.strip_prefix("domain:").map(str::trim) else {
        return Becomes::Comment("rules on hosts need domain:HOST".to_owned());
    };
    let odd = |c: char| !(c.is_ascii_alphanumeric() || ".-_".contains(c));
    if host.trim_matches('.').is_empty() || host.contains(odd) {
        return Becomes::Comment("rules are on one host each".to_owned());
    }
    let rule = |decision: &str| {
        format!(
            "network_rule(host={}, protocol=\"https\", decision=\"{decision}\")",
            literal(host)
        )
    };
    let note = "for Codex's proxy; commands and WebFetch are not judged by it";
    match permission.list {
        PermissionList::Allow => Becomes::TooMuch {
            rule: rule("allow"),
            note: "one tool only, and a rule is about every program behind Codex's proxy",
        },
        PermissionList::Ask => Becomes::Rule {
            rule: rule("prompt"),
            note: Some(note),
        },
        PermissionList::Deny => Becomes::Rule {
            rule: rule("deny"),
            note: Some(note),
        },
    }
}

/// As a string of the rules language.
fn literal(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// On one line, whatever it is.
fn comment(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).collect()
}
