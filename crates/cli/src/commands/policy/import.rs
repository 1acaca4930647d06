//! `policy import`: translates Claude Code's permission rules to `.rules` text. What rules cannot
//! say becomes a comment, and so does what they could say only by allowing more.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use checkrein_adapters::claude_permissions::{self, PermissionListKind, PermissionRule};
use checkrein_execpolicy::compile_execpolicy_rules_files;

use crate::args::PolicyImportArgs;
use crate::ui::errors::CommandError;
use crate::ui::style::count_with_noun;
use crate::{exit_code, locate, ui};

pub(super) fn run_policy_import(args: &PolicyImportArgs) -> Result<ExitCode, CommandError> {
    let named = !args.files.is_empty();
    let places = match named {
        true => args.files.clone(),
        false => default_settings_files()?,
    };
    let mut made = RulesWriter::default();
    // A file that was named must exist; the usual places are only looked at.
    for path in places.iter().filter(|path| named || path.is_file()) {
        made.import_settings_file(path)?;
    }
    if made.text.is_empty() {
        let looked: Vec<String> = places
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        return Err(CommandError::usage_error(
            "no settings of Claude Code were found",
            format!("looked at {}", looked.join(", ")),
        ));
    }
    if let Err(error) = compile_execpolicy_rules_files(&[("import", &made.text)]) {
        // A bug of ours: what cannot be said has to become a comment.
        return Err(CommandError::cli_failure_error(format!(
            "what was made is no rules file: {error}"
        )));
    }
    // The text of a file, to the byte.
    ui::write_stdout_bytes(made.text.as_bytes());
    ui::print_wrapped_to_stderr(&format!(
        "{}; {} cannot be said in rules, see the comments",
        count_with_noun(made.rules.len() as u64, "rule"),
        made.untranslated
    ));
    Ok(exit_code::to_exit_code(exit_code::YES))
}

