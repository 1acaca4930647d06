//! The key tables of docs/configuration.md, written from the table of keys.

use std::fmt::Write as _;

use checkrein_runtime::config::{AllowedConfigWord, ConfigKeySpec, ConfigValueKind, KEYS};

use super::{read, root};

const PAGE: &str = "docs/configuration.md";
const BEGIN: &str =
    "<!-- begin: written by CHECKREIN_BLESS=1 cargo test -p checkrein-cli --test docs -->\n";
const END: &str = "<!-- end -->\n";

#[test]
fn the_configuration_page_has_every_key_of_the_schema() {
    let page = read(PAGE);
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (shown, after) = rest.split_once(END).unwrap();
    let tables = tables();
    if std::env::var_os("CHECKREIN_BLESS").is_some() && shown != tables {
        let page = format!("{before}{BEGIN}{tables}{END}{after}");
        std::fs::write(root().join(PAGE), page).unwrap();
        return;
    }
    assert_eq!(shown, tables, "CHECKREIN_BLESS=1 rewrites it");
}

/// The rows of a table that this build acts on.
fn rows_of(table: &str) -> impl Iterator<Item = &'static ConfigKeySpec> {
    let of = KEYS
        .iter()
        .filter(move |spec| spec.table_of_config_key() == table);
    of.filter(|spec| spec.since.is_some())
}

/// The keys of a table and of the tables in it.
fn keys_below(table: &str) -> impl Iterator<Item = &'static ConfigKeySpec> {
    let below = move |spec: &&ConfigKeySpec| {
        let inside = spec.path.strip_prefix(table);
        inside.is_some_and(|rest| rest.starts_with('.')) && !spec.config_key_holds_table()
    };
    KEYS.iter()
        .filter(below)
        .filter(|spec| spec.since.is_some())
}

fn tables() -> String {
    let mut text = "\n### At the top\n\n".to_owned();
    rows(
        &mut text,
        rows_of("").filter(|spec| !spec.config_key_holds_table()),
    );
    for table in rows_of("").filter(|spec| spec.config_key_holds_table()) {
        let header = match table.value {
            ConfigValueKind::Tables => format!("[[{}]]", table.path),
            ConfigValueKind::Profiles => format!("[{}.NAME]", table.path),
            _ => format!("[{}]", table.path),
        };
        write!(text, "\n### `{header}`\n\n{}\n", table.doc).unwrap();
        match table.value {
            ConfigValueKind::Profiles => {
                text.push_str("Its keys are those of above, for instance `[profile.ci.stance]`.\n");
            }
            _ => {
                text.push('\n');
                rows(&mut text, keys_below(table.path));
            }
        }
    }
    text.push('\n');
    text
}

fn rows(text: &mut String, specs: impl Iterator<Item = &'static ConfigKeySpec>) {
    text.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
    for spec in specs {
        let (kind, default) = (kind(spec), default(spec));
        let meaning = meaning(spec);
        writeln!(
            text,
            "| `{}` | {kind} | {default} | {meaning} |",
            spec.path.split_once('.').map_or(spec.path, |(_, key)| key)
        )
        .unwrap();
    }
}

fn words(spec: &ConfigKeySpec) -> Option<impl Iterator<Item = &'static AllowedConfigWord>> {
    match spec.value {
        ConfigValueKind::OneOf(words) | ConfigValueKind::AnyOf(words) => {
            Some(words.iter().filter(|word| word.acts))
        }
        _ => None,
    }
}

fn kind(spec: &ConfigKeySpec) -> String {
    let choices = || {
        let words = words(spec).into_iter().flatten();
        let quoted: Vec<String> = words.map(|word| format!("`\"{}\"`", word.text)).collect();
        quoted.join(", ")
    };
    match spec.value {
        ConfigValueKind::Text => "text".to_owned(),
        ConfigValueKind::Flag => "`true`, `false`".to_owned(),
        ConfigValueKind::Count(least) => format!("whole number, {least} or more"),
        ConfigValueKind::Order => "whole number".to_owned(),
        ConfigValueKind::Share => "number, 0 to 1".to_owned(),
        ConfigValueKind::ShareAboveZero => "number above 0, to 1".to_owned(),
        ConfigValueKind::Dollars => "number above 0".to_owned(),
        ConfigValueKind::Span { .. } => "span of time".to_owned(),
        ConfigValueKind::Size(least) => format!("size, {least} or more"),
        ConfigValueKind::OneOf(_) => choices(),
        ConfigValueKind::AnyOf(_) => format!("list of {}", choices()),
        ConfigValueKind::Texts => "list of text".to_owned(),
        ConfigValueKind::Table | ConfigValueKind::Tables | ConfigValueKind::Profiles => {
            panic!("{} is no key", spec.path)
        }
    }
}

fn default(spec: &ConfigKeySpec) -> String {
    let example = spec.example.unwrap_or_default();
    match spec.default {
        Some(default) => match spec.run_default {
            Some(run) => format!("`{default}`; under `run` `{run}`"),
            None => format!("`{default}`"),
        },
        None if spec.required => format!("required, such as `{example}`"),
        None => format!("none; such as `{example}`"),
    }
}

fn meaning(spec: &ConfigKeySpec) -> String {
    let mut text = spec.doc.to_owned();
    if let Some(words) = words(spec) {
        let words: Vec<String> = words
            .map(|word| format!("`{}`: {}", word.text, word.meaning))
            .collect();
        write!(text, " {}.", words.join("; ")).unwrap();
    }
    text.replace('|', "\\|")
}