/// Returns the settings files: this repo's for all and for one person, and that person's for all
/// repos.
fn default_settings_files() -> Result<Vec<PathBuf>, CommandError> {
    let located = locate::locate_project(&std::env::current_dir()?, None);
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

/// The rules text that is being written.
#[derive(Default)]
struct RulesWriter {
    text: String,
    /// Rules that it holds.
    rules: HashSet<String>,
    untranslated: usize,
}

/// The translation of a permission.
enum PermissionRuleTranslation {
    /// A rule, and how it differs.
    Rule {
        rule: String,
        note: Option<&'static str>,
    },
    /// A rule that would allow more: only a person may take it in.
    BroaderRule { rule: String, note: &'static str },
    /// Rules cannot say it.
    Comment(String),
}

impl RulesWriter {
    fn import_settings_file(&mut self, path: &Path) -> Result<(), CommandError> {
        let name = path.display().to_string();
        let hint = "policy import reads settings.json of Claude Code";
        let text = super::read_file_up_to_limit(path).map_err(|error| {
            CommandError::usage_error(format!("{name}: cannot be read: {error}"), hint)
        })?;
        let permissions =
            claude_permissions::read_permission_rules(text.as_bytes()).map_err(|error| {
                CommandError::usage_error(format!("{name}: no settings: {error}"), hint)
            })?;
        self.push_rules_line(&format!("# From {}", one_line_comment_text(&name)));
        if permissions.is_empty() {
            self.push_rules_line("# (no permission rules)");
        }
        for permission in &permissions {
            self.import_permission(permission);
        }
        self.push_rules_line("");
        Ok(())
    }

    fn import_permission(&mut self, permission: &PermissionRule) {
        let said = format!(
            "{} {}",
            permission.list.permission_list_key(),
            one_line_comment_text(&permission.text)
        );
        match permission_to_policy_rule(permission) {
            // The same permission may stand in several settings files.
            PermissionRuleTranslation::Rule { rule, .. } if self.rules.contains(&rule) => {}
            PermissionRuleTranslation::Rule { rule, note } => {
                if let Some(note) = note {
                    self.push_rules_line(&format!("# {said}: {note}"));
                }
                self.push_rules_line(&rule);
                self.rules.insert(rule);
            }
            PermissionRuleTranslation::BroaderRule { rule, note } => {
                self.untranslated += 1;
                self.push_rules_line(&format!("# {said}: {note}"));
                self.push_rules_line(&format!("# {rule}"));
            }
            PermissionRuleTranslation::Comment(why) => {
                self.untranslated += 1;
                self.push_rules_line(&format!("# {said}: {why}"));
            }
        }
    }

    fn push_rules_line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

fn permission_to_policy_rule(permission: &PermissionRule) -> PermissionRuleTranslation {
    let specifier = permission.specifier.as_deref().map(str::trim);
    match (permission.tool.as_str(), specifier) {
        ("Bash", specifier) => translate_command_permission(permission, specifier.unwrap_or("*")),
        ("WebFetch", Some(specifier)) => network_rule_from_permission(permission, specifier),
        ("Edit" | "Write" | "MultiEdit" | "NotebookEdit", Some(path))
            if permission.list == PermissionListKind::Deny =>
        {
            let path = one_line_comment_text(path);
            let key =
                format!("write it into checkrein.toml instead: [policy] protect = [\"{path}\"]");
            PermissionRuleTranslation::Comment(key)
        }
        (tool, None) => match rule_words_for_mcp_tool(tool) {
            // A program named `mcp` would be allowed as well.
            Some(_) if permission.list == PermissionListKind::Allow => {
                PermissionRuleTranslation::Comment(
                    "rules restrict tools of MCP servers, and allow none".to_owned(),
                )
            }
            Some(words) => PermissionRuleTranslation::Rule {
                rule: render_prefix_rule(permission, &words),
                note: None,
            },
            None => PermissionRuleTranslation::Comment(UNSUPPORTED_TOOL.to_owned()),
        },
        _ => PermissionRuleTranslation::Comment(UNSUPPORTED_TOOL.to_owned()),
    }
}

const UNSUPPORTED_TOOL: &str = "rules judge commands and tools of MCP servers, not this tool";

/// Returns the words by which rules know a tool of an MCP server, or all of its tools.
fn rule_words_for_mcp_tool(name: &str) -> Option<Vec<String>> {
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

/// Translates to a rule on a command's first words.
fn translate_command_permission(
    permission: &PermissionRule,
    specifier: &str,
) -> PermissionRuleTranslation {
    let allows = permission.list == PermissionListKind::Allow;
    let (text, end) = if let Some(text) = specifier.strip_suffix(":*") {
        (text, CommandPatternEnd::AnyWords)
    } else if let Some(text) = specifier.strip_suffix(" *") {
        (text, CommandPatternEnd::AnyWords)
    } else if let Some(text) = specifier.strip_suffix('*') {
        (text, CommandPatternEnd::AnySuffix)
    } else {
        (specifier, CommandPatternEnd::Exact)
    };
    if text.trim().is_empty() {
        return PermissionRuleTranslation::Comment(
            "rules name commands; none is about all of them".to_owned(),
        );
    }
    if text.contains('*') {
        return PermissionRuleTranslation::Comment(
            "rules compare whole words; a * inside cannot be said".to_owned(),
        );
    }
    // A rule is about the words that a shell makes of a text, so the shell's signs have no place in
    // it.
    if text.contains([
        '$', '`', ';', '|', '&', '<', '>', '(', ')', '\n', '?', '[', '{',
    ]) {
        return PermissionRuleTranslation::Comment(
            "rules are on one command each, without the shell's signs".to_owned(),
        );
    }
    let words = shlex::split(text).filter(|words| !words.is_empty());
    // A first word with `=` is an assignment and no program.
    let Some(words) = words.filter(|words| words.first().is_some_and(|first| !first.contains('=')))
    else {
        return PermissionRuleTranslation::Comment("its words cannot be told".to_owned());
    };
    let rule = render_prefix_rule(permission, &words);
    match (end, allows) {
        (CommandPatternEnd::AnyWords, _) => PermissionRuleTranslation::Rule { rule, note: None },
        (CommandPatternEnd::AnySuffix, true) => PermissionRuleTranslation::Rule {
            rule,
            note: Some("here it ends at a whole word"),
        },
        (CommandPatternEnd::AnySuffix, false) => PermissionRuleTranslation::Rule {
            rule,
            note: Some("here it ends at a whole word; words that only begin so are NOT caught"),
        },
        // An exact permission becomes a prefix rule. To restrict more is fine; to allow more is
        // for a person to take in.
        (CommandPatternEnd::Exact, true) => PermissionRuleTranslation::BroaderRule {
            rule,
            note: "this very command only, and a rule allows more words after it",
        },
        (CommandPatternEnd::Exact, false) => PermissionRuleTranslation::Rule {
            rule,
            note: Some("here with any words after it, too"),
        },
    }
}

/// How a permission on a command ends.
enum CommandPatternEnd {
    /// Any words may follow.
    AnyWords,
    /// The last word may have any ending.
    AnySuffix,
    /// Nothing may follow.
    Exact,
}

fn render_prefix_rule(permission: &PermissionRule, words: &[String]) -> String {
    let list: Vec<String> = words
        .iter()
        .map(|word| quote_as_starlark_string(word))
        .collect();
    let list = list.join(", ");
    let (decision, why) = match permission.list {
        PermissionListKind::Allow => ("allow", None),
        PermissionListKind::Ask => ("prompt", Some("ask about")),
        PermissionListKind::Deny => ("forbidden", Some("deny")),
    };
    let why = why.map_or_else(String::new, |verb| {
        let why = format!("Claude Code's settings {verb} {}", permission.text);
        format!(", justification={}", quote_as_starlark_string(&why))
    });
    format!("prefix_rule(pattern=[{list}], decision=\"{decision}\", match=[[{list}]]{why})")
}

fn network_rule_from_permission(
    permission: &PermissionRule,
    specifier: &str,
) -> PermissionRuleTranslation {
    let Some(host) = specifier.strip_prefix("domain:").map(str::trim) else {
        return PermissionRuleTranslation::Comment("rules on hosts need domain:HOST".to_owned());
    };
    let odd = |c: char| !(c.is_ascii_alphanumeric() || ".-_".contains(c));
    if host.trim_matches('.').is_empty() || host.contains(odd) {
        return PermissionRuleTranslation::Comment("rules are on one host each".to_owned());
    }
    let rule = |decision: &str| {
        format!(
            "network_rule(host={}, protocol=\"https\", decision=\"{decision}\")",
            quote_as_starlark_string(host)
        )
    };
    let note = "for Codex's proxy; commands and WebFetch are not judged by it";
    match permission.list {
        PermissionListKind::Allow => PermissionRuleTranslation::BroaderRule {
            rule: rule("allow"),
            note: "one tool only, and a rule is about every program behind Codex's proxy",
        },
        PermissionListKind::Ask => PermissionRuleTranslation::Rule {
            rule: rule("prompt"),
            note: Some(note),
        },
        PermissionListKind::Deny => PermissionRuleTranslation::Rule {
            rule: rule("deny"),
            note: Some(note),
        },
    }
}

/// Returns the text as a string of the rules language.
fn quote_as_starlark_string(text: &str) -> String {
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

/// Returns the text on one line.
fn one_line_comment_text(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).collect()
}
